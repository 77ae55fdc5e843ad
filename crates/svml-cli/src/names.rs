//! Names of files that are no text.
//!
//! On Unix a file may be called by any bytes, whereas arguments are texts here, as they are in messages and in JSON. So each byte
//! that is no UTF-8 is carried by a character of the last private-use plane, which nobody writes, and turned back where a
//! file is opened. Whoever does write such a character has its bytes carried as well.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;

/// The character of the byte 0x80 is 0x80 above this.
const FIRST: u32 = 0x10_ff00;

/// Whether a character stands for a byte.
pub fn is_carrier(c: char) -> bool {
    carried(c).is_some()
}

fn carried(c: char) -> Option<u8> {
    let byte = u32::from(c).checked_sub(FIRST)?;
    u8::try_from(byte).ok().filter(|byte| *byte >= 0x80)
}

fn carrier(byte: u8) -> char {
    char::from_u32(FIRST + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// An argument as a text.
#[cfg(unix)]
pub fn as_text(argument: OsString) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    if argument.to_str().is_some_and(|text| !text.contains(is_carrier)) {
        return argument;
    }
    let mut text = String::new();
    for chunk in argument.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match is_carrier(c) {
                true => text.extend(c.encode_utf8(&mut [0; 4]).bytes().map(carrier)),
                false => text.push(c),
            }
        }
        text.extend(chunk.invalid().iter().copied().map(carrier));
    }
    text.into()
}

/// An argument as a text.
#[cfg(not(unix))]
pub fn as_text(argument: OsString) -> OsString {
    argument
}

/// The file of a name.
pub fn path(name: &str) -> PathBuf {
    #[cfg(unix)]
    if name.contains(is_carrier) {
        use std::os::unix::ffi::OsStringExt;
        let mut bytes = Vec::with_capacity(name.len());
        for c in name.chars() {
            match carried(c) {
                Some(byte) => bytes.push(byte),
                None => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
        return OsString::from_vec(bytes).into();
    }
    name.into()
}

/// The same for arguments that are always files.
pub fn file(name: &str) -> Result<PathBuf, Infallible> {
    Ok(path(name))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    use super::*;

    #[test]
    fn any_name_comes_back() {
        for name in [
            &b"plain.csv"[..],
            "gr\u{fc}n".as_bytes(),
            b"caf\xe9.csv",
            b"\xff\xfe\x80",
            b"\xc3",
            "\u{10ffe9}x".as_bytes(),
        ] {
            let text = as_text(OsString::from_vec(name.to_vec()));
            let text = text.to_str().unwrap();
            assert_eq!(path(text).as_os_str().as_bytes(), name, "{text:?}");
        }
        assert_eq!(as_text("caf\u{e9}".into()), "caf\u{e9}");
    }
}
