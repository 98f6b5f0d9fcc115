//! Reading a file takes little more memory than its matrix, also where a matrix was read before.
//!
//! It looks at the peak of the whole process, as the system counts it.

use crate::alone;
use std::fs;
use sunzi::Matrix;
use sunzi::io::{NumberForm, ReadOptions, WriteOptions, read, write};

/// A line of `/proc/self/status`, in bytes.
fn status_bytes(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn reading_takes_little_more_than_the_matrix() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut matrix = Matrix::zeros(1000, 500, 1024).unwrap();
    let mut state = 1u64;
    for col in 0..500 {
        for row in 0..1000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            matrix.set_integer_exponent(row, col, &rug::Integer::from(state), -64).unwrap();
        }
    }
    let bytes = matrix.bytes();
    for name in ["a.mtx", "b.bin"] {
        let options = WriteOptions::new().number_form(NumberForm::Hex);
        write(folder.path().join(name), &matrix, &options).unwrap();
    }
    drop(matrix);
    let mut held = Vec::new();
    for name in ["a.mtx", "a.mtx", "b.bin"] {
        // Starts a new peak; a system that refuses leaves the old one, which is higher.
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = status_bytes("VmRSS:");
        held.push(read(folder.path().join(name), &ReadOptions::new(1024)).unwrap().matrix);
        let taken = status_bytes("VmHWM:") - before;
        assert!(taken >= bytes * 9 / 10, "{name}: {taken} bytes for a matrix of {bytes}: the peak was not seen");
        assert!(taken <= bytes + (40 << 20), "{name}: {taken} bytes for a matrix of {bytes}");
        println!("{name}: {taken} bytes for a matrix of {bytes}");
    }
    assert!(held[0] == held[1] && held[0] == held[2]);
}
