//! The binary format: a file is accepted if and only if every number in it is well formed, and an accepted file is
//! exactly what is written for its matrix.
//!
//! Half of the inputs are files as they come; the other half describe a file whose checksums are made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sunzi::Error;
use sunzi::io::{FileFormat, NumberForm, ReadOptions, Symmetry, WriteOptions, read_stream};
use sunzi_fuzz::{round_trips, source, written};
use xxhash_rust::xxh3::xxh3_64;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let (bytes, valid) = if choice & 1 == 0 { (rest.to_vec(), None) } else { repaired(rest) };
    // A raw header may claim any shape; memory for it is given lazily, but not without end.
    let claims = |at: usize| bytes.get(at..at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap()));
    if valid.is_none() && claims(16).saturating_mul(claims(24)) > 4096 {
        return;
    }
    match read_stream(&bytes[..], &source(FileFormat::Binary), &ReadOptions::new(2)) {
        Err(error) => {
            let message = error.to_string();
            assert!(matches!(error, Error::Format { .. }) && message.starts_with("input: "), "{error:?}");
            assert!(!message.contains('\n') && message.is_ascii(), "{message}");
            assert_ne!(valid, Some(true), "a valid file was refused: {message}");
        }
        Ok(loaded) => {
            assert_ne!(valid, Some(false), "an invalid file was accepted as {}", loaded.matrix);
            let symmetry = if loaded.symmetric { Symmetry::SymmetricLower } else { Symmetry::General };
            let options = WriteOptions::new().symmetry(symmetry).number_form(NumberForm::Hex);
            assert!(written(&loaded.matrix, FileFormat::Binary, &options) == bytes, "two files for {}", loaded.matrix);
            round_trips(&loaded.matrix, loaded.symmetric);
        }
    }
});

/// A file with right checksums from free bytes, and whether its numbers follow the rules.
fn repaired(bytes: &[u8]) -> (Vec<u8>, Option<bool>) {
    let mut bytes = bytes.iter().copied();
    let mut next = || bytes.next().unwrap_or(0);
    let (rows, symmetric) = (u64::from(next() % 5), next() % 2);
    let cols = if symmetric == 1 { rows } else { u64::from(next() % 5) };
    let precision = 2 + (u32::from(next()) | u32::from(next() & 1) << 8);
    let entries = if symmetric == 1 { rows * (rows + 1) / 2 } else { rows * cols };
    let mut file = b"\x89SNZ\r\n\x1a\n".to_vec();
    for word in [1u32, 0x0102_0304] {
        file.extend(word.to_le_bytes());
    }
    file.extend(rows.to_le_bytes());
    file.extend(cols.to_le_bytes());
    file.extend(precision.to_le_bytes());
    file.extend([symmetric, 1, 0, 0]);
    file.extend(entries.to_le_bytes());
    file.extend(0u64.to_le_bytes());
    file.extend(xxh3_64(&file).to_le_bytes());
    let limbs = precision.div_ceil(64) as usize;
    let spare = limbs as u32 * 64 - precision;
    let mut heads = Vec::new();
    let mut significands = Vec::new();
    let mut valid = true;
    for _ in 0..entries {
        let kind = next();
        let exponent = i64::from(i16::from_le_bytes([next(), next()])) << (kind >> 4);
        // Sign and exponent as they should be, or with a flipped bit.
        let mut head = (exponent as u64) << 2 | 2 | u64::from(kind & 1);
        let mut significand: Vec<u64> = (0..limbs).map(|_| u64::from(next()) << 56 | u64::from(next())).collect();
        match (kind >> 1) % 8 {
            0 => (head, significand) = (0, vec![0; limbs]),
            1 => head ^= 1 << (next() % 64),
            2 => {}
            _ => {
                significand[limbs - 1] |= 1 << 63;
                significand[0] &= u64::MAX << spare;
            }
        }
        valid &= is_valid(head, &significand, spare);
        heads.push(head);
        significands.extend(significand);
    }
    let payload: Vec<u8> = heads.iter().chain(&significands).flat_map(|word| word.to_le_bytes()).collect();
    file.extend(&payload);
    file.extend(xxh3_64(&payload).to_le_bytes());
    (file, Some(valid))
}

/// The rules for one number, as the format's page states them.
fn is_valid(head: u64, significand: &[u64], spare: u32) -> bool {
    if head == 0 {
        return significand.iter().all(|&limb| limb == 0);
    }
    let exponent = (head as i64) >> 2;
    let top = significand[significand.len() - 1];
    head & 2 == 2 && exponent.abs() < 1 << 30 && top >> 63 == 1 && u128::from(significand[0]) % (1 << spare) == 0
}
