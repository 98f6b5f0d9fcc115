//! Accuracy entry by entry: the bound against exact sums, and the same bits on every path.

use crate::common::{Kind, Rng, effort, forced, in_turn, kernel_names, matrix};
use rug::{Float, Integer};
use sunzi::report::Report;
use sunzi::{Accuracy, Context, Error, GemmOptions, Matrix, Op, SyrkOptions, Uplo, gemm_with, syrk_with};

/// A power of two as an exact float.
fn power(exponent: i32) -> Float {
    Float::with_val(2, 1) << exponent
}

/// How the exponents of a test matrix are spread.
#[derive(Clone, Copy, Debug)]
enum Spread {
    /// Each entry on its own, over so many bits.
    Entries(usize),
    /// So many bits along the contraction: large ones of one operand meet small ones of the other.
    Opposed(usize),
    /// One entry of each operand is 2 to this power larger than the others.
    Outlier(usize),
    /// The second half of the terms cancels the first but for the last bit.
    Cancelling,
}

const SPREADS: [Spread; 8] = [
    Spread::Entries(1),
    Spread::Entries(40),
    Spread::Entries(2000),
    Spread::Opposed(300),
    Spread::Opposed(2000),
    Spread::Outlier(90),
    Spread::Outlier(20_000),
    Spread::Cancelling,
];

/// Operands of `rows x inner` and `inner x cols`, with some zeros.
fn operands(spread: Spread, (rows, inner, cols): (usize, usize, usize), bits: u32, seed: u64) -> (Matrix, Matrix) {
    let mut rng = Rng::new(seed);
    let mut make = |first: bool| {
        let (height, width) = if first { (rows, inner) } else { (inner, cols) };
        let mut matrix = Matrix::zeros(height, width, bits).unwrap();
        let special = (rng.below(height.max(1)), rng.below(width.max(1)));
        for (i, j) in (0..width).flat_map(|j| (0..height).map(move |i| (i, j))) {
            let term = if first { j } else { i };
            let exponent = match spread {
                Spread::Entries(range) => rng.below(range) as i64,
                Spread::Opposed(range) => {
                    let along = (range * term / inner.max(1)) as i64;
                    if first { along } else { -along }
                }
                Spread::Outlier(range) => {
                    if (i, j) == special {
                        range as i64
                    } else {
                        0
                    }
                }
                Spread::Cancelling => 0,
            };
            if rng.below(9) > 0 {
                matrix.set_integer_exponent(i, j, &rng.integer(bits), exponent).unwrap();
            }
        }
        matrix
    };
    let (mut a, mut b) = (make(true), make(false));
    if matches!(spread, Spread::Cancelling) {
        let half = inner / 2;
        for k in half..2 * half {
            (0..rows).for_each(|i| a.set_float(i, k, &-a.float(i, k - half)).unwrap());
            for j in 0..cols {
                let (mut near, scale) = (b.float(k - half, j), b.float(k - half, j));
                if rng.coin() && !near.is_zero() {
                    near += scale >> (bits - 1);
                }
                b.set_float(k, j, &near).unwrap();
            }
        }
    }
    (a, b)
}

/// An entry as an integer times a power of two.
fn parts(matrix: &Matrix, row: usize, col: usize) -> (Integer, i64) {
    let (integer, exponent) = matrix.float(row, col).to_integer_exp().unwrap();
    (integer, exponent.into())
}

/// The sum of terms, and of their magnitudes, in units of the power of two that is given third.
fn exact(terms: &[(Integer, i64)]) -> (Integer, Integer, i64) {
    let low = terms.iter().map(|term| term.1).min().unwrap_or(0);
    let (mut sum, mut size) = (Integer::new(), Integer::new());
    for (integer, exponent) in terms {
        let term = Integer::from(integer << u32::try_from(exponent - low).unwrap());
        size += Integer::from(term.abs_ref());
        sum += term;
    }
    (sum, size, low)
}

/// The terms of `alpha A B + beta C` at one place.
fn terms(
    a: &Matrix,
    b: &Matrix,
    (row, col): (usize, usize),
    scalars: Option<(i32, i32, &Matrix)>,
) -> Vec<(Integer, i64)> {
    let (alpha, beta) = scalars.map_or((1, 0), |(alpha, beta, _)| (alpha, beta));
    let product = |k: usize| {
        let ((x, e), (y, f)) = (parts(a, row, k), parts(b, k, col));
        (x * y * alpha, e + f)
    };
    let mut terms = (0..a.cols()).map(product).filter(|(term, _)| *term != 0).collect::<Vec<_>>();
    if let Some((_, _, c)) = scalars {
        let (entry, exponent) = parts(c, row, col);
        terms.push((entry * beta, exponent));
    }
    terms
}

