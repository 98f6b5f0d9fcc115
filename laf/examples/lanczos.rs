//! The Lanczos process on the front end: the largest eigenvalue of a generated sparse matrix.
//!
//!     cargo run --release -p sunzi-laf --example lanczos -- 100000
//!
//! Source: C. Lanczos, "An iteration method for the solution of the eigenvalue problem", 1950. The vectors are not
//! made orthogonal again: copies of an eigenvalue that has converged do not disturb the largest one.

use sunzi::Result;
use sunzi_laf::gallery::GrowingDiagonal;
use sunzi_laf::small::{SmallMatrix, symmetric_eigen};
use sunzi_laf::{Session, SessionOptions, SparseMatrix, Symmetry, TallMatrix, inner};

/// `x^T y`.
fn dot(x: &TallMatrix, y: &TallMatrix) -> Result<f64> {
    Ok(inner(&[x], &[y])?.get()?.at(0, 0))
}

/// The largest Ritz value after so many steps, and a bound on its distance from an eigenvalue.
fn lanczos(a: &SparseMatrix, steps: usize) -> Result<(f64, f64)> {
    let mut v = a.session().random(a.rows(), 1, 3)?;
    v = v.add_scaled(1.0 / dot(&v, &v)?.sqrt(), &v, 0.0)?;
    let mut before: Option<TallMatrix> = None;
    let (mut alphas, mut betas) = (Vec::new(), Vec::<f64>::new());
    for _ in 0..steps {
        let mut w = a.times(&v)?;
        let alpha = dot(&w, &v)?;
        w = w.add_scaled(1.0, &v, -alpha)?;
        if let (Some(before), Some(&beta)) = (&before, betas.last()) {
            w = w.add_scaled(1.0, before, -beta)?;
        }
        let beta = dot(&w, &w)?.sqrt();
        alphas.push(alpha);
        betas.push(beta);
        if beta == 0.0 {
            break;
        }
        before = Some(std::mem::replace(&mut v, w.add_scaled(1.0 / beta, &w, 0.0)?));
    }
    let size = alphas.len();
    let eigen = symmetric_eigen(&SmallMatrix::from_fn(size, size, |row, col| match row.abs_diff(col) {
        0 => alphas[row],
        1 => betas[row.min(col)],
        _ => 0.0,
    }))?;
    let bound = (betas[size - 1] * eigen.vectors.at(size - 1, size - 1)).abs();
    Ok((eigen.values[size - 1], bound))
}

fn generated(session: &Session, matrix: GrowingDiagonal) -> Result<SparseMatrix> {
    let mut a = session.sparse(matrix.order(), matrix.order(), Symmetry::Lower)?;
    a.fill(|chunks, row, col| matrix.block(chunks, row, col))?;
    Ok(a)
}

fn main() -> Result<()> {
    let order: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let session = Session::new(&SessionOptions { chunk_rows: 20_000, threads: 2, ..SessionOptions::default() })?;
    let a = generated(&session, GrowingDiagonal::new(order, 25.min((order - 1) / 2), 1)?)?;
    let (value, bound) = lanczos(&a, 60)?;
    println!("largest eigenvalue {value:.6} within {bound:.1e}");
    Ok(())
}

#[test]
fn the_largest_eigenvalue_is_found() {
    let session = Session::new(&SessionOptions { chunk_rows: 70, ..SessionOptions::default() }).unwrap();
    let matrix = GrowingDiagonal::new(300, 20, 1).unwrap();
    let a = generated(&session, matrix).unwrap();
    let (value, bound) = lanczos(&a, 100).unwrap();
    // The largest entry of the diagonal, and the rows beside it, bound it from both sides.
    assert!(bound < 1e-3 && value >= matrix.diagonal(299) && value < matrix.diagonal(299) + 1.0, "{value} {bound}");
}
