//! When to stop working: a flag another thread may raise, and a deadline.
//!
//! Long computations ask [`Watch::check`] between blocks of work, so that an interrupted fit ends
//! within a fraction of a second even inside one large factorisation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// An interrupt flag, the time of the start and an optional deadline.
#[derive(Clone, Debug)]
pub struct Watch {
    interrupt: Arc<AtomicBool>,
    started: Instant,
    deadline: Option<Instant>,
}

impl Default for Watch {
    fn default() -> Self {
        Self::new(Arc::default(), None)
    }
}

impl Watch {
    /// Watches `interrupt`, which any thread (a signal handler, say) may set to true.
    pub fn new(interrupt: Arc<AtomicBool>, time_limit: Option<Duration>) -> Self {
        // A limit too long for the clock is no limit.
        let started = Instant::now();
        let deadline = time_limit.and_then(|limit| started.checked_add(limit));
        Self { interrupt, started, deadline }
    }

    /// Whether the flag has been raised.
    pub fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Time since the watch was made.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether less than `reserve` is left before the deadline.
    pub fn out_of_time(&self, reserve: Duration) -> bool {
        self.deadline
            .is_some_and(|deadline| deadline.saturating_duration_since(Instant::now()) <= reserve)
    }

    /// [`Error::Interrupted`] once the flag is raised or the deadline has passed.
    pub fn check(&self) -> Result<()> {
        if self.interrupted() || self.out_of_time(Duration::ZERO) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}
