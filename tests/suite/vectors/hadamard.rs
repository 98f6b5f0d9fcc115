//! `hadamard`: every entry against exact sums, over shapes, precisions, kinds of exponents, scalars and numbers of
//! pairs.

use super::context;
use crate::common::oracle::{Exact, assert_beside_terms};
use crate::common::{KINDS, Rng, matrix, seeds};
use rug::Float;
use sunzi::blas::{HadamardOptions, hadamard, hadamard_into};
use sunzi::{Error, Matrix};

const SIZES: [usize; 6] = [0, 1, 2, 7, 9, 33];
const PRECISIONS: [u32; 9] = [2, 53, 64, 65, 128, 256, 300, 512, 1100];

#[test]
fn sums_of_products_entry_by_entry_are_right_beside_their_terms() -> sunzi::Result<()> {
    let (one, three) = (context(1), context(3));
    let scalars = [0.25, -2.0, 0.3, -7.0, 0.0].map(|value| Float::with_val(53, value));
    for seed in seeds(120) {
        let mut rng = Rng::new(seed);
        let (kind, bits) = (KINDS[seed as usize % KINDS.len()], rng.pick(&PRECISIONS));
        let (rows, cols, count) = (rng.pick(&SIZES), rng.pick(&SIZES), 1 + rng.below(9));
        let alpha = (seed % 3 > 0).then(|| &scalars[rng.below(scalars.len())]);
        let operands = (0..2 * count).map(|at| {
            let turned = rng.coin();
            let (height, width) = if turned { (cols, rows) } else { (rows, cols) };
            let of_bits = if rng.coin() { bits } else { rng.pick(&PRECISIONS) };
            (turned, matrix(kind, height + 2, width + 1, of_bits, seed + 31 * at as u64))
        });
        let operands = operands.collect::<Vec<_>>();
        let view = |at: usize| {
            let (turned, whole) = &operands[at];
            let (height, width) = if *turned { (cols, rows) } else { (rows, cols) };
            let part = whole.view().block(1..height + 1, 1..width + 1)?;
            Ok::<_, Error>(if *turned { part.transposed() } else { part })
        };
        let pairs = (0..count).map(|pair| Ok((view(2 * pair)?, view(2 * pair + 1)?)));
        let pairs = pairs.collect::<sunzi::Result<Vec<_>>>()?;
        let options = HadamardOptions::new().alpha(alpha);
        let mut got = Matrix::empty();
        let report = hadamard_into(&one, &pairs, bits, &options, &mut got)?;
        assert_eq!((got.rows(), got.cols(), got.precision_bits()), (rows, cols, bits));
        assert_eq!((report.operation, report.rows, report.cols), ("hadamard", rows, cols));
        let mut other = Matrix::empty();
        hadamard_into(&three, &pairs, bits, &options, &mut other)?;
        assert!(got == other, "seed {seed}: threads");
        let mut around = Matrix::zeros(rows + 2, cols + 2, bits)?;
        hadamard_into(&one, &pairs, bits, &options, around.view_mut().block(1..rows + 1, 1..cols + 1)?)?;
        assert!(around.view().block(1..rows + 1, 1..cols + 1)?.to_matrix()? == got, "seed {seed}: a block");
        if count == 1 && alpha.is_none() {
            assert!(hadamard(&one, pairs[0].0, pairs[0].1, bits)? == got, "seed {seed}: one pair");
        }
        let scalar = Exact::float(alpha.unwrap_or(&Float::with_val(2, 1)));
        for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
            let product = |(a, b): &(sunzi::MatrixView<'_>, sunzi::MatrixView<'_>)| {
                scalar.times(&Exact::entry(a, row, col).times(&Exact::entry(b, row, col)))
            };
            let label = format!("seed {seed}, {kind:?}, row {row}, column {col}, {count} pairs, {bits} bits");
            let terms = pairs.iter().map(product).collect::<Vec<_>>();
            assert_beside_terms(&Exact::entry(&got.view(), row, col), &terms, bits, &label);
        }
    }
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused() -> sunzi::Result<()> {
    let ctx = context(1);
    let (a, b) = (Matrix::zeros(2, 3, 64)?, Matrix::zeros(3, 2, 64)?);
    assert!(matches!(hadamard(&ctx, &a, &b, 64), Err(Error::ShapeMismatch { .. })));
    assert!(hadamard(&ctx, &a, b.transposed(), 64).is_ok());
    assert!(matches!(hadamard(&ctx, &a, &a, 1), Err(Error::Precision { .. })));
    let mut result = Matrix::empty();
    let none = hadamard_into(&ctx, &[], 64, &HadamardOptions::new(), &mut result);
    assert!(matches!(none, Err(Error::InvalidArgument(_))));
    let infinite = Float::with_val(53, f64::INFINITY);
    let pairs = [(a.view(), a.view())];
    let refused = hadamard_into(&ctx, &pairs, 64, &HadamardOptions::new().alpha(&infinite), &mut result);
    assert!(matches!(refused, Err(Error::InvalidArgument(text)) if text.contains("alpha")));
    let mut far = Matrix::from_f64s(1, 1, 64, &[1.0])?;
    far.set_integer_exponent(0, 0, &rug::Integer::from(1), sunzi::MAXIMUM_EXPONENT - 1)?;
    assert!(matches!(hadamard(&ctx, &far, &far, 64), Err(Error::ExponentRange { row: 0, column: 0, .. })));
    let tight = sunzi::Context::builder().threads(1).memory_bytes(100).build()?;
    let large = Matrix::zeros(40, 40, 64)?;
    assert!(matches!(hadamard(&tight, &large, &large, 64), Err(Error::MemoryLimit { limit_bytes: 100, .. })));
    Ok(())
}
