//! Reading data and models, writing results: the file system as the commands see it.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use svml::data::{Format, NewRows, ReadOptions, Target};
use svml::internals::{Gaps, Input, Slip, Suspect, UciSet, read_text, write_together};
use svml::{Dataset, Device, Error, Model, Remark};
use svml_plot::Picture;

use crate::args::{ModelAndRows, Reading, TrainingData};
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::names;
use crate::words;

/// Stands for standard input and output.
const STREAM: &str = "-";

/// Training data and where they came from.
pub struct Training {
    /// What to call it in messages.
    pub name: String,
    /// The rows.
    pub data: Dataset,
    /// The format they were in, unless they are one of the paper's data sets.
    pub format: Option<Format>,
    /// Columns that look mistyped.
    pub suspects: Vec<Suspect>,
    /// Missing values that were left out or are to be filled.
    pub gaps: Gaps,
}

/// Rows for a model.
pub struct Rows {
    /// What to call them in messages.
    pub name: String,
    /// The rows and their labels, if they have any.
    pub rows: NewRows,
    /// The format they were in.
    pub format: Format,
    /// What is unusual about them.
    remarks: Vec<Remark>,
}

impl Rows {
    /// Says what is unusual about them.
    fn note(&self, console: &Console) {
        for remark in self.remarks.iter().take(NOTED) {
            console.note(&format!("note: {remark}"));
        }
        if self.remarks.len() > NOTED {
            console.note(&format!("note: ... {} such notes in total", self.remarks.len()));
        }
    }

    /// Refuses rows that are unlike the training data, if that is wanted.
    pub fn check(&self, strict: bool) -> Outcome {
        match self.remarks.as_slice() {
            [first, others @ ..] if strict => {
                let more = match others.len() {
                    0 => String::new(),
                    others => format!("; and {others} more"),
                };
                Err(Failure::Data(format!(
                    "{}: {first}{more}; correct the data, or leave out --strict",
                    self.name
                )))
            }
            _ => Ok(()),
        }
    }
}

impl Reading {
    fn options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            delimiter: self.delimiter,
            header: (self.header || self.no_header).then_some(self.header),
            ..ReadOptions::default()
        }
    }
}

/// Reads training data.
pub fn training(args: &TrainingData, console: &Console) -> Result<Training, Failure> {
    if let Some((set, path)) = uci(&args.data, args.reading.dir.as_deref())? {
        if let Some(column) = &args.groups {
            return Err(Failure::Usage(format!(
                "--groups {column}: the data sets of the paper have no groups; leave out --groups"
            )));
        }
        let given = [
            ("drop", &args.drop),
            ("only", &args.only),
            ("use", &args.use_anyway),
            ("text", &args.text),
        ];
        if let Some((option, columns)) = given.iter().find(|(_, columns)| !columns.is_empty()) {
            return Err(Failure::Usage(format!(
                "--{option} {}: the columns of the paper's data sets are fixed; leave out --{option}",
                columns.join(",")
            )));
        }
        let data = set.read(&path).map_err(|e| Failure::with_file(&shown(&path), e))?;
        let (suspects, gaps) = (Vec::new(), Gaps::default());
        return Ok(Training { name: args.data.clone(), data, format: None, suspects, gaps });
    }
    let target = match &args.target {
        Some(column) => Target::Column(column.clone()),
        None => Target::Last,
    };
    let options = ReadOptions {
        target,
        missing: args.missing,
        categories: args.categories,
        groups: args.groups.clone(),
        drop: args.drop.clone(),
        only: args.only.clone(),
        use_anyway: args.use_anyway.clone(),
        text: args.text.clone(),
        ..args.reading.options()
    };
    dataset(&args.data, &options, console)
}