/// The error of `computed` over the promise, in 1/1000; panics where it is larger.
fn check(computed: Float, terms: &[(Integer, i64)], bits: u32, what: &str) -> u32 {
    let (sum, size, low) = exact(terms);
    if size == 0 {
        assert!(computed.is_zero(), "{what}: an empty sum");
        return 0;
    }
    let (got, exponent) = computed.to_integer_exp().unwrap();
    let exponent = if got == 0 { low } else { exponent.into() };
    // In units of 2^(low - bits - far), so that both are integers.
    let far = (low - exponent).max(0) as u32;
    let scaled = got << u32::try_from(exponent - low + i64::from(far)).unwrap();
    let error = ((sum << far) - scaled).abs() << (bits - 1);
    let promise = size << far;
    assert!(error <= promise, "{what}: beyond the promise");
    (error * 1000u32 / promise).to_u32().unwrap()
}

fn gemm_report(ctx: &Context, (a, b): (&Matrix, &Matrix), bits: u32, accuracy: Accuracy) -> (Matrix, Report) {
    let outcome = gemm_with(ctx, a, b, bits, &GemmOptions::new().accuracy(accuracy)).unwrap();
    (outcome.result, outcome.report)
}

#[test]
fn products_are_right_beside_the_sizes_of_their_terms() {
    let ctx = Context::builder().threads(2).build().unwrap();
    let (mut worst, mut entries, mut singles, mut ranges) = (0, 0, 0, 0);
    for seed in 0..128 * effort() {
        let mut rng = Rng::new(seed);
        let spread = SPREADS[seed as usize % SPREADS.len()];
        let bits = rng.pick(&[2, 53, 64, 128, 200, 256]);
        let shape = (rng.pick(&[1, 2, 7, 31, 33]), rng.pick(&[0, 1, 2, 9, 40]), rng.pick(&[1, 3, 8, 32, 34]));
        let (a, b) = operands(spread, shape, rng.pick(&[2, 53, 128, 300]), seed);
        let (c, report) = gemm_report(&ctx, (&a, &b), bits, Accuracy::Entrywise);
        assert_eq!(report.accuracy, Accuracy::Entrywise);
        let what = format!("seed {seed}, {spread:?}, {shape:?}, {bits} bits, {report:?}");
        for (row, col) in (0..shape.2).flat_map(|col| (0..shape.0).map(move |row| (row, col))) {
            worst = worst.max(check(c.float(row, col), &terms(&a, &b, (row, col), None), bits, &what));
            entries += 1;
        }
        singles += report.single_entries;
        ranges += u32::from(report.range_bits > 0);
    }
    println!("{entries} entries, {singles} of them one by one, {ranges} products with more bits; worst {worst}/1000");
    assert!(worst > 300 && singles > 0 && ranges > 0, "the cases are hard: worst {worst}, {singles}, {ranges}");
}

#[test]
fn larger_products_take_bits_for_most_and_sums_for_few() {
    let (bits, order) = (256, 70);
    let ctx = Context::builder().threads(1).build().unwrap();
    let norm = matrix(Kind::Unit, order, order, bits, 3);
    let (_, plain) = gemm_report(&ctx, (&norm, &norm), bits, Accuracy::Entrywise);
    assert!((1..=24).contains(&plain.range_bits) && plain.single_entries == 0, "{plain:?}");
    // One row and one column far above the others: all sums but those in them lie far below the norms.
    let mut spread = norm.clone();
    spread.set_float(4, 9, &(norm.float(4, 9) << 3000u32)).unwrap();
    let (c, report) = gemm_report(&ctx, (&spread, &norm), bits, Accuracy::Entrywise);
    assert!(report.single_entries <= order as u64 && report.range_bits <= 24, "{report:?}");
    let mut found = 0;
    for (row, col) in (0..order).flat_map(|col| (0..order).map(move |row| (row, col))) {
        found = found.max(check(c.float(row, col), &terms(&spread, &norm, (row, col), None), bits, "spread"));
    }
    assert!(found > 0);
    let (_, opposed) = {
        let (a, b) = operands(Spread::Opposed(200), (order, order, order), bits, 8);
        gemm_report(&ctx, (&a, &b), bits, Accuracy::Entrywise)
    };
    assert!(opposed.range_bits >= 150 && opposed.single_entries == 0, "{opposed:?}");
    assert_eq!(opposed.working_bits - opposed.range_bits, plain.working_bits - plain.range_bits);
}

