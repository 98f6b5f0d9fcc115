//! Products with triangular and symmetric operands, and symmetric results: `trmm`, `symm`, `syr2k`.

use crate::common::oracle::{Exact, assert_beside_terms, assert_bound};
use crate::common::{KINDS, Kind, Rng, forced, in_turn, kernel_names, matrix, seeds};
use rug::Float;
use sunzi::{Accuracy, Context, Diag, Error, GemmOptions, Matrix, MatrixView, Op, Side, Symmetric, Uplo};
use sunzi::{SymmOptions, SymmetricDestination, SymmetricMatrix, Syr2kOptions, TrmmOptions};
use sunzi::{gemm_with, symm, symm_with, syr2k, syr2k_into, syr2k_with, trmm, trmm_into, trmm_with};

fn context(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

fn choices() -> Vec<TrmmOptions<'static>> {
    let mut all = Vec::new();
    for (side, uplo) in [Side::Left, Side::Right].into_iter().flat_map(|s| [Uplo::Lower, Uplo::Upper].map(|u| (s, u))) {
        for op in [Op::NoTranspose, Op::Transpose] {
            for diag in [Diag::NonUnit, Diag::Unit] {
                all.push(TrmmOptions::new().accuracy(Accuracy::Norm).side(side).uplo(uplo).op(op).diag(diag));
            }
        }
    }
    all
}

/// A matrix, and what is read of it as a triangle.
fn triangle(kind: Kind, order: usize, bits: u32, options: &TrmmOptions<'_>, seed: u64) -> (Matrix, Matrix) {
    let (mut t, mut read) = (matrix(kind, order, order, bits, seed), Matrix::zeros(order, order, bits).unwrap());
    for (i, j) in (0..order).flat_map(|i| (0..order).map(move |j| (i, j))) {
        let counts = if options.uplo == Uplo::Lower { i > j } else { i < j };
        match i == j {
            true if options.diag == Diag::Unit => read.set_f64(i, j, 1.0).unwrap(),
            false if !counts => {}
            _ => {
                read.set(i, j, t.get(i, j));
                continue;
            }
        }
        t.set_integer_exponent(i, j, &3.into(), 700_000).unwrap(); // would show
    }
    (t, read)
}

/// The factors of a product with the triangle, each with the contracted index first.
fn contracted<'m>(t: &'m Matrix, b: &'m Matrix, options: &TrmmOptions<'_>) -> (MatrixView<'m>, MatrixView<'m>) {
    let t = if options.op == Op::Transpose { t.transposed() } else { t.view() };
    match options.side {
        Side::Left => (t.transposed(), b.view()),
        Side::Right => (b.transposed(), t),
    }
}

fn assert_entries(
    got: &Matrix,
    (left, right): (MatrixView<'_>, MatrixView<'_>),
    factor: &Exact,
    bits: u32,
    label: &str,
) {
    for (i, j) in (0..right.cols()).flat_map(|j| (0..left.cols()).map(move |i| (i, j))) {
        let term = |k: usize| Exact::entry(&left, k, i).times(&Exact::entry(&right, k, j)).times(factor);
        let terms = (0..left.rows()).map(term).collect::<Vec<_>>();
        assert_beside_terms(&Exact::entry(&got.view(), i, j), &terms, bits, label);
    }
}

