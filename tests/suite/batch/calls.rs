//! Every form and option of every verb: each problem has the bits of its single call.

use super::{ORDERS, context, definite, operands};
use crate::common::{Kind, matrix};
use rug::Float;
use sunzi::advanced::kernels;
use sunzi::batch::{
    cholesky_batch, cholesky_batch_into, cholesky_batch_with, gemm_batch, gemm_batch_into, gemm_batch_with, syrk_batch,
    syrk_batch_into, syrk_batch_with, trsm_batch, trsm_batch_into, trsm_batch_with,
};
use sunzi::{
    Accuracy, Cholesky, CholeskyOptions, Diag, GemmOptions, Matrix, Op, Side, Symmetric, SymmetricMatrix, SyrkOptions,
    TrsmOptions, Uplo, cholesky_with, gemm_with, syrk_with, trsm_with,
};

const ACCURACIES: [Accuracy; 2] = [Accuracy::Norm, Accuracy::Entrywise];

#[test]
fn products_of_one_matrix() {
    let (one, bits) = (context(1, None), 256);
    let ps = operands(bits, 3);
    let alpha = Float::with_val(60, -7) / 3u32;
    for threads in [1, 3] {
        let ctx = context(threads, None);
        for accuracy in ACCURACIES {
            for (op, uplo) in [(Op::NoTranspose, Uplo::Lower), (Op::Transpose, Uplo::Upper)] {
                let options = SyrkOptions::new().op(op).uplo(uplo).accuracy(accuracy).alpha(&alpha);
                let batch = syrk_batch_with(&ctx, &ps, bits, &options).unwrap();
                let report = &batch.report;
                assert_eq!((report.problems, report.failed, report.threads), (ps.len(), 0, threads));
                assert!(report.direct > 0 && report.operation == "syrk_batch");
                for (p, q) in ps.iter().zip(batch.result) {
                    let single = syrk_with(&one, p, bits, &options).unwrap().result;
                    assert!(q.unwrap() == single, "{} x {}, {op:?}, {accuracy:?}", p.rows(), p.cols());
                }
            }
        }
        let plain = syrk_batch(&ctx, &ps, 100).unwrap();
        let singles = ps.iter().map(|p| sunzi::syrk(&one, p, 100).unwrap()).collect::<Vec<_>>();
        assert!(plain == singles);
        // Again into the same memory, with a matrix added to each, or the same one to all.
        let mut results = plain;
        let beta = Float::with_val(60, 5);
        let options = SyrkOptions::new().beta(&beta);
        let added = ps.iter().zip(&singles);
        let outcome = syrk_batch_into(&ctx, added, 100, &options, &mut results).unwrap();
        assert!(outcome.result.iter().all(Result::is_ok));
        for ((p, c), q) in ps.iter().zip(&singles).zip(&results) {
            let options = SyrkOptions::new().beta(&beta).accumulate(Symmetric::from(c));
            assert!(*q == syrk_with(&one, p, 100, &options).unwrap().result);
        }
        let same = [&ps[6]; 3];
        let options = SyrkOptions::new().accumulate(Symmetric::from(&singles[6]));
        let all = syrk_batch_with(&ctx, same, 100, &options).unwrap().result;
        let single = syrk_with(&one, &ps[6], 100, &options).unwrap().result;
        assert!(all.into_iter().all(|q| q.unwrap() == single));
    }
}

