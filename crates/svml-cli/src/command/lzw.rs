//! Unpacking `.Z` files, as the old Unix program compress writes them: LZW with codes of 9 bits and more.

/// First bytes of such a file.
const MAGIC: [u8; 2] = [0x1f, 0x9d];
/// The code that empties the table, in files that have the mark for it.
const CLEAR: usize = 256;
/// More is not unpacked: no file that is fetched is nearly as large.
const MOST: usize = 64 << 20;

/// Unpacks a file; the error says what is wrong with it.
pub fn unpack(packed: &[u8]) -> Result<Vec<u8>, String> {
    let Some((&[a, b, flags], body)) = packed.split_first_chunk::<3>() else {
        return Err("it is too short for a file compressed by compress".to_owned());
    };
    let most_bits = usize::from(flags & 0x1f);
    if [a, b] != MAGIC || !(9..=16).contains(&most_bits) {
        return Err("it was not compressed by compress".to_owned());
    }
    let clears = flags & 0x80 != 0;
    let mut codes = Codes { body, at: 0, section: 0, bits: 9 };
    // Each entry is an earlier one and a byte.
    let mut prefix: Vec<usize> = vec![0; 256];
    let mut suffix: Vec<u8> = (0..=255).collect();
    if clears {
        prefix.push(0);
        suffix.push(0);
    }
    let mut out: Vec<u8> = Vec::new();
    let mut before: Option<usize> = None;
    let mut first = 0;
    loop {
        if prefix.len() > (1 << codes.bits) - 1 && codes.bits < most_bits {
            codes.align();
            codes.bits += 1;
        }
        let Some(code) = codes.next() else { return Ok(out) };
        if clears && code == CLEAR {
            // The next entry takes the place of the clearing code, where it does no harm.
            prefix.truncate(CLEAR);
            suffix.truncate(CLEAR);
            codes.align();
            codes.bits = 9;
            continue;
        }
        let Some(previous) = before else {
            if code > 255 {
                return Err("its first code is damaged".to_owned());
            }
            first = code as u8;
            out.push(first);
            before = Some(code);
            continue;
        };
        if code > prefix.len() || out.len() > MOST {
            return Err("it is damaged".to_owned());
        }
        let mut bytes = Vec::new();
        let mut at = code;
        if code == prefix.len() {
            // The entry that is just being made.
            bytes.push(first);
            at = previous;
        }
        while at > 255 {
            bytes.push(suffix[at]);
            at = prefix[at];
        }
        first = at as u8;
        bytes.push(first);
        out.extend(bytes.iter().rev());
        if prefix.len() < 1 << most_bits {
            prefix.push(previous);
            suffix.push(first);
        }
        before = Some(code);
    }
}

/// Codes of a growing number of bits, the lowest bits first.
struct Codes<'a> {
    body: &'a [u8],
    /// Bits that are read.
    at: usize,
    /// Where codes of the present width begin.
    section: usize,
    bits: usize,
}

impl Codes<'_> {
    fn next(&mut self) -> Option<usize> {
        if self.at + self.bits > 8 * self.body.len() {
            return None;
        }
        let code = (0..self.bits).fold(0, |code, k| {
            let bit = self.at + k;
            code | usize::from(self.body[bit / 8] >> (bit % 8) & 1) << k
        });
        self.at += self.bits;
        Some(code)
    }

    /// Codes of one width are written eight at a time: the rest of the last eight is skipped.
    fn align(&mut self) {
        let group = 8 * self.bits;
        self.at = self.section + (self.at - self.section).div_ceil(group) * group;
        self.section = self.at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Vec<u8> {
        (0..4000).map(|i| format!("{} {}\n", i * i % 977, i % 31)).collect::<String>().into_bytes()
    }

    /// The packed files were made from this text by ncompress 4.2.4 (`compress -c`, `compress -b 10 -c`);
    /// with 10 bits the table is emptied on the way.
    #[test]
    fn files_of_the_original_program_are_unpacked() {
        for packed in [
            &include_bytes!("../../tests/data/squares-16bit.Z")[..],
            &include_bytes!("../../tests/data/squares-10bit.Z")[..],
        ] {
            assert!(unpack(packed).unwrap() == text());
        }
    }

    #[test]
    fn damage_is_an_error_or_another_text_but_no_panic() {
        let packed = include_bytes!("../../tests/data/squares-10bit.Z");
        for length in 0..300 {
            let _ = unpack(&packed[..length]);
        }
        for at in 0..2000 {
            let mut altered = packed.to_vec();
            altered[at] ^= 0x55;
            let _ = unpack(&altered);
        }
        assert!(unpack(b"plain text").is_err());
        assert!(unpack(&[0x1f, 0x9d, 0x90, 0xff, 0xff]).is_err());
    }
}
