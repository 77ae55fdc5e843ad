//! Downloading the paper's data sets: over HTTPS, resumable, checked by sha256.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use svml::internals::{UCI_SERVER, UciSet, write_atomically};
use ureq::Agent;
use ureq::http::Response;

use crate::command::lzw;
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::files::{is_tested, sha256};

/// Names another server, for mirrors and tests.
const SERVER: &str = "SVML_UCI_SERVER";

/// Fetches one data set into a folder, unless it is there.
pub fn fetch(set: &UciSet, folder: &Path, console: &Console) -> Outcome {
    let target = set.in_folder(folder);
    if target.is_file() {
        if is_tested(set, &target) {
            console.note(&format!("{}: already present, {}", set.name, target.display()));
            return Ok(());
        }
        return Err(Failure::Runtime(format!(
            "{}: this file differs from the tested one (its sha256 is different) and was left unchanged; move it away to download it again",
            target.display()
        )));
    }
    let home = target.parent().unwrap_or(folder);
    fs::create_dir_all(home).map_err(|e| Failure::io(home, &e, "choose a folder with --dir"))?;
    let server = std::env::var(SERVER).unwrap_or_else(|_| UCI_SERVER.to_owned());
    let url = format!("{}/{}", server.trim_end_matches('/'), set.path);
    let packed = set.path.ends_with(".Z");
    let part = home.join(format!("{}{}.part", set.file, if packed { ".Z" } else { "" }));
    // A part of an older file cannot be continued: then the whole file is fetched again.
    for attempt in 0.. {
        let resumed = download(set, &url, &part, &target, console)?;
        let bytes = fs::read(&part).map_err(|e| Failure::io(&part, &e, "try again"))?;
        // Whether it is the right file or not, there is nothing left to continue.
        let _ = fs::remove_file(&part);
        let unpacked = if packed { lzw::unpack(&bytes) } else { Ok(bytes) };
        let fault = match unpacked {
            Ok(bytes) => {
                let found = sha256(&bytes);
                if set.sha256.contains(&found.as_str()) {
                    write_atomically(&target, &bytes)
                        .map_err(|e| Failure::Runtime(e.to_string()))?;
                    let size = bytes.len();
                    console.note(&format!("{}: {size} bytes in {}", set.name, target.display()));
                    return Ok(());
                }
                format!("its sha256 is {found}, not {}", set.sha256[0])
            }
            Err(fault) => fault,
        };
        if !resumed || attempt > 0 {
            return Err(Failure::Runtime(format!(
                "{url}: this is not the tested file: {fault}; nothing was saved; try again later, or put the right file at {}",
                target.display()
            )));
        }
    }
    Ok(())
}

/// Fetches a file, or the rest of it, into `part`; tells whether there was a beginning already.
fn download(
    set: &UciSet,
    url: &str,
    part: &Path,
    target: &Path,
    console: &Console,
) -> Result<bool, Failure> {
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        // Nor may a server send us on to one without TLS; only a mirror that was named without it is asked without it.
        .https_only(!url.starts_with("http://"))
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .timeout_recv_body(Some(Duration::from_secs(600)))
        .user_agent(concat!("svml/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let there = fs::metadata(part).map_or(0, |m| m.len());
    let ask = |from: u64| {
        let request = agent.get(url);
        let request = match from {
            0 => request,
            from => request.header("Range", format!("bytes={from}-")),
        };
        request.call().map_err(|e| unreachable_server(set, url, target, &e))
    };
    let mut answer = ask(there)?;
    let mut from = there;
    if there > 0 && answer.status().as_u16() != 206 {
        // The server sends all of it, or has no such part.
        from = 0;
        if answer.status().as_u16() == 416 {
            answer = ask(0)?;
        }
    }
    match answer.status().as_u16() {
        200 => from = 0,
        206 => {}
        404 | 410 => {
            return Err(Failure::Runtime(format!(
                "{url}: the server no longer has this file ({}); get {} elsewhere and put it at {}, sha256 {}",
                answer.status().as_u16(),
                set.file,
                target.display(),
                set.sha256[0]
            )));
        }
        status => {
            return Err(Failure::Runtime(format!(
                "{url}: the server answered with status {status}; try again later"
            )));
        }
    }
    let length = header(&answer, "content-length").map(|length| from.saturating_add(length));
    // Room for another edition of the file; a server that sends without end must not fill the disk.
    let most = 2 * set.bytes + (64 << 10);
    let too_much = || {
        let _ = fs::remove_file(part);
        Failure::Runtime(format!(
            "{url}: the server sent more than {most} bytes, but the tested file has {}; nothing was saved; try again later, or put the right file at {}",
            set.bytes,
            target.display()
        ))
    };
    if length.is_some_and(|length| length > most) {
        return Err(too_much());
    }
    let mut file = File::options()
        .create(true)
        .write(true)
        .append(from > 0)
        .truncate(from == 0)
        .open(part)
        .map_err(|e| Failure::io(part, &e, "choose another folder with --dir"))?;
    let total = length.unwrap_or(set.bytes);
    let mut progress = console.progress("byte");
    let mut reader = answer.body_mut().as_reader();
    let mut received = from;
    let mut chunk = vec![0; 1 << 16];
    let broken = |received: u64, why: String| {
        let of = length.map_or(String::new(), |length| format!(" of {length}"));
        Failure::Runtime(format!(
            "{url}: the connection ended after {received}{of} bytes{why}; run the same command again to get the rest"
        ))
    };
    loop {
        let read = match reader.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(e) => return Err(broken(received, format!(" ({e})"))),
        };
        if received + read as u64 > most {
            return Err(too_much());
        }
        file.write_all(&chunk[..read])
            .map_err(|e| Failure::io(part, &e, "free some space and run the same command again"))?;
        received += read as u64;
        progress.at(received, total.saturating_sub(received), set.name);
    }
    match length {
        Some(length) if received < length => Err(broken(received, String::new())),
        _ => Ok(from > 0),
    }
}

fn header<B>(answer: &Response<B>, name: &str) -> Option<u64> {
    answer.headers().get(name)?.to_str().ok()?.parse().ok()
}

fn unreachable_server(set: &UciSet, url: &str, target: &Path, error: &ureq::Error) -> Failure {
    let host: PathBuf = url.split('/').skip(2).take(1).collect();
    let why = error.to_string();
    // rustls has no kind of error of its own for this that ureq would pass on.
    let trouble = match why.contains("certificate") {
        true => format!("the certificate of {} cannot be trusted ({why})", host.display()),
        false => format!("{} cannot be reached ({why})", host.display()),
    };
    Failure::Runtime(format!(
        "{trouble}; if this computer is offline, or the connection is intercepted, download {url} elsewhere and put it at {}, sha256 {}",
        target.display(),
        set.sha256[0]
    ))
}
