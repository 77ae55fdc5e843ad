//! Any bytes: whatever a file, an argument or a parameter holds, there is a result or a clear error, soon and within bounded
//! memory.
//!
//! Inputs are generated, or are known ones that are changed; one seed is one sequence of inputs. Without the compiler's
//! help nobody sees which code an input reaches, so what can be seen counts as new: the kind of outcome, the message of an
//! error without its numbers, sizes. The smallest input of each kind is kept and changed further, and with `--grow` it is
//! written to the corpus.

mod memory;
mod mutate;
mod targets;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::time::{ClockId, clock_gettime};
use svml::data::{Categories, Missing};
use svml::internals::libsvm_rows;
use svml::{ClassWeight, Dataset, Form, Generator, Matrix, Method, Model, ReadOptions, Svml};

use super::record::Record;
use super::scratch::Random;

use targets::{Outcome, TARGETS, Target};

/// How much, and of what.
#[derive(Args)]
pub struct Options {
    /// Only this target; may be repeated [default: all]
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// Inputs of each target; a slow one gets a part of that
    #[arg(long, default_value_t = 20_000, value_name = "N", conflicts_with = "minutes")]
    count: u64,
    /// Minutes of each target, in place of a number of inputs
    #[arg(long, value_name = "M")]
    minutes: Option<f64>,
    /// Seed of the inputs
    #[arg(long, default_value_t = 0, value_name = "S")]
    seed: u64,
    /// Folder of the corpus, with a folder for each target
    #[arg(long, default_value = "study/fuzz-corpus", value_name = "DIR")]
    corpus: PathBuf,
    /// Write inputs of a new kind to the corpus
    #[arg(long)]
    grow: bool,
    /// Try this file only, as a failure says
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Folder for inputs that fail
    #[arg(long, default_value = "target/fuzz", value_name = "DIR")]
    failures: PathBuf,
}

/// Time of the processor that an input may take, and as much again for each megabyte of it. The time of all threads counts,
/// and not that of the clock: other programs do not matter.
const TIME: Duration = Duration::from_secs(1);
/// Memory that an input may take besides [`TIMES`] its size.
const MEMORY: usize = 64 << 20;
const TIMES: usize = 4;
/// Most files of the corpus of a target, the largest of them, and most bytes of all.
const MOST_FILES: usize = 600;
const LARGEST: usize = 8 << 10;
const MOST_BYTES: usize = 400 << 10;
/// Most inputs that are kept to be changed.
const KEPT: usize = 3000;
/// Failures that are told apart before a target is given up.
const MOST_FAILURES: usize = 5;

/// Tries what was asked for, and says whether all held.
pub fn run(options: &Options, results: &Path) -> Result<(), String> {
    if let Some(name) = options.targets.iter().find(|name| targets::named(name).is_none()) {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        return Err(format!("--target {name}: it must be one of {}", names.join(", ")));
    }
    let wanted =
        |t: &&Target| options.targets.is_empty() || options.targets.iter().any(|n| n == t.name);
    prepare();
    if let Some(path) = &options.input {
        return repeat(path, TARGETS.iter().filter(wanted));
    }
    let mut broken = Vec::new();
    for target in TARGETS.iter().filter(wanted) {
        let mut state = State::new(target, options)?;
        state.go(options)?;
        let record = state.record(options)?;
        record.append(results)?;
        if !record.met {
            broken.push(target.name);
        }
    }
    match broken.is_empty() {
        true => Ok(()),
        false => Err(format!("what is promised of any bytes did not hold: {}", broken.join(", "))),
    }
}

/// One input on some targets, in full.
fn repeat<'a>(path: &Path, targets: impl Iterator<Item = &'a Target>) -> Result<(), String> {
    let input = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut failed = false;
    for target in targets {
        let tried = tried(target, &input);
        let (time, memory) = (tried.time.as_secs_f64(), megabytes(tried.memory));
        match &tried.verdict {
            Ok(kind) => println!("{}: {kind} ({time:.3} s, {memory:.1} MB)", target.name),
            Err(why) => println!("{}: FAILED: {why} ({time:.3} s, {memory:.1} MB)", target.name),
        }
        failed |= tried.verdict.is_err();
    }
    if failed { Err("the input fails".to_owned()) } else { Ok(()) }
}

/// What came of an input, with what it took.
struct Tried {
    /// The kind of outcome, or what was broken.
    verdict: Result<String, String>,
    time: Duration,
    memory: usize,
}

