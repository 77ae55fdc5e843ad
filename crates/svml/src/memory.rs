//! How much memory is free: on this computer, and in the container that the process runs in.

use std::fs;
use std::path::Path;

/// What is assumed where the system does not tell.
const UNKNOWN: u64 = 8 << 30;

/// Three quarters of the bytes that are free, so that something is left for what is not counted.
pub(crate) fn free() -> u64 {
    free_under(Path::new("/")).map_or(UNKNOWN, |bytes| bytes / 4 * 3)
}

/// The bytes that are free, by the files of Linux under `root`.
fn free_under(root: &Path) -> Option<u64> {
    let text = |name: &str| fs::read_to_string(root.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let computer = text("proc/meminfo").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
        Some(1024 * line.split_whitespace().nth(1)?.parse::<u64>().ok()?)
    });
    // The limits of a container, of either version of control groups; "max" is none.
    let container = [
        ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
        (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ]
    .iter()
    .filter_map(|(limit, used)| Some(number(limit)?.saturating_sub(number(used)?)));
    computer.into_iter().chain(container).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("svml-memory-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_least_of_computer_and_container_counts() {
        let meminfo = ("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   64 kB\nBuffers: 1 kB\n");
        let cases = [
            ("computer", vec![meminfo], Some(65536)),
            (
                "container",
                vec![
                    meminfo,
                    ("sys/fs/cgroup/memory.max", "5000\n"),
                    ("sys/fs/cgroup/memory.current", "2000\n"),
                ],
                Some(3000),
            ),
            (
                "unlimited",
                vec![
                    meminfo,
                    ("sys/fs/cgroup/memory.max", "max\n"),
                    ("sys/fs/cgroup/memory.current", "2000\n"),
                ],
                Some(65536),
            ),
            ("nothing", vec![("proc/other", "")], None),
        ];
        for (name, files, expected) in cases {
            let root = written(name, &files);
            assert_eq!(free_under(&root), expected, "{name}");
            fs::remove_dir_all(root).unwrap();
        }
    }
}
