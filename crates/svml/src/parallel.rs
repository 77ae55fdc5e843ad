//! Loops whose tasks are spread over the threads of the current pool, and pools for parts of the work.
//!
//! Rayon's parallel iterators are compiled anew for each use, which was a sixth of the code that the compiler had to optimise.
//! Here they are compiled once, for tasks behind a pointer. A task costs some nanoseconds for that pointer and for the place
//! of its result, so that it should be a tile, a row or an SVM. Single numbers are done in chunks.
//!
//! A task may itself begin such a loop. Results stand in the order of the items, never in that in which threads finish.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::error::Result;
use crate::memory;

/// The name of threads, for those who look at a process.
const NAME: &str = "svml";

/// The bytes of a thread's stack, as many as are usual in Rust.
const STACK: usize = 2 << 20;

/// So many threads, or none if one of them cannot be started or has no room for what it allocates.
pub fn pool(threads: usize) -> Option<ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    match memory::is_limited() {
        true => pool.spawn_handler(start_if_there_is_room).build().ok(),
        false => pool.stack_size(STACK).thread_name(|_| NAME.to_owned()).build().ok(),
    }
}

/// Starts a thread of a pool, and waits until it has its memory: for a moment the C library reserves more addresses than a
/// thread keeps, which a thread that begins meanwhile would lack.
fn start_if_there_is_room(thread: rayon::ThreadBuilder) -> io::Result<()> {
    let no_room = || io::Error::from(io::ErrorKind::OutOfMemory);
    if !memory::thread_can_begin(STACK) {
        return Err(no_room());
    }
    let (tell, told) = channel();
    let begin = move || {
        let has_room = memory::thread_has_room();
        // It is waited for below.
        let _ = tell.send(has_room);
        if has_room {
            thread.run();
        }
    };
    thread::Builder::new().name(NAME.to_owned()).stack_size(STACK).spawn(begin)?;
    if told.recv() == Ok(true) { Ok(()) } else { Err(no_room()) }
}

/// What `task` makes of each item, in the order of the items.
pub fn map<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    task: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let items = items.into_iter();
    let mut places = Vec::with_capacity(items.size_hint().0);
    for item in items {
        places.push(Place { item: Some(item), task: &task, result: None });
    }
    let mut tasks: Vec<&mut dyn Task> = Vec::with_capacity(places.len());
    for place in &mut places {
        tasks.push(place);
    }
    run(&mut tasks);
    let mut results = Vec::with_capacity(places.len());
    for place in places {
        // There is a result in every place: a panic of a task does not come back to here.
        if let Some(result) = place.result {
            results.push(result);
        }
    }
    results
}

/// Does `task` with each item.
pub fn for_each<I: Send>(items: impl IntoIterator<Item = I>, task: impl Fn(I) + Sync) {
    map(items, task);
}

/// What `task` makes of each item, in the order of the items, or the first error in that order.
///
/// After an error no item behind it is begun. Those before it are, because one of them may have an error too; if the error
/// says that a run was interrupted, they find that out for themselves.
pub fn try_map<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    task: impl Fn(I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let failed = AtomicUsize::new(usize::MAX);
    let tried = map(items.into_iter().enumerate(), |(number, item)| {
        if number > failed.load(Ordering::Relaxed) {
            return None;
        }
        let result = task(item);
        if result.is_err() {
            failed.fetch_min(number, Ordering::Relaxed);
        }
        Some(result)
    });
    let mut results = Vec::with_capacity(tried.len());
    for result in tried.into_iter().flatten() {
        results.push(result?);
    }
    Ok(results)
}

/// Does `task` with each item, or returns the first error in the order of the items, as [`try_map`] does.
pub fn try_for_each<I: Send>(
    items: impl IntoIterator<Item = I>,
    task: impl Fn(I) -> Result<()> + Sync,
) -> Result<()> {
    try_map(items, task).map(|_| ())
}

/// An item, what is done with it, and what comes of it.
struct Place<'a, I, T, F> {
    item: Option<I>,
    task: &'a F,
    result: Option<T>,
}

