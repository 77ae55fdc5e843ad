//! `svml data`: the paper's data sets, listed and fetched.

use std::fmt::Write;
use std::path::Path;

use serde_json::json;
use svml::internals::{UCI_SETS, UciSet};

use crate::args::Data;
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files;

/// Runs the command.
pub fn run(args: &Data, console: &Console) -> Outcome {
    match args {
        Data::List { dir, json } => {
            let folder = files::data_folder(dir.as_deref())?;
            console::print(&if *json { as_json(&folder) } else { list(&folder) })
        }
        Data::Fetch { names, dir } => {
            let folder = files::data_folder(dir.as_deref())?;
            let mut sets: Vec<&UciSet> = Vec::new();
            for name in names {
                match name.as_str() {
                    "all" => sets.extend(&UCI_SETS),
                    name => {
                        let set = UciSet::named(name);
                        sets.push(set.map_err(|e| Failure::Usage(format!("{e}, or all")))?);
                    }
                }
            }
            fetch_all(&sets, &folder, console)
        }
    }
}

/// Fetches one after the other; what fails does not keep the rest from being tried.
#[cfg(feature = "fetch")]
fn fetch_all(sets: &[&UciSet], folder: &Path, console: &Console) -> Outcome {
    let mut failed = Vec::new();
    for set in sets {
        if let Err(failure) = crate::command::fetch::fetch(set, folder, console) {
            match sets.len() {
                1 => return Err(failure),
                _ => Console::error(&failure.to_string()),
            }
            failed.push(set.name);
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::Runtime(format!("not fetched: {}", failed.join(", ")))),
    }
}

/// Says how to get them without this program.
#[cfg(not(feature = "fetch"))]
fn fetch_all(sets: &[&UciSet], folder: &Path, _: &Console) -> Outcome {
    let mut text = "this svml was built without download support; build it with --features fetch, use a released build, or \
                    download the files yourself:"
        .to_owned();
    for set in sets {
        let _ = write!(
            text,
            "\n  {}/{} at {}{}, sha256 {}",
            svml::internals::UCI_SERVER,
            set.path,
            set.in_folder(folder).display(),
            if set.path.ends_with(".Z") { ", unpacked" } else { "" },
            set.sha256[0]
        );
    }
    Err(Failure::Usage(text))
}

/// What is known of the file of a set.
fn state(set: &UciSet, folder: &Path) -> &'static str {
    let path = set.in_folder(folder);
    match path.is_file() {
        false => "no",
        true if files::is_tested(set, &path) => "yes",
        true => "altered",
    }
}

fn list(folder: &Path) -> String {
    let mut text = format!("{:8}  {:>5}  {:>8}  {:7}  task\n", "name", "rows", "features", "here");
    for set in &UCI_SETS {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:8}  {:5}  {:8}  {:7}  {}: {}",
            set.name,
            set.rows,
            set.features,
            state(set, folder),
            set.title,
            set.task
        );
    }
    let _ = writeln!(
        text,
        "\nFolder: {}\nDownload one with svml data fetch NAME; use it as uci:NAME.",
        folder.display()
    );
    text
}

fn as_json(folder: &Path) -> String {
    let sets: Vec<serde_json::Value> = UCI_SETS
        .iter()
        .map(|set| {
            json!({
                "name": set.name,
                "title": set.title,
                "rows": set.rows,
                "features": set.features,
                "task": set.task,
                "here": state(set, folder),
                "file": set.in_folder(folder).display().to_string(),
                "sha256": set.sha256[0],
            })
        })
        .collect();
    format!("{:#}\n", json!(sets))
}