thread_local! {
    /// Where and why this thread panicked last.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// When the input that is tried now began, in milliseconds of the processor's time of this process, plus one; 0 for none.
static BEGAN: AtomicU64 = AtomicU64::new(0);
/// How many milliseconds it may take.
static MAY_TAKE: AtomicU64 = AtomicU64::new(0);

/// Panics are caught, and told with their place; hangs are ended by a thread of their own.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| match BEGAN.load(SeqCst) {
            0 => usual(panic),
            _ => PANIC.with(|last| *last.borrow_mut() = panic.to_string().replace('\n', " ")),
        }));
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(100));
                let began = BEGAN.load(SeqCst);
                // Ten times the time is no longer slow.
                let late = 10 * MAY_TAKE.load(SeqCst);
                if began > 0 && milliseconds(processor_time()) + 1 > began + late {
                    eprintln!(
                        "study: an input hangs: it has taken {late} ms; it is in {}",
                        tried_now().display()
                    );
                    std::process::exit(1);
                }
            }
        });
    });
}

/// The input that is tried now, for the case that the whole process ends: by lack of memory, or of stack.
fn tried_now() -> PathBuf {
    std::env::temp_dir().join(format!("svml-fuzz-{}", std::process::id()))
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis() as u64
}

fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Tries an input.
fn tried(target: &Target, input: &[u8]) -> Tried {
    let limit = TIME + TIME.mul_f64(megabytes(input.len()));
    // If it cannot be written, it is missed only where the process ends.
    let _ = fs::write(tried_now(), input);
    MAY_TAKE.store(milliseconds(limit), SeqCst);
    let started = processor_time();
    BEGAN.store(milliseconds(started) + 1, SeqCst);
    let before = memory::begin();
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let memory = memory::most_since(before);
    let time = processor_time().saturating_sub(started);
    BEGAN.store(0, SeqCst);
    let verdict = match result {
        Err(panic) => {
            // A thread of the pool has a hook of its own text; the message comes with the panic.
            let place = PANIC.with(|last| std::mem::take(&mut *last.borrow_mut()));
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
            Err(format!("panic: {}", if place.is_empty() { text } else { &place }))
        }
        Ok(Err(promise)) => Err(promise),
        Ok(Ok(_)) if time > limit => Err(format!("slow: more than {} s", limit.as_secs_f64())),
        Ok(Ok(Outcome { kind, allowance })) => {
            let most = MEMORY + TIMES * input.len() + allowance;
            match memory > most {
                true => Err(format!(
                    "memory: {:.0} MB where {:.0} MB are allowed",
                    megabytes(memory),
                    megabytes(most)
                )),
                false => Ok(kind),
            }
        }
    };
    Tried { verdict, time, memory }
}

/// What tells failures apart: the message without its numbers.
fn kind_of_failure(message: &str) -> String {
    message.chars().filter(|c| !c.is_ascii_digit()).take(120).collect()
}

/// The fuzzing of one target.
struct State<'a> {
    target: &'a Target,
    corpus: Vec<Vec<u8>>,
    /// Of each kind of outcome, the size of the smallest input and its place in the corpus.
    kinds: HashMap<String, usize>,
    /// Inputs and kinds that the corpus on disk had.
    known: usize,
    tried: u64,
    time: Duration,
    slowest: (Duration, usize),
    largest: (usize, usize),
    failures: HashMap<String, (String, Vec<u8>)>,
    /// Exports that LIBSVM's own program agreed with, and whether it is there.
    confirmed: Option<usize>,
}

impl<'a> State<'a> {
    fn new(target: &'a Target, options: &Options) -> Result<Self, String> {
        let mut state = Self {
            target,
            corpus: Vec::new(),
            kinds: HashMap::new(),
            known: 0,
            tried: 0,
            time: Duration::ZERO,
            slowest: (Duration::ZERO, 0),
            largest: (0, 0),
            failures: HashMap::new(),
            confirmed: None,
        };
        // What a fuzzer that sees coverage has found (`make fuzz`) is in a folder of its own, which --grow leaves alone.
        let guided = stored(&options.corpus.join("guided").join(target.name))?;
        for input in stored(&options.corpus.join(target.name))?.into_iter().chain(guided) {
            state.try_one(input);
        }
        state.known = state.kinds.len();
        let mut random = Random(options.seed ^ 0x5eed);
        let generated = (0..20).filter_map(|_| mutate::generated(target.name, &mut random));
        for input in seeds(target.name)?.into_iter().chain(generated.collect::<Vec<_>>()) {
            state.try_one(input);
        }
        Ok(state)
    }