/// Reads training data from a file or from standard input.
pub fn dataset(data: &str, options: &ReadOptions, console: &Console) -> Result<Training, Failure> {
    let (name, read) =
        read(data, options, console, |input| svml::internals::training(input, options))?;
    let svml::internals::Training { data, format, suspects, gaps, guessed } = read;
    if let Some(names) = guessed {
        console.note(&format!(
            "{name}: the first row was read as column names ({}); if it holds data, use --no-header",
            words::listed_names(&names)
        ));
    }
    for suspect in suspects.iter().filter(|suspect| suspect.why == Slip::Filled) {
        let Suspect { column, numbers, others, line, cell, .. } = suspect;
        let (are, were) =
            if *others == 1 { ("is not a number", "was") } else { ("are not numbers", "were") };
        console.warn(&format!(
            "column {column}: {others} of its {} cells {are} and {were} imputed, the first being '{cell}' in line {line}",
            numbers + others
        ));
    }
    Ok(Training { name, data, format: Some(format), suspects, gaps })
}

/// Most columns that notes are about.
const NOTED: usize = 10;

/// Reads rows by the schema of a model, and says what is unusual about them.
pub fn rows(
    model: &Model,
    data: &str,
    reading: &Reading,
    console: &Console,
) -> Result<Rows, Failure> {
    let rows = rows_keeping(model, data, reading, &[], console)?;
    rows.note(console);
    Ok(rows)
}

/// The rows of a command; what is unusual about them is said, or is an error if they are to be checked strictly.
pub fn checked_rows(
    model: &Model,
    args: &ModelAndRows,
    keep: &[String],
    console: &Console,
) -> Result<Rows, Failure> {
    let rows = rows_keeping(model, &args.data, &args.reading, keep, console)?;
    rows.check(args.strict)?;
    rows.note(console);
    Ok(rows)
}

fn rows_keeping(
    model: &Model,
    data: &str,
    reading: &Reading,
    keep: &[String],
    console: &Console,
) -> Result<Rows, Failure> {
    if let Some((set, path)) = uci(data, reading.dir.as_deref())? {
        if !keep.is_empty() {
            return Err(Failure::Usage(format!(
                "--keep {}: columns of the paper's data sets cannot be copied to the output; leave out --keep",
                keep.join(",")
            )));
        }
        let read = set.read(&path).map_err(|e| Failure::with_file(&shown(&path), e))?;
        if read.schema().columns() != model.schema().columns() {
            return Err(Failure::Data(format!(
                "{data}: its columns differ from those the model was trained on; use the data set that the model was trained on"
            )));
        }
        let labels = read.y().iter().map(|&c| read.classes()[c].clone()).collect();
        let rows = NewRows::new(read.x().clone(), Some(labels));
        let remarks = model.remarks(&rows);
        return Ok(Rows { name: data.to_owned(), rows, format: Format::Csv, remarks });
    }
    new_rows(model, data, &ReadOptions { keep: keep.to_vec(), ..reading.options() }, console)
}

/// Reads rows by the schema of a model from a file or from standard input.
pub fn new_rows(
    model: &Model,
    data: &str,
    options: &ReadOptions,
    console: &Console,
) -> Result<Rows, Failure> {
    let (name, (rows, format)) = read(data, options, console, |input| {
        svml::internals::new_rows(model.schema(), input, options)
    })?;
    let remarks = model.remarks(&rows);
    Ok(Rows { name, rows, format, remarks })
}

/// Reads a file or standard input, says on a terminal how far it is, and what to call it.
fn read<T>(
    data: &str,
    options: &ReadOptions,
    console: &Console,
    reading: impl FnOnce(&Input) -> svml::Result<T>,
) -> Result<(String, T), Failure> {
    let (name, input) = if data == STREAM {
        let name = "standard input".to_owned();
        let input =
            Input::of_reader(std::io::stdin().lock()).map_err(|e| stream_failed(&name, e))?;
        (name, input)
    } else {
        let path = &names::path(data);
        if path.is_dir() {
            return Err(Failure::Runtime(format!("{data}: this is a folder; give a file")));
        }
        (data.to_owned(), Input::of_path(path).map_err(|e| file_failed(data, e))?)
    };
    // The bar is cleared before an error is printed.
    let progress = console.reading(&name, input.size());
    let input = input.watched(move |done, _| progress.at(done));
    let result = reading(&input);
    let read = result.map_err(|e| match e {
        Error::Io { .. } => file_failed(&name, e),
        // An array has rows, but no lines.
        _ if is_array(&input, options) => Failure::with_array(&name, e),
        _ => Failure::with_file(&name, e),
    })?;
    drop(input);
    Ok((name, read))
}

