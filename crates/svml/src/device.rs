//! Where numbers are computed: on the processor, or on a card beside it.
//!
//! A [`Device`] is what the user asks for. [`Work`] is the cost model by which [`Device::Auto`] chooses. It knows sizes and
//! the card, but neither the number of threads nor how busy the computer is: the same data on the same computer are
//! computed at the same place every time, and so with the same bits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Where a fit, or a prediction, computes.
///
/// ```
/// use svml::Device;
///
/// assert_eq!("cuda".parse::<Device>()?, Device::Cuda(0));
/// assert_eq!(Device::Cuda(1).to_string(), "cuda:1");
/// assert!("gpu".parse::<Device>().is_err());
/// # Ok::<(), svml::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Device {
    /// The first CUDA card if there is one and the problem is large enough for it to pay, else the processor.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// The CUDA card of this number, from 0: for all that can be computed there, whatever the size. That it cannot be
    /// used is an error.
    Cuda(u32),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse().ok(),
            false => None,
        };
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => text.strip_prefix("cuda:").and_then(number).map(Self::Cuda).ok_or_else(|| {
                let bound =
                    "auto, cpu, cuda or cuda:N, where N is the number of a GPU, counted from 0";
                Error::parameter("device", text, bound)
            }),
        }
    }
}

impl TryFrom<String> for Device {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

/// What is said of a fit of which nothing was computed on a card.
pub(crate) const PROCESSOR: &str = "cpu";

/// A kernel matrix that is worked with: its size decides whether a card pays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Rows of the matrix.
    pub rows: usize,
    /// Rows that may be support vectors.
    pub cols: usize,
    /// Features of a row.
    pub features: usize,
}

/// What the cost model knows of a card.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed {
    /// How many multiprocessors it has.
    pub multiprocessors: u32,
    /// Whether it computes with 64 bits at half the rate of 32 bits, as cards for computing centres do. Others have a
    /// thirty-second or less.
    pub fast_doubles: bool,
}

// The constants of the cost model. Rates are floating-point operations in a second, as measured: those of the processor in
// docs/benchmarks.md, those of the card on an NVIDIA H200.

/// Below this many rows nobody looks for a card.
pub const LEAST_ROWS: usize = 2000;
/// Below this many rows a kernel matrix stays on the processor where a card is used only if it pays.
const LEAST_MATRIX: usize = 500;
/// A processor of sixteen cores, each at 77 % of 57.5 GF/s, and the rows at which a fit has half of that. It is not asked how
/// many cores there are: a result must not depend on the number of threads.
const PROCESSOR_RATE: f64 = 16.0 * 44e9;
const PROCESSOR_HALF_RATE: f64 = 7000.0;
/// Products and factorisations of large matrices on the card, whose rate is half of this at `HALF_RATE` rows: 10 TF/s at
/// 4,096 rows and 21 at 8,192.
const CARD_RATE: f64 = 42e12;
const HALF_RATE: f64 = 10_000.0;
/// The multiprocessors of that card.
const CARD_MULTIPROCESSORS: f64 = 132.0;
/// What a card without fast doubles loses: factors have 32 bits there, and each solution is refined.
const SLOW_DOUBLES: f64 = 16.0;
/// Operations that count as one exponential.
const EXPONENTIAL: f64 = 25.0;
/// Seconds of all the launches of one evaluation, a few hundred of some microseconds each.
const LAUNCHES: f64 = 1.5e-3;
/// Bytes in a second between the computer and the card.
const TRANSFER: f64 = 10e9;
/// Seconds until a card that was not used before in this process is ready. They count even if it is: a second fit in a
/// process must not be computed at another place than the first.
const OPENING: f64 = 0.5;
/// Seconds of the many small steps of a fit on a card, on parts of the rows and for several members, whatever its size.
const SMALL_STEPS: f64 = 0.5;
/// Evaluations on all rows that the rest of a fit is worth.
const EVALUATIONS: f64 = 100.0;
/// Only what is faster by this factor pays: estimates are rough, and results of the processor are the same on all
/// computers.
const MARGIN: f64 = 1.5;

impl Work {
    /// The work of a whole fit, as far as its rows tell.
    pub fn of_fit(rows: usize, features: usize) -> Self {
        Self { rows, cols: rows, features }
    }

    /// Support vectors, of which there are about half as many as columns.
    fn support(self) -> f64 {
        self.cols as f64 / 2.0
    }

    /// Operations of two factorisations of the matrix of the support vectors, which is what one evaluation of an objective
    /// and its gradient takes, beside the entries of K.
    fn factors(self) -> f64 {
        2.0 * self.support().powi(3) / 3.0
    }

    /// Operations of so many columns of K, which are computed and contracted once.
    fn entries(self, columns: f64) -> f64 {
        self.rows as f64 * columns * (4.0 * self.features as f64 + EXPONENTIAL)
    }

    /// Seconds that the rows take to the card, and the launches there.
    fn overhead(self) -> f64 {
        LAUNCHES + 8.0 * self.rows as f64 * self.features as f64 / TRANSFER
    }

    /// Seconds of one evaluation on the processor.
    fn on_processor(self) -> f64 {
        let share = self.support() / (self.support() + PROCESSOR_HALF_RATE);
        let rate = PROCESSOR_RATE * share.max(f64::MIN_POSITIVE);
        (self.factors() + self.entries(self.support())) / rate
    }

