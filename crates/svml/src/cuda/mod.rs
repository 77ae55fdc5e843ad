//! The device layer: cards of NVIDIA through the libraries of CUDA, which are found when a card is first asked for.
//!
//! * [`open`] gives a card, [`Gpu`]: once for each number, for the life of the process. It has a name, a memory with a
//!   limit of ours, and the functions of `kernels.cu`, compiled for it when it was opened.
//! * [`Lane`] is a queue of work on the card with its own handles of cuBLAS and cuSOLVER. [`Gpu::lane`] lends one; each
//!   operation of a thread borrows one and gives it back, so that what threads do side by side is side by side on the
//!   card too. A lane does its work in order, and has done all of it when it is given back.
//! * [`Buffer`] is memory on the card, [`View`] a matrix within it, stored by columns: a row-major matrix of ours is the
//!   transposed one there, and one of its rows is a column.
//!
//! Work is asked for and done later. What is on the card may be written through a shared reference: who uses one buffer
//! on two lanes sees to it that the first has done its work ([`Lane::synchronise`], or giving it back) before the second
//! is asked. A buffer may be dropped at any time: its memory is used again only when all lanes that were lent at that
//! time have been given back.
//!
//! Sums have a fixed order, on one lane as on many: each lane has one queue and its own workspace, and the kernels here
//! use no atomic additions. So a card gives the same bits from run to run; another kind of card may give others.

mod compile;
mod lane;
mod library;
mod memory;

pub use lane::{Argument, Lane, MOST_BLOCKS, Number, Operand, Real, Side, View, transposed};
pub use memory::{Buffer, Limit, Taken};

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};

use crate::error::{Error, Remedy, Result};
use lane::Queue;
use library::{Handle, Libraries};
use memory::Pool;

/// The sources of kernels, each compiled as a module of its own. A new one is a line here.
const SOURCES: &[(&str, &str)] =
    &[("kernels.cu", include_str!("kernels.cu")), ("landmarks.cu", include_str!("landmarks.cu"))];

/// At most so many lanes are lent at a time; more threads wait.
const LANES: usize = 32;

/// A card.
pub struct Gpu {
    number: u32,
    name: String,
    total: usize,
    capability: (i32, i32),
    /// How many times slower numbers of 64 bits are than those of 32.
    ratio: i32,
    /// What tests want of factors: 1 for numbers of 32 bits, 2 for those of 64.
    wanted: AtomicU8,
    multiprocessors: i32,
    libraries: &'static Libraries,
    context: usize,
    modules: Vec<usize>,
    functions: Mutex<HashMap<&'static str, usize>>,
    pool: Mutex<Pool>,
    lanes: Mutex<Lanes>,
    /// Signals that a lane was given back.
    returned: Condvar,
}

#[derive(Default)]
struct Lanes {
    idle: Vec<Queue>,
    made: usize,
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())
    }
}

/// The card of this number, from 0. The first call for a number takes some tenths of a second; what it finds, or fails to
/// find, stays so.
pub fn open(number: u32) -> Result<&'static Gpu> {
    type Opened = std::result::Result<&'static Gpu, String>;
    static CARDS: Mutex<Vec<(u32, Opened)>> = Mutex::new(Vec::new());
    let device = || format!("cuda:{number}");
    let mut cards = CARDS.lock().map_err(|_| failure(device(), "an earlier call panicked"))?;
    let known = cards.iter().find(|(known, _)| *known == number).map(|(_, card)| card.clone());
    let card = known.unwrap_or_else(|| {
        let card = libraries().and_then(|libraries| Gpu::new(number, libraries));
        let card = card.map(|card| &*Box::leak(Box::new(card)));
        cards.push((number, card.clone()));
        card
    });
    card.map_err(|reason| failure(device(), &reason))
}

fn libraries() -> std::result::Result<&'static Libraries, String> {
    static LIBRARIES: OnceLock<std::result::Result<Libraries, String>> = OnceLock::new();
    LIBRARIES.get_or_init(Libraries::load).as_ref().map_err(Clone::clone)
}

/// An error of a card.
fn failure(device: String, reason: &str) -> Error {
    Error::Device { device, reason: reason.to_owned(), remedy: Remedy::UseProcessor }
}