fn is_array(input: &Input, options: &ReadOptions) -> bool {
    options.format.map_or_else(|| input.is_npy().unwrap_or(false), |f| f == Format::Npy)
}

fn stream_failed(name: &str, error: Error) -> Failure {
    match error {
        Error::Io { source, .. } => Failure::Runtime(format!("{name}: {source}")),
        other => Failure::with_file(name, other),
    }
}

fn file_failed(name: &str, error: Error) -> Failure {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    match error {
        Error::Io { source, .. } => {
            let named_wrong = matches!(source.kind(), NotFound | PermissionDenied);
            let way_out = if named_wrong { "check the file name" } else { "check the file" };
            Failure::io(&names::path(name), &source, way_out)
        }
        other => Failure::with_file(name, other),
    }
}

/// The labels of rows, which must have them.
pub fn labels(rows: &Rows) -> Result<&[String], Failure> {
    rows.rows.labels.as_deref().ok_or_else(|| {
        Failure::Data(format!(
            "{}: not every row has a class; add the target column, at its position or under its name",
            rows.name
        ))
    })
}

/// The whole text of a file or of standard input, and what to call it.
pub fn text(data: &str) -> Result<(String, String), Failure> {
    if data == STREAM {
        let name = "standard input".to_owned();
        let text = read_text(std::io::stdin().lock()).map_err(|e| stream_failed(&name, e))?;
        return Ok((name, text));
    }
    let path = &names::path(data);
    let open = fs::File::open(path).map_err(|e| Failure::io(path, &e, "check the file name"))?;
    if path.is_dir() {
        return Err(Failure::Runtime(format!("{data}: this is a folder; give a file")));
    }
    let text = read_text(open).map_err(|e| file_failed(data, e))?;
    Ok((data.to_owned(), text))
}

/// Reads a model, from standard input too.
pub fn model(name: &str) -> Result<Model, Failure> {
    let way_out = "give a model file written by svml train DATA -o MODEL";
    let read = match name {
        STREAM => Model::from_reader(std::io::stdin().lock()),
        name => Model::load(names::path(name)),
    };
    read.map_err(|e| match e {
        Error::ModelFile(why) => {
            Failure::Data(format!("{name}: not a usable model file: {why}; {way_out}"))
        }
        Error::Io { source, .. } if name == STREAM => {
            Failure::Runtime(format!("standard input: {source}"))
        }
        Error::Io { path, source } => Failure::io(&path, &source, way_out),
        other => Failure::with_file(name, other),
    })
}

/// Reads a model that can classify.
pub fn classifier(name: &str) -> Result<Model, Failure> {
    let model = model(name)?;
    match model.is_classifier() {
        true => Ok(model),
        false => Err(Failure::with_file(name, Error::NotAClassifier)),
    }
}

/// Reads a model that can classify, to do so on a device.
pub fn classifier_on(name: &str, device: Device) -> Result<Model, Failure> {
    classifier(name)?.on_device(device).map_err(|e| Failure::with_file(name, e))
}

/// The file of the map beside a LIBSVM model.
pub fn map_file(model_file: &str) -> String {
    format!("{model_file}.svml")
}

