//! Products against loops over single entries, and damaged bytes.

use super::*;
use crate::random;
use proptest::prelude::*;
use sunzi::Error;

fn random_entries(shape: BlockShape, share: f64) -> Vec<Entry> {
    let places = (0..shape.rows as u32).flat_map(|row| (0..shape.cols as u32).map(move |col| (row, col)));
    let kept = places.filter(|&(row, col)| {
        (!shape.lower || col <= row) && random::unit(1, u64::from(row) << 32 | u64::from(col)) < share
    });
    let value = |row: u32, col: u32| random::symmetric(2, u64::from(row) << 32 | u64::from(col));
    kept.map(|(row, col)| Entry { row, col, value: value(row, col) }).collect()
}

fn numbers(seed: u64, rows: usize, vectors: usize) -> Vec<f64> {
    (0..(rows * vectors) as u64).map(|place| random::symmetric(seed, place)).collect()
}

/// `y += a x` entry by entry, with `A^T` where `transposed`.
fn reference(entries: &[Entry], x: &[f64], y: &mut [f64], vectors: usize, transposed: bool) {
    for entry in entries {
        let (row, col) = (entry.row as usize, entry.col as usize);
        let (to, from) = if transposed { (col, row) } else { (row, col) };
        for k in 0..vectors {
            y[to * vectors + k] += entry.value * x[from * vectors + k];
        }
    }
}

fn close(one: &[f64], other: &[f64]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(x, y)| (x - y).abs() <= 1e-13)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn products_are_those_of_single_entries(
        rows in 0usize..60, cols in prop::sample::select(vec![1usize, 30, 255, 256, 257, 700]),
        vectors in prop::sample::select(vec![1usize, 3, 8, 11, 16]), share in 0.0f64..0.6,
    ) {
        let shape = BlockShape { rows, cols, lower: false };
        let entries = random_entries(shape, share);
        let bytes = pack(shape, &entries).unwrap();
        let block = SparseBlock::parse(&bytes).unwrap();
        block.check().unwrap();
        prop_assert_eq!((block.shape(), block.entries()), (shape, entries.len()));
        let (x_cols, x_rows) = (numbers(3, cols, vectors), numbers(4, rows, vectors));
        let (old_cols, old_rows) = (numbers(5, cols, vectors), numbers(6, rows, vectors));
        let (mut want_rows, mut want_cols) = (old_rows.clone(), old_cols.clone());
        reference(&entries, &x_cols, &mut want_rows, vectors, false);
        reference(&entries, &x_rows, &mut want_cols, vectors, true);
        let mut y = old_rows.clone();
        multiply(&block, &x_cols, &mut y, vectors).unwrap();
        prop_assert!(y == want_rows);
        let (mut y_cols, mut y_rows) = (old_cols, old_rows);
        multiply_symmetric(&block, [&x_cols, &x_rows], [&mut y_cols, &mut y_rows], vectors).unwrap();
        prop_assert!(y_cols == want_cols && y_rows == want_rows);
    }

    #[test]
    fn diagonal_blocks_stand_for_both_triangles(rows in 1usize..300, vectors in 1usize..17) {
        let shape = BlockShape { rows, cols: rows, lower: true };
        let entries = random_entries(shape, 0.2);
        let bytes = pack(shape, &entries).unwrap();
        let block = SparseBlock::parse(&bytes).unwrap();
        let (x, mut y) = (numbers(3, rows, vectors), numbers(4, rows, vectors));
        let mut want = y.clone();
        reference(&entries, &x, &mut want, vectors, false);
        let strict = entries.iter().copied().filter(|entry| entry.row != entry.col).collect::<Vec<_>>();
        reference(&strict, &x, &mut want, vectors, true);
        multiply_diagonal(&block, &x, &mut y, vectors).unwrap();
        prop_assert!(close(&y, &want));
        let found = diagonal(&block).unwrap();
        prop_assert_eq!(found.len(), rows);
        for (row, &number) in found.iter().enumerate() {
            let entry = entries.iter().find(|entry| (entry.row, entry.col) == (row as u32, row as u32));
            prop_assert_eq!(number, entry.map_or(0.0, |entry| entry.value));
        }
    }
}

#[test]
fn an_entry_takes_ten_bytes_in_blocks_of_65536_columns() {
    let shape = BlockShape { rows: 100, cols: 65_536, lower: false };
    let entries = random_entries(shape, 0.003);
    let bytes = pack(shape, &entries).unwrap().len();
    assert_eq!(bytes, (32 + 10 * entries.len() + 100usize).next_multiple_of(8));
    assert!(bytes < 10 * entries.len() + 300);
}

#[test]
fn damaged_blocks_and_wrong_shapes_are_refused() {
    let shape = BlockShape { rows: 9, cols: 300, lower: false };
    let bytes = pack(shape, &random_entries(shape, 0.1)).unwrap();
    for end in 0..bytes.len() {
        assert!(matches!(SparseBlock::parse(&bytes[..end]), Err(Error::InvalidArgument(_))), "{end}");
    }
    // Any flipped bit of header, columns and counts is found, or leaves a block of the same shape.
    let (x, mut y) = (vec![1.0; 300], vec![0.0; 9]);
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(block) = SparseBlock::parse(&flipped) {
            let _ = block.check();
            let _ = multiply(&block, &x, &mut y, 1);
            let _ = diagonal(&block);
        }
    }
    let block = SparseBlock::parse(&bytes).unwrap();
    assert!(matches!(multiply(&block, &x[1..], &mut y, 1), Err(Error::ShapeMismatch { .. })));
    assert!(matches!(multiply(&block, &x, &mut y[1..], 1), Err(Error::ShapeMismatch { .. })));
    assert!(multiply_diagonal(&block, &x, &mut y, 1).is_err());
    let entry = |row, col, value| Entry { row, col, value };
    let cases = [
        vec![entry(9, 0, 1.0)],
        vec![entry(0, 300, 1.0)],
        vec![entry(1, 0, 1.0), entry(0, 0, 1.0)],
        vec![entry(1, 2, 1.0), entry(1, 2, 2.0)],
        vec![entry(1, 2, f64::INFINITY)],
    ];
    for entries in cases {
        assert!(matches!(pack(shape, &entries), Err(Error::InvalidArgument(_))), "{entries:?}");
    }
    let lower = BlockShape { rows: 3, cols: 3, lower: true };
    assert!(pack(lower, &[entry(0, 1, 1.0)]).is_err() && pack(BlockShape { cols: 4, ..lower }, &[]).is_err());
}
