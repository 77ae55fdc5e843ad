//! The targets of the study's own fuzzing for libFuzzer, which sees what code an input reaches. The variable SVML_TARGET
//! names the target; `python3 study/strength.py fuzz` sets it.
#![no_main]

#[path = "../src/reliability/fuzz/targets.rs"]
#[allow(dead_code)]
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

static TARGET: LazyLock<&'static targets::Target> = LazyLock::new(|| {
    let name = std::env::var("SVML_TARGET").unwrap_or_default();
    targets::named(&name).unwrap_or_else(|| panic!("SVML_TARGET={name}: there is no such target"))
});

fuzz_target!(|bytes: &[u8]| {
    if let Err(promise) = (TARGET.run)(bytes) {
        panic!("{}: {promise}", TARGET.name);
    }
});

/// Magic, version and length of the header of a model file.
const PREFIX: usize = 20;
const CHECKSUM: usize = 4;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let is_model = matches!(TARGET.name, "model" | "uses" | "export");
    // Some files stay as wrong as they are.
    match is_model && !seed.is_multiple_of(16) {
        true => mutated_model(data, size, max_size, seed)
            .unwrap_or_else(|| fuzzer_mutate(data, size, max_size)),
        false => fuzzer_mutate(data, size, max_size),
    }
});

/// Changes the header or the arrays of a model file, and makes length and checksum right again: no file that is changed
/// at random would get past those.
fn mutated_model(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> Option<usize> {
    let file = data.get(..size)?;
    let length = u64::from_le_bytes(file.get(12..PREFIX)?.try_into().ok()?);
    let end = PREFIX.checked_add(usize::try_from(length).ok()?)?;
    let mut header = file.get(PREFIX..end)?.to_vec();
    let mut arrays = file.get(end..size.checked_sub(CHECKSUM)?)?.to_vec();
    let room = max_size.checked_sub(PREFIX + CHECKSUM)?;
    let (part, others) = match seed % 4 {
        0 => (&mut arrays, header.len()),
        _ => (&mut header, arrays.len()),
    };
    let (before, most) = (part.len(), room.checked_sub(others)?);
    part.resize(most.max(before), 0);
    let after = fuzzer_mutate(part, before, most);
    part.truncate(after);
    let mut new = file[..12].to_vec();
    new.extend((header.len() as u64).to_le_bytes());
    new.extend(header);
    new.extend(arrays);
    new.extend(crc32fast::hash(&new).to_le_bytes());
    data.get_mut(..new.len())?.copy_from_slice(&new);
    Some(new.len())
}
