//! The documents of the repository name what is there.
//!
//! The rule for `docs/math.md` stands in its head. README's programs are run as documentation tests of the crate.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn crate_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn repository() -> PathBuf {
    crate_folder().join("../..")
}

/// What may be named: the words of each file, comments aside, by the path that math.md has for it.
struct Code(BTreeMap<String, BTreeSet<String>>);

impl Code {
    fn read() -> Self {
        let mut files = BTreeMap::new();
        for (folder, prefix) in [("src", ""), ("tests", "tests/")] {
            let root = crate_folder().join(folder);
            for path in rust_files(&root) {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.lines().filter_map(|line| line.split("//").next());
                let words = code.flat_map(|line| line.split(|c: char| !is_word(c)));
                let words = words.map(str::to_owned).collect();
                let name = path.strip_prefix(&root).unwrap().iter();
                let name: Vec<&str> = name.map(|part| part.to_str().unwrap()).collect();
                files.insert(format!("{prefix}{}", name.join("/")), words);
            }
        }
        assert!(files.len() > 60, "{} files", files.len());
        Self(files)
    }

    /// Whether the parts of a name, such as `Metric::transform`, all occur in one file.
    fn has(&self, file: Option<&str>, name: &str) -> bool {
        let all_in = |words: &BTreeSet<String>| name.split("::").all(|part| words.contains(part));
        match file {
            Some(file) => self.0.get(file).is_some_and(all_in),
            None => self.0.iter().any(|(path, words)| !path.starts_with("tests/") && all_in(words)),
        }
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A name of the code, of three letters or more: `solve`, `Form::Sphere`, `KFold(k)`.
fn as_name(text: &str) -> Option<&str> {
    let name = if text.contains(' ') { text } else { text.split('(').next().unwrap_or(text) };
    let letters = name.chars().filter(char::is_ascii_alphabetic).count();
    let part = |part: &str| {
        part.chars().all(is_word) && part.chars().next().is_some_and(|c| !c.is_ascii_digit())
    };
    (letters > 2 && name.split("::").all(part)).then_some(name)
}

/// Whether a name can only be one of the code, wherever it stands.
fn is_surely_code(name: &str) -> bool {
    let long = |part: &str| part.len() > 1 && part.chars().all(|c| c.is_ascii_lowercase());
    let snake = name.contains('_') && name.split('_').all(long);
    let mut chars = name.chars();
    let capital = chars.next().is_some_and(|c| c.is_ascii_uppercase());
    name.contains("::") || snake || capital && chars.next().is_some_and(|c| c.is_ascii_lowercase())
}

/// The pieces of a page within which a file counts: cells of tables, paragraphs and items; no formulas.
fn pieces(page: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut fenced = false;
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        if line.starts_with('|') {
            pieces.extend(line.replace("\\|", "").split('|').map(str::to_owned));
            pieces.push(String::new());
        } else if line.trim().is_empty()
            || line.starts_with("    ")
            || line.starts_with('#')
            || fenced
        {
            pieces.push(String::new());
        } else {
            if line.starts_with("- ") {
                pieces.push(String::new());
            }
            if let Some(piece) = pieces.last_mut() {
                piece.push_str(line);
                piece.push(' ');
            }
        }
    }
    pieces
}

/// What a page says of the code that is not so, and how many names it has.
fn check(page: &str, code: &Code) -> (Vec<String>, usize) {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for piece in pieces(page) {
        let mut file: Option<&str> = None;
        for (k, part) in piece.split('`').enumerate() {
            if k % 2 == 0 {
                // Text: the end of a sentence ends the file's turn.
                if part.contains(". ") {
                    file = None;
                }
            } else if part.ends_with(".rs") && part.len() > 3 {
                file = Some(part);
                count += 1;
                if !code.0.contains_key(part) {
                    wrong.push(format!("there is no file {part}"));
                    file = None;
                }
            } else if let Some(name) = as_name(part)
                && (file.is_some() || is_surely_code(name))
            {
                count += 1;
                if !code.has(file, name) {
                    wrong.push(format!("{name} is not in {}", file.unwrap_or("any file")));
                }
            }
        }
    }
    (wrong, count)
}

#[test]
fn files_and_names_of_the_mathematics_are_those_of_the_code() {
    let page = fs::read_to_string(repository().join("docs/math.md")).unwrap();
    let (wrong, count) = check(&page, &Code::read());
    assert!(wrong.is_empty(), "docs/math.md:\n{}", wrong.join("\n"));
    assert!(count > 150, "{count} names");
}

#[test]
fn a_wrong_file_or_name_is_found() {
    let code = Code::read();
    let wrong = |page: &str| check(page, &code).0;
    assert!(wrong("`svm.rs` `solve`, `K`, `x_i`. Then `gone` and `beta_i`.").is_empty());
    assert_eq!(wrong("`svm.rs` `gone`"), ["gone is not in svm.rs"]);
    assert_eq!(wrong("| `svm.rs` `solve`; `metric.rs` `solve` |"), ["solve is not in metric.rs"]);
    assert_eq!(wrong("as in `machine.rs`"), ["there is no file machine.rs"]);
    assert_eq!(wrong("`Svml::gone`"), ["Svml::gone is not in any file"]);
    assert_eq!(wrong("`long_gone` and `LongGone`").len(), 2);
}

/// The targets of the links of a page.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// The pages of the repository, by their paths in it.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "RELEASING.md",
        "SECURITY.md",
        "python/README.md",
        "study/README.md",
    ]
    .map(PathBuf::from)
    .into();
    let docs = fs::read_dir(repository().join("docs")).unwrap();
    let docs = docs.map(|entry| Path::new("docs").join(entry.unwrap().file_name()));
    pages.extend(docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    pages
}

