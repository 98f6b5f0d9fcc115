//! Triangles are types: a symmetric matrix acts as the full one everywhere, and a plain one that is not symmetric is
//! refused unless the caller names a triangle.

use crate::common::{Kind, matrix};
use rug::Float;
use sunzi::verify::{VerifyOptions, verify_cholesky, verify_syrk};
use sunzi::{
    Cholesky, Context, Error, GemmOptions, Matrix, MatrixView, Op, RefineOptions, Symmetric, SymmetricMatrix,
    SyrkOptions, Uplo, cholesky, gemm, gemm_with, ldlt, solve, solve_refined_with, syrk, syrk_into, syrk_with,
};

const BITS: u32 = 150;
const BOTH: [Uplo; 2] = [Uplo::Lower, Uplo::Upper];

fn ctx(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

/// `P^T P` entry by entry through the general product, for a positive definite result.
fn full_product(ctx: &Context, p: &Matrix) -> Matrix {
    gemm_with(ctx, p, p, BITS, &GemmOptions::new().op_a(Op::Transpose)).unwrap().result
}

fn results(ctx: &Context, p: &Matrix) -> [SymmetricMatrix; 2] {
    BOTH.map(|uplo| syrk_with(ctx, p, BITS, &SyrkOptions::new().uplo(uplo)).unwrap().result)
}

#[test]
fn products_with_a_result_of_syrk_are_those_with_the_full_matrix() {
    for (threads, rows, cols) in [(1, 1, 1), (1, 20, 10), (2, 40, 17), (3, 30, 300)] {
        let ctx = ctx(threads);
        let (p, b) = (matrix(Kind::Graded, rows, cols, BITS, 1), matrix(Kind::Unit, cols, 5, BITS, 2));
        let full = full_product(&ctx, &p);
        let want = gemm(&ctx, &full, &b, BITS).unwrap();
        for q in results(&ctx, &p) {
            assert!(q == full && q.view().to_matrix().unwrap() == full, "{threads} threads, {cols} columns");
            assert!(gemm(&ctx, &q, &b, BITS).unwrap() == want);
            assert!(gemm(&ctx, q.transposed(), &b, BITS).unwrap() == want);
            assert!(syrk(&ctx, &q, BITS).unwrap() == syrk(&ctx, &full, BITS).unwrap());
        }
    }
}

#[test]
fn views_and_transposes_of_a_result_are_those_of_the_full_matrix() {
    let ctx = ctx(2);
    let p = matrix(Kind::Unit, 60, 40, BITS, 3);
    let full = full_product(&ctx, &p);
    for q in results(&ctx, &p) {
        assert!(q.transposed().to_matrix().unwrap() == full);
        for (rows, cols) in [(0..13, 20..40), (25..40, 0..9), (7..30, 7..30)] {
            let block = |view: MatrixView<'_>| view.block(rows.clone(), cols.clone()).unwrap().to_matrix().unwrap();
            assert!(block(q.view()) == block(full.view()) && block(q.transposed()) == block(full.transposed()));
        }
        // A square on the diagonal is symmetric itself, and one beside it is not.
        let principal = |view: MatrixView<'_>| cholesky(&ctx, view, BITS).map(Cholesky::into_factor);
        let on_diagonal = q.view().block(5..30, 5..30).unwrap();
        assert!(principal(on_diagonal).unwrap() == principal(full.view().block(5..30, 5..30).unwrap()).unwrap());
        let beside = principal(q.view().block(5..30, 6..31).unwrap());
        assert!(matches!(beside, Err(Error::NotSymmetric { row: 1, column: 0 })));
        assert!(q.view().to_f64s() == full.view().to_f64s() && q.one_norm() == full.one_norm());
        assert!(Symmetric::from(&q).one_norm().unwrap() == full.one_norm());
    }
}

#[test]
fn factors_of_either_triangle_are_those_of_the_full_matrix() {
    let ctx = ctx(2);
    let p = matrix(Kind::Unit, 90, 33, BITS, 4);
    let (full, b) = (full_product(&ctx, &p), matrix(Kind::Unit, 33, 2, BITS, 5));
    let (l, x) = (cholesky(&ctx, &full, BITS).unwrap(), solve(&ctx, &full, &b, BITS).unwrap());
    let d = ldlt(&ctx, &full, BITS).unwrap();
    let inverse = l.inverse(&ctx, BITS).unwrap();
    for q in results(&ctx, &p) {
        assert!(cholesky(&ctx, &q, BITS).unwrap().factor() == l.factor());
        assert!(cholesky(&ctx, &q, BITS).unwrap().inverse(&ctx, BITS).unwrap() == inverse);
        assert!(solve(&ctx, &q, &b, BITS).unwrap() == x);
        assert!(ldlt(&ctx, &q, BITS).unwrap().pivots() == d.pivots());
        verify_syrk(&ctx, &p, &q, BITS, &VerifyOptions::default()).unwrap();
        verify_cholesky(&ctx, &q, l.factor(), BITS, &VerifyOptions::default()).unwrap();
    }
    // One triangle alone, garbage in the other: it counts where it is named, and is refused where it is not.
    for uplo in BOTH {
        let mut half = full.clone();
        for (i, j) in (0..33).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let (row, col) = if uplo == Uplo::Lower { (j, i) } else { (i, j) };
            half.set_f64(row, col, 1e40).unwrap();
        }
        let named = Symmetric::triangle(&half, uplo);
        assert!(cholesky(&ctx, named, BITS).unwrap().factor() == l.factor());
        assert!(solve(&ctx, named, &b, BITS).unwrap() == x);
        assert!(
            named.to_symmetric().unwrap() == full
                && SymmetricMatrix::from_triangle(half.clone(), uplo).unwrap() == full
        );
        assert!(matches!(cholesky(&ctx, &half, BITS), Err(Error::NotSymmetric { row: 1, column: 0 })));
    }
}

