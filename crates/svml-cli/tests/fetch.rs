//! Downloads, against a server of our own on this computer: good, truncated, altered, refused.
#![cfg(feature = "fetch")]
#![allow(clippy::unwrap_used, missing_docs)]

mod sandbox;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use sandbox::{Run, Sandbox};

/// What the server does with a request; it is told which request this is, and where to begin.
type Answer = dyn Fn(usize, u64) -> Reply + Send + Sync;

struct Reply {
    status: &'static str,
    headers: String,
    body: Vec<u8>,
}

/// A server that notes where each request wanted to begin.
struct Server {
    address: String,
    begins: Arc<Mutex<Vec<u64>>>,
}

fn serve(answer: impl Fn(usize, u64) -> Reply + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let begins = Arc::new(Mutex::new(Vec::new()));
    let noted = begins.clone();
    let answer: Box<Answer> = Box::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream: TcpStream = stream.unwrap();
            let mut from = 0;
            for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                let line = line.unwrap_or_default().to_ascii_lowercase();
                if let Some(range) = line.strip_prefix("range: bytes=") {
                    from = range.trim_end_matches('-').parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            let count = {
                let mut noted = noted.lock().unwrap();
                noted.push(from);
                noted.len() - 1
            };
            let Reply { status, headers, body } = answer(count, from);
            let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n");
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    Server { address, begins }
}

/// All of `body` from `from` on, as a server with ranges answers.
fn all(body: &[u8], from: u64) -> Reply {
    let rest = body[from as usize..].to_vec();
    let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
    Reply { status, headers: format!("Content-Length: {}\r\n", rest.len()), body: rest }
}

fn fetch(sandbox: &Sandbox, server: &str, names: &[&str]) -> Run {
    let args = [&["data", "fetch", "--dir", "d"], names].concat();
    sandbox.command(&args).env("SVML_UCI_SERVER", server).output().unwrap().into()
}

/// The paper's files, where they are; they are not ours to carry along.
fn file(name: &str) -> Option<Vec<u8>> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("SVML_DATA").map_or(beside, PathBuf::from);
    let set = svml::internals::UciSet::named(name).unwrap();
    let bytes = std::fs::read(set.in_folder(&folder)).ok();
    if bytes.is_none() {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("skipped: no file of {name}; set SVML_DATA to the folder of the data sets");
        }
    }
    bytes
}

#[test]
fn a_good_answer_is_kept_and_not_fetched_again() {
    let Some(bytes) = file("haber") else { return };
    let (sandbox, body) = (Sandbox::new(), bytes.clone());
    let server = serve(move |_, from| all(&body, from));
    let run = fetch(&sandbox, &server.address, &["haber"]).code(0);
    assert!(run.err.contains("haber: 3103 bytes in d/haber/haberman.data"), "{}", run.err);
    assert!(std::fs::read(sandbox.path("d/haber/haberman.data")).unwrap() == bytes);
    let run = fetch(&sandbox, &server.address, &["haber"]).code(0);
    assert!(run.err.contains("already present"), "{}", run.err);
    assert_eq!(server.begins.lock().unwrap().len(), 1);
    let run = sandbox.svml(&["compare", "uci:haber", "--dir", "d", "--splits", "2"]).code(0);
    assert!(run.out.contains("306 rows, 3 features, 2 classes"), "{}", run.out);
    let list = sandbox.svml(&["data", "list", "--dir", "d"]).code(0).out;
    assert!(list.lines().any(|line| line.starts_with("haber") && line.contains("  yes  ")));
}

#[test]
fn a_truncated_answer_is_continued() {
    let Some(bytes) = file("haber") else { return };
    let (sandbox, body) = (Sandbox::new(), bytes.clone());
    let server = serve(move |count, from| {
        let mut reply = all(&body, from);
        if count == 0 {
            reply.body.truncate(1000);
        }
        reply
    });
    let run = fetch(&sandbox, &server.address, &["haber"]).code(1);
    assert!(run.err.contains("ended after 1000 of 3103 bytes"), "{}", run.err);
    assert!(run.err.contains("run the same command again"), "{}", run.err);
    assert!(!sandbox.path("d/haber/haberman.data").exists());
    fetch(&sandbox, &server.address, &["haber"]).code(0);
    assert!(std::fs::read(sandbox.path("d/haber/haberman.data")).unwrap() == bytes);
    assert_eq!(*server.begins.lock().unwrap(), [0, 1000]);
    assert!(!sandbox.path("d/haber/haberman.data.part").exists());
}