#[test]
fn scalars_triangles_and_transposes_keep_the_promise() {
    let ctx = Context::builder().threads(2).build().unwrap();
    for (seed, spread) in (0..).zip(SPREADS) {
        let (bits, order, inner) = (128, 35, 12);
        let (a, _) = operands(spread, (order, inner, 1), bits, seed);
        let transpose = Matrix::from_fn(inner, order, bits, |i, j| a.float(j, i)).unwrap();
        let sum = matrix(Kind::Graded, order, order, bits, seed);
        let c = Matrix::from_fn(order, order, bits, |i, j| sum.float(i.max(j), i.min(j))).unwrap();
        let (alpha, beta) = (Float::with_val(10, -3), Float::with_val(10, 5));
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let options = SyrkOptions::new().accuracy(Accuracy::Entrywise).op(Op::Transpose).uplo(uplo);
            let with = options.clone().alpha(&alpha).beta(&beta).accumulate(sunzi::Symmetric::from(&c));
            let plain = syrk_with(&ctx, &a, bits, &options).unwrap().result;
            let both = syrk_with(&ctx, &a, bits, &with).unwrap().result;
            for (row, col) in (0..order).flat_map(|col| (0..order).map(move |row| (row, col))) {
                let what = format!("{spread:?}, {uplo:?}, ({row}, {col})");
                check(plain.float(row, col), &terms(&a, &transpose, (row, col), None), bits, &what);
                let scalars = Some((-3, 5, &c));
                check(both.float(row, col), &terms(&a, &transpose, (row, col), scalars), bits, &what);
            }
        }
    }
}

#[test]
fn every_path_gives_the_same_bits() {
    for (seed, spread) in (0..).zip(SPREADS) {
        for (shape, bits) in [((40, 70, 33), 192), ((3, 3, 3), 256)] {
            let (a, b) = operands(spread, shape, bits, seed);
            let reference = forced("reference", 1).build().unwrap();
            let (want, _) = gemm_report(&reference, (&a, &b), bits, Accuracy::Entrywise);
            for (turn, name) in kernel_names().into_iter().chain(["auto"]).enumerate() {
                // Forced kernels on one number of threads, on the other one with the next operands.
                let all =
                    if name == "auto" { 0..2 } else { in_turn(2, turn + seed as usize + usize::from(bits == 256)) };
                for threads in all.map(|which| [1, 3][which]) {
                    let ctx = forced(name, threads).build().unwrap();
                    let (got, report) = gemm_report(&ctx, (&a, &b), bits, Accuracy::Entrywise);
                    assert_eq!(got, want, "{name}, {threads} threads, {spread:?}, {report:?}");
                    if name != "auto" {
                        continue;
                    }
                    // The least limit is found by its refusals, and kept to.
                    let limited = |bytes| ctx.with_memory_bytes(Some(bytes));
                    let options = GemmOptions::new().accuracy(Accuracy::Entrywise);
                    let mut bytes = 1;
                    let outcome = loop {
                        match gemm_with(&limited(bytes), &a, &b, bits, &options) {
                            Err(Error::MemoryLimit { minimum_bytes, limit_bytes }) => {
                                assert!(limit_bytes == bytes && minimum_bytes > bytes);
                                bytes = minimum_bytes;
                            }
                            other => break other.unwrap(),
                        }
                    };
                    assert_eq!(outcome.result, want, "{name}, {threads} threads, {bytes} bytes, {spread:?}");
                    assert!(outcome.report.planned_bytes <= bytes, "{:?} in {bytes}", outcome.report);
                }
            }
        }
    }
}

#[test]
fn entries_are_the_default_and_keep_what_norms_lose() {
    let ctx = Context::builder().threads(1).build().unwrap();
    // [1 2^-200] [2^-200; 1] is 2^-199, which the norms do not see at 53 bits.
    let a = Matrix::from_floats(1, 2, 53, &[power(0), power(-200)]).unwrap();
    let b = Matrix::from_floats(2, 1, 53, &[power(-200), power(0)]).unwrap();
    let (c, report) = gemm_report(&ctx, (&a, &b), 53, Accuracy::Norm);
    assert!(c.float(0, 0).is_zero() && report.range_bits == 0 && report.accuracy == Accuracy::Norm);
    assert_eq!(gemm_report(&ctx, (&a, &b), 53, Accuracy::Entrywise).0.float(0, 0), power(-199));
    assert_eq!(sunzi::gemm(&ctx, &a, &b, 53).unwrap().float(0, 0), power(-199));
    assert_eq!(GemmOptions::new().accuracy, Accuracy::Entrywise);
}
