//! Bounds on sphere packings in dimension 8 as polynomial programs, of any degree.
//!
//! `f(x) = sum_k z_k L_k(2 pi |x|^2) e^{-pi |x|^2}` with the Laguerre polynomials `L_k` of parameter 3, divided by
//! their values at 0, has the Fourier transform `sum_k (-1)^k z_k L_k(2 pi |y|^2) e^{-pi |y|^2}`. Where `f(x) <= 0` for
//! `|x| >= sqrt 2`, the transform is nowhere negative and 1 at 0, no packing is denser than `f(0) pi^4 / 384`. The
//! least f(0) is at least 1, as the lattice E8 shows, and comes as near to 1 as one likes as the degree grows.
//! Source: Cohn, Elkies, New upper bounds on sphere packings I (2003), section 7; Viazovska (2017).

use sunzi::rug::{Float, float::Constant};
use sunzi_sdp::{Polynomial, PolynomialMatrix, PolynomialProgram, Sampling};

/// `L_k(shift + t) / L_k(0)` for `k` up to `degree`, as polynomials in t.
fn laguerre(degree: usize, shift: &Float, bits: u32) -> Vec<Polynomial> {
    let mut all: Vec<Polynomial> = vec![vec![Float::with_val(bits, 1)]];
    // (k + 4) l_{k+1} = (2 k + 4 - x) l_k - k l_{k-1} for l_k = L_k / L_k(0).
    for k in 0..degree {
        let constant = Float::with_val(bits, 2 * k + 4) - shift;
        let mut next = vec![Float::new(bits); k + 2];
        for (power, coefficient) in all[k].iter().enumerate() {
            next[power] += Float::with_val(bits, coefficient * &constant);
            next[power + 1] -= coefficient;
        }
        if k > 0 {
            for (power, coefficient) in all[k - 1].iter().enumerate() {
                next[power] -= Float::with_val(bits, coefficient * k);
            }
        }
        next.iter_mut().for_each(|coefficient| *coefficient /= k + 4);
        all.push(next);
    }
    all
}

/// The program whose optimum is minus the least f(0) for polynomials of at most this degree.
///
/// At an even degree the signs of both conditions leave 0 alone for the first coefficient, so the program is that of
/// the odd degree below, which has an interior.
pub fn program(degree: usize, bits: u32) -> PolynomialProgram {
    let degree = if degree.is_multiple_of(2) { degree.saturating_sub(1) } else { degree };
    let number = |value: i32| Float::with_val(bits, value);
    let sign = |k: usize| if k.is_multiple_of(2) { 1 } else { -1 };
    let matrix = |polynomials: Vec<Polynomial>, sign: &dyn Fn(usize) -> i32| {
        let signed = |(k, polynomial): (usize, Polynomial)| polynomial.into_iter().map(|c| c * sign(k)).collect();
        let entry = polynomials.into_iter().enumerate().map(signed).collect();
        PolynomialMatrix { dim: 1, entries: vec![entry], sampling: Sampling::default() }
    };
    let far = Float::with_val(bits, Constant::Pi) * 4u32;
    PolynomialProgram {
        objective: vec![number(-1); degree + 1],
        normalization: Some((0..=degree).map(|k| number(sign(k))).collect()),
        matrices: vec![
            matrix(laguerre(degree, &far, bits), &|_| -1),
            matrix(laguerre(degree, &number(0), bits), &sign),
        ],
    }
}