#[test]
fn products_with_triangles_keep_both_promises() {
    let (ctx, alpha) = (context(2), Float::with_val(70, 22) / 7u32);
    let one = Exact { integer: 1.into(), exponent: 0 };
    let sizes = [(0, 3), (1, 1), (5, 0), (9, 4), (33, 20), (64, 2), (130, 5), (200, 3)];
    for (case, &(order, columns)) in sizes.iter().enumerate() {
        for (index, options) in choices().into_iter().enumerate() {
            if order > 100 && index % 4 != case % 4 {
                continue;
            }
            let seed = (100 * case + index) as u64;
            let kind = [Kind::Unit, Kind::Graded, Kind::ZeroColumns][index % 3];
            let bits = [53, 128, 256][(index + case) % 3];
            let (t, read) = triangle(kind, order, 100, &options, seed);
            let (height, width) = if options.side == Side::Left { (order, columns) } else { (columns, order) };
            let b = matrix(kind, height, width, bits, seed + 1);
            let label = format!("{order} x {columns}, seed {seed}, {kind:?}, {bits} bits, {options:?}");
            let by_norm = trmm_with(&ctx, &t, &b, bits, &options).unwrap();
            let (left, right) = contracted(&read, &b, &options);
            assert_bound(&by_norm.result, &left, &right, bits, &label);
            assert_eq!((by_norm.report.operation, by_norm.report.accuracy), ("trmm", Accuracy::Norm));
            let entrywise = options.accuracy(Accuracy::Entrywise);
            let result = trmm_with(&ctx, &t, &b, bits, &entrywise).unwrap().result;
            assert_entries(&result, (left, right), &one, bits, &label);
            let scaled = trmm_with(&ctx, &t, &b, bits, &entrywise.alpha(&alpha)).unwrap().result;
            assert_entries(&scaled, (left, right), &Exact::float(&alpha), bits, &label);
        }
    }
}

#[test]
fn products_with_triangles_have_the_same_bits_everywhere() {
    for (at, options) in choices().into_iter().step_by(3).enumerate() {
        for (turn, (accuracy, kind)) in
            [(Accuracy::Norm, Kind::Unit), (Accuracy::Entrywise, Kind::Graded)].into_iter().enumerate()
        {
            let options = options.accuracy(accuracy);
            let (t, _) = triangle(kind, 130, 192, &options, 3);
            let (height, width) = if options.side == Side::Left { (130, 12) } else { (12, 130) };
            let b = matrix(kind, height, width, 192, 4);
            let want = trmm_with(&context(1), &t, &b, 192, &options).unwrap().result;
            let ctx = context(3);
            let mut large = Matrix::zeros(height + 3, width + 2, 192).unwrap();
            let (rows, cols) = (2..height + 2, 1..width + 1);
            let block = large.view_mut().block(rows.clone(), cols.clone()).unwrap();
            trmm_into(&ctx, &t, &b, 192, &options, block).unwrap();
            assert!(large.view().block(rows, cols).unwrap().to_matrix().unwrap() == want);
            // Every third kernel, the others with the next choice or accuracy.
            let kernels = kernel_names().into_iter().enumerate();
            for (_, kernel) in kernels.filter(|(number, _)| in_turn(3, at + turn).contains(&(number % 3))) {
                let got = trmm_with(&forced(kernel, 2).build().unwrap(), &t, &b, 192, &options).unwrap().result;
                assert!(got == want, "{kernel}, {options:?}");
            }
            // The least limit is found by its refusals, and kept to.
            let mut bytes = 1;
            let outcome = loop {
                match trmm_with(&ctx.with_memory_bytes(Some(bytes)), &t, &b, 192, &options) {
                    Err(Error::MemoryLimit { minimum_bytes, limit_bytes }) => {
                        assert!(limit_bytes == bytes && minimum_bytes > bytes);
                        bytes = minimum_bytes;
                    }
                    other => break other.unwrap(),
                }
            };
            assert!(outcome.result == want && outcome.report.planned_bytes <= bytes, "{:?}", outcome.report);
        }
    }
}

