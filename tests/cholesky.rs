//! Cholesky factorisations against their definition, known factors and exact residuals.

use rug::Float;
use sunzi::{Context, Error, Matrix};

fn ctx() -> Context {
    Context::builder().threads(1).build().unwrap()
}

#[test]
fn a_small_factor_is_right() {
    let a = Matrix::from_f64s(2, 2, 100, &[4.0, 2.0, 2.0, 10.0]).unwrap();
    let factor = sunzi::cholesky(&ctx(), &a, 100).unwrap().into_factor();
    assert_eq!(factor, Matrix::from_f64s(2, 2, 100, &[2.0, 1.0, 0.0, 3.0]).unwrap());
}

#[test]
fn a_failure_names_the_leading_minor() {
    let a = Matrix::from_f64s(3, 3, 100, &[1.0, 2.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, -1.0]).unwrap();
    match sunzi::cholesky(&ctx(), &a, 100) {
        Err(Error::NotPositiveDefinite { index: 1, pivot, more_bits: None, .. }) => {
            assert_eq!(pivot, Float::with_val(53, -3));
        }
        other => panic!("{other:?}"),
    }
}