impl Gpu {
    #[allow(unsafe_code)]
    fn new(number: u32, libraries: &'static Libraries) -> std::result::Result<Self, String> {
        let driver = &libraries.driver;
        let asked = |status: c_int, what: &str| match status {
            0 => Ok(()),
            _ => Err(format!("{what} failed: {}", driver_text(libraries, status))),
        };
        let (mut count, mut device) = (0, 0);
        // SAFETY: each call writes the one value that it is given the address of; the driver is initialised first.
        unsafe {
            asked((driver.init)(0), "starting the driver")?;
            asked((driver.count)(&raw mut count), "counting the GPUs")?;
            if number as i64 >= i64::from(count) {
                return Err(match count {
                    0 => "the driver finds no GPU".to_owned(),
                    _ => format!(
                        "the driver finds {count} GPU(s), the last of which is cuda:{}",
                        count - 1
                    ),
                });
            }
            asked((driver.device)(&raw mut device, number as c_int), "opening the GPU")?;
        }
        let attribute = |which: c_int| {
            let mut value = 0;
            // SAFETY: writes one integer, of a card that was just found.
            let status = unsafe { (driver.attribute)(&raw mut value, which, device) };
            asked(status, "querying an attribute of the GPU").map(|()| value)
        };
        // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, MINOR, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO.
        let (capability, ratio) = ((attribute(75)?, attribute(76)?), attribute(87)?);
        // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT.
        let multiprocessors = attribute(16)?;
        // The kernels are compiled while the driver makes the context.
        let compile = |(file, source): &(&str, &str)| {
            compile::compile(&libraries.compiler, file, source, Some(capability))
        };
        let (programs, context) = std::thread::scope(|scope| {
            let compiling: Vec<_> =
                SOURCES.iter().map(|source| scope.spawn(move || compile(source))).collect();
            let mut context = std::ptr::null_mut();
            // SAFETY: writes one handle, that of the context of a card that was just found.
            let status = unsafe { (driver.retain)(&raw mut context, device) };
            let panicked = |_| Err("the compiler of kernels panicked".to_owned());
            let programs: Vec<_> = compiling
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(panicked))
                .collect();
            (programs, asked(status, "opening a context on the GPU").map(|()| context as usize))
        });
        let context = context? as Handle;
        let mut name = [0 as c_char; 128];
        let (mut free, mut total) = (0, 0);
        // SAFETY: the name is written with its end into 128 bytes; the context is that of a card that was just found.
        let name = unsafe {
            asked((driver.name)(name.as_mut_ptr(), 127, device), "querying the name of the GPU")?;
            asked((driver.set_current)(context), "opening a context on the GPU")?;
            asked(
                (driver.memory)(&raw mut free, &raw mut total),
                "querying the memory of the GPU",
            )?;
            CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
        };
        let mut modules = Vec::new();
        for ((file, _), program) in SOURCES.iter().zip(programs) {
            let program = program?;
            let mut module = std::ptr::null_mut();
            // SAFETY: the program is a whole image, PTX with a zero at its end.
            let status = unsafe { (driver.load_module)(&raw mut module, program.as_ptr().cast()) };
            asked(status, &format!("loading {file}"))?;
            modules.push(module as usize);
        }
        Ok(Self {
            number,
            name,
            total,
            capability,
            ratio,
            wanted: AtomicU8::new(0),
            multiprocessors,
            libraries,
            context: context as usize,
            modules,
            functions: Mutex::default(),
            pool: Mutex::new(Pool::new(free)),
            lanes: Mutex::default(),
            returned: Condvar::new(),
        })
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its name, as in `NVIDIA H200`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number and name, as in `cuda:0 (NVIDIA H200)`.
    pub fn label(&self) -> String {
        format!("cuda:{} ({})", self.number, self.name)
    }

    /// All of its memory, in bytes.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Its compute capability, as in (9, 0).
    pub fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// How many multiprocessors it has, at least one.
    pub fn multiprocessors(&self) -> u32 {
        u32::try_from(self.multiprocessors).unwrap_or(0).max(1)
    }

    /// Whether it computes with numbers of 64 bits nearly as fast as with those of 32, as cards for computing centres do.
    pub fn has_fast_doubles(&self) -> bool {
        self.ratio <= 4
    }

    /// Whether matrices are factored in numbers of 32 bits, and what is solved with them refined in those of 64.
    pub fn factors_in_single(&self) -> bool {
        match self.wanted.load(Ordering::Relaxed) {
            0 => !self.has_fast_doubles(),
            wanted => wanted == 1,
        }
    }