#[test]
fn products_with_symmetric_operands_are_those_of_the_whole_matrix() {
    let (ctx, alpha, beta) = (context(2), Float::with_val(30, -3), Float::with_val(20, 0.25));
    for seed in seeds(24) {
        let mut rng = Rng::new(seed);
        let (order, columns) = (rng.pick(&[0, 1, 2, 33, 90]), rng.pick(&[0, 1, 8, 41]));
        let (kind, bits) = (KINDS[seed as usize % KINDS.len()], rng.pick(&[53, 200]));
        let (side, accuracy) = (rng.pick(&[Side::Left, Side::Right]), rng.pick(&[Accuracy::Norm, Accuracy::Entrywise]));
        let plain = matrix(kind, order, order, bits, seed);
        let whole = SymmetricMatrix::from_triangle(plain.clone(), Uplo::Lower).unwrap();
        let (height, width) = if side == Side::Left { (order, columns) } else { (columns, order) };
        let (b, c) = (matrix(kind, height, width, bits, seed + 1), matrix(kind, height, width, bits, seed + 2));
        let gemm = GemmOptions::new().accuracy(accuracy).alpha(&alpha).beta(&beta).accumulate(c.view());
        let want = match side {
            Side::Left => gemm_with(&ctx, &whole, &b, bits, &gemm),
            Side::Right => gemm_with(&ctx, &b, &whole, bits, &gemm),
        };
        let want = want.unwrap().result;
        let options = SymmOptions::new().side(side).accuracy(accuracy);
        let options = options.alpha(&alpha).beta(&beta).accumulate(c.view());
        let upper = plain.transposed();
        for operand in [Symmetric::from(&whole), Symmetric::lower(&plain), Symmetric::upper(upper)] {
            let outcome = symm_with(&ctx, operand, &b, bits, &options).unwrap();
            assert!(outcome.result == want && outcome.report.operation == "symm", "seed {seed}");
            let limited = ctx.with_memory_bytes(Some(outcome.report.planned_bytes));
            assert!(symm_with(&limited, operand, &b, bits, &options).unwrap().result == want);
        }
        if order > 1 && kind == Kind::Unit {
            assert!(matches!(symm(&ctx, &plain, &b, bits), Err(Error::NotSymmetric { .. })), "seed {seed}");
        }
    }
}

/// `2^(1-b) (||a_i|| ||b_j|| + ||b_i|| ||a_j||)`, a little rounded up.
fn norms_bound(a: &MatrixView<'_>, b: &MatrixView<'_>, (i, j): (usize, usize), bits: u32) -> Float {
    let norm = |view: &MatrixView<'_>, col: usize| {
        let square = (0..view.rows()).fold(Float::new(200), |sum, k| sum + view.get(k, col).to_float(200).square());
        square.sqrt()
    };
    let both = norm(a, i) * norm(b, j) + norm(b, i) * norm(a, j);
    (both * (1.0 + 1e-40)) >> (bits - 1)
}