/// A place whose types are hidden.
trait Task: Send {
    fn run(&mut self);
}

impl<I: Send, T: Send, F: Fn(I) -> T + Sync> Task for Place<'_, I, T, F> {
    fn run(&mut self) {
        self.result = self.item.take().map(self.task);
    }
}

/// Runs all tasks on the threads of the current pool.
fn run(tasks: &mut [&mut dyn Task]) {
    tasks.par_iter_mut().for_each(|task| task.run());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::error::Error;

    fn with_threads<T: Send>(threads: usize, act: impl FnOnce() -> T + Send) -> T {
        let pool = pool(threads).unwrap();
        assert_eq!(pool.current_num_threads(), threads);
        pool.install(act)
    }

    #[test]
    fn results_have_the_order_of_the_items() {
        for threads in [1, 2, 5] {
            for count in [0, 1, 2, 1000] {
                let found = with_threads(threads, || map(0..count, |i| i * i));
                assert_eq!(found, (0..count).map(|i| i * i).collect::<Vec<usize>>());
            }
        }
    }

    #[test]
    fn items_are_moved_and_results_need_not_be_shared() {
        let items: Vec<String> = (0..10).map(|i| i.to_string()).collect();
        let found = map(items.clone(), std::cell::Cell::new);
        assert_eq!(found.into_iter().map(|cell| cell.into_inner()).collect::<Vec<_>>(), items);
    }

    #[test]
    fn chunks_that_are_zipped_are_filled() {
        let (mut out, from): (Vec<f64>, Vec<f64>) =
            (vec![0.0; 103], (0..103).map(f64::from).collect());
        for_each(out.chunks_mut(10).zip(from.chunks(10)).enumerate(), |(t, (out, from))| {
            out.iter_mut().zip(from).for_each(|(out, from)| *out = from + 1000.0 * t as f64);
        });
        let expected = (0..103).map(|i| f64::from(i) + 1000.0 * f64::from(i / 10));
        assert!(out.into_iter().eq(expected));
    }

    #[test]
    fn the_first_error_in_order_is_returned() {
        let error = |row| Error::Missing { row, column: String::new() };
        for threads in [1, 2, 5] {
            for _ in 0..20 {
                let failing = |i: usize| if i % 100 == 37 { Err(error(i)) } else { Ok(i) };
                let found = with_threads(threads, || try_map(0..1000, failing));
                assert!(matches!(found, Err(Error::Missing { row: 37, .. })));
                let failing = |i: usize| failing(i).map(|_| ());
                let found = with_threads(threads, || try_for_each(500..1000, failing));
                assert!(matches!(found, Err(Error::Missing { row: 537, .. })));
            }
        }
        assert_eq!(try_map(0..5, Ok).unwrap(), [0, 1, 2, 3, 4]);
        assert!(try_map(0..0, |_: usize| Err::<(), _>(Error::Interrupted)).unwrap().is_empty());
    }

    #[test]
    fn nothing_behind_an_error_is_begun() {
        let begun = AtomicUsize::new(0);
        let task = |_: usize| -> Result<()> {
            begun.fetch_add(1, Ordering::Relaxed);
            Err(Error::Interrupted)
        };
        assert!(with_threads(1, || try_for_each(0..1000, task)).is_err());
        assert_eq!(begun.into_inner(), 1);
    }

    #[test]
    fn a_task_may_begin_a_loop() {
        for threads in [1, 2, 5] {
            let inner = |i: usize| map(0..i, |j| j).into_iter().sum::<usize>();
            let sums = with_threads(threads, || map(0..100, inner));
            assert!(sums.into_iter().eq((0..100_usize).map(|i| i * i.saturating_sub(1) / 2)));
        }
    }

    #[test]
    fn a_panic_is_passed_on() {
        let ended = AtomicBool::new(false);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for_each(0..10, |i| assert!(i != 7, "seven"));
            ended.store(true, Ordering::Relaxed);
        }));
        assert!(caught.is_err() && !ended.into_inner());
    }
}