    /// Seconds of one evaluation on a card.
    fn on_card(self, card: Speed) -> f64 {
        let share = self.support() / (self.support() + HALF_RATE);
        let factors = self.factors() / (card.rate() * share.max(f64::MIN_POSITIVE));
        factors + self.entries(self.support()) / card.rate() + self.overhead()
    }

    /// Whether a card that is used anyway is the place for this matrix.
    pub fn pays(self, card: Speed) -> bool {
        let large = self.rows.max(self.cols) >= LEAST_MATRIX;
        large && MARGIN * self.on_card(card) < self.on_processor()
    }

    /// Whether it pays to begin with a card, for a whole fit.
    pub fn pays_for_fit(self, card: Speed) -> bool {
        let on_card = OPENING + SMALL_STEPS + EVALUATIONS * self.on_card(card);
        self.rows >= LEAST_ROWS && MARGIN * on_card < EVALUATIONS * self.on_processor()
    }

    /// Whether it pays to begin with a card for one prediction, with a term of each sum for every column.
    pub fn pays_for_prediction(self, card: Speed) -> bool {
        let entries = self.entries(self.cols as f64);
        let on_card = OPENING + entries / card.rate() + self.overhead();
        self.rows >= LEAST_ROWS && MARGIN * on_card < entries / PROCESSOR_RATE
    }
}

impl Speed {
    /// Twice as fast as any card that was measured.
    pub const FASTEST: Self = Self { multiprocessors: 264, fast_doubles: true };

    /// Operations in a second, of large matrices.
    fn rate(self) -> f64 {
        let size = f64::from(self.multiprocessors.max(1)) / CARD_MULTIPROCESSORS;
        CARD_RATE * size / if self.fast_doubles { 1.0 } else { SLOW_DOUBLES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        let all = [
            ("auto", Device::Auto),
            ("cpu", Device::Cpu),
            ("cuda:0", Device::Cuda(0)),
            ("cuda:17", Device::Cuda(17)),
        ];
        for (text, device) in all {
            assert_eq!(text.parse::<Device>().unwrap(), device);
            assert_eq!(device.to_string(), text);
            let json = serde_json::to_string(&device).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Device>(&json).unwrap(), device);
        }
        assert_eq!("cuda".parse::<Device>().unwrap(), Device::Cuda(0));
        assert_eq!(Device::default(), Device::Auto);
    }

    #[test]
    fn what_is_no_device_is_named_with_what_would_be_one() {
        let wrong =
            ["", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:+1", "cuda:x", "cuda:0 ", "cuda0"];
        for text in wrong.into_iter().chain(["cuda:4294967296"]) {
            let error = text.parse::<Device>().unwrap_err().to_string();
            let expected = format!(
                "device = {text} is not allowed: it must be auto, cpu, cuda or cuda:N, where N is the number of a GPU, counted from 0"
            );
            assert_eq!(error, expected);
        }
    }

    const LARGE: Speed = Speed { multiprocessors: 132, fast_doubles: true };

    const CONSUMER: Speed = Speed { multiprocessors: 128, fast_doubles: false };

    fn pays(rows: usize, features: usize, card: Speed) -> bool {
        Work::of_fit(rows, features).pays_for_fit(card)
    }

    #[test]
    fn small_problems_stay_where_they_are_and_large_ones_go() {
        for features in [1, 10, 100] {
            assert!(!pays(300, features, LARGE) && !pays(LEAST_ROWS - 1, features, LARGE));
            assert!(pays(10_000, features, LARGE) && pays(60_000, features, LARGE));
            // Within a fit that is on the card already, less is enough.
            assert!(!Work::of_fit(300, features).pays(LARGE));
            assert!(Work::of_fit(5000, features).pays(LARGE));
        }
        // Slow doubles need larger problems, and so does a small card.
        let least = |card: Speed| (1..10_000).map(|k| 10 * k).find(|n| pays(*n, 20, card)).unwrap();
        let small = Speed { multiprocessors: 40, ..LARGE };
        assert!(least(LARGE) < least(CONSUMER) && least(LARGE) < least(small));
        assert!((LEAST_ROWS..=8000).contains(&least(LARGE)), "{}", least(LARGE));
        // Who has fewer rows than the fastest needs does not look for a card.
        let fastest = least(Speed::FASTEST);
        assert!((LEAST_ROWS..=least(LARGE)).contains(&fastest), "{fastest}");
    }

    /// Once it pays, more rows do not make it pay less.
    #[test]
    fn what_pays_goes_on_to_pay() {
        for card in [LARGE, CONSUMER] {
            for features in [1, 20, 500] {
                let fits: Vec<bool> = (1..100).map(|k| pays(1000 * k, features, card)).collect();
                assert!(fits.is_sorted(), "{card:?} {features} {fits:?}");
            }
        }
    }

    #[test]
    fn only_many_predictions_are_worth_a_card() {
        let rows = |rows| Work { rows, cols: 2600, features: 100 };
        assert!(!rows(20_000).pays_for_prediction(LARGE));
        assert!(rows(10_000_000).pays_for_prediction(LARGE));
    }
}