#[test]
fn links_lead_to_files() {
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(repository().join(&page)).unwrap();
        for link in links(&text).filter(|link| !link.contains("://") && !link.starts_with('#')) {
            count += 1;
            let target = link.split('#').next().unwrap_or(link);
            let place = repository().join(page.parent().unwrap()).join(target);
            assert!(place.exists(), "{}: {link}", page.display());
        }
    }
    assert!(count > 20, "{count} links");
}

/// The name of a target of the Makefile that a text begins with.
fn target(text: &str) -> Option<&str> {
    let other = |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let name = text.split(other).next()?;
    name.starts_with(|c: char| c.is_ascii_lowercase()).then_some(name)
}

/// The targets that a text names: as code between backticks and, if it is a workflow, in its commands.
fn targets_named(text: &str, is_workflow: bool) -> Vec<&str> {
    let mut named: Vec<&str> = text.split("`make ").skip(1).filter_map(target).collect();
    if is_workflow {
        for line in text.lines() {
            let line = line.trim_start().trim_start_matches("- ").trim_start_matches("run: ");
            let commands = line.split(['&', ';', '|']);
            let made = commands.filter_map(|command| command.trim_start().strip_prefix("make "));
            named.extend(made.filter_map(target));
        }
    }
    named
}

#[test]
fn what_is_made_is_a_target_of_the_makefile() {
    let makefile = fs::read_to_string(repository().join("Makefile")).unwrap();
    let rules = makefile.lines().filter_map(|line| line.split_once(':'));
    let targets: BTreeSet<&str> =
        rules.map(|(name, _)| name).filter(|name| target(name) == Some(*name)).collect();
    let mut paths = pages();
    for folder in [".github", ".github/ISSUE_TEMPLATE", ".github/workflows"] {
        let entries = fs::read_dir(repository().join(folder)).unwrap();
        paths.extend(entries.map(|entry| Path::new(folder).join(entry.unwrap().file_name())));
    }
    paths.retain(|path| repository().join(path).is_file());
    let mut count = 0;
    for path in paths {
        let text = fs::read_to_string(repository().join(&path)).unwrap();
        for name in targets_named(&text, path.starts_with(".github/workflows")) {
            count += 1;
            assert!(targets.contains(name), "{}: there is no target {name}", path.display());
        }
    }
    assert!(count > 20, "{count} targets");
}

#[test]
fn targets_are_found_in_code_and_in_commands_alone() {
    let page = "`make check` and `make fuzz MINUTES=60`, which make a difference.";
    assert_eq!(targets_named(page, false), ["check", "fuzz"]);
    let workflow = "# make it so\n- name: make a wish\n- run: make gone && cp a b\n  run: |\n    cd x; make it-all\n";
    assert_eq!(targets_named(workflow, true), ["gone", "it-all"]);
    assert!(targets_named(workflow, false).is_empty());
}

/// The version stands in the head of Cargo.toml; what must repeat it says the same.
#[test]
fn there_is_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    let read = |name: &str| fs::read_to_string(repository().join(name)).unwrap();
    let wrong = |file: &str| format!("{file} does not say {version}, the version in Cargo.toml");
    let citation = read("CITATION.cff");
    assert!(
        citation.lines().any(|line| line == format!("version: {version}")),
        "{}",
        wrong("CITATION.cff")
    );
    let changelog = read("CHANGELOG.md");
    let newest = changelog.lines().find(|line| line.starts_with("## ")).unwrap();
    assert_eq!(newest.split_whitespace().nth(1), Some(version), "{}", wrong("CHANGELOG.md"));
    let manifest = read("Cargo.toml");
    let dependencies: Vec<&str> =
        manifest.lines().filter(|line| line.contains("path = \"crates/")).collect();
    assert_eq!(dependencies.len(), 4, "{dependencies:?}");
    for line in dependencies {
        assert!(line.contains(&format!("version = \"{version}\"")), "{line}");
    }
    // Elsewhere it is taken from there.
    for entry in fs::read_dir(repository().join("crates")).unwrap() {
        let name = format!("crates/{}/Cargo.toml", entry.unwrap().file_name().display());
        let text = read(&name);
        assert!(text.contains("version.workspace = true"), "{name}");
        assert!(!text.contains("path = \"../"), "{name} names another crate without the workspace");
    }
    assert!(read("python/pyproject.toml").contains("dynamic = [\"version\", \"urls\"]"));
}
