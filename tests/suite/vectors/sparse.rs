//! `spmm` and `sddmm`: every entry against exact sums, over shapes, precisions, kinds of exponents and short entries.

use super::context;
use crate::common::oracle::{Exact, assert_beside_terms};
use crate::common::{KINDS, Kind, Rng, matrix, seeds};
use rug::Float;
use sunzi::sparse::{SparseMatrix, sddmm, sddmm_into, spmm, spmm_into};
use sunzi::{Context, Error, Matrix};

const LENGTHS: [usize; 7] = [0, 1, 2, 7, 8, 9, 40];
const PRECISIONS: [u32; 9] = [2, 53, 64, 65, 128, 256, 300, 512, 1100];

/// Some entries of a matrix, a few of them small integers.
fn entries(kind: Kind, (rows, cols): (usize, usize), bits: u32, rng: &mut Rng) -> Vec<(usize, usize, Float)> {
    let numbers = matrix(kind, rows, cols, bits, rng.word());
    let places = (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))).collect::<Vec<_>>();
    let chosen = places.into_iter().filter(|_| rng.below(3) == 0).collect::<Vec<_>>();
    let number = |(row, col): (usize, usize)| match rng.below(3) {
        0 => (row, col, Float::with_val(53, rng.within(9) as f64)),
        _ => (row, col, numbers.float(row, col)),
    };
    chosen.into_iter().rev().map(number).collect()
}

#[test]
fn products_of_sparse_matrices_are_right_beside_their_terms() -> sunzi::Result<()> {
    let (one, three) = (context(1), context(3));
    for seed in seeds(120) {
        let mut rng = Rng::new(seed);
        let (kind, bits, shape) =
            (KINDS[seed as usize % KINDS.len()], rng.pick(&PRECISIONS), (rng.pick(&LENGTHS), rng.pick(&LENGTHS)));
        let list = entries(kind, shape, if rng.coin() { bits } else { rng.pick(&PRECISIONS) }, &mut rng);
        let a =
            SparseMatrix::from_entries(shape.0, shape.1, list.iter().map(|(row, col, value)| ((*row, *col), value)))?;
        let rows = rng.below(shape.0 + 1)..shape.0;
        let of_b = if rng.coin() { bits } else { rng.pick(&PRECISIONS) };
        let (cols, turned) = (rng.pick(&[0, 1, 2, 5]), rng.coin());
        let whole = if turned { (cols + 1, shape.1) } else { (shape.1, cols + 1) };
        let b = matrix(kind, whole.0, whole.1, of_b, seed + 7);
        let b = if turned { b.transposed() } else { b.view() }.block(0..shape.1, 1..cols + 1)?;
        let view = a.view().row_range(rows.clone())?;
        let got = spmm(&one, view, b, bits)?;
        assert_eq!((got.rows(), got.cols(), got.precision_bits()), (rows.len(), cols, bits));
        assert!(got == spmm(&three, view, b, bits)?, "seed {seed}: threads");
        let mut around = Matrix::zeros(rows.len() + 2, cols + 2, bits)?;
        spmm_into(&one, view, b, bits, around.view_mut().block(1..rows.len() + 1, 1..cols + 1)?)?;
        assert!(around.view().block(1..rows.len() + 1, 1..cols + 1)?.to_matrix()? == got, "seed {seed}: a block");
        for (at, col) in (0..rows.len()).flat_map(|at| (0..cols).map(move |col| (at, col))) {
            let of_row = list.iter().filter(|(row, _, _)| *row == rows.start + at);
            let terms = of_row.map(|(_, k, value)| Exact::float(value).times(&Exact::entry(&b, *k, col)));
            let label = format!("seed {seed}, {kind:?}, {shape:?}, row {at}, column {col}, {bits} bits");
            assert_beside_terms(&Exact::entry(&got.view(), at, col), &terms.collect::<Vec<_>>(), bits, &label);
        }
    }
    Ok(())
}