#[test]
fn an_unsymmetric_matrix_is_refused_with_the_first_entry_that_differs() {
    let ctx = ctx(1);
    let a = Matrix::from_f64s(2, 2, BITS, &[4.0, 2.0, 1.0, 5.0]).unwrap(); // [[4, 1], [2, 5]]
    let b = Matrix::from_f64s(2, 1, BITS, &[1.0, 1.0]).unwrap();
    let l = Matrix::from_f64s(2, 2, BITS, &[2.0, 1.0, 0.0, 2.0]).unwrap();
    let refined = |a: Symmetric<'_>| solve_refined_with(&ctx, a, &b, BITS, &RefineOptions::default()).map(drop);
    let add = |c: Symmetric<'_>| syrk_with(&ctx, b.transposed(), BITS, &SyrkOptions::new().accumulate(c));
    let verify = |a: Symmetric<'_>| verify_cholesky(&ctx, a, &l, BITS, &VerifyOptions::default()).map(drop);
    type Call<'c> = &'c dyn Fn(Symmetric<'_>) -> Result<(), Error>;
    let calls: [(&str, Call<'_>); 7] = [
        ("cholesky", &|a| cholesky(&ctx, a, BITS).map(drop)),
        ("solve", &|a| solve(&ctx, a, &b, BITS).map(drop)),
        ("solve_refined", &refined),
        ("ldlt", &|a| ldlt(&ctx, a, BITS).map(drop)),
        ("accumulate", &|a| add(a).map(drop)),
        ("one_norm", &|a| a.one_norm().map(drop)),
        ("verify_cholesky", &verify),
    ];
    for (name, call) in calls {
        for plain in [Symmetric::from(&a), Symmetric::from(a.transposed())] {
            let found = call(plain);
            assert!(matches!(found, Err(Error::NotSymmetric { row: 1, column: 0 })), "{name}: {found:?}");
            assert_eq!(found.unwrap_err().exit_code(), 3);
        }
        if name != "verify_cholesky" {
            call(Symmetric::lower(&a)).unwrap_or_else(|error| panic!("{name}: {error}"));
            call(Symmetric::upper(&a)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    let text = cholesky(&ctx, &a, BITS).unwrap_err().to_string();
    assert!(text.contains("row 1, column 0 and at row 0, column 1 differ"), "{text}");
    let found = verify_syrk(&ctx, &l, &a, BITS, &VerifyOptions::default());
    assert!(matches!(&found, Err(Error::Verification(text)) if text.contains("not symmetric")), "{found:?}");
    // What the lower triangle gives is not what the upper one gives: the choice was worth a word.
    let (lower, upper) = (solve(&ctx, Symmetric::lower(&a), &b, BITS), solve(&ctx, Symmetric::upper(&a), &b, BITS));
    assert!(lower.unwrap() != upper.unwrap());
    let nearly = Float::with_val(BITS, 1) + (Float::with_val(BITS, 1) >> (BITS - 1));
    let mut a = Matrix::from_f64s(2, 2, BITS, &[4.0, 1.0, 1.0, 5.0]).unwrap();
    assert!(cholesky(&ctx, &a, BITS).is_ok());
    a.set_float(0, 1, &nearly).unwrap();
    assert!(matches!(cholesky(&ctx, &a, BITS), Err(Error::NotSymmetric { row: 1, column: 0 })));
}

#[test]
fn an_accumulated_triangle_gives_the_full_sum_and_its_exact_bits() {
    let ctx = ctx(1);
    let p = matrix(Kind::Unit, 12, 9, BITS, 6);
    let c = SymmetricMatrix::from_triangle(matrix(Kind::Unit, 9, 9, BITS, 7), Uplo::Lower).unwrap();
    let beta = Float::with_val(20, -1.5);
    let sum = |uplo, c: Symmetric<'_>| {
        let options = SyrkOptions::new().uplo(uplo).beta(&beta).accumulate(c);
        syrk_with(&ctx, &p, BITS, &options).unwrap().result
    };
    let want = sum(Uplo::Lower, (&c).into());
    let mut half = c.as_matrix().clone();
    (1..9).for_each(|col| half.set_f64(0, col, 0.5).unwrap());
    for uplo in BOTH {
        assert!(sum(uplo, (&c).into()) == want && sum(uplo, Symmetric::lower(&half)) == want);
        assert!(sum(uplo, Symmetric::upper(half.transposed())) == want);
    }
    // Exact integers: neither fractions nor large numbers of the triangle that does not count matter.
    let mut integers = Matrix::from_f64s(2, 2, 64, &[3.0, 2.0, 0.5, 7.0]).unwrap();
    let unit = Matrix::from_f64s(1, 2, 64, &[1.0, 1.0]).unwrap();
    let exact = |c: Symmetric<'_>| {
        let options = SyrkOptions::new().exact_integers(true).accumulate(c);
        syrk_with(&ctx, &unit, 2, &options).unwrap().result
    };
    let want = exact(Symmetric::lower(&integers));
    assert_eq!(want.view().to_f64s(), [4.0, 3.0, 3.0, 8.0]);
    integers.set_f64(0, 1, 1e300).unwrap();
    assert!(exact(Symmetric::lower(&integers)) == want);
}

#[test]
fn a_result_that_is_kept_is_replaced_whole_or_emptied() {
    let ctx = ctx(1);
    let mut kept = SymmetricMatrix::default();
    for (cols, uplo) in [(4, Uplo::Lower), (4, Uplo::Upper), (3, Uplo::Upper), (20, Uplo::Lower)] {
        let p = matrix(Kind::Unit, 7, cols, BITS, cols as u64);
        let options = SyrkOptions::new().uplo(uplo);
        syrk_into(&ctx, &p, BITS, &options, &mut kept).unwrap();
        assert!(kept == full_product(&ctx, &p));
    }
    let p = matrix(Kind::Unit, 7, 20, BITS, 1);
    assert!(syrk_into(&ctx, &p, 1, &SyrkOptions::default(), &mut kept).is_err());
    assert!(SymmetricMatrix::new(kept.into_matrix()).is_ok());
}