    fn go(&mut self, options: &Options) -> Result<(), String> {
        let started = Instant::now();
        let mut random = Random(options.seed);
        let count = options.count / self.target.slow;
        let more = |tried: u64| match options.minutes {
            Some(minutes) => started.elapsed().as_secs_f64() < 60.0 * minutes,
            None => tried < count,
        };
        while more(self.tried) && self.failures.len() < MOST_FAILURES {
            let input = match random.below(12) {
                0 => mutate::generated(self.target.name, &mut random),
                _ => None,
            };
            let input = input
                .unwrap_or_else(|| mutate::mutated(self.target.name, &self.corpus, &mut random));
            self.try_one(input);
        }
        for (message, input) in self.failures.values_mut() {
            *input = smallest(input, |part| {
                let verdict = tried(self.target, part).verdict;
                verdict.is_err_and(|why| kind_of_failure(&why) == kind_of_failure(message))
            });
        }
        if self.target.name == "export" {
            self.confirm()?;
        }
        if options.grow {
            self.write(&options.corpus.join(self.target.name))?;
        }
        Ok(())
    }

    fn try_one(&mut self, input: Vec<u8>) {
        let Tried { verdict, time, memory } = tried(self.target, &input);
        self.tried += 1;
        self.time += time;
        self.slowest = self.slowest.max((time, input.len()));
        self.largest = self.largest.max((memory, input.len()));
        match verdict {
            Ok(kind) => match self.kinds.get(&kind) {
                Some(&at) if input.len() < self.corpus[at].len() => self.corpus[at] = input,
                None if self.corpus.len() < KEPT => {
                    self.kinds.insert(kind, self.corpus.len());
                    self.corpus.push(input);
                }
                _ => {}
            },
            Err(why) => {
                let failure = self.failures.entry(kind_of_failure(&why));
                failure
                    .and_modify(|(_, kept)| {
                        if input.len() < kept.len() {
                            kept.clone_from(&input);
                        }
                    })
                    .or_insert((why, input));
            }
        }
    }