#[test]
fn a_server_without_ranges_sends_all_again() {
    let Some(bytes) = file("haber") else { return };
    let (sandbox, body) = (Sandbox::new(), bytes.clone());
    let server = serve(move |count, _| {
        let mut reply = all(&body, 0);
        if count == 0 {
            reply.body.truncate(1000);
        }
        reply
    });
    fetch(&sandbox, &server.address, &["haber"]).code(1);
    fetch(&sandbox, &server.address, &["haber"]).code(0);
    assert!(std::fs::read(sandbox.path("d/haber/haberman.data")).unwrap() == bytes);
}

#[test]
fn the_beginning_of_another_file_is_thrown_away() {
    let Some(bytes) = file("haber") else { return };
    let (sandbox, body) = (Sandbox::new(), bytes.clone());
    let server = serve(move |_, from| match (from as usize) < body.len() {
        true => all(&body, from),
        false => Reply {
            status: "416 Range Not Satisfiable",
            headers: "Content-Length: 0\r\n".to_owned(),
            body: Vec::new(),
        },
    });
    std::fs::create_dir_all(sandbox.path("d/haber")).unwrap();
    for beginning in ["another file".to_owned(), "x".repeat(5000)] {
        sandbox.write("d/haber/haberman.data.part", &beginning);
        fetch(&sandbox, &server.address, &["haber"]).code(0);
        assert!(std::fs::read(sandbox.path("d/haber/haberman.data")).unwrap() == bytes);
        std::fs::remove_file(sandbox.path("d/haber/haberman.data")).unwrap();
    }
}

#[test]
fn an_altered_answer_is_not_kept() {
    let sandbox = Sandbox::new();
    let server = serve(|_, from| all(b"30,64,1,1\n30,62,3,1\n", from));
    let run = fetch(&sandbox, &server.address, &["haber"]).code(1);
    assert!(run.err.contains("sha256") && run.err.contains("nothing was saved"), "{}", run.err);
    assert!(run.err.contains("b4b7a32586a5668f9f4d6dc8be9d1bc8cd4822523affb1f6b5bfc350681ef3e2"));
    assert_eq!(std::fs::read_dir(sandbox.path("d/haber")).unwrap().count(), 0);
    // Nor is a file that is there replaced.
    sandbox.write("d/haber/haberman.data", "mine\n");
    let run = fetch(&sandbox, &server.address, &["haber"]).code(1);
    assert!(run.err.contains("left unchanged"), "{}", run.err);
    assert_eq!(sandbox.read("d/haber/haberman.data"), "mine\n");
}

#[test]
fn a_packed_file_is_unpacked_and_checked() {
    let sandbox = Sandbox::new();
    let packed = include_bytes!("data/squares-16bit.Z");
    let server = serve(move |_, from| all(packed, from));
    // It unpacks, and is then found to be another file: the sum is that of the unpacked text.
    let run = fetch(&sandbox, &server.address, &["page"]).code(1);
    assert!(run.err.contains("its sha256 is"), "{}", run.err);
    let server = serve(|_, from| all(b"not compressed", from));
    let run = fetch(&sandbox, &server.address, &["page"]).code(1);
    assert!(run.err.contains("not compressed by compress"), "{}", run.err);
}

