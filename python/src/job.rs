//! A call as a job on threads of its own, while the interpreter goes on.
//!
//! The calling thread lets go of the interpreter's lock, looks for signals every few milliseconds and hands
//! the steps of a fit to an observer. No thread outlives its call, so a process may fork at any time.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use serde_json::json;
use svml::{Method, Progress, Step};

use crate::convert::{object, to_python};

/// Time between two looks for signals.
const POLL: Duration = Duration::from_millis(10);
/// Time in which a job that was told to end may do so before its result is no longer waited for.
const GRACE: Duration = Duration::from_millis(100);

/// What a job tells the thread that waits for it.
enum Event<T> {
    /// A step of a fit.
    Step(Step),
    /// The end; a panic is a text.
    Done(Result<svml::Result<T>, String>),
}

/// The job's side of the conversation: a step goes out, whether to go on comes back.
pub struct Reporter<T> {
    events: Sender<Event<T>>,
    answers: Receiver<ControlFlow<()>>,
}

impl<T> Reporter<T> {
    /// Hands over a step and waits for the answer.
    pub fn report(&self, step: &Step) -> ControlFlow<()> {
        // Whoever has gone wants no more steps.
        if self.events.send(Event::Step(*step)).is_err() {
            return ControlFlow::Break(());
        }
        self.answers.recv().unwrap_or(ControlFlow::Break(()))
    }
}

/// Who sees the steps of a fit: a callable of Python, and what says how far the fit is.
pub struct Observer<'a, 'py> {
    callable: &'a Bound<'py, PyAny>,
    progress: Progress,
}

impl<'a, 'py> Observer<'a, 'py> {
    /// Of a fit by this method.
    pub fn new(callable: &'a Bound<'py, PyAny>, method: &Method) -> Self {
        Self { callable, progress: Progress::new(method) }
    }
}

/// What a signal does to a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// It ends the wait at once, with the exception of the signal.
    Raises,
    /// It ends the job, whose best so far is waited for; a second one ends the wait.
    KeepsTheBest,
}

/// Runs a job that has no steps and cannot be interrupted.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    threads: usize,
    job: impl FnOnce() -> svml::Result<T> + Send + 'static,
) -> PyResult<T> {
    let never = AtomicBool::new(false);
    run_watched(py, threads, &never, None, Interrupt::Raises, move |_| job())
}

/// Runs a job on `threads` threads, or one where there is no room for them, without the interpreter's lock. A signal, or
/// an exception of the observer, raises the flag and, unless the best so far is wanted, ends the wait.
pub fn run_watched<T: Send + 'static>(
    py: Python<'_>,
    threads: usize,
    interrupt: &AtomicBool,
    mut observer: Option<Observer<'_, '_>>,
    on_interrupt: Interrupt,
    job: impl FnOnce(&Reporter<T>) -> svml::Result<T> + Send + 'static,
) -> PyResult<T> {
    let pool = pool(threads.max(1))?;
    let (events, mut inbox) = channel();
    let (reply, answers) = channel();
    pool.spawn(move || {
        let reporter = Reporter { events, answers };
        let done = catch_unwind(AssertUnwindSafe(|| job(&reporter)));
        // If nobody waits any more, nobody wants to know.
        let _ = reporter.events.send(Event::Done(done.map_err(|cause| panic_text(&*cause))));
    });
    // The signal that has ended the job, if it has.
    let mut signal: Option<PyErr> = None;
    loop {
        let event;
        (inbox, event) = py.detach(move || {
            let event = inbox.recv_timeout(POLL);
            (inbox, event)
        });
        let ended = match event {
            Ok(Event::Done(Ok(result))) => {
                return match (result, signal) {
                    // There was nothing to keep yet.
                    (Err(svml::Error::Interrupted), Some(signal)) => Err(signal),
                    (result, _) => result.map_err(to_python),
                };
            }
            Ok(Event::Done(Err(panic))) => return Err(internal(&panic)),
            Err(RecvTimeoutError::Disconnected) => return Err(internal("a job without an end")),
            Err(RecvTimeoutError::Timeout) => py.check_signals().err(),
            Ok(Event::Step(step)) => match ask(py, observer.as_mut(), &step) {
                Ok(answer) => {
                    // A job that has ended meanwhile says so itself.
                    let _ = reply.send(answer);
                    py.check_signals().err()
                }
                Err(error) => Some(error),
            },
        };
        if let Some(error) = ended {
            interrupt.store(true, Ordering::Relaxed);
            let is_signal = error.is_instance_of::<PyKeyboardInterrupt>(py);
            if is_signal && signal.is_none() && on_interrupt == Interrupt::KeepsTheBest {
                signal = Some(error);
                // A job whose step the signal has kept from being answered waits for that answer.
                let _ = reply.send(ControlFlow::Break(()));
                continue;
            }
            drop(reply);
            // As a rule it ends at once, and its memory is free again before the caller goes on.
            py.detach(move || while let Ok(Event::Step(_)) = inbox.recv_timeout(GRACE) {});
            return Err(error);
        }
    }
}

/// So many threads, or one where the address space is too small for more of them.
///
/// The C library reserves addresses with the first allocation of a thread, so that this happens here, not after something large
/// was found to have room.
fn pool(threads: usize) -> PyResult<rayon::ThreadPool> {
    let started = svml::internals::pool;
    started(threads).or_else(|| started(1)).ok_or_else(|| {
        PyMemoryError::new_err(
            "no thread could be started: the process has less than the 130 MB of address space left that one needs \
             (ulimit -v), or may start no more threads (ulimit -u); raise that limit",
        )
    })
}

/// Shows a step, as a dict, to the observer; a true answer ends the fit.
fn ask(
    py: Python<'_>,
    observer: Option<&mut Observer<'_, '_>>,
    step: &Step,
) -> PyResult<ControlFlow<()>> {
    let Some(observer) = observer else {
        return Ok(ControlFlow::Continue(()));
    };
    let mut value = json!(step);
    // Files do not hold the time, so it is not part of a step's JSON.
    value["seconds"] = json!(step.seconds);
    value["progress"] = json!(observer.progress.at(step).to_string());
    let stop = observer.callable.call1((object(py, &value)?,))?.is_truthy()?;
    Ok(if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
}

/// The text of a panic.
pub fn panic_text(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| cause.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown cause".to_owned())
}

/// The exception for what should not happen.
pub fn internal(cause: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "internal error of svml ({cause}); please report it with the data that caused it"
    ))
}