#[test]
fn sampled_products_are_right_beside_their_terms() -> sunzi::Result<()> {
    let (one, three) = (context(1), context(3));
    for seed in seeds(120) {
        let mut rng = Rng::new(seed);
        let (kind, bits) = (KINDS[seed as usize % KINDS.len()], rng.pick(&PRECISIONS));
        let [rows, terms, cols] = [rng.pick(&[1, 2, 9]), rng.pick(&LENGTHS), rng.pick(&[1, 3, 8])];
        let other = if rng.coin() { bits } else { rng.pick(&PRECISIONS) };
        let turned = rng.coin();
        let a = if turned { matrix(kind, terms, rows, bits, seed) } else { matrix(kind, rows, terms, bits, seed) };
        let (a, b) = (if turned { a.transposed() } else { a.view() }, matrix(kind, terms, cols, other, seed + 1));
        let positions = (0..rng.below(30)).map(|_| (rng.below(rows), rng.below(cols))).collect::<Vec<_>>();
        let got = sddmm(&one, a, &b, &positions, bits)?;
        assert_eq!((got.rows(), got.cols(), got.precision_bits()), (positions.len(), 1, bits));
        assert!(got == sddmm(&three, a, &b, &positions, bits)?, "seed {seed}: threads");
        for (at, &(row, col)) in positions.iter().enumerate() {
            let product = |k: usize| Exact::entry(&a, row, k).times(&Exact::entry(&b.view(), k, col));
            let label = format!("seed {seed}, {kind:?}, {terms} terms, {bits} bits, position {at}");
            let terms = (0..terms).map(product).collect::<Vec<_>>();
            assert_beside_terms(&Exact::entry(&got.view(), at, 0), &terms, bits, &label);
        }
    }
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused() -> sunzi::Result<()> {
    let ctx = context(1);
    let value = Float::with_val(64, 3);
    let a = SparseMatrix::from_entries(2, 3, [((1, 2), &value)])?;
    let b = matrix(Kind::Unit, 3, 2, 64, 1);
    let mismatch = |error: Error, name| matches!(error, Error::ShapeMismatch { operation, .. } if operation == name);
    assert!(mismatch(spmm(&ctx, &a, b.transposed(), 64).unwrap_err(), "spmm"));
    assert!(mismatch(sddmm(&ctx, &b, &b, &[], 64).unwrap_err(), "sddmm"));
    for bits in [0, 1, (1 << 24) + 1] {
        assert!(matches!(spmm(&ctx, &a, &b, bits), Err(Error::Precision { .. })));
        assert!(matches!(sddmm(&ctx, &b, b.transposed(), &[], bits), Err(Error::Precision { .. })));
    }
    for position in [(3, 0), (0, 3)] {
        let error = sddmm(&ctx, &b, b.transposed(), &[(2, 2), position], 64).unwrap_err().to_string();
        assert!(error.contains("position 1") && error.contains("3 x 3"), "{error}");
    }
    let mut large = Matrix::zeros(3, 2, 64)?;
    large.set_integer_exponent(2, 1, &3.into(), 900_000_000)?;
    let huge = SparseMatrix::from_entries(2, 3, [((1, 2), &large.float(2, 1))])?;
    assert!(matches!(spmm(&ctx, &huge, &large, 64), Err(Error::ExponentRange { row: 1, column: 1, .. })));
    let column = large.view().block(0..3, 1..2)?;
    assert!(matches!(spmm(&ctx, &huge, column, 64), Err(Error::ExponentRange { row: 1, column: 0, .. })));
    let squares = sddmm(&ctx, large.transposed(), &large, &[(0, 0), (1, 1)], 64);
    assert!(matches!(squares, Err(Error::ExponentRange { row: 1, .. })));
    let mut wrong = Matrix::zeros(2, 1, 64)?;
    assert!(spmm_into(&ctx, &a, &b, 64, wrong.view_mut()).is_err());
    assert!(sddmm_into(&ctx, &b, b.transposed(), &[(0, 0)], 64, wrong.view_mut()).is_err());
    let little = Context::builder().threads(1).memory_bytes(100).build()?;
    assert!(matches!(spmm(&little, &a, &b, 64), Err(Error::MemoryLimit { .. })));
    assert!(matches!(sddmm(&little, &b, b.transposed(), &[(0, 0); 9], 64), Err(Error::MemoryLimit { .. })));
    let stopped = Context::builder().threads(1).progress(|_| false).build()?;
    assert!(matches!(spmm(&stopped, &a, &b, 64), Err(Error::Cancelled)));
    Ok(())
}
