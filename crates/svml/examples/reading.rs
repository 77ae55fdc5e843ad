//! Time and peak memory of reading a file: `cargo run --release --example reading -- DATA [csv|libsvm|npy]`.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use svml::data::{Dataset, Missing, ReadOptions};

fn main() -> svml::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        println!("usage: reading DATA [csv|libsvm|npy]");
        return Ok(());
    };
    let format = arguments.next().map(|word| word.parse()).transpose()?;
    let options = ReadOptions { format, missing: Missing::Impute, ..ReadOptions::default() };
    let started = Instant::now();
    let data = Dataset::from_path(path, &options)?;
    let seconds = started.elapsed().as_secs_f64();
    // A number of all of them, so that two versions can be compared.
    let mut mix = 0_u64;
    for value in data.x().as_slice() {
        mix = mix.rotate_left(5) ^ value.to_bits();
    }
    println!(
        "{} x {}, {} classes, {mix:016x}: {seconds:.2} s, peak {}",
        data.rows(),
        data.columns(),
        data.classes().len(),
        peak().unwrap_or_else(|| "unknown".to_owned()),
    );
    Ok(())
}

/// The most memory this process has had, as Linux says it.
fn peak() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(format!("{:.0} MB", kilobytes / 1024.0))
}
