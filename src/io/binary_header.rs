//! The 64 bytes at the start of a binary matrix file.
//!
//! All numbers are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | magic `89 53 4e 5a 0d 0a 1a 0a` |
//! | 8..12 | version, 1 |
//! | 12..16 | endianness mark, 0x01020304 |
//! | 16..24, 24..32 | rows, columns |
//! | 32..36 | precision in bits |
//! | 36 | layout: 0 all entries, 1 the lower triangle of a symmetric matrix; column by column |
//! | 37 | element form: 1 (all heads, then all significands; see `math::float`) |
//! | 38..40 | 0 |
//! | 40..48 | number of stored entries |
//! | 48..56 | 0 |
//! | 56..64 | XXH3 (64 bits) of bytes 0..56 |
//!
//! Independent of: entries, files.

use crate::io::{FileFormat, FileInfo, Symmetry, stored_entries};
use crate::math::float::limbs_for;
use crate::matrix::MAXIMUM_PRECISION_BITS;
use xxhash_rust::xxh3::xxh3_64;

/// Length of the header.
pub(super) const HEADER_BYTES: usize = 64;

/// Length of the checksum behind the entries.
pub(super) const CHECKSUM_BYTES: usize = 8;

// The byte above 127 shows a file sent as text, the line ends one that was translated.
const MAGIC: [u8; 8] = *b"\x89SNZ\r\n\x1a\n";
const VERSION: u32 = 1;
const ENDIANNESS_MARK: u32 = 0x0102_0304;
const ELEMENT_FORM: u8 = 1;

/// The content of the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BinaryHeader {
    pub rows: usize,
    pub cols: usize,
    pub precision_bits: u32,
    pub symmetry: Symmetry,
}

impl BinaryHeader {
    /// Number of stored entries.
    pub fn entries(&self) -> u64 {
        stored_entries(self.rows, self.cols, self.symmetry)
    }

    /// Limbs of each entry.
    pub fn limbs(&self) -> usize {
        limbs_for(self.precision_bits)
    }

    /// Length of the whole file; `None` where it cannot be addressed.
    pub fn file_bytes(&self) -> Option<u64> {
        let payload = self.entries().checked_mul(8 * (1 + self.limbs() as u64))?;
        payload.checked_add((HEADER_BYTES + CHECKSUM_BYTES) as u64).filter(|&bytes| bytes <= i64::MAX as u64)
    }

    /// The bytes of the header.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&ENDIANNESS_MARK.to_le_bytes());
        bytes[16..24].copy_from_slice(&(self.rows as u64).to_le_bytes());
        bytes[24..32].copy_from_slice(&(self.cols as u64).to_le_bytes());
        bytes[32..36].copy_from_slice(&self.precision_bits.to_le_bytes());
        bytes[36] = u8::from(self.symmetry == Symmetry::SymmetricLower);
        bytes[37] = ELEMENT_FORM;
        bytes[40..48].copy_from_slice(&self.entries().to_le_bytes());
        let checksum = xxh3_64(&bytes[..56]);
        bytes[56..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads and checks a header; the error is a message.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<BinaryHeader, String> {
        if bytes[..8] != MAGIC {
            return Err("this is not a binary matrix file: the magic bytes at its start are wrong".into());
        }
        let version = word32(bytes, 8);
        if word32(bytes, 12) == ENDIANNESS_MARK.swap_bytes() {
            return Err("the file is big-endian; only little-endian files are read".into());
        }
        if version != VERSION {
            return Err(format!("format version {version} is not supported: only version {VERSION} is"));
        }
        let (found, computed) = (word64(bytes, 56), xxh3_64(&bytes[..56]));
        if found != computed {
            return Err(format!("the header is damaged: its checksum is {computed:016x} instead of {found:016x}"));
        }
        let symmetry = match (word32(bytes, 12), bytes[36], bytes[37], &bytes[38..40], word64(bytes, 48)) {
            (ENDIANNESS_MARK, 0, ELEMENT_FORM, [0, 0], 0) => Symmetry::General,
            (ENDIANNESS_MARK, 1, ELEMENT_FORM, [0, 0], 0) => Symmetry::SymmetricLower,
            (mark, layout, form, ..) => {
                return Err(format!("unknown header fields: mark {mark:08x}, layout {layout}, element form {form}"));
            }
        };
        let header = BinaryHeader {
            rows: size(bytes, 16)?,
            cols: size(bytes, 24)?,
            precision_bits: word32(bytes, 32),
            symmetry,
        };
        header.check(word64(bytes, 40))?;
        Ok(header)
    }

    /// Refuses what no matrix can have.
    fn check(&self, stored: u64) -> Result<(), String> {
        let BinaryHeader { rows, cols, precision_bits, symmetry } = *self;
        if !(2..=MAXIMUM_PRECISION_BITS).contains(&precision_bits) {
            return Err(format!(
                "the header states a precision of {precision_bits} bits: only 2 to {MAXIMUM_PRECISION_BITS} are \
                 supported"
            ));
        }
        if symmetry == Symmetry::SymmetricLower && rows != cols {
            return Err(format!("the header states a symmetric matrix of {rows} x {cols}, which is not square"));
        }
        if stored != self.entries() {
            return Err(format!(
                "the header states {stored} stored entries, which a {rows} x {cols} matrix cannot have"
            ));
        }
        let words = rows.checked_mul(cols).and_then(|count| count.checked_mul(8 * (1 + self.limbs())));
        if self.file_bytes().is_none() || words.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return Err(format!("a {rows} x {cols} matrix of {precision_bits} bits is too large to address"));
        }
        Ok(())
    }

