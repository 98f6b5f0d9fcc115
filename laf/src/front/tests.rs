//! Products against dense ones; freed memory, refusals.

use super::fixture::{dense, matrix, plain};
use super::*;
use crate::gallery::GrowingDiagonal;
use crate::small::SmallMatrix;
use crate::sparse::{BlockShape, Entry, pack};
use sunzi::Error;

#[test]
fn products_and_sums_are_those_of_dense_matrices() {
    let generated = GrowingDiagonal::new(150, 9, 3).unwrap();
    let full = dense(generated);
    for (chunk_rows, run_chunks) in [(200, 5), (20, 5), (20, 100), (7, 1), (7, 3)] {
        let session = Session::new(&SessionOptions { chunk_rows, run_chunks, ..SessionOptions::default() }).unwrap();
        let a = matrix(&session, generated);
        let x = session.random(150, 3, 5).unwrap();
        let numbers = SmallMatrix::from_numbers(150, 3, x.numbers().unwrap()).unwrap();
        let image = a.times(&x).unwrap();
        let expected = full.times(false, &numbers);
        for (found, wanted) in image.numbers().unwrap().iter().zip(expected.numbers()) {
            assert!((found - wanted).abs() < 1e-13 * wanted.abs().max(1.0), "{chunk_rows}: {found} {wanted}");
        }
        let product = inner(&[&x, &image], &[&x]).unwrap().get().unwrap();
        let wanted = expected.times(true, &numbers);
        for (row, col) in (0..3).flat_map(|row| (0..3).map(move |col| (row, col))) {
            assert!((product.at(3 + row, col) - wanted.at(row, col)).abs() < 1e-11);
        }
        let diagonal = a.diagonal().unwrap();
        let sum = x.add_scaled(2.0, &image, -1.0).unwrap().divide_rows(&diagonal).unwrap().numbers().unwrap();
        let both = x.add_scaled(1.5, &x, 0.5).unwrap().numbers().unwrap();
        for place in 0..450 {
            let (x, image) = (numbers.numbers()[place], expected.numbers()[place]);
            assert!((sum[place] - (2.0 * x - image) / generated.diagonal(place / 3)).abs() < 1e-13);
            assert_eq!(both[place], 2.0 * x);
        }
    }
}

#[test]
fn general_matrices_need_not_be_square() {
    let session = plain(4);
    let mut a = session.sparse(10, 7, Symmetry::General).unwrap();
    let value = |row: usize, col: usize| ((row * 7 + col) % 5) as f64 - 1.0;
    for (i, j) in (0..3).flat_map(|i| (0..2).map(move |j| (i, j))) {
        let (rows, cols) = (4 * i..(4 * i + 4).min(10), 4 * j..(4 * j + 4).min(7));
        let shape = BlockShape { rows: rows.len(), cols: cols.len(), lower: false };
        let places = rows.clone().flat_map(|row| cols.clone().map(move |col| (row, col)));
        let entry = |(row, col): (usize, usize)| {
            let value = value(row, col);
            Entry { row: (row - 4 * i) as u32, col: (col - 4 * j) as u32, value }
        };
        a.insert(i, j, pack(shape, &places.map(entry).collect::<Vec<_>>()).unwrap()).unwrap();
    }
    let x = (0..7).map(f64::from).collect::<Vec<_>>();
    let found = a.times(&session.tall_from(1, &x).unwrap()).unwrap().numbers().unwrap();
    let wanted = (0..10).map(|row| (0..7).map(|col| value(row, col) * x[col]).sum::<f64>());
    assert!(found.into_iter().eq(wanted));
    let bytes = pack(BlockShape { rows: 4, cols: 4, lower: false }, &[]).unwrap();
    assert!(a.insert(0, 1, bytes).is_err(), "a wrong shape");
    assert!(matches!(a.times(&session.random(9, 1, 1).unwrap()), Err(Error::ShapeMismatch { .. })));
    let (mine, other) = (session.random(7, 1, 1).unwrap(), Session::new(&Default::default()).unwrap());
    let theirs = other.random(7, 1, 1).unwrap();
    for error in [a.times(&theirs).err(), mine.add_scaled(1.0, &theirs, 1.0).err(), inner(&[&mine], &[&theirs]).err()] {
        assert!(error.unwrap().to_string().contains("the matrices belong to different sessions"));
    }
    let shorter = session.random(6, 1, 1).unwrap();
    for error in [mine.add_scaled(1.0, &shorter, 1.0).err(), inner(&[&mine], &[&shorter]).err()] {
        assert!(matches!(error, Some(Error::ShapeMismatch { left_rows: 7, right_rows: 6, .. })));
    }
    assert!(matches!(a.diagonal(), Err(Error::NotSquare { .. })));
    assert!(matches!(session.sparse(3, 4, Symmetry::Lower), Err(Error::NotSquare { .. })));
}

