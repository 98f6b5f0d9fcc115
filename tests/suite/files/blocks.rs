//! Parts of binary files, read and written where they lie, against files that are read and written whole.

use crate::common::{Kind, Rng, matrix, seeds};
use std::fs;
use std::sync::{Arc, Mutex};
use sunzi::io::{self, Block, MatrixFile, MatrixFileShape, Symmetry, WriteOptions, write_blocks};
use sunzi::{Error, Head, Matrix};

fn written(matrix: &Matrix, symmetric: bool, path: &std::path::Path) {
    let symmetry = if symmetric { Symmetry::SymmetricLower } else { Symmetry::General };
    io::write(path, matrix, &WriteOptions::new().symmetry(symmetry)).unwrap();
}

/// A symmetric matrix of random entries.
fn symmetric(order: usize, precision_bits: u32, seed: u64) -> Matrix {
    let mut a = matrix(Kind::Graded, order, order, precision_bits, seed);
    for (row, col) in (0..order).flat_map(|row| (0..row).map(move |col| (row, col))) {
        let value = a.float(row, col);
        a.set_float(col, row, &value).unwrap();
    }
    a
}

#[test]
fn blocks_are_those_of_the_matrix_and_make_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, parts) = (folder.path().join("whole.bin"), folder.path().join("parts.bin"));
    for seed in seeds(12) {
        let mut rng = Rng::new(seed);
        let is_symmetric = rng.coin();
        let (rows, bits) = (1 + rng.below(40), rng.pick(&[2, 64, 65, 300]));
        let cols = if is_symmetric { rows } else { 1 + rng.below(40) };
        let a = match is_symmetric {
            true => symmetric(rows, bits, seed),
            false => matrix(Kind::Graded, rows, cols, bits, seed),
        };
        written(&a, is_symmetric, &whole);
        let file = MatrixFile::open(&whole).unwrap();
        let (mut seen, last) = (0, Arc::new(Mutex::new((0, 0))));
        let told = last.clone();
        let watch = move |progress: sunzi::Progress| {
            *told.lock().unwrap() = (progress.done, progress.total);
            true
        };
        file.check(Some(Arc::new(watch)), |row, col, head| {
            assert_eq!(head, a.get(row, col).head);
            seen += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, file.info().stored_entries);
        // Heads are read twice.
        let bytes = 8 * seen * (2 + u64::from(bits.div_ceil(64)));
        assert_eq!(*last.lock().unwrap(), (bytes, bytes));
        let side = 1 + rng.below(17);
        let pieces = |count: usize| (0..count).step_by(side).map(move |start| start..(start + side).min(count));
        let mut blocks = pieces(rows)
            .flat_map(|rows| pieces(cols).map(move |cols| Block { rows: rows.clone(), cols }))
            .filter(|block| !is_symmetric || block.rows.end > block.cols.start)
            .collect::<Vec<_>>();
        for at in (1..blocks.len()).rev() {
            blocks.swap(at, rng.below(at + 1));
        }
        let shape = MatrixFileShape { rows, cols, precision_bits: bits, symmetric: is_symmetric };
        write_blocks(&parts, shape, None, |writer| {
            for block in &blocks {
                let mut words = vec![0; file.block_words(block)];
                file.read_block(block, &mut words)?;
                let (heads, limbs) = words.split_at(block.rows.len() * block.cols.len());
                for (at, &head) in heads.iter().enumerate() {
                    let (row, col) =
                        (block.rows.start + at % block.rows.len(), block.cols.start + at / block.rows.len());
                    if !is_symmetric || row >= col {
                        let entry = a.get(row, col);
                        assert_eq!(Head(head), entry.head);
                        assert_eq!(&limbs[at * file.limbs()..][..file.limbs()], entry.limbs);
                    }
                }
                writer.write_block(block, heads, limbs)?;
            }
            Ok(())
        })
        .unwrap();
        assert!(fs::read(&whole).unwrap() == fs::read(&parts).unwrap(), "{rows} x {cols}, {bits} bits");
    }
}

