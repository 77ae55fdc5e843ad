//! What SECURITY.md promises of the command: no network but for `data fetch`, nothing of the computer in what is
//! written, and no file where none was asked for.
#![allow(clippy::unwrap_used, missing_docs)]

mod sandbox;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox::Sandbox;

/// Every command that reads or writes something, after `train`, on the files of `Sandbox::with_model`.
const COMMANDS: [&[&str]; 12] = [
    &["show", "m.svml"],
    &["predict", "m.svml", "train.csv", "-o", "p.csv"],
    &["evaluate", "m.svml", "train.csv"],
    &["transform", "m.svml", "train.csv", "-o", "t.csv"],
    &["explain", "m.svml", "train.csv", "--row", "3"],
    &["report", "m.svml", "train.csv", "-o", "report.html"],
    &["plot", "m.svml", "train.csv", "-o", "map.svg"],
    &["export", "m.svml", "--to", "onnx", "-o", "m.onnx"],
    &["export", "m.svml", "--to", "c", "-o", "m.c"],
    &["export", "m.svml", "--to", "js", "-o", "m.mjs"],
    &["compare", "train.csv", "--splits", "2"],
    &["data", "list"],
];

fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { [path].into() }).collect()
}

/// The words with which a program of Rust would reach the network occur in one file only.
#[test]
fn only_the_file_of_downloads_has_network_code() {
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = BTreeSet::new();
    let mut count = 0;
    for folder in ["svml", "svml-plot", "svml-report", "svml-export", "svml-cli"] {
        let folder = repository.join("crates").join(folder).join("src");
        for path in files(&folder) {
            let text = std::fs::read_to_string(&path).unwrap();
            count += 1;
            if ["std::net", "net::", "TcpStream", "UdpSocket", "UnixStream", "ureq::"]
                .iter()
                .any(|word| text.contains(word))
            {
                found.insert(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    assert!(count > 100, "{count} files");
    assert_eq!(found, BTreeSet::from(["fetch.rs".to_owned()]));
}

/// What the system saw: no socket is made by any command but `data fetch`, which shows that one would be seen.
#[test]
#[cfg(target_os = "linux")]
fn no_command_but_fetch_makes_a_socket() {
    if !sandbox::installed("strace") {
        return;
    }
    let sandbox = Sandbox::with_model();
    let sockets = |args: &[&str]| {
        let command = sandbox.command(args);
        let seen = sandbox.path("seen.txt");
        let output = Command::new("strace")
            .args(["-f", "-qq", "-e", "trace=socket,connect", "-o"])
            .arg(&seen)
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(sandbox.folder())
            .env("HOME", sandbox.folder())
            .env("SVML_UCI_SERVER", "http://127.0.0.1:9")
            .output()
            .unwrap();
        let text = std::fs::read_to_string(&seen).unwrap_or_default();
        (output, text.lines().filter(|line| line.contains("socket(")).count())
    };
    let (output, _) = sockets(&["--version"]);
    if !output.status.success() {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("skipped: strace may not watch programs here");
        }
        return;
    }
    for args in COMMANDS {
        let (output, sockets) = sockets(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(sockets, 0, "{args:?}");
    }
    if cfg!(feature = "fetch") {
        let (output, sockets) = sockets(&["data", "fetch", "haber", "--dir", "d"]);
        assert!(!output.status.success() && sockets > 0, "the way of counting sees nothing");
    }
}

/// Models, pictures, pages and programs go to other people: they hold what was learned, and not where or by whom.
#[test]
fn what_is_written_says_nothing_of_the_computer() {
    let sandbox = Sandbox::new();
    let private = sandbox.path("folder-of-mrs-quux");
    std::fs::create_dir(&private).unwrap();
    let inside = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command.current_dir(&private).env("HOME", &private);
        for name in ["USER", "LOGNAME", "USERNAME"] {
            command.env(name, "account-of-mrs-quux");
        }
        for name in ["HOSTNAME", "COMPUTERNAME"] {
            command.env(name, "computer-of-mrs-quux");
        }
        command.env("SECRET_TOKEN", "token-of-mrs-quux");
        sandbox::Run::from(command.output().unwrap()).code(0)
    };
    let table = private.join("train.csv").display().to_string();
    sandbox.write_table("folder-of-mrs-quux/train.csv", &sandbox::generated(120));
    let model = private.join("m.svml").display().to_string();
    inside(&["train", &table, "-o", &model, "--trace", "trace.csv"]);
    inside(&["train", &table, "-o", "libsvm.svml", "--form", "diagonal"]);
    for args in COMMANDS {
        let full: Vec<&str> = args
            .iter()
            .map(|arg| match *arg {
                "m.svml" => model.as_str(),
                "train.csv" => table.as_str(),
                other => other,
            })
            .collect();
        inside(&full);
    }
    inside(&["export", "libsvm.svml", "--to", "libsvm", "-o", "m.model"]);
    let host = Command::new("hostname").output().map(|output| output.stdout).unwrap_or_default();
    let host = String::from_utf8_lossy(&host).trim().to_owned();
    let written: Vec<_> =
        files(&private).into_iter().filter(|p| !p.ends_with("train.csv")).collect();
    assert!(written.len() >= 10, "{written:?}");
    for path in written {
        let bytes = std::fs::read(&path).unwrap();
        // A short name may be part of anything.
        for word in ["mrs-quux", host.as_str()].into_iter().filter(|word| word.len() > 7) {
            let held = bytes.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!held, "{} holds {word:?}", path.display());
        }
    }
}

/// Names of columns and classes come from data, and are never names of files.
#[test]
fn names_in_data_lead_to_no_files() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("inner")).unwrap();
    let mut table = "../../up,/tmp/svml-absolute,class\n".to_owned();
    for i in 0..40 {
        let class = ["../out", "/etc/svml-class"][i % 2];
        table.push_str(&format!("{},{},{class}\n", i * 7 % 13, (i % 2) as f64 + i as f64 / 100.0));
    }
    sandbox.write("inner/train.csv", &table);
    let mut expected = BTreeSet::from([sandbox.path("inner/train.csv")]);
    let run = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command.current_dir(sandbox.path("inner"));
        sandbox::Run::from(command.output().unwrap()).code(0);
    };
    run(&["train", "train.csv", "-o", "m.svml"]);
    expected.insert(sandbox.path("inner/m.svml"));
    for args in COMMANDS {
        run(args);
        if let Some(at) = args.iter().position(|arg| *arg == "-o") {
            expected.insert(sandbox.path("inner").join(args[at + 1]));
        }
    }
    assert_eq!(files(sandbox.folder()), expected);
    assert!(!Path::new("/tmp/svml-absolute").exists() && !Path::new("/etc/svml-class").exists());
}

/// Without downloads the command says where which file belongs.
#[test]
#[cfg(not(feature = "fetch"))]
fn without_downloads_the_way_is_said() {
    let run = Sandbox::new().svml(&["data", "fetch", "haber", "page", "--dir", "d"]).code(2);
    assert!(run.err.contains("--features fetch"), "{}", run.err);
    assert!(run.err.contains("haberman/haberman.data at d/haber/haberman.data, sha256 b4b7a325"));
    assert!(run.err.contains("page-blocks.data, unpacked, sha256"), "{}", run.err);
}