#[test]
fn refusals_say_what_to_do() {
    let sandbox = Sandbox::new();
    let gone = serve(|_, _| Reply {
        status: "404 Not Found",
        headers: "Content-Length: 0\r\n".to_owned(),
        body: Vec::new(),
    });
    let run = fetch(&sandbox, &gone.address, &["diabts"]).code(1);
    assert!(run.err.contains("no longer has this file (404)"), "{}", run.err);
    assert!(run.err.contains("d/diabts/pima-indians-diabetes.data"), "{}", run.err);
    let broken = serve(|_, _| Reply {
        status: "503 Service Unavailable",
        headers: "Content-Length: 0\r\n".to_owned(),
        body: Vec::new(),
    });
    let run = fetch(&sandbox, &broken.address, &["haber", "cmc"]).code(1);
    assert!(run.err.contains("status 503") && run.err.contains("not fetched: haber, cmc"));
    // A port that nobody listens on: as if offline.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let run = fetch(&sandbox, &address, &["haber"]).code(1);
    assert!(run.err.contains("cannot be reached"), "{}", run.err);
    assert!(run.err.contains("if this computer is offline"), "{}", run.err);
    assert!(run.err.contains("haberman.data"), "{}", run.err);
}

#[test]
fn a_server_that_sends_without_end_is_left() {
    let sandbox = Sandbox::new();
    // Said beforehand, or not: 3103 bytes are expected, and twice that and 64 KiB are taken.
    for headers in ["Content-Length: 10000000\r\n", ""] {
        let server = serve(move |_, _| Reply {
            status: "200 OK",
            headers: headers.to_owned(),
            body: vec![b'1'; 10_000_000],
        });
        let run = fetch(&sandbox, &server.address, &["haber"]).code(1);
        assert!(run.err.contains("sent more than 71742 bytes"), "{}", run.err);
        assert_eq!(std::fs::read_dir(sandbox.path("d/haber")).unwrap().count(), 0);
    }
}

#[test]
fn names_lead_nowhere_else() {
    let sandbox = Sandbox::new();
    let server = serve(|_, from| all(b"30,64,1,1\n", from));
    for name in ["../haber", "haber/../../x", "/etc/passwd", "haber\0", ""] {
        // The null character cannot be passed at all.
        let Ok(output) = sandbox
            .command(&["data", "fetch", "--dir", "d", name])
            .env("SVML_UCI_SERVER", &server.address)
            .output()
        else {
            continue;
        };
        Run::from(output).code(2);
    }
    // Packed files are streams without names of files; where one is put is known before it is fetched.
    let packed = include_bytes!("data/squares-16bit.Z");
    let server = serve(move |_, from| all(packed, from));
    fetch(&sandbox, &server.address, &["page"]).code(1);
    let left: Vec<_> = walk(sandbox.folder());
    assert_eq!(left, Vec::<PathBuf>::new());
}

/// All files below a folder.
fn walk(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// A server of TLS whose certificate nobody vouches for, and one that speaks no TLS at all.
#[test]
fn who_cannot_prove_to_be_the_server_is_not_believed() {
    let plain = serve(|_, from| all(b"30,64,1,1\n", from));
    let sandbox = Sandbox::new();
    let run = fetch(&sandbox, &plain.address.replace("http://", "https://"), &["haber"]).code(1);
    assert!(run.err.contains("cannot be reached"), "{}", run.err);
    if !sandbox::installed("openssl") {
        return;
    }
    let openssl = |args: &[&str]| {
        let mut command = std::process::Command::new("openssl");
        command.args(args).current_dir(sandbox.folder());
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command
    };
    let request = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
                   -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE";
    let made = openssl(&request.split_whitespace().collect::<Vec<_>>()).status().unwrap();
    assert!(made.success());
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port().to_string()
    };
    let mut server = openssl(&["s_server", "-www", "-key", "key.pem", "-cert", "cert.pem"])
        .args(["-accept", &format!("127.0.0.1:{port}")])
        .spawn()
        .unwrap();
    let there = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        TcpStream::connect(format!("127.0.0.1:{port}")).is_ok()
    });
    let run = fetch(&sandbox, &format!("https://localhost:{port}"), &["haber"]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(there, "openssl does not listen");
    let run = run.code(1);
    assert!(run.err.contains("cannot be trusted"), "{}", run.err);
    assert!(run.err.contains("UnknownIssuer"), "{}", run.err);
    assert!(!sandbox.path("d/haber/haberman.data").exists());
}
