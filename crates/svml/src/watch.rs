//! When to stop: the flag and the deadline that long computations ask, and why learning ended.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use crate::checkpoint::Key;
use crate::checkpoint::Store;
use crate::cuda::{self, Gpu};
use crate::device::{Device, PROCESSOR, Speed, Work};
use crate::error::{Error, Remedy, Result};
use crate::memory::Lack;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub use standing::Instant;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use std::time::Instant;

/// WebAssembly without a system around it has no clock, and asking for the time would be a panic. Time stands still
/// there: steps take no time, and a time limit is never reached.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod standing {
    use std::ops::Add;
    use std::time::Duration;

    /// A time after the start.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Instant(Duration);

    impl Instant {
        /// The start, always.
        pub fn now() -> Self {
            Self(Duration::ZERO)
        }

        /// No time.
        pub fn elapsed(&self) -> Duration {
            Duration::ZERO
        }

        /// The time from an earlier one to this, or none.
        pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
            self.0.saturating_sub(earlier.0)
        }

        /// A later time, if there is such a number.
        pub fn checked_add(&self, later: Duration) -> Option<Self> {
            self.0.checked_add(later).map(Self)
        }
    }

    impl Add<Duration> for Instant {
        type Output = Self;
        fn add(self, later: Duration) -> Self {
            Self(self.0.saturating_add(later))
        }
    }
}

/// Why learning ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// The result on the rows set apart for early stopping has not improved for some steps.
    #[serde(alias = "hold_out")]
    EarlyStopping,
    /// The value fell by less than the tolerance.
    Tolerance,
    /// No direction lowers the value any more: a minimum, to the precision of the line search.
    Minimum,
    /// The limit on the number of steps was reached.
    Iterations,
    /// The time limit was reached.
    TimeLimit,
    /// The observer or the interrupt flag asked for it.
    Interrupted,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EarlyStopping => "the error on the early-stopping rows no longer fell",
            Self::Tolerance => "the loss fell by less than the tolerance",
            Self::Minimum => "a minimum was reached",
            Self::Iterations => "the iteration limit was reached",
            Self::TimeLimit => "the time limit was reached",
            Self::Interrupted => "it was interrupted",
        })
    }
}

impl Stop {
    /// Whether it was ended from outside: by the time limit, the interrupt flag or the observer.
    pub fn is_early(self) -> bool {
        matches!(self, Self::TimeLimit | Self::Interrupted)
    }
}

/// What failed on a card, as the error that the next check makes of it.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The card failed.
    Failed { device: String, reason: String },
    /// It had too little memory.
    Memory { what: String, bytes: u128, limit: u128 },
}

/// The process that has opened a card. One that is forked from it inherits the memory of the driver, which does not work there.
static OPENED_BY: OnceLock<u32> = OnceLock::new();

/// The card of this number, opened once in a process.
fn open(number: u32) -> Result<&'static Gpu> {
    let own = std::process::id();
    if OPENED_BY.get().is_some_and(|opened_by| *opened_by != own) {
        return Err(Error::Device {
            device: Device::Cuda(number).to_string(),
            reason: "this process was forked from one that had already used CUDA, which CUDA does not allow; start processes with spawn, or fork before the first use"
                .to_owned(),
            remedy: Remedy::UseProcessor,
        });
    }
    let gpu = cuda::open(number)?;
    OPENED_BY.get_or_init(|| own);
    Ok(gpu)
}

/// What the cost model knows of a card.
fn speed(gpu: &Gpu) -> Speed {
    Speed { multiprocessors: gpu.multiprocessors(), fast_doubles: gpu.has_fast_doubles() }
}

/// Under which a checkpoint notes that a card was used.
fn card_key() -> Key {
    Key::new("on a card")
}

/// An interrupt flag, the time of the start and an optional deadline; and results of a fit that was killed.
#[derive(Clone, Debug)]
pub struct Watch {
    pub(crate) interrupt: Arc<AtomicBool>,
    pub(crate) started: Instant,
    pub(crate) deadline: Option<Instant>,
    /// Whether a kernel matrix got less memory than it asked for.
    pub(crate) lack: Arc<OnceLock<Lack>>,
    pub(crate) store: Option<Arc<Store>>,
    /// The card that may be used, once it is open.
    pub(crate) gpu: Option<&'static Gpu>,
    /// What failed on it within a computation that cannot fail where it stands.
    pub(crate) trouble: Arc<OnceLock<Trouble>>,
    /// Whether the fit was ended, or something left out because the time would not have sufficed.
    pub(crate) hurried: Arc<AtomicBool>,
    /// The device that was asked for.
    pub(crate) device: Device,
    /// Whether anything was computed on it.
    pub(crate) on_card: Arc<AtomicBool>,
    /// Whether nobody wants the result any more of one part of a fit.
    pub(crate) abandoned: Option<Arc<AtomicBool>>,
    /// How many columns of a kernel matrix there may be, if they are counted, and how many there are.
    pub(crate) columns: Option<Arc<(usize, AtomicUsize)>>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            interrupt: Arc::default(),
            started: Instant::now(),
            deadline: None,
            lack: Arc::default(),
            store: None,
            gpu: None,
            trouble: Arc::default(),
            hurried: Arc::default(),
            device: Device::Auto,
            on_card: Arc::default(),
            abandoned: None,
            columns: None,
        }
    }
}

