//! Results in a block of a larger matrix: the bits of the whole-matrix forms, and nothing written around them.

use crate::common::{Kind, effort, forced, kernel_names, matrix};
use sunzi::{
    Cholesky, Context, Destination, Error, GemmOptions, Matrix, MatrixViewMut, Op, Result, Side, SymmetricDestination,
    SyrkOptions, TrsmOptions, Uplo, cholesky, gemm_into, gemm_with, solve, solve_into, syrk_into, syrk_with, trsm_into,
    trsm_with,
};

fn random(rows: usize, cols: usize, bits: u32, seed: u64) -> Matrix {
    matrix(Kind::Unit, rows, cols, bits, seed)
}

/// What surrounds a block: numbers that no product gives.
fn frame(rows: usize, cols: usize, bits: u32) -> Matrix {
    Matrix::from_fn(rows + 3, cols + 2, bits, |row, col| rug::Float::with_val(53, 1 + row + 100 * col)).unwrap()
}

/// Writes a result of the shape of `want` into a block, and checks that it is `want` where `inside` says so.
fn check(want: &Matrix, what: &str, inside: impl Fn(usize, usize) -> bool, fill: impl Fn(MatrixViewMut<'_>)) {
    let (rows, cols, bits) = (want.rows(), want.cols(), want.precision_bits());
    let before = frame(rows, cols, bits);
    let mut large = before.clone();
    fill(large.view_mut().block(2..rows + 2, 1..cols + 1).unwrap());
    for (row, col) in (0..rows + 3).flat_map(|row| (0..cols + 2).map(move |col| (row, col))) {
        let block = (2..rows + 2).contains(&row) && (1..cols + 1).contains(&col);
        if block && inside(row - 2, col - 1) {
            assert_eq!(large.get(row, col), want.get(row - 2, col - 1), "{what}: ({row}, {col})");
        } else if !block {
            assert_eq!(large.get(row, col), before.get(row, col), "{what}: ({row}, {col}) of the frame");
        }
    }
}

fn contexts() -> Vec<(String, Context)> {
    let names = kernel_names().into_iter().chain(["auto"]);
    let context = |name: &str, threads| (format!("{name}, {threads} threads"), forced(name, threads).build().unwrap());
    names.flat_map(|name| [1, 3].map(|threads| context(name, threads))).collect()
}

#[test]
fn products_in_blocks_have_the_bits_of_whole_matrices() {
    for (turn, (name, ctx)) in contexts().into_iter().enumerate() {
        let shapes = [(3, 2, 5, 100), (20, 10, 7, 256), (40, 67, 33, 130), (30, 300, 9, 64), (5, 0, 3, 80)];
        for (at, (inner, rows, cols, bits)) in shapes.into_iter().enumerate() {
            // Each kernel has each shape on one number of threads: the next context is the other number.
            if effort() == 1 && (turn / 2 + turn + at) % 2 == 1 {
                continue;
            }
            let (a, b) = (random(inner, rows, bits, 1), random(inner, cols, bits, 2));
            let what = format!("{name}, {inner} {rows} {cols} {bits}");
            let options = GemmOptions::new().op_a(Op::Transpose);
            let want = gemm_with(&ctx, &a, &b, bits, &options).unwrap().result;
            let fill = |block: MatrixViewMut<'_>| drop(gemm_into(&ctx, &a, &b, bits, &options, block).unwrap());
            check(&want, &format!("gemm, {what}"), |_, _| true, fill);
            for uplo in [Uplo::Lower, Uplo::Upper] {
                let options = SyrkOptions::new().uplo(uplo);
                let want = syrk_with(&ctx, &a, bits, &options).unwrap().result;
                let fill = |block: MatrixViewMut<'_>| drop(syrk_into(&ctx, &a, bits, &options, block).unwrap());
                check(&want, &format!("syrk, {what}"), |_, _| true, fill);
                let inside = |row, col| if uplo == Uplo::Lower { row >= col } else { row <= col };
                let fill = |block: MatrixViewMut<'_>| {
                    let triangle = SymmetricDestination::Triangle(Destination::Block(block));
                    syrk_into(&ctx, &a, bits, &options, triangle).unwrap();
                };
                check(&want, &format!("triangle of syrk, {what}"), inside, fill);
            }
        }
    }
}

#[test]
fn solutions_in_blocks_have_the_bits_of_whole_matrices() {
    for (name, ctx) in contexts() {
        for (order, columns, bits) in [(1, 1, 70), (20, 2, 256), (40, 12, 130), (70, 3, 100), (0, 4, 60)] {
            let mut p = random(order + 5, order, bits, 3);
            (0..order).for_each(|i| p.set_f64(i, i, 50.0).unwrap());
            let a = sunzi::syrk(&ctx, &p, bits).unwrap();
            let factor = cholesky(&ctx, &a, bits).unwrap();
            let what = format!("{name}, {order} {columns} {bits}");
            for side in [Side::Left, Side::Right] {
                let shape = if side == Side::Left { (order, columns) } else { (columns, order) };
                let (b, options) = (random(shape.0, shape.1, bits, 4), TrsmOptions::new().side(side));
                let want = trsm_with(&ctx, factor.factor(), &b, bits, &options).unwrap();
                assert!(order * columns == 0 || want.report.planned_bytes >= want.result.bytes());
                let fill = |block: MatrixViewMut<'_>| {
                    trsm_into(&ctx, factor.factor(), &b, bits, &options, block).unwrap();
                };
                check(&want.result, &format!("trsm, {side:?}, {what}"), |_, _| true, fill);
            }
            let b = random(order, columns, bits, 5);
            let want = solve(&ctx, &a, &b, bits).unwrap();
            let fill = |block: MatrixViewMut<'_>| {
                let report = solve_into(&ctx, &a, &b, bits, &Default::default(), block).unwrap();
                assert_eq!((report.order, report.columns, report.operation), (order, columns, "solve"));
                assert!(report.factorisation.is_some_and(|factorisation| factorisation.order == order));
            };
            check(&want, &format!("solve, {what}"), |_, _| true, fill);
        }
    }
}

#[test]
fn a_block_that_does_not_fit_is_refused_and_untouched() {
    let ctx = Context::builder().threads(1).build().unwrap();
    let (a, mut large) = (random(4, 4, 100, 1), frame(5, 5, 100));
    let before = large.clone();
    let mut into = |rows, cols, bits| -> Result<()> {
        let block = large.view_mut().block(0..rows, 0..cols)?;
        gemm_into(&ctx, &a, &a, bits, &GemmOptions::default(), block).map(drop)
    };
    assert!(matches!(into(4, 5, 100), Err(Error::ShapeMismatch { left_cols: 4, right_cols: 5, .. })));
    assert!(matches!(into(4, 4, 101), Err(Error::InvalidArgument(_))));
    assert!(matches!(into(4, 9, 100), Err(Error::InvalidArgument(_))));
    assert!(large == before);
    let mut heads = vec![7; 20];
    let mut limbs = vec![9; 40];
    let part = MatrixViewMut::from_parts((&mut heads, &mut limbs), (4, 4), 5, 100).unwrap();
    gemm_into(&ctx, &a, &a, 100, &GemmOptions::default(), part).unwrap();
    assert!((0..4).all(|col| heads[5 * col + 4] == 7 && limbs[10 * col + 8..10 * col + 10] == [9, 9]));
    assert!(MatrixViewMut::from_parts((&mut heads, &mut limbs), (4, 4), 6, 100).is_err());
    assert!(Cholesky::default().factor() == &Matrix::empty());
}