/// Whether a picture is to be a PNG by its name, which may end in .svg too.
pub fn is_png(output: &str) -> Result<bool, Failure> {
    let ending = output.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
        Some("png") => Ok(true),
        Some("svg") => Ok(false),
        _ => Err(Failure::Usage(format!(
            "-o {output}: the file name of a plot must end in .svg or .png"
        ))),
    }
}

/// The file for svm-scale beside a LIBSVM model; none beside standard output.
pub fn range_file(model_file: &str) -> Option<String> {
    (model_file != STREAM).then(|| format!("{model_file}.range"))
}

/// Writes a picture, as PNG or else as SVG.
pub fn write_picture(picture: &Picture, png: bool, output: &str) -> Outcome {
    match png {
        true => {
            let bytes = picture.png().map_err(|e| Failure::Runtime(e.to_string()))?;
            write(output, &bytes)
        }
        false => write(output, picture.svg().as_bytes()),
    }
}

/// Writes a result to a file or to standard output. A file holds its old content or all of the new.
pub fn write(name: &str, bytes: &[u8]) -> Outcome {
    write_all(&[(name, bytes)])
}

/// Writes results that belong together: all files are on the disk before the first takes its place.
pub fn write_all(results: &[(&str, &[u8])]) -> Outcome {
    let (streams, files): (Vec<_>, Vec<_>) =
        results.iter().copied().partition(|(name, _)| *name == STREAM);
    let files: Vec<(PathBuf, &[u8])> =
        files.into_iter().map(|(name, bytes)| (names::path(name), bytes)).collect();
    let files: Vec<(&Path, &[u8])> =
        files.iter().map(|(path, bytes)| (path.as_path(), *bytes)).collect();
    write_together(&files).map_err(not_written)?;
    streams.into_iter().try_for_each(|(_, bytes)| console::print_bytes(bytes))
}

/// Refuses an output that cannot be written before long work is done for it.
pub fn check_writable(name: &str) -> Outcome {
    match name {
        STREAM => Ok(()),
        name => svml::internals::check_writable(&names::path(name)).map_err(not_written),
    }
}

fn not_written(error: Error) -> Failure {
    use std::io::ErrorKind;
    let Error::Io { path, source } = error else { return Failure::Runtime(error.to_string()) };
    let way_out = match source.kind() {
        // Whoever reads a pipe has gone.
        ErrorKind::BrokenPipe => return Failure::Closed,
        ErrorKind::IsADirectory => "give a file",
        ErrorKind::NotFound => "create it first",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space; an existing file was not changed"
        }
        _ => "choose another place with -o; an existing file was not changed",
    };
    Failure::io(&path, &source, way_out)
}

/// Refuses a file that a command would write if it is one that the command reads, or writes as well. Each has the name
/// that the command line gives it, and that of its option or argument before it.
pub fn check_apart(read: &[(&str, &str)], written: &[(&str, &str)]) -> Outcome {
    for (i, (option, name)) in written.iter().enumerate() {
        if name.is_empty() {
            return Err(Failure::Usage(format!(
                "{option} '': the name of the file is missing; give one"
            )));
        }
        let output = Place::of(&names::path(name));
        let input = |name: &str| match name {
            STREAM => Place::of(Path::new("/dev/stdin")),
            name => Place::of(&names::path(name)),
        };
        if let Some((argument, _)) =
            read.iter().find(|(_, other)| *name != STREAM && input(other).is(&output))
        {
            return Err(Failure::Usage(format!(
                "{option} {name}: this would overwrite the file that is read as {argument}; choose another file"
            )));
        }
        let same = |other: &str| other == *name || Place::of(&names::path(other)).is(&output);
        if let Some((first, _)) = written[..i].iter().find(|(_, other)| same(other))
            && !is_device(&names::path(name))
        {
            return Err(Failure::Usage(format!(
                "{option} {name}: {first} is written to the same file; choose another file"
            )));
        }
    }
    Ok(())
}

/// Where a file is, by whatever name; nothing for what is no file, such as /dev/null.
struct Place {
    path: Option<PathBuf>,
    /// Device and number, which are the same for all names of a file that is there.
    number: Option<(u64, u64)>,
}