impl Watch {
    /// Whether results are recorded. Where they are not, nobody needs a key.
    pub(crate) fn records(&self) -> bool {
        self.store.is_some()
    }

    /// The result of a key, if a fit that was killed has recorded it.
    pub(crate) fn recall<T: DeserializeOwned>(&self, key: Option<Key>) -> Option<T> {
        self.store.as_ref().zip(key).and_then(|(store, key)| store.recall(key))
    }

    /// Records a result that was begun at some time; unless memory ended meanwhile, so that it is none.
    pub(crate) fn record<T: Serialize>(
        &self,
        key: Option<Key>,
        value: &T,
        begun: Instant,
    ) -> Result<()> {
        match self.store.as_ref().zip(key) {
            Some((store, key)) => {
                self.check_memory()?;
                store.record(key, value, begun.elapsed())
            }
            None => Ok(()),
        }
    }

    /// What a computation gives that depends on its key alone: recorded, or computed now.
    pub(crate) fn remember<T: Serialize + DeserializeOwned>(
        &self,
        key: impl FnOnce() -> Key,
        compute: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let key = self.records().then(key);
        if let Some(known) = self.recall(key) {
            return Ok(known);
        }
        let begun = Instant::now();
        let value = compute()?;
        self.record(key, &value, begun)?;
        Ok(value)
    }

    /// A watch that never ends anything, with the device that it names.
    pub fn on_device(device: Device) -> Result<Self> {
        let mut watch = Self { device, ..Self::default() };
        watch.open_card(|_| true)?;
        Ok(watch)
    }

    /// Opens the card that was asked for; or the first, if there is one and it pays.
    pub(crate) fn open_card(&mut self, pays: impl Fn(Speed) -> bool) -> Result<()> {
        self.on_card = Arc::default();
        self.gpu = match self.device {
            Device::Cpu => None,
            Device::Cuda(number) => Some(open(number)?),
            // To look for a card takes time too, which is lost if not even the fastest would pay.
            Device::Auto if !pays(Speed::FASTEST) => None,
            // One that is not there, or does not work, is as good as none.
            Device::Auto => open(0).ok().filter(|gpu| pays(speed(gpu))),
        };
        Ok(())
    }

    /// Whether a card was asked for by its name: then it is used whatever the size.
    pub(crate) fn asks_for_card(&self) -> bool {
        matches!(self.device, Device::Cuda(_))
    }

