//! What verbs on vectors refuse: shapes, precisions, scalars, exponents, memory, and a caller who cancels.

use super::context;
use crate::common::{Kind, matrix};
use rug::Float;
use sunzi::blas::{GemvOptions, GerOptions, SymvOptions, axpy, dot, gemv, gemv_into, gemv_with};
use sunzi::blas::{ger_with, nrm2, symv_with, trmv};
use sunzi::estimate::log_det_of;
use sunzi::sparse::SparseMatrix;
use sunzi::verify::{VerifyOptions, verify_syrk};
use sunzi::{Context, Error, Matrix};

fn is_mismatch<T>(outcome: sunzi::Result<T>, name: &str) -> bool {
    match outcome {
        Err(Error::ShapeMismatch { operation, .. } | Error::NotSquare { operation, .. }) => operation == name,
        _ => false,
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let ctx = context(1);
    let (a, x, y) = (matrix(Kind::Unit, 3, 4, 64, 1), matrix(Kind::Unit, 3, 1, 64, 2), matrix(Kind::Unit, 1, 4, 64, 3));
    assert!(is_mismatch(dot(&ctx, &x, &y, 64), "dot"));
    assert!(is_mismatch(dot(&ctx, &a, &y, 64), "dot"));
    assert!(is_mismatch(nrm2(&ctx, &a, 64), "nrm2"));
    assert!(is_mismatch(gemv(&ctx, &a, &x, 64), "gemv"));
    assert!(gemv(&ctx, &a, &y, 64).is_ok());
    assert!(is_mismatch(axpy(&ctx, &Float::with_val(9, 1), &x, &y, 64), "axpy"));
    assert!(is_mismatch(trmv(&ctx, &a, &y, 64), "trmv"));
    assert!(is_mismatch(symv_with(&ctx, &a, &y, 64, &SymvOptions::new()), "symv"));
    assert!(is_mismatch(ger_with(&ctx, &x, &y, 64, &GerOptions::new().accumulate(x.view())), "accumulate"));
    let accumulate = GemvOptions::new().accumulate(y.view());
    assert!(is_mismatch(gemv_with(&ctx, &a, &y, 64, &accumulate), "gemv"));
    let mut wrong = Matrix::zeros(4, 1, 64).unwrap();
    let into = gemv_into(&ctx, &a, &y, 64, &GemvOptions::new(), wrong.view_mut());
    assert!(is_mismatch(into, "the block for the result"));
    let mut wrong = Matrix::zeros(3, 1, 65).unwrap();
    let into = gemv_into(&ctx, &a, &y, 64, &GemvOptions::new(), wrong.view_mut());
    assert!(matches!(into, Err(Error::InvalidArgument(_))));
}

#[test]
fn precisions_scalars_and_exponents_out_of_range_are_refused() {
    let ctx = context(1);
    let x = matrix(Kind::Unit, 3, 1, 64, 2);
    for bits in [0, 1, (1 << 24) + 1] {
        assert!(matches!(dot(&ctx, &x, &x, bits), Err(Error::Precision { .. })));
        assert!(matches!(gemv(&ctx, x.transposed(), &x, bits), Err(Error::Precision { .. })));
        assert!(matches!(axpy(&ctx, &Float::with_val(9, 1), &x, &x, bits), Err(Error::Precision { .. })));
    }
    for wrong in [Float::with_val(53, rug::float::Special::Nan), Float::with_val(53, rug::float::Special::Infinity)] {
        let refused = |error: Error| error.to_string().contains("must be finite");
        assert!(refused(axpy(&ctx, &wrong, &x, &x, 64).unwrap_err()));
        assert!(refused(gemv_with(&ctx, x.transposed(), &x, 64, &GemvOptions::new().alpha(&wrong)).unwrap_err()));
        assert!(refused(ger_with(&ctx, &x, &x, 64, &GerOptions::new().alpha(&wrong)).unwrap_err()));
    }
    let mut large = Matrix::zeros(2, 1, 64).unwrap();
    large.set_integer_exponent(1, 0, &3.into(), 900_000_000).unwrap();
    assert!(matches!(dot(&ctx, &large, &large, 64), Err(Error::ExponentRange { .. })));
    let norm = nrm2(&ctx, &large, 64).unwrap();
    assert_eq!(norm, large.float(1, 0));
    let refused = ger_with(&ctx, &large, &large, 64, &GerOptions::new());
    assert!(matches!(refused, Err(Error::ExponentRange { row: 1, column: 1, .. })));
    let minus = Matrix::from_floats(2, 1, 64, &[large.float(1, 0), -large.float(1, 0)]).unwrap();
    let both = Matrix::from_floats(2, 1, 64, &[large.float(1, 0), large.float(1, 0)]).unwrap();
    assert_eq!(dot(&ctx, &both, &minus, 64).unwrap(), 0); // terms beyond the range cancel
}

#[test]
fn limits_are_kept_and_callers_can_cancel() {
    let ctx = context(2);
    let (a, x) = (matrix(Kind::Unit, 300, 200, 128, 1), matrix(Kind::Unit, 200, 1, 128, 2));
    let outcome = gemv_with(&ctx, &a, &x, 128, &GemvOptions::new()).unwrap();
    let bytes = outcome.report.planned_bytes;
    let limited = |bytes| gemv(&ctx.with_memory_bytes(Some(bytes)), &a, &x, 128);
    assert!(limited(bytes).unwrap() == outcome.result);
    assert!(matches!(limited(bytes - 1), Err(Error::MemoryLimit { minimum_bytes, .. }) if minimum_bytes == bytes));
    assert!(matches!(dot(&ctx.with_memory_bytes(Some(8)), &x, &x, 128), Err(Error::MemoryLimit { .. })));
    let never = Context::builder().threads(2).build().unwrap().with_progress(|_| false);
    assert!(matches!(gemv(&never, &a, &x, 128), Err(Error::Cancelled)));
    assert!(matches!(ger_with(&never, &x, &x, 128, &GerOptions::new()), Err(Error::Cancelled)));
}

/// Sizes and counts that no loop and no allocation may follow blindly.
#[test]
fn numbers_beyond_all_reason_end_at_once() {
    let empty = Matrix::from_fn(0, 1 << 62, 64, |_, _| panic!("there are no entries")).unwrap();
    assert_eq!((empty.rows(), empty.cols()), (0, 1 << 62));
    assert_eq!(empty.view().rounded(90).unwrap().cols(), 1 << 62);
    for rows in [1 << 61, usize::MAX] {
        let sparse = SparseMatrix::from_entries(rows, 1, std::iter::empty());
        assert!(matches!(sparse, Err(Error::OutOfMemory { .. })), "{rows} rows");
    }
    let factor = matrix(Kind::Unit, 3, 3, 64, 1);
    assert_eq!((log_det_of(&factor, 0).prec(), log_det_of(&factor, 64).prec()), (1, 64));
    let ctx = context(1);
    let p = matrix(Kind::Unit, 2, 2, 64, 1);
    let q = sunzi::syrk(&ctx, &p, 64).unwrap();
    let options = VerifyOptions::new().vector_count(usize::MAX);
    assert_eq!(verify_syrk(&ctx, &p, &q, 64, &options).unwrap().vector_count, 1 << 16);
}