#[test]
fn entries_of_the_diagonal_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    for is_symmetric in [false, true] {
        let a = symmetric(23, 130, 7);
        written(&a, is_symmetric, &path);
        let file = MatrixFile::open(&path).unwrap();
        let heads = file.diagonal_heads().unwrap();
        for (at, head) in heads.iter().enumerate() {
            assert_eq!(*head, a.get(at, at).head);
            assert_eq!(file.entry_limbs(at, at).unwrap(), a.get(at, at).limbs);
            assert_eq!(file.diagonal_entry(at).unwrap(), a.float(at, at));
        }
        assert_eq!(heads.len(), 23);
    }
}

#[test]
fn what_is_damaged_is_found_by_a_pass_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    let a = symmetric(30, 200, 3);
    written(&a, true, &path);
    let bytes = fs::read(&path).unwrap();
    let check = || MatrixFile::open(&path).and_then(|file| file.check(None, |_, _, _| Ok(())));
    let pass = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        check()
    };
    assert!(pass(&bytes).is_ok());
    let message = |bytes: &[u8]| match pass(bytes) {
        Err(error @ Error::Format { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(message(&bytes[..bytes.len() - 1]).contains("truncated"));
    assert!(message(&[&bytes[..], &[0]].concat()).contains("too long"));
    assert!(message(&bytes[..40]).contains("of its header"));
    for seed in seeds(40) {
        let mut damaged = bytes.clone();
        let at = 64 + Rng::new(seed).below(bytes.len() - 64);
        damaged[at] ^= 1 << (seed % 8);
        let told = message(&damaged);
        assert!(told.contains("are damaged") || told.contains("is not a valid number"), "byte {at}: {told}");
    }
    let missing = MatrixFile::open(&folder.path().join("none.bin")).unwrap_err();
    assert!(matches!(missing, Error::Io { action: "open", .. }));
}

#[test]
fn a_file_that_is_not_finished_does_not_appear() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    let shape = MatrixFileShape { rows: 9, cols: 9, precision_bits: 100, symmetric: false };
    let failed = write_blocks(&path, shape, None, |_| Err(Error::Cancelled));
    assert!(matches!(failed, Err(Error::Cancelled)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let huge = MatrixFileShape { rows: 1 << 40, cols: 1 << 40, ..shape };
    assert!(matches!(write_blocks(&path, huge, None, |_| Ok(())), Err(Error::DimensionOverflow { .. })));
    // What no block writes is 0.
    write_blocks(&path, shape, None, |_| Ok(())).unwrap();
    let read = io::read(&path, &io::ReadOptions::new(None)).unwrap().matrix;
    assert!((0..9).all(|row| (0..9).all(|col| read.get(row, col).head.is_zero())));
}

/// The first entry, block by block, that is not its mirror image; blocks of one row, of some, of all.
#[test]
fn a_file_that_is_not_symmetric_is_told_with_its_entry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    let mut a = symmetric(7, 130, 3);
    for change in [None, Some((4, 2)), Some((1, 5))] {
        if let Some((row, col)) = change {
            let value = a.float(row, col) + 1u32;
            a.set_float(row, col, &value).unwrap();
        }
        written(&a, false, &path);
        let file = MatrixFile::open(&path).unwrap();
        for step in [1, 3, 7, 9] {
            match (change, file.check_symmetric(step)) {
                (None, checked) => checked.unwrap(),
                (Some((row, col)), Err(Error::NotSymmetric { row: low, column })) => {
                    assert_eq!((low, column), (row.max(col), row.min(col)), "blocks of {step}");
                }
                (Some(place), other) => panic!("{place:?}: {other:?}"),
            }
        }
        if let Some((row, col)) = change {
            let value = a.float(col, row);
            a.set_float(row, col, &value).unwrap();
        }
    }
}