#[test]
fn products_of_two_matrices() {
    let (one, bits) = (context(1, None), 300);
    let (a, b) = (operands(bits, 5), operands(bits, 7));
    let pairs = || a.iter().zip(&b);
    for threads in [1, 3] {
        let ctx = context(threads, None);
        for accuracy in ACCURACIES {
            for (op_a, op_b) in [(Op::Transpose, Op::NoTranspose), (Op::NoTranspose, Op::Transpose)] {
                let options = GemmOptions::new().op_a(op_a).op_b(op_b).accuracy(accuracy);
                let batch = gemm_batch_with(&ctx, pairs(), bits, &options).unwrap();
                for ((a, b), c) in pairs().zip(batch.result) {
                    let single = gemm_with(&one, a, b, bits, &options).unwrap().result;
                    assert!(c.unwrap() == single, "{} x {}, {op_a:?}, {accuracy:?}", a.rows(), a.cols());
                }
            }
        }
        let chained = b.iter().map(|b| (b.view(), b.view().transposed()));
        let mut results = gemm_batch(&ctx, chained.clone(), bits).unwrap();
        let singles = chained.map(|(a, b)| sunzi::gemm(&one, a, b, bits).unwrap()).collect::<Vec<_>>();
        assert!(results == singles);
        let triples = b.iter().zip(&singles).map(|(b, c)| ((b.view(), b.view().transposed()), c.view()));
        gemm_batch_into(&ctx, triples, bits, &GemmOptions::new(), &mut results).unwrap();
        for ((b, c), got) in b.iter().zip(&singles).zip(&results) {
            let options = GemmOptions::new().accumulate(c.view());
            assert!(*got == gemm_with(&one, b.view(), b.view().transposed(), bits, &options).unwrap().result);
        }
    }
}

#[test]
fn factors() {
    let one = context(1, None);
    for bits in [64, 256, 768] {
        let matrices = definite(bits, 9);
        for threads in [1, 3] {
            let ctx = context(threads, None);
            for accuracy in ACCURACIES {
                let options = CholeskyOptions::new().accuracy(accuracy);
                let batch = cholesky_batch_with(&ctx, &matrices, bits, &options).unwrap();
                assert_eq!((batch.report.problems, batch.report.failed), (ORDERS.len(), 0));
                for (a, l) in matrices.iter().zip(&batch.result) {
                    let (single, l) = (cholesky_with(&one, a, bits, &options).unwrap().result, l.as_ref().unwrap());
                    assert!(l.factor() == single.factor(), "{} rows, {bits} bits, {accuracy:?}", a.rows());
                    assert_eq!((l.accuracy(), l.working_bits()), (single.accuracy(), single.working_bits()));
                }
            }
            let plain = cholesky_batch(&ctx, &matrices, bits).unwrap();
            let mut again = vec![Cholesky::default(); matrices.len()];
            for _ in 0..2 {
                let lower = matrices.iter().map(|a| Symmetric::lower(a.as_matrix()));
                cholesky_batch_into(&ctx, lower, bits, &CholeskyOptions::new(), &mut again).unwrap();
                assert!(plain.iter().zip(&again).all(|(x, y)| x.factor() == y.factor()));
            }
        }
    }
}

#[test]
fn factors_that_reach_norms_alone_are_reported() {
    let mut far = Matrix::from_f64s(2, 2, 60, &[1.0, 0.0, 0.0, 1.0]).unwrap();
    far.set_float(1, 0, &(Float::with_val(60, 1) << -(1 << 28))).unwrap(); // beyond any number of bits that is tried
    let even = definite(60, 9);
    for threads in [1, 3] {
        let ctx = context(threads, None);
        let options = CholeskyOptions::new().accuracy(Accuracy::Entrywise);
        let run = |matrices: &[&SymmetricMatrix]| {
            let report = cholesky_batch_with(&ctx, matrices.iter().copied(), 60, &options).unwrap().report;
            (report.accuracy, report.range_bits)
        };
        let far = SymmetricMatrix::from_triangle(far.clone(), Uplo::Lower).unwrap();
        let all = even.iter().collect::<Vec<_>>();
        let (accuracy, range_bits) = run(&all);
        let singles = even.iter().map(|a| cholesky_with(&ctx, a, 60, &options).unwrap().report.range_bits);
        assert_eq!((accuracy, Some(range_bits)), (Accuracy::Entrywise, singles.max()));
        assert_eq!(run(&[&all[..], &[&far]].concat()).0, Accuracy::Norm);
    }
}