impl Place {
    fn of(path: &Path) -> Self {
        let there = fs::metadata(path);
        let path = match &there {
            Ok(there) if !there.is_file() => None,
            Ok(_) => fs::canonicalize(path).ok(),
            Err(_) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok();
                folder.zip(path.file_name()).map(|(folder, name)| folder.join(name))
            }
        };
        #[cfg(unix)]
        let number = there.ok().filter(fs::Metadata::is_file).map(|there| {
            use std::os::unix::fs::MetadataExt;
            (there.dev(), there.ino())
        });
        #[cfg(not(unix))]
        let number = None;
        Self { path, number }
    }

    fn is(&self, other: &Self) -> bool {
        (self.path.is_some() && self.path == other.path)
            || (self.number.is_some() && self.number == other.number)
    }
}

fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Where a run that was interrupted writes instead of the file that it was asked for: beside it, if a file is there
/// already, because that may be the whole result of an earlier run.
pub fn for_interrupted(name: &str) -> String {
    match name != STREAM && names::path(name).is_file() {
        true => format!("{name}.interrupted"),
        false => name.to_owned(),
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The paper's data set that `uci:NAME` names, and its file.
fn uci(data: &str, dir: Option<&Path>) -> Result<Option<(&'static UciSet, PathBuf)>, Failure> {
    let Some(name) = data.strip_prefix("uci:") else { return Ok(None) };
    let set = UciSet::named(name).map_err(|e| Failure::Usage(e.to_string()))?;
    let path = set.in_folder(&data_folder(dir)?);
    if !path.is_file() {
        return Err(Failure::Runtime(format!(
            "{}: the data set is not there; download it with svml data fetch {name}, or set SVML_DATA to the folder that holds it",
            path.display()
        )));
    }
    Ok(Some((set, path)))
}

/// The folder of the paper's data sets.
pub fn data_folder(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(folder) = given {
        return Ok(folder.to_owned());
    }
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || variable("HOME");
    let own = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home().map(|h| h.join("Library/Application Support"))
    } else {
        variable("XDG_DATA_HOME").or_else(|| home().map(|h| h.join(".local/share")))
    };
    variable("SVML_DATA").or_else(|| own.map(|folder| folder.join("svml"))).ok_or_else(|| {
        Failure::Usage(
            "there is no home folder; give the folder of the data sets with --dir".to_owned(),
        )
    })
}

/// sha256 in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the file of one of the paper's data sets is the one that was tested.
pub fn is_tested(set: &UciSet, path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| set.sha256.contains(&sha256(&bytes).as_str()))
}

/// The file of a checkpoint, which is read again and so can be no stream.
pub fn checkpoint(name: Option<&str>) -> Result<Option<PathBuf>, Failure> {
    match name {
        Some(STREAM) => Err(Failure::Usage(
            "--checkpoint -: progress cannot be saved to standard output; give a file".to_owned(),
        )),
        name => Ok(name.map(names::path)),
    }
}

/// Says that a command goes on from a checkpoint, if there is one.
pub fn note_checkpoint(file: &Path, console: &Console) {
    if std::fs::metadata(file).is_ok_and(|about| about.len() > 0) {
        console.note(&format!("Resuming from the checkpoint {}.", file.display()));
    }
}

/// What is to be said of a command that was ended early: that it can go on, if it has a checkpoint.
pub fn goes_on(checkpoint: Option<&Path>) -> String {
    checkpoint.map_or(String::new(), |file| {
        format!("; run the same command again to resume from the checkpoint {}", file.display())
    })
}

/// Removes the file of a checkpoint that is no longer needed.
pub fn remove_checkpoint(file: &Path, console: &Console) {
    if let Err(error) = std::fs::remove_file(file) {
        console.warn(&format!("the checkpoint {} could not be removed: {error}", file.display()));
    }
}
