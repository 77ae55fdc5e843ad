//! Standard output, standard error, and Ctrl-C.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use svml::internals::{clock, duration, is_control};
use svml::{Activity, Standing};

use crate::args::Global;
use crate::failure::{Failure, Outcome};
use crate::names::is_carrier;

/// Where messages go, and the flag that Ctrl-C raises.
#[derive(Clone)]
pub struct Console {
    quiet: bool,
    colour: bool,
    signals: Signals,
}

/// What signals of the system ask for: Ctrl-C, SIGTERM, and SIGHUP, which comes when the terminal is closed.
#[derive(Clone, Default)]
pub struct Signals {
    interrupt: Arc<AtomicBool>,
    graceful: Arc<AtomicBool>,
}

impl Signals {
    /// Listens from now on.
    pub fn listen() -> Result<Self, Failure> {
        let signals = Self::default();
        (signals.clone().handle())
            .map_err(|e| Failure::Runtime(format!("signals cannot be handled: {e}")))?;
        Ok(signals)
    }

    #[cfg(unix)]
    fn handle(self) -> std::io::Result<()> {
        use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
        let listened = match is_ignored(SIGHUP) {
            true => &[SIGINT, SIGTERM][..],
            false => &[SIGINT, SIGTERM, SIGHUP],
        };
        // A file that grows beyond a limit of the system is an error where it is written, not the end of the program.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        exit_with_a_message_on(SIGABRT)?;
        let mut signals = signal_hook::iterator::Signals::new(listened)?;
        std::thread::Builder::new()
            .spawn(move || signals.forever().for_each(|_| self.interrupted()))
            .map(drop)
    }

    #[cfg(not(unix))]
    fn handle(self) -> Result<(), ctrlc::Error> {
        ctrlc::set_handler(move || self.interrupted())
    }

    fn interrupted(&self) {
        let again = self.interrupt.swap(true, Ordering::SeqCst);
        if again || !self.graceful.load(Ordering::SeqCst) {
            Console::error("interrupted");
            std::process::exit(130);
        }
        always(
            "interrupted: finishing with the best so far (press Ctrl-C again to quit immediately)",
        );
    }
}

/// What is said last where nothing else can be done.
#[cfg(unix)]
const LAST_WORDS: &[u8] =
    b"svml: stopped by the failure above; if memory ran out, let the process have more \
(ulimit, the limit of the container), or use fewer rows or columns\n";

/// Rust prints "memory allocation of .. bytes failed" and sends itself SIGABRT when memory runs out for something too small to
/// be counted beforehand. This turns that into an ordinary error: a message, exit code 1, and no core dump.
#[cfg(unix)]
#[allow(unsafe_code)]
fn exit_with_a_message_on(signal: i32) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::fd::AsFd;
    // Its own descriptor, because another thread may hold the lock of standard error.
    let error = std::io::stderr().as_fd().try_clone_to_owned().map(std::fs::File::from).ok();
    let last = move || {
        if let Some(mut error) = error.as_ref() {
            let _ = error.write_all(LAST_WORDS);
        }
        signal_hook::low_level::exit(1);
    };
    // SAFETY: the handler takes no lock and allocates nothing: it writes constant bytes to a descriptor and ends the process.
    unsafe { signal_hook::low_level::register(signal, last) }.map(drop)
}

/// Whether a signal was told to have no effect before the program began, as nohup does with SIGHUP; that must stay so.
/// Where the system does not tell, it is left alone.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_none_or(|mask| mask & (1 << (signal - 1)) != 0)
}

impl Console {
    /// Sets up messages.
    pub fn new(global: &Global, signals: Signals) -> Self {
        let colour = std::io::stderr().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Self { quiet: global.quiet, colour, signals }
    }

    /// From here on an interrupt raises the flag, which the caller watches, instead of ending the
    /// program.
    pub fn interrupt(&self) -> Arc<AtomicBool> {
        self.signals.graceful.store(true, Ordering::SeqCst);
        self.signals.interrupt.clone()
    }

    /// Whether the user wants to stop.
    pub fn is_interrupted(&self) -> bool {
        self.signals.interrupt.load(Ordering::SeqCst)
    }

