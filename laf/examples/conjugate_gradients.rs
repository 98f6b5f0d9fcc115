//! Conjugate gradients on the front end: `A x = b` for a generated sparse matrix, preconditioned by its diagonal.
//!
//!     cargo run --release -p sunzi-laf --example conjugate_gradients -- 100000
//!
//! Source: M. Hestenes, E. Stiefel, "Methods of conjugate gradients for solving linear systems", 1952.

use sunzi::Result;
use sunzi_laf::gallery::GrowingDiagonal;
use sunzi_laf::{Session, SessionOptions, SparseMatrix, Symmetry, TallMatrix, inner};

/// `x^T y`.
fn dot(x: &TallMatrix, y: &TallMatrix) -> Result<f64> {
    Ok(inner(&[x], &[y])?.get()?.at(0, 0))
}

/// The solution, and the iterations it took until `|b - A x| <= tolerance |b|`.
fn solve(a: &SparseMatrix, b: &TallMatrix, tolerance: f64) -> Result<(TallMatrix, usize)> {
    let diagonal = a.diagonal()?;
    let mut r = b.clone();
    let mut z = r.divide_rows(&diagonal)?;
    let mut p = z.clone();
    let mut x = b.add_scaled(0.0, b, 0.0)?;
    let (mut rho, goal) = (dot(&r, &z)?, tolerance * dot(b, b)?.sqrt());
    for iteration in 0..1000 {
        if dot(&r, &r)?.sqrt() <= goal {
            return Ok((x, iteration));
        }
        let image = a.times(&p)?;
        let alpha = rho / dot(&p, &image)?;
        x = p.add_scaled(alpha, &x, 1.0)?;
        r = image.add_scaled(-alpha, &r, 1.0)?;
        z = r.divide_rows(&diagonal)?;
        let last = std::mem::replace(&mut rho, dot(&r, &z)?);
        p = z.add_scaled(1.0, &p, rho / last)?;
    }
    Ok((x, 1000))
}

/// Solves for a known `x`; returns the iterations, and the largest error.
fn run(order: usize, chunk_rows: usize) -> Result<(usize, f64)> {
    let generated = GrowingDiagonal::new(order, 25.min((order - 1) / 2), 1)?;
    let session = Session::new(&SessionOptions { chunk_rows, threads: 2, ..SessionOptions::default() })?;
    let mut a = session.sparse(order, order, Symmetry::Lower)?;
    a.fill(|chunks, row, col| generated.block(chunks, row, col))?;
    let exact = session.random(order, 1, 2)?;
    let b = a.times(&exact)?;
    let (x, iterations) = solve(&a, &b, 1e-12)?;
    let difference = x.add_scaled(1.0, &exact, -1.0)?.numbers()?;
    Ok((iterations, difference.into_iter().fold(0.0, |most, x| x.abs().max(most))))
}

fn main() -> Result<()> {
    let order = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let (iterations, error) = run(order, 20_000)?;
    println!("{iterations} iterations, largest error {error:.1e}");
    Ok(())
}

#[test]
fn a_known_solution_is_found() {
    let (iterations, error) = run(400, 60).unwrap();
    assert!((3..30).contains(&iterations) && error < 1e-10, "{iterations} {error}");
}