#[test]
fn triangular_solves() {
    let (one, bits) = (context(1, None), 256);
    let factors = cholesky_batch(&one, &definite(bits, 11), bits).unwrap();
    let factors = factors.into_iter().map(Cholesky::into_factor).collect::<Vec<_>>();
    let alpha = Float::with_val(30, 3);
    for threads in [1, 3] {
        let ctx = context(threads, None);
        for accuracy in ACCURACIES {
            for (side, op, diag) in [
                (Side::Left, Op::NoTranspose, Diag::NonUnit),
                (Side::Left, Op::Transpose, Diag::Unit),
                (Side::Right, Op::Transpose, Diag::NonUnit),
            ] {
                let options = TrsmOptions::new().side(side).op(op).diag(diag).alpha(&alpha).accuracy(accuracy);
                let right = |(at, l): (usize, &Matrix)| {
                    let columns = [1, 0, 3, 7, 8, 20][at % 6];
                    let (rows, cols) = if side == Side::Left { (l.rows(), columns) } else { (columns, l.rows()) };
                    matrix(Kind::Unit, rows, cols, bits, at as u64)
                };
                let bs = factors.iter().enumerate().map(right).collect::<Vec<_>>();
                let batch = trsm_batch_with(&ctx, factors.iter().zip(&bs), bits, &options).unwrap();
                let mut places = vec![Matrix::empty(); bs.len()];
                let pairs = factors.iter().zip(&bs);
                trsm_batch_into(&ctx, pairs.clone(), bits, &options, &mut places).unwrap();
                for (((l, b), x), place) in pairs.zip(batch.result).zip(places) {
                    let single = trsm_with(&one, l, b, bits, &options).unwrap().result;
                    let what = format!("{} rows, {} x {}, {side:?}", l.rows(), b.rows(), b.cols());
                    assert!(x.unwrap() == single && place == single, "{what}");
                }
            }
        }
        let bs = factors.iter().map(|l| matrix(Kind::Unit, l.rows(), 4, bits, 1)).collect::<Vec<_>>();
        let plain = trsm_batch(&ctx, factors.iter().zip(&bs), bits).unwrap();
        let singles = factors.iter().zip(&bs).map(|(l, b)| sunzi::trsm(&one, l, b, bits).unwrap());
        assert!(plain.iter().zip(singles).all(|(x, single)| *x == single));
    }
}

#[test]
fn empty_batches_and_checked_contexts() {
    let ctx = context(3, None);
    let none: [Matrix; 0] = [];
    let empty = syrk_batch_with(&ctx, &none, 256, &SyrkOptions::new()).unwrap();
    assert!(empty.result.is_empty() && empty.report.problems == 0);
    assert!(cholesky_batch(&ctx, &[] as &[SymmetricMatrix], 64).unwrap().is_empty());
    assert!(gemm_batch(&ctx, none.iter().zip(&none), 64).unwrap().is_empty());
    assert!(trsm_batch(&ctx, none.iter().zip(&none), 64).unwrap().is_empty());
    // A forced kernel and the self-check keep their paths; devices are not used.
    let ps = operands(200, 13);
    let singles = syrk_batch(&ctx, &ps, 200).unwrap();
    for kernel in kernels::available() {
        let forced = sunzi::Context::builder().threads(2).kernel(kernel.name()).self_check(true).build().unwrap();
        let batch = syrk_batch_with(&forced, &ps, 200, &SyrkOptions::new()).unwrap();
        assert!(batch.result.iter().zip(&singles).all(|(q, single)| q.as_ref().unwrap() == single));
    }
}

