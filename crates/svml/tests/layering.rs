//! The house rules about who may use whom, checked on the text of `src`: comments and unit tests do not count.
//!
//! * `lib.rs` declares the modules in the order of dependency, and each uses only those above it.
//! * Only `kernel/` names the implementations of its traits.
//! * Only `linalg/` names the linear-algebra crate, and only `cuda/` the one that opens libraries.
//! * Only `parallel` names rayon's iterators, which would be compiled anew wherever they are used.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

struct Source {
    path: String,
    /// The module of `lib.rs` that it belongs to.
    module: String,
    /// Its lines, with their numbers, without comments and unit tests.
    lines: Vec<(usize, String)>,
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn sources() -> Vec<Source> {
    let mut folders = vec![src()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(source(&path));
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(sources.len() > 50, "{} files", sources.len());
    sources
}

fn source(path: &Path) -> Source {
    let text = fs::read_to_string(path).unwrap();
    let path: Vec<&str> =
        path.strip_prefix(src()).unwrap().iter().map(|part| part.to_str().unwrap()).collect();
    let lines = text.lines().zip(1..);
    let lines = lines
        // Unit tests stand at the end of a file.
        .take_while(|(line, _)| *line != "#[cfg(test)]")
        .map(|(line, number)| (number, line.split("//").next().unwrap_or("").to_owned()))
        .collect();
    Source { module: path[0].trim_end_matches(".rs").to_owned(), path: path.join("/"), lines }
}

/// The names that stand in a line of code.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The modules in the order in which `lib.rs` declares them.
fn order() -> Vec<String> {
    let lib = source(&src().join("lib.rs"));
    let declared = lib.lines.iter().filter_map(|(_, line)| {
        let name = line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')?;
        Some(name.to_owned())
    });
    let order: Vec<String> = declared.collect();
    assert!(order.len() > 15, "{order:?}");
    order
}

#[test]
fn a_module_uses_only_those_above_it() {
    let order = order();
    let place = |module: &str| order.iter().position(|known| known == module);
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| source.module != "lib") {
        let own = place(&source.module).unwrap_or_else(|| panic!("{} is no module", source.path));
        for (number, line) in &source.lines {
            // `crate::{a, b}` and `crate::Facade` would not say which module is used.
            for used in line.split("crate::").skip(1) {
                let used = words(used).next().unwrap_or("").to_owned();
                match place(&used) {
                    Some(at) if at <= own => {}
                    Some(_) => wrong.push(format!("{}:{number} uses {used}", source.path)),
                    None if source.module == "internals" && line.contains("crate::$module") => {}
                    None => wrong.push(format!("{}:{number} names no module: {line}", source.path)),
                }
            }
            // In the file of a module `super` is the crate.
            let top = [format!("{}.rs", source.module), format!("{}/mod.rs", source.module)];
            if top.contains(&source.path) && line.contains("super::") {
                wrong.push(format!("{}:{number} leaves its module by super", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "the order of lib.rs is {order:?}\n{}", wrong.join("\n"));
}

/// Lines outside of a folder that have one of these words.
fn outside(folder: &str, names: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| source.module != folder) {
        for (number, line) in &source.lines {
            if words(line).any(|word| names.contains(&word)) {
                found.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    found
}

#[test]
fn everything_above_the_kernel_sees_its_traits_only() {
    let names = ["DenseGram", "Dense", "SqDistances", "DenseFactor", "CudaGram", "CudaFactor"];
    let found = outside("kernel", &names);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn only_the_device_layer_opens_libraries() {
    let found = outside("cuda", &["libloading"]);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn only_one_module_has_parallel_iterators() {
    let names =
        ["prelude", "par_iter", "par_iter_mut", "into_par_iter", "par_chunks", "par_chunks_mut"];
    let found = outside("parallel", &names);
    assert!(found.is_empty(), "{}", found.join("\n"));
}