    /// Says so for tests, whatever the card is good at; `None` leaves it to the card.
    pub fn force_single(&self, single: Option<bool>) {
        let wanted = single.map_or(0, |single| if single { 1 } else { 2 });
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    /// The error that something failed on this card.
    pub fn failure(&self, reason: &str) -> Error {
        failure(format!("cuda:{}", self.number), reason)
    }

    /// A lane of its own for one operation; waits where all are lent. Who holds one does not ask for another, and does
    /// not wait for other threads.
    pub fn lane(&'static self) -> Result<Lane> {
        self.make_current()?;
        let mut lanes = self.lock(&self.lanes)?;
        // Whether the card has no room for another.
        let mut crowded = false;
        loop {
            if let Some(queue) = lanes.idle.pop() {
                drop(lanes);
                return Lane::new(self, queue);
            }
            if lanes.made < LANES && !crowded {
                let number = lanes.made;
                lanes.made += 1;
                drop(lanes);
                let error = match Queue::new(self, number) {
                    Ok(queue) => return Lane::new(self, queue),
                    Err(error) => error,
                };
                lanes = self.lock(&self.lanes)?;
                // Its number is taken again only if it is the last, so that no two have the same.
                if lanes.made == number + 1 {
                    lanes.made = number;
                }
                // One that is lent will do once it is given back, unless there is none.
                crowded = matches!(error, Error::TooLarge { .. }) && lanes.made > 0;
                if !crowded {
                    return Err(error);
                }
                continue;
            }
            lanes = self.returned.wait(lanes).map_err(|_| self.panicked())?;
        }
    }

    fn give_back(&self, queue: Queue) {
        if let Ok(mut pool) = self.pool.lock() {
            pool.returned(queue.number);
        }
        if let Ok(mut lanes) = self.lanes.lock() {
            lanes.idle.push(queue);
        }
        self.returned.notify_one();
    }

    /// The context of the card for this thread, which every call needs.
    #[allow(unsafe_code)]
    fn make_current(&self) -> Result<()> {
        // SAFETY: the context lives as long as the process.
        let status = unsafe { (self.libraries.driver.set_current)(self.context as Handle) };
        self.check(status, "opening the GPU for a thread")
    }

    fn lock<'m, T>(&self, mutex: &'m Mutex<T>) -> Result<MutexGuard<'m, T>> {
        mutex.lock().map_err(|_| self.panicked())
    }

    fn panicked(&self) -> Error {
        self.failure("an earlier operation on it panicked")
    }

    /// A status of the driver as a result.
    fn check(&self, status: c_int, what: &str) -> Result<()> {
        match status {
            0 => Ok(()),
            _ => {
                let text = driver_text(self.libraries, status);
                Err(self.failure(&format!("{what} failed: {text}")))
            }
        }
    }

    /// The function of a kernel.
    #[allow(unsafe_code)]
    fn function(&self, name: &'static str) -> Result<Handle> {
        let mut functions = self.lock(&self.functions)?;
        if let Some(function) = functions.get(name) {
            return Ok(*function as Handle);
        }
        let text =
            CString::new(name).map_err(|_| self.failure("a kernel has an impossible name"))?;
        for module in &self.modules {
            let mut function = std::ptr::null_mut();
            // SAFETY: the module is one of those loaded for this card, and the name ends in a zero.
            let status = unsafe {
                (self.libraries.driver.function)(
                    &raw mut function,
                    *module as Handle,
                    text.as_ptr(),
                )
            };
            if status == 0 {
                functions.insert(name, function as usize);
                return Ok(function);
            }
        }
        Err(self.failure(&format!("there is no kernel {name}")))
    }
}

/// What the driver says of a status.
#[allow(unsafe_code)]
fn driver_text(libraries: &Libraries, status: c_int) -> String {
    let mut text = std::ptr::null();
    // SAFETY: writes the address of a constant text, or none.
    let said = unsafe { (libraries.driver.error_text)(status, &raw mut text) };
    if said != 0 || text.is_null() {
        return format!("CUDA error {status}");
    }
    // SAFETY: a constant text of the driver, which ends in a zero.
    let text = unsafe { CStr::from_ptr(text) };
    format!("CUDA error {status}, {}", text.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_that_is_not_there_is_an_error_that_says_what_was_looked_for() {
        // No computer has so many.
        let error = open(1_000_000).unwrap_err();
        assert!(matches!(error, Error::Device { .. }), "{error}");
        let text = error.to_string();
        assert!(text.starts_with("cuda:1000000 cannot be used: "), "{text}");
        // Twice the same.
        assert_eq!(open(1_000_000).unwrap_err().to_string(), text);
    }
}