    /// Whether only results and errors are wanted.
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// A message, unless quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            always(&clean(text));
        }
    }

    /// Something to look at, unless quiet; it is one line, whatever is in the names of columns and classes.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            let mark = if self.colour { "\x1b[1;33mwarning:\x1b[0m" } else { "warning:" };
            always(&format!("{mark} {}", clean(text).replace('\n', "\u{fffd}")));
        }
    }

    /// The error that ends the program.
    pub fn error(text: &str) {
        let _ = writeln!(std::io::stderr(), "svml: {}", clean(text));
    }

    /// Progress of reading a file of so many bytes: a bar on a terminal if the file is large, nothing elsewhere.
    pub fn reading(&self, name: &str, bytes: u64) -> ReadingProgress {
        let wanted = bytes >= LARGE && !self.quiet && std::io::stderr().is_terminal();
        ReadingProgress { bar: wanted.then(bar), name: name.to_owned(), bytes }
    }

    /// Progress of work in pieces called `unit`.
    pub fn progress(&self, unit: &'static str) -> Progress {
        let bar = self.is_watched().then(bar);
        let now = Instant::now();
        Progress { bar, console: self.clone(), unit, started: now, last: now }
    }

    /// Progress of a fit to so many rows, which nobody knows the length of.
    pub fn fitting(&self, rows: usize) -> FitProgress {
        let estimate = Estimate::default();
        let line = self.is_watched().then(|| line(estimate.clone()));
        if let Some(line) = &line {
            line.set_message(format!("preparing {rows} rows"));
        }
        let now = Instant::now();
        let (console, stage) = (self.clone(), String::new());
        FitProgress { line, console, estimate, started: now, last: now, stage }
    }

    /// Whether someone sees what is drawn again and again.
    fn is_watched(&self) -> bool {
        !self.quiet && std::io::stderr().is_terminal()
    }
}

fn always(text: &str) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("[{bar:24}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Bytes of a file, 20 MB, from which on reading it takes long enough to be watched.
const LARGE: u64 = 20_000_000;

/// A bar on a terminal that says what is read and how far.
pub struct ReadingProgress {
    bar: Option<ProgressBar>,
    name: String,
    bytes: u64,
}

impl ReadingProgress {
    /// So many bytes have been read.
    pub fn at(&self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(self.bytes);
            bar.set_position(done);
            bar.set_message(reading_words(&self.name, done, self.bytes));
        }
    }
}

impl Drop for ReadingProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn reading_words(name: &str, done: u64, bytes: u64) -> String {
    let percent = (100 * done).checked_div(bytes).unwrap_or(100).min(100);
    format!("reading {name}: {percent} % of {} MB", (bytes + 500_000) / 1_000_000)
}

/// A bar on a terminal, plain lines elsewhere, nothing if quiet.
pub struct Progress {
    bar: Option<ProgressBar>,
    console: Console,
    unit: &'static str,
    started: Instant,
    last: Instant,
}

/// Time before the first plain line, and least time between two.
const EVERY: Duration = Duration::from_secs(1);

impl Progress {
    /// `done` pieces are done, `left` are to do.
    pub fn at(&mut self, done: u64, left: u64, text: &str) {
        if self.bar.is_none() && self.last.elapsed() < EVERY {
            return;
        }
        self.last = Instant::now();
        let unit = self.unit;
        let time = match done {
            0 => String::new(),
            _ => {
                let rest = left as f64 * self.started.elapsed().as_secs_f64() / done as f64;
                format!(", about {} left", duration(rest))
            }
        };
        let text = format!("{unit} {done} of {}{time}: {text}", done + left);
        match &self.bar {
            Some(bar) => {
                bar.set_length(done + left);
                bar.set_position(done);
                bar.set_message(text);
            }
            None => self.console.note(&text),
        }
    }
}

/// When so many SVMs may have been learned, if that is known: between two steps the clock goes on.
type Estimate = Arc<Mutex<Option<(Instant, usize)>>>;

/// A line on a terminal, with a clock that goes on between the steps.
fn line(estimate: Estimate) -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {time}") {
        let time = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let left = estimate.lock().ok().and_then(|end| *end).map(|(end, count)| {
                (end.saturating_duration_since(Instant::now()).as_secs_f64(), count)
            });
            // Writing to a line cannot fail.
            let _ = out.write_str(&clock(state.elapsed().as_secs_f64(), left));
        };
        line.set_style(style.with_key("time", time).tick_chars("-\\|/ "));
    }
    line.enable_steady_tick(Duration::from_millis(200));
    line
}

/// How far a fit is: a line on a terminal, plain lines elsewhere, nothing if quiet.
pub struct FitProgress {
    line: Option<ProgressBar>,
    console: Console,
    estimate: Estimate,
    started: Instant,
    /// When the last plain line was written, and the stage that it was about.
    last: Instant,
    stage: String,
}