    /// The card, if it is the place for a kernel matrix: always if it was asked for, else if it pays.
    pub(crate) fn card_for(&self, work: Work) -> Option<&'static Gpu> {
        self.gpu.filter(|gpu| self.asks_for_card() || work.pays(speed(gpu)))
    }

    /// Notes that something is computed on the card. A fit that goes on after a kill need not compute it again, and says the
    /// same.
    pub(crate) fn uses_card(&self) {
        if !self.on_card.swap(true, Ordering::Relaxed)
            && let Some(store) = &self.store
        {
            // What cannot be recorded is found out again.
            let _ = store.record(card_key(), &true, Duration::from_secs(1));
        }
    }

    /// Takes over what a fit that was killed has noted.
    pub(crate) fn recall_card(&self) {
        if self.recall(Some(card_key())) == Some(true) {
            self.on_card.store(true, Ordering::Relaxed);
        }
    }

    /// What results depend on besides data and parameters: the card, if one may be used.
    pub(crate) fn in_key(&self, key: Key) -> Key {
        self.gpu.map_or(key, |gpu| key.text(&gpu.label()))
    }

    /// Where the fit was computed, as its report has it.
    pub(crate) fn computed_on(&self) -> String {
        match self.gpu {
            Some(gpu) if self.on_card.load(Ordering::Relaxed) => gpu.label(),
            _ => PROCESSOR.to_owned(),
        }
    }

    /// Whether the flag has been raised.
    pub fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.is_abandoned()
    }

    /// Whether nobody wants the result any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// The same watch for a part of the fit that ends, without a result, once the flag is raised.
    pub(crate) fn until(&self, abandoned: &Arc<AtomicBool>) -> Self {
        Self { abandoned: Some(Arc::clone(abandoned)), ..self.clone() }
    }

    /// The same watch for a kernel matrix of which only so many columns are computed, if a number is given: once more are
    /// asked for, its checks fail.
    pub(crate) fn with_room_for(&self, columns: Option<usize>) -> Self {
        Self { columns: columns.map(|most| Arc::new((most, AtomicUsize::new(0)))), ..self.clone() }
    }

    /// How many columns have been counted.
    pub(crate) fn columns(&self) -> usize {
        self.columns.as_ref().map_or(0, |columns| columns.1.load(Ordering::Relaxed))
    }

    /// Counts columns that have been computed.
    pub(crate) fn count_columns(&self, more: usize) {
        if let Some(columns) = &self.columns {
            columns.1.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Whether there may be so many columns. Where there may not, the next check says so.
    pub(crate) fn is_room_for(&self, wanted: usize) -> bool {
        let Some(columns) = &self.columns else { return true };
        if wanted > columns.0 {
            columns.1.fetch_max(columns.0 + 1, Ordering::Relaxed);
        }
        wanted <= columns.0
    }

    /// Whether more columns were asked for than there may be.
    pub(crate) fn is_full(&self) -> bool {
        self.columns.as_ref().is_some_and(|columns| self.columns() > columns.0)
    }

    /// Time since the start of the run.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether less than `reserve` is left before the deadline.
    pub fn out_of_time(&self, reserve: Duration) -> bool {
        let out = self
            .deadline
            .is_some_and(|deadline| deadline.saturating_duration_since(Instant::now()) <= reserve);
        if out {
            self.hurried.store(true, Ordering::Relaxed);
        }
        out
    }

    /// Says that memory ended within a computation that cannot fail where it stands: the next check does.
    pub(crate) fn lacks(&self, bytes: usize) {
        self.lack.get_or_init(|| Lack::of(bytes as u64));
    }

    /// The card that may be used. Who computes something there says so by [`Watch::uses_card`].
    pub fn gpu(&self) -> Option<&'static Gpu> {
        self.gpu
    }

    /// The same watch for computations on a card, whatever their size; without one, on the processor.
    #[doc(hidden)]
    #[must_use]
    pub fn on(self, gpu: Option<&'static Gpu>) -> Self {
        let device = gpu.map_or(Device::Cpu, |gpu| Device::Cuda(gpu.number()));
        Self { gpu, device, ..self }
    }

    /// Says what failed on a card within a computation that cannot fail where it stands: the next check does.
    pub(crate) fn fails(&self, error: Error) {
        let trouble = match error {
            // The next check says so by itself.
            Error::Interrupted => return,
            Error::Device { device, reason, .. } => Trouble::Failed { device, reason },
            Error::TooLarge { what, bytes, limit, .. } => Trouble::Memory { what, bytes, limit },
            other => Trouble::Failed { device: "the GPU".to_owned(), reason: other.what() },
        };
        self.trouble.get_or_init(|| trouble);
    }

    /// [`Error::TooLarge`] once memory has ended, [`Error::Device`] once a card has failed.
    pub(crate) fn check_memory(&self) -> Result<()> {
        match self.trouble.get() {
            None => {}
            Some(Trouble::Failed { device, reason }) => {
                let (device, reason) = (device.clone(), reason.clone());
                return Err(Error::Device { device, reason, remedy: Remedy::UseProcessor });
            }
            Some(Trouble::Memory { what, bytes, limit }) => {
                let (what, remedy) = (what.clone(), Remedy::FitDevice);
                return Err(Error::TooLarge { what, bytes: *bytes, limit: *limit, remedy });
            }
        }
        match self.lack.get() {
            // Whoever counts columns looks at this first, and does without this kernel matrix.
            None if self.is_full() => Err(Lack::of(0).error("more columns of a kernel matrix")),
            None => Ok(()),
            Some(lack) => Err(lack.error("the next columns of a kernel matrix")),
        }
    }

    /// [`Error::Interrupted`] once the flag is raised or the deadline has passed, [`Error::TooLarge`] once memory has
    /// ended.
    pub fn check(&self) -> Result<()> {
        self.check_memory()?;
        if self.interrupted() || self.out_of_time(Duration::ZERO) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }

    /// Which of the two it was, after [`Error::Interrupted`].
    pub fn cause(&self) -> Stop {
        if self.interrupted() { Stop::Interrupted } else { Stop::TimeLimit }
    }
}