#[test]
fn symmetric_sums_of_two_products_keep_both_promises() {
    let (ctx, alpha, beta) = (context(2), Float::with_val(30, -3) / 7u32, Float::with_val(20, 0.75));
    for seed in seeds(30) {
        let mut rng = Rng::new(seed);
        let (order, inner) = (rng.pick(&[0, 1, 2, 9, 33]), rng.pick(&[0, 1, 5, 40]));
        let (kind, bits) = (rng.pick(&[Kind::Unit, Kind::Graded, Kind::Flat, Kind::Doubles]), rng.pick(&[53, 64, 256]));
        let (op, uplo) = (rng.pick(&[Op::NoTranspose, Op::Transpose]), rng.pick(&[Uplo::Lower, Uplo::Upper]));
        let shape = if op == Op::NoTranspose { (inner, order) } else { (order, inner) };
        let (a, b) = (matrix(kind, shape.0, shape.1, bits, seed), matrix(kind, shape.0, shape.1, bits, seed + 1));
        let (x, y) = if op == Op::NoTranspose { (a.view(), b.view()) } else { (a.transposed(), b.transposed()) };
        let c = SymmetricMatrix::from_triangle(matrix(kind, order, order, bits, seed + 2), Uplo::Lower).unwrap();
        let options = Syr2kOptions::new().accuracy(Accuracy::Norm).op(op).uplo(uplo);
        let label = format!("seed {seed}, {kind:?}, {inner} x {order}, {bits} bits, {op:?}");
        let by_norm = syr2k_with(&ctx, &a, &b, bits, &options).unwrap().result;
        let entrywise = options.accuracy(Accuracy::Entrywise);
        let plain = syr2k_with(&ctx, &a, &b, bits, &entrywise).unwrap().result;
        let with = entrywise.alpha(&alpha).beta(&beta).accumulate(Symmetric::from(&c));
        let outcome = syr2k_with(&ctx, &a, &b, bits, &with).unwrap();
        for (i, j) in (0..order).flat_map(|i| (0..order).map(move |j| (i, j))) {
            let products = (0..inner).flat_map(|k| {
                let of = |x: &MatrixView<'_>, y: &MatrixView<'_>| Exact::entry(x, k, i).times(&Exact::entry(y, k, j));
                [of(&x, &y), of(&y, &x)]
            });
            let terms = products.collect::<Vec<_>>();
            assert_beside_terms(&Exact::entry(&plain.view(), i, j), &terms, bits, &label);
            let sum = terms.iter().cloned().fold(Exact::zero(), Exact::plus);
            let error = sum.negated().plus(Exact::entry(&by_norm.view(), i, j)).round(100).abs();
            assert!(error <= norms_bound(&x, &y, (i, j), bits), "{label}: entry ({i}, {j}) is beyond the bound");
            let added = Exact::entry(&c.view(), i, j).times(&Exact::float(&beta));
            let scaled = terms.iter().map(|term| term.times(&Exact::float(&alpha))).chain([added]);
            let got = Exact::entry(&outcome.result.view(), i, j);
            assert_beside_terms(&got, &scaled.collect::<Vec<_>>(), bits, &label);
        }
        let other = if uplo == Uplo::Lower { Uplo::Upper } else { Uplo::Lower };
        assert!(syr2k_with(&context(1), &a, &b, bits, &with.uplo(other)).unwrap().result == outcome.result);
        let mut triangle = matrix(Kind::Unit, order, order, bits, seed + 3);
        let before = triangle.clone();
        syr2k_into(&ctx, &a, &b, bits, &with, SymmetricDestination::Triangle((&mut triangle).into())).unwrap();
        for (i, j) in (0..order).flat_map(|i| (0..order).map(move |j| (i, j))) {
            let counts = if uplo == Uplo::Lower { i >= j } else { i <= j };
            let want = if counts { outcome.result.get(i, j) } else { before.get(i, j) };
            assert_eq!(triangle.get(i, j), want, "{label}");
        }
        let limited = ctx.with_memory_bytes(Some(outcome.report.planned_bytes));
        assert!(syr2k_with(&limited, &a, &b, bits, &with).unwrap().result == outcome.result, "{label}");
    }
}

#[test]
fn structured_products_refuse_what_does_not_fit() {
    let ctx = context(1);
    let (square, flat) = (matrix(Kind::Unit, 3, 3, 64, 1), matrix(Kind::Unit, 3, 4, 64, 2));
    let mismatch =
        |name: &str, error: Error| matches!(error, Error::ShapeMismatch { operation, .. } if operation == name);
    assert!(mismatch("trmm", trmm(&ctx, &flat, &flat, 64).unwrap_err()));
    assert!(mismatch(
        "trmm",
        trmm_with(&ctx, &square, &flat, 64, &TrmmOptions::new().accuracy(Accuracy::Norm).side(Side::Right))
            .unwrap_err()
    ));
    assert!(mismatch("symm", symm(&ctx, Symmetric::lower(&square), flat.transposed(), 64).unwrap_err()));
    assert!(mismatch("syr2k", syr2k(&ctx, &flat, &square, 64).unwrap_err()));
    let wrong = Float::with_val(53, rug::float::Special::Nan);
    let refused = trmm_with(&ctx, &square, &flat, 64, &TrmmOptions::new().accuracy(Accuracy::Norm).alpha(&wrong));
    assert!(matches!(refused, Err(Error::InvalidArgument(_))));
    let refused = syr2k_with(&ctx, &flat, &flat, 64, &Syr2kOptions::new().accuracy(Accuracy::Norm).beta(&wrong));
    assert!(matches!(refused, Err(Error::InvalidArgument(_))));
    assert!(matches!(trmm(&ctx, &square, &flat, 1), Err(Error::Precision { .. })));
    assert!(matches!(syr2k(&ctx, &flat, &flat, 1), Err(Error::Precision { .. })));
}