/// Problems of one shape, of which eight at a time lie side by side where the CPU has lanes for that: more than a whole
/// number of eights, some with operands of other precisions, one matrix without a factor, one with zeros alone.
#[test]
fn problems_of_one_shape() {
    let (one, count) = (context(1, None), 13u64);
    let shapes = [
        (64u32, 5, 3),
        (100, 20, 4),
        (128, 17, 8),
        (256, 20, 10),
        (320, 9, 9),
        (512, 12, 6),
        (768, 16, 5),
        (1024, 10, 7),
        (2048, 9, 4),
    ];
    for (bits, rows, cols) in shapes {
        let operand = |seed: u64| {
            let kind = [Kind::Unit, Kind::Graded, Kind::ZeroColumns][seed as usize % 3];
            matrix(kind, rows, cols, if seed % 5 == 1 { bits + 90 } else { bits }, seed)
        };
        let (a, b) = ((0..count).map(operand).collect::<Vec<_>>(), (40..40 + count).map(operand).collect::<Vec<_>>());
        let gram = |a: &Matrix| sunzi::syrk(&one, a.view().transposed(), bits).unwrap().into_matrix();
        let mut grams = a.iter().map(gram).collect::<Vec<_>>();
        for (at, gram) in grams.iter_mut().enumerate() {
            // The products of few columns are singular: those are left as they are.
            (0..rows).filter(|_| at != 4).for_each(|i| {
                let own = gram.float(i, i) + 1;
                gram.set_float(i, i, &own).unwrap();
            });
        }
        for threads in [1, 3] {
            let ctx = context(threads, None);
            let what = |at: usize| format!("{bits} bits, {rows} x {cols}, problem {at} on {threads} threads");
            for uplo in [Uplo::Lower, Uplo::Upper] {
                let options = SyrkOptions::new().uplo(uplo);
                let batch = syrk_batch_with(&ctx, &a, bits, &options).unwrap();
                for (at, (a, q)) in a.iter().zip(batch.result).enumerate() {
                    assert!(q.unwrap() == syrk_with(&one, a, bits, &options).unwrap().result, "{}", what(at));
                }
            }
            let options = GemmOptions::new().op_a(Op::Transpose);
            let batch = gemm_batch_with(&ctx, a.iter().zip(&b), bits, &options).unwrap();
            for (at, ((a, b), c)) in a.iter().zip(&b).zip(batch.result).enumerate() {
                assert!(c.unwrap() == gemm_with(&one, a, b, bits, &options).unwrap().result, "{}", what(at));
            }
            let lowers = || grams.iter().map(Symmetric::lower);
            let batch = cholesky_batch_with(&ctx, lowers(), bits, &CholeskyOptions::new()).unwrap();
            for (at, (a, l)) in lowers().zip(batch.result).enumerate() {
                match (l, cholesky_with(&one, a, bits, &CholeskyOptions::new())) {
                    (Ok(l), Ok(single)) => {
                        assert!(l.factor() == single.result.factor(), "{}", what(at));
                        assert_eq!(l.working_bits(), single.result.working_bits());
                    }
                    (Err(sunzi::Error::Problem { error, .. }), Err(single)) => {
                        assert_eq!(error.to_string(), single.to_string(), "{}", what(at));
                    }
                    (l, single) => panic!("{}: {:?} {:?}", what(at), l.is_ok(), single.is_ok()),
                }
            }
        }
    }
}