    /// Adds inputs of kinds that the corpus did not have, as long as there is room; what is there stays. They come in the order of
    /// their names, which is that of no property, so that large inputs have their share too.
    fn write(&self, folder: &Path) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
        fs::create_dir_all(folder).map_err(failed)?;
        let (mut files, mut bytes) = (0, 0);
        for entry in fs::read_dir(folder).map_err(failed)? {
            let size = entry.and_then(|entry| entry.metadata()).map_err(failed)?.len();
            (files, bytes) = (files + 1, bytes + size as usize);
        }
        let named = self.kinds.iter().map(|(kind, &at)| {
            (folder.join(format!("{:016x}", hash(kind))), kind, &self.corpus[at])
        });
        let mut new: Vec<_> =
            named.filter(|(path, _, input)| input.len() <= LARGEST && !path.exists()).collect();
        new.sort();
        for (path, kind, input) in new {
            if files >= MOST_FILES {
                break;
            }
            let same =
                |part: &[u8]| tried(self.target, part).verdict.is_ok_and(|found| found == *kind);
            let input = smallest(input, same);
            if bytes + input.len() <= MOST_BYTES {
                (files, bytes) = (files + 1, bytes + input.len());
                fs::write(path, input).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// LIBSVM's own program on a sample of the exports, if it is installed.
    fn confirm(&mut self) -> Result<(), String> {
        if Command::new("svm-predict").output().is_err() {
            return Ok(());
        }
        let mut confirmed = 0;
        for input in &self.corpus {
            if confirmed == SAMPLE {
                break;
            }
            match predicts_the_same(input)? {
                None => {}
                Some(true) => confirmed += 1,
                Some(false) => {
                    let why = "LIBSVM's svm-predict names other classes".to_owned();
                    self.failures.insert(why.clone(), (why, input.clone()));
                    break;
                }
            }
        }
        self.confirmed = Some(confirmed);
        Ok(())
    }

    fn record(&self, options: &Options) -> Result<Record, String> {
        let Self { target, tried, time, slowest, largest, .. } = self;
        let kinds = self.kinds.len();
        let mut seen = vec![format!(
            "{}: {} inputs (seed {}) in {:.1} minutes of the processor, {kinds} kinds of outcome, of which the corpus \
             had {}; {} failures.",
            target.about,
            grouped(*tried),
            options.seed,
            time.as_secs_f64() / 60.0,
            self.known,
            self.failures.len(),
        )];
        seen.push(format!(
            "Slowest input: {:.3} s of the processor ({} bytes). Most memory: {:.1} MB ({} bytes).",
            slowest.0.as_secs_f64(),
            slowest.1,
            megabytes(largest.0),
            largest.1,
        ));
        if let Some(why) = target.allowance {
            seen.push(format!("Besides 64 MB and four times the input: {why}."));
        }
        if let Some(confirmed) = self.confirmed {
            seen.push(format!(
                "LIBSVM's svm-predict named the same classes for {confirmed} models."
            ));
        }
        let failed = |e: std::io::Error| format!("{}: {e}", options.failures.display());
        for (kind, (why, input)) in &self.failures {
            fs::create_dir_all(&options.failures).map_err(failed)?;
            let path = options.failures.join(format!("{}-{:016x}", target.name, hash(kind)));
            fs::write(&path, input).map_err(failed)?;
            seen.push(format!(
                "FAILED: {why}; {} bytes; repeat it by: study reliability fuzz --target {} --input {}",
                input.len(),
                target.name,
                path.display()
            ));
        }
        let _ = fs::remove_file(tried_now());
        Ok(Record::now(&format!("fuzz {}", target.name), self.failures.is_empty(), seen))
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// A number with commas.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|c| std::str::from_utf8(c).ok()).collect();
    parts.join(",")
}

/// The files of a folder in the order of their names; none if it is not there.
fn stored(folder: &Path) -> Result<Vec<Vec<u8>>, String> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths: Vec<PathBuf> = entries
        .map(|e| e.map(|e| e.path()))
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    paths.sort();
    let read = |path: &PathBuf| fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    paths.iter().map(read).collect()
}

/// A smaller input for which `same` still holds: parts are left out, ever smaller ones.
fn smallest(input: &[u8], same: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let (mut input, mut part, mut tries) = (input.to_vec(), input.len() / 2, 0);
    while part > 0 {
        let mut at = 0;
        while at < input.len() && tries < 100 {
            tries += 1;
            let end = (at + part).min(input.len());
            let less = [&input[..at], &input[end..]].concat();
            if same(&less) {
                input = less;
            } else {
                at = end;
            }
        }
        part /= 2;
    }
    input
}

/// Model files of every version and kind; the files of former versions are those of the tests.
fn seeds(target: &str) -> Result<Vec<Vec<u8>>, String> {
    if !matches!(target, "model" | "uses" | "export") {
        return Ok(Vec::new());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/svml/tests/data");
    let mut files = Vec::new();
    let versions = ["v1", "v2", "v4", "v5", "v6", "v7", "v8"].map(|name| format!("model_{name}"));
    for name in versions.into_iter().chain(["v3/auto", "v3/fixed", "v3/nca"].map(str::to_owned)) {
        let path = folder.join(format!("{name}.svml"));
        files.push(fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?);
    }
    let said = |e: svml::Error| e.to_string();
    let generated = |classes| {
        let generator =
            Generator { rows: 36, informative: 2, noise: 1, classes, ..Generator::default() };
        generator.generate().map(|generated| generated.data).map_err(said)
    };
    let table: String = (0..36)
        .map(|i| {
            let colour = ["red", "blue", "?"][i % 3];
            format!("name{i},{},{colour},{}\n", i % 7, ["no", "yes"][usize::from(i % 7 > 3)])
        })
        .collect();
    let options = ReadOptions {
        missing: Missing::Impute,
        categories: Categories::Auto,
        ..ReadOptions::default()
    };
    let table = Dataset::from_csv(table.as_bytes(), &options).map_err(said)?;
    let short = Svml { max_iterations: 2, cross_fit: false, ..Svml::default() };
    let one = |form: Form| Svml { form: form.into(), ..short.clone() };
    let balanced = Svml { class_weight: ClassWeight::Balanced, ..one(Form::Diagonal) };
    let fits: Vec<(Dataset, Method)> = vec![
        (generated(2)?, short.clone().into()),
        (generated(3)?, short.clone().into()),
        (generated(2)?, one(Form::Rank(2)).into()),
        (generated(3)?, one(Form::Full).into()),
        (generated(2)?, one(Form::Sphere).into()),
        (table.clone(), balanced.into()),
        (table, Method::neighbours(3)),
        (generated(2)?, "pca+none".parse().map_err(said)?),
    ];
    for (k, (data, method)) in fits.iter().enumerate() {
        let mut model = Model::fit(data, method).map_err(said)?;
        if k % 2 == 0 {
            model.keep_rows(data.x(), data.y()).map_err(said)?;
        }
        files.push(model.to_bytes().map_err(said)?);
    }
    Ok(files)
}

/// Exports that are looked at by LIBSVM's own program.
const SAMPLE: usize = 40;

/// Whether LIBSVM's svm-predict names the classes that the model names, on rows that are not undecided; nothing for
/// what is no model of two classes for LIBSVM.
fn predicts_the_same(file: &[u8]) -> Result<Option<bool>, String> {
    let Ok(model) = Model::from_bytes(file) else { return Ok(None) };
    let Ok(exported) = model.to_libsvm(false) else { return Ok(None) };
    let x = Matrix::from_fn(20, model.schema().width(), |i, k| ((i * (k + 3)) % 11) as f64 - 5.0);
    let (Ok(z), Ok(h), Ok(own)) = (model.transform(&x), model.decision(&x), model.predict(&x))
    else {
        return Ok(None);
    };
    // LIBSVM computes |x - z|^2 as x'x + z'z - 2 x'z. Where a mapped row is long, as in a file whose means are far from
    // its rows, the difference of these numbers has no correct digits left, and the class that LIBSVM names says nothing.
    let squares = |i: usize| z.row(i).iter().map(|v| v * v).sum::<f64>();
    let comparable = (0..z.rows()).all(|i| squares(i) * f64::EPSILON <= 1e-10);
    if model.classes().len() != 2 || !comparable {
        return Ok(None);
    }
    let [file, rows, out] = ["model", "rows", "out"]
        .map(|end| std::env::temp_dir().join(format!("svml-fuzz-{}-{end}", std::process::id())));
    let failed = |e: std::io::Error| format!("svm-predict: {e}");
    fs::write(&file, &exported.text).map_err(failed)?;
    fs::write(&rows, libsvm_rows(&z, std::iter::repeat_n("0", z.rows()))).map_err(failed)?;
    let done = Command::new("svm-predict").args([&rows, &file, &out]).output().map_err(failed)?;
    let text = fs::read_to_string(&out).unwrap_or_default();
    for path in [&file, &rows, &out] {
        let _ = fs::remove_file(path);
    }
    let named: Vec<i32> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    let size = h.as_slice().iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    let agrees =
        |row: usize| h[(row, 0)].abs() <= 1e-9 * size || named[row] == exported.labels[own[row]];
    Ok(Some(done.status.success() && named.len() == z.rows() && (0..z.rows()).all(agrees)))
}

/// Memory and time of the process are looked at, so that only one test may do something at a time.
#[cfg(test)]
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(input: &[u8]) -> Result<Outcome, String> {
        assert!(!input.contains(&b'!'), "an exclamation mark");
        match input {
            [b'?', ..] => Err("a question".to_owned()),
            [b'm', ..] => {
                drop(std::hint::black_box(vec![1_u8; 80 << 20]));
                Ok(Outcome { kind: String::new(), allowance: 0 })
            }
            _ => Ok(Outcome { kind: format!("{}", input.len() / 4), allowance: 0 }),
        }
    }

    const FAILING: Target = Target { name: "x", about: "", allowance: None, slow: 1, run: failing };

    /// What the checks find, they find: each kind of failure is told.
    #[test]
    fn panics_broken_promises_and_memory_are_failures() {
        let _alone = ALONE.lock();
        prepare();
        let why = |input: &[u8]| tried(&FAILING, input).verdict.unwrap_err();
        assert!(why(b"ab!").contains("an exclamation mark"));
        assert_eq!(why(b"?"), "a question");
        assert!(why(b"m").starts_with("memory: 80 MB where 64 MB"), "{}", why(b"m"));
        assert_eq!(tried(&FAILING, b"12345").verdict.unwrap(), "1");
    }

    #[test]
    fn failures_are_made_small() {
        let bang = |part: &[u8]| part.contains(&b'!');
        assert_eq!(smallest(b"some text with a ! in it", bang), b"!");
    }

    #[test]
    fn one_seed_is_one_sequence_and_every_target_takes_its_own_inputs() {
        let _alone = ALONE.lock();
        for target in TARGETS {
            let inputs = |seed| {
                let mut random = Random(seed);
                let mut corpus = seeds(target.name).unwrap();
                corpus.truncate(3);
                corpus.extend((0..5).filter_map(|_| mutate::generated(target.name, &mut random)));
                let changed = (0..20).map(|_| mutate::mutated(target.name, &corpus, &mut random));
                changed.collect::<Vec<_>>()
            };
            let all = inputs(1);
            assert_eq!(all, inputs(1), "{}", target.name);
            assert_ne!(all, inputs(2), "{}", target.name);
            for input in all {
                let verdict = tried(target, &input).verdict;
                assert!(verdict.is_ok(), "{}: {verdict:?}", target.name);
            }
        }
    }
}