impl FitProgress {
    /// The fit has come so far; `text` is what is known of the step.
    pub fn at(&mut self, standing: &Standing, text: &str) {
        self.show(&standing.what, &standing.doing(), standing.left, &format!(": {text}"));
    }

    /// The fit does something else than taking steps.
    pub fn begins(&mut self, activity: Activity) {
        let doing = activity.to_string();
        self.show(&doing, &doing, None, "");
    }

    fn show(&mut self, stage: &str, doing: &str, left: Option<(f64, usize)>, text: &str) {
        self.expect(left);
        if let Some(line) = &self.line {
            line.set_message(doing.to_owned());
        } else if self.is_due(stage) {
            let time = clock(self.started.elapsed().as_secs_f64(), left);
            self.console.note(&format!("{doing}, {time}{text}"));
        }
    }

    fn expect(&self, left: Option<(f64, usize)>) {
        let end = left.and_then(|(left, count)| {
            let left = Duration::try_from_secs_f64(left).ok()?;
            Some((Instant::now().checked_add(left)?, count))
        });
        if let Ok(mut expected) = self.estimate.lock() {
            *expected = end;
        }
    }

    /// Whether it is time for another plain line. The longer it takes, the fewer there are: about ten for each tenfold
    /// time, besides the first of each stage.
    fn is_due(&mut self, stage: &str) -> bool {
        let wait = match stage == self.stage {
            true => EVERY.max(self.started.elapsed() / 5),
            false => EVERY,
        };
        let due = self.last.elapsed() >= wait;
        if due {
            self.last = Instant::now();
            stage.clone_into(&mut self.stage);
        }
        due
    }
}

impl Drop for FitProgress {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A text without characters that a terminal would obey: names of classes and columns come from files, and these from
/// anywhere. Lines and tabs stay. Bytes of names of files that are no text are replaced too.
pub fn clean(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| is_carrier(c) || is_control(c) && !matches!(c, '\n' | '\t');
    match text.contains(obeyed) {
        true => text.chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect(),
        false => Cow::Borrowed(text),
    }
}

/// Writes a text for people to standard output; a reader that has gone away is [`Failure::Closed`].
pub fn print(text: &str) -> Outcome {
    write_all(clean(text).as_bytes())
}

/// Writes a result to standard output as it is, unless that is a terminal.
pub fn print_bytes(bytes: &[u8]) -> Outcome {
    match std::str::from_utf8(bytes) {
        Ok(text) if std::io::stdout().is_terminal() => print(text),
        _ => write_all(bytes),
    }
}

/// Whether standard output was closed when the program was started.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks whether standard output is closed, which can only be seen before `main` begins.
#[cfg(target_os = "linux")]
pub fn look_at_standard_output() {
    use std::os::fd::AsFd;
    /// The error of the system for a file that is not open.
    const EBADF: i32 = 9;
    let copy = std::io::stdout().as_fd().try_clone_to_owned();
    let closed = copy.is_err_and(|error| error.raw_os_error() == Some(EBADF));
    CLOSED.store(closed, Ordering::Relaxed);
}

/// Refuses a standard output on which everything would be lost.
pub fn check_open() -> Outcome {
    match CLOSED.load(Ordering::Relaxed) {
        true => Err(Failure::Runtime(
            "standard output is closed, so the result would be lost; open it, or write to a file with -o"
                .to_owned(),
        )),
        false => Ok(()),
    }
}

fn write_all(bytes: &[u8]) -> Outcome {
    check_open()?;
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::Closed),
        Err(e) => Err(Failure::Runtime(format!(
            "standard output: {e}; write to a file with -o, or free some space"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_comes_from_files() {
        let text = "a\tb\n\u{1b}]0;pwned\u{7}\u{9b}31m\r\u{202e}c";
        assert_eq!(clean(text), "a\tb\n\u{fffd}]0;pwned\u{fffd}\u{fffd}31m\u{fffd}\u{fffd}c");
        assert!(matches!(clean("plain \u{e9}\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn reading_in_words() {
        assert_eq!(
            reading_words("train.csv", 365_400_000, 812_000_000),
            "reading train.csv: 45 % of 812 MB"
        );
        // A file that grows.
        assert_eq!(reading_words("-", 9, 5), "reading -: 100 % of 0 MB");
        assert_eq!(reading_words("-", 0, 0), "reading -: 100 % of 0 MB");
    }
}