    /// The contents of the header as information about the file.
    pub fn info(&self) -> FileInfo {
        FileInfo {
            format: FileFormat::Binary,
            rows: self.rows,
            cols: self.cols,
            symmetric: self.symmetry == Symmetry::SymmetricLower,
            stored_entries: self.entries(),
            precision_bits_comment: Some(self.precision_bits),
            longest_digits: None,
        }
    }
}

fn word32(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn word64(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from(word32(bytes, at)) | u64::from(word32(bytes, at + 4)) << 32
}

fn size(bytes: &[u8; HEADER_BYTES], at: usize) -> Result<usize, String> {
    let size = word64(bytes, at);
    usize::try_from(size).map_err(|_| format!("a dimension of {size} is too large to address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: BinaryHeader =
        BinaryHeader { rows: 3, cols: 3, precision_bits: 100, symmetry: Symmetry::SymmetricLower };

    /// A header with one field changed and a fitting checksum.
    fn changed(at: usize, value: &[u8]) -> Result<BinaryHeader, String> {
        let mut bytes = HEADER.to_bytes();
        bytes[at..at + value.len()].copy_from_slice(value);
        let checksum = xxh3_64(&bytes[..56]);
        bytes[56..].copy_from_slice(&checksum.to_le_bytes());
        BinaryHeader::parse(&bytes)
    }

    #[test]
    fn round_trip_and_length() {
        assert_eq!(BinaryHeader::parse(&HEADER.to_bytes()), Ok(HEADER));
        assert_eq!(HEADER.file_bytes(), Some(64 + 6 * 24 + 8));
    }

    #[test]
    fn every_wrong_field_has_its_message() {
        let cases: [(usize, &[u8], &str); 10] = [
            (0, b"\x89snz", "magic bytes"),
            (8, &[2], "format version 2 is not supported"),
            (12, &[1, 2, 3, 4], "big-endian"),
            (12, &[9], "unknown header fields: mark 01020309"),
            (36, &[7], "layout 7"),
            (37, &[2], "element form 2"),
            (24, &[4], "a symmetric matrix of 3 x 4"),
            (32, &[0], "the header states a precision of 0 bits"),
            (40, &[5], "5 stored entries, which a 3 x 3 matrix cannot have"),
            (48, &[1], "unknown header fields"),
        ];
        for (at, value, message) in cases {
            let found = changed(at, value).unwrap_err();
            assert!(found.contains(message), "{at}: {found}");
        }
        let mut bytes = HEADER.to_bytes();
        bytes[17] ^= 1;
        assert!(BinaryHeader::parse(&bytes).unwrap_err().contains("the header is damaged"));
        let huge = BinaryHeader { rows: 1 << 33, cols: 1 << 33, precision_bits: 64, symmetry: Symmetry::General };
        assert!(BinaryHeader::parse(&huge.to_bytes()).unwrap_err().contains("too large to address"));
    }
}
