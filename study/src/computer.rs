//! Where and when something is measured.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::jobs::Header;

/// The header of results that are measured now, here.
pub fn header() -> Header {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs() / 86_400);
    let processor = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Header {
        date: date(days),
        computer: format!(
            "{}, {threads} {}, {} {}",
            processor.unwrap_or_else(|| "unknown processor".to_owned()),
            if threads == 1 { "thread" } else { "threads" },
            std::env::consts::OS,
            std::env::consts::ARCH
        ),
        versions: format!(
            "svml {} ({}), {}",
            env!("CARGO_PKG_VERSION"),
            commit(),
            said_by("rustc", &["--version"]).unwrap_or_else(|| "rustc not known".to_owned())
        ),
    }
}

/// The commit of these sources, which need not be in the folder that the program is started in; and whether
/// sources differ from it. Results always do: they are being written.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let folder = ["-C", env!("CARGO_MANIFEST_DIR")];
        said_by("git", &[folder.as_slice(), arguments].concat())
    };
    let sources = [":/crates", ":/study/src", ":/Cargo.toml", ":/Cargo.lock"];
    let changed = git(&[["status", "--porcelain", "--"].as_slice(), &sources].concat());
    match git(&["rev-parse", "--short", "HEAD"]) {
        Some(commit) if changed.is_none() => commit,
        Some(commit) => commit + "-dirty",
        None => "commit not known".to_owned(),
    }
}

/// The first line that a program prints, if it prints one.
fn said_by(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().filter(|_| output.status.success()).map(str::to_owned)
}

/// The date of a day since the beginning of 1970, in the Gregorian calendar.
fn date(days: u64) -> String {
    // Years that begin in March have their leap day at the end; 719,468 days are from March of year 0 to 1970.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) =
        (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = 400 * era + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_818, "2026-12-31"),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn a_header_has_every_part() {
        let header = header();
        assert!(header.computer.contains(" thread"), "{}", header.computer);
        assert!(header.versions.starts_with("svml "), "{}", header.versions);
    }
}