#[test]
fn handles_free_what_nobody_needs_and_limits_are_named() {
    let session =
        Session::new(&SessionOptions { chunk_rows: 512, memory_bytes: 100_000, ..Default::default() }).unwrap();
    // One chunk takes 8,192 bytes: a hundred of them would not fit at once.
    for seed in 0..100 {
        let x = session.random(512, 1, seed).unwrap();
        assert!(inner(&[&x], &[&x]).unwrap().get().unwrap().at(0, 0) > 100.0);
    }
    let x = session.random(20_000, 1, 1).unwrap();
    let y = x.add_scaled(2.0, &x, 1.0).unwrap();
    let refused = inner(&[&x], &[&y]).unwrap().get();
    assert!(matches!(refused, Err(Error::MemoryLimit { limit_bytes: 100_000, .. })), "{refused:?}");
    let after = inner(&[&x], &[&x]).unwrap().get().unwrap_err().to_string();
    assert!(after.starts_with("an earlier evaluation failed: a memory limit of "), "{after}");
}

#[test]
fn errors_of_tasks_come_out_of_get() {
    let session = plain(3);
    let x = session.random(10, 2, 1).unwrap();
    let zeros = session.tall_from(1, &[1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]).unwrap();
    let error = x.divide_rows(&zeros).unwrap().numbers().unwrap_err();
    assert!(matches!(error, Error::Singular { index: 4 }), "{error}");
    for options in [
        SessionOptions { nodes: 0, ..Default::default() },
        SessionOptions { threads: 0, ..Default::default() },
        SessionOptions { chunk_rows: 0, ..Default::default() },
        SessionOptions { run_chunks: 0, ..Default::default() },
        SessionOptions { nodes: 3, layout: Layout::TwoDimensional, ..Default::default() },
    ] {
        assert!(matches!(Session::new(&options), Err(Error::InvalidArgument(_))));
    }
}

#[test]
fn matrices_are_read_from_files() {
    let session = plain(4);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    let mut text = "%%MatrixMarket matrix coordinate real symmetric\n9 9 17\n".to_string();
    (1..=9).for_each(|k| text += &format!("{k} {k} 2\n"));
    (1..9).for_each(|k| text += &format!("{} {k} -1\n", k + 1));
    std::fs::write(&path, text).unwrap();
    let a = session.read_matrix_market(&path, 1 << 12).unwrap();
    let x = session.tall_from(1, &[1.0; 9]).unwrap();
    assert_eq!(a.times(&x).unwrap().numbers().unwrap(), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    std::fs::write(&path, "%%MatrixMarket matrix coordinate real general\n0 5 0\n").unwrap();
    let empty = session.read_matrix_market(&path, 1 << 12).unwrap();
    assert_eq!((empty.rows(), empty.cols()), (0, 5));
    assert!(matches!(session.read_matrix_market(&path.with_extension("none"), 1 << 12), Err(Error::Io { .. })));
    assert!(matches!(session.random(10, usize::MAX / 2, 1), Err(Error::DimensionOverflow { .. })));
}