/// Eight systems of one shape, which lie side by side where the CPU has lanes for that: one without a solution, one
/// whose unknowns no matrix holds; on one thread and several, and under the least limit.
#[test]
fn systems_of_one_shape() {
    let (one, bits, order, columns) = (context(1, None), 256, 20, 8);
    for (side, uplo, op) in [
        (Side::Left, Uplo::Lower, Op::NoTranspose),
        (Side::Left, Uplo::Lower, Op::Transpose),
        (Side::Right, Uplo::Upper, Op::NoTranspose),
        (Side::Right, Uplo::Upper, Op::Transpose),
        (Side::Left, Uplo::Upper, Op::NoTranspose),
    ] {
        let options = TrsmOptions::new().accuracy(Accuracy::Norm).side(side).uplo(uplo).op(op);
        let (rows, cols) = if side == Side::Left { (order, columns) } else { (columns, order) };
        let system = |at: u64| {
            let (mut t, mut b) =
                (matrix(Kind::Unit, order, order, bits, at), matrix(Kind::Unit, rows, cols, bits, 90 + at));
            for (i, j) in (0..order).flat_map(|i| (0..order).map(move |j| (i, j))) {
                let own = t.float(i, j);
                let pivot = match (at, i) {
                    (3, 5) => Float::new(bits),
                    (6, 10) => Float::with_val(bits, 1) >> 8u32,
                    _ => Float::with_val(bits, own.abs_ref()) + 1u32,
                };
                t.set_float(i, j, &(if i == j { pivot } else { own >> 4u32 })).unwrap();
            }
            for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))).filter(|_| at == 6) {
                let own = Float::with_val(bits, if b.float(i, j) < 0 { -3 } else { 3 }) << ((1 << 30) - 6);
                b.set_float(i, j, &own).unwrap();
            }
            (t, b)
        };
        let systems = (0..8).map(system).collect::<Vec<_>>();
        let pairs = || systems.iter().map(|(t, b)| (t, b));
        let least = match trsm_batch_with(&context(1, Some(1)), pairs(), bits, &options) {
            Err(sunzi::Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
            other => panic!("{:?}", other.is_ok()),
        };
        for (threads, limit) in [(1, None), (2, None), (3, None), (1, Some(least)), (2, Some(4 * least))] {
            let ctx = context(threads, limit);
            let batch = trsm_batch_with(&ctx, pairs(), bits, &options).unwrap();
            assert_eq!((batch.report.problems, batch.report.failed), (8, 2));
            // Lanes of AVX2 gain nothing for systems, and those of 52-bit products always do.
            let in_lanes = if kernels::available().iter().any(|kernel| kernel.name() == "ifma52") { 6 } else { 0 };
            assert!(threads > 1 || limit.is_some() || batch.report.direct == in_lanes);
            for (at, ((t, b), x)) in pairs().zip(batch.result).enumerate() {
                let what = format!("{side:?}, {uplo:?}, {op:?}, {threads} threads, {limit:?}, problem {at}");
                match (x, trsm_with(&one, t, b, bits, &options)) {
                    (Ok(x), Ok(single)) => assert!(x == single.result && at != 3 && at != 6, "{what}"),
                    (Err(sunzi::Error::Problem { problem, error, .. }), Err(single)) => {
                        assert_eq!((problem, error.to_string()), (at, single.to_string()), "{what}");
                    }
                    (x, single) => panic!("{what}: {:?} {:?}", x.is_ok(), single.is_ok()),
                }
            }
        }
    }
}

/// Results of many problems of one shape in blocks of larger matrices: on some processors eight at a time are computed
/// side by side, and written entry by entry.
#[test]
fn results_in_blocks_touch_nothing_around_them() {
    let (one, bits, n) = (context(1, None), 256, 4);
    let random = |seed: u64| matrix(Kind::Unit, n, n, bits, seed);
    let pairs: Vec<(Matrix, Matrix)> = (0..19).map(|seed| (random(2 * seed), random(2 * seed + 1))).collect();
    let frame = Matrix::from_fn(10, 7, bits, |row, col| Float::with_val(53, 1 + row + 100 * col)).unwrap();
    let check = |large: &[Matrix], want: &dyn Fn(usize) -> Matrix| {
        for (at, large) in large.iter().enumerate() {
            let want = want(at);
            for (row, col) in (0..10).flat_map(|row| (0..7).map(move |col| (row, col))) {
                let inside = (3..3 + n).contains(&row) && (2..2 + n).contains(&col);
                let right = if inside { want.get(row - 3, col - 2) } else { frame.get(row, col) };
                assert_eq!(large.get(row, col), right, "problem {at}, entry ({row}, {col})");
            }
        }
    };
    for threads in [1, 3] {
        let (ctx, options) = (context(threads, None), GemmOptions::new());
        let mut large = vec![frame.clone(); pairs.len()];
        let blocks = large.iter_mut().map(|large| large.view_mut().block(3..3 + n, 2..2 + n).unwrap());
        let outcome = gemm_batch_into(&ctx, pairs.iter().map(|(a, b)| (a, b)), bits, &options, blocks).unwrap();
        assert!(outcome.result.iter().all(Result::is_ok));
        check(&large, &|at| sunzi::gemm(&one, &pairs[at].0, &pairs[at].1, bits).unwrap());
    }
}
