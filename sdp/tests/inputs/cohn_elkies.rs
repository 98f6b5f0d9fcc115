//! Bounds on sphere packings in dimension 8 as polynomial programs, of any degree.
//!
//! `f(x) = sum_k z_k L_k(2 pi |x|^2) e^{-pi |x|^2}` with the Laguerre polynomials `L_k` of parameter 3, divided by
//! their values at 0, has the Fourier transform `sum_k (-1)^k z_k L_k(2 pi |y|^2) e^{-pi |y|^2}`. Where `f(x) <= 0` for
//! `|x| >= sqrt 2`, the transform is nowhere negative and 1 at 0, no packing is denser than `f(0) pi^4 / 384`. The
//! least f(0) is at least 1, as the lattice E8 shows, and comes as near to 1 as one likes as the degree grows.
//! Every number is a decimal, so that a bound that is proven for the program in a file is one of packings: `4 pi` is
//! rounded down, which asks for `f(x) <= 0` a little further inside as well, and the polynomials are multiplied by
//! whole numbers that their coefficients divide, over a power of ten.
//! Source: Cohn, Elkies, New upper bounds on sphere packings I (2003), section 7; Viazovska (2017).

use sunzi::rug::{Float, Integer, Rational, float::Constant, ops::Pow};
use sunzi_sdp::{Polynomial, PolynomialMatrix, PolynomialProgram, Sampling};

/// A program with exact numbers: objective, normalization, and the polynomials of both matrices.
pub struct Exact {
    pub objective: Vec<Rational>,
    pub normalization: Vec<Rational>,
    pub matrices: [Vec<Vec<Rational>>; 2],
}

/// `L_k(shift + t) / L_k(0)` for `k` up to `degree`, as polynomials in t.
fn laguerre(degree: usize, shift: &Rational) -> Vec<Vec<Rational>> {
    let mut all = vec![vec![Rational::from(1)]];
    // (k + 4) l_{k+1} = (2 k + 4 - x) l_k - k l_{k-1} for l_k = L_k / L_k(0).
    for k in 0..degree {
        let constant = Rational::from(2 * k + 4) - shift;
        let mut next = vec![Rational::new(); k + 2];
        for (power, coefficient) in all[k].iter().enumerate() {
            next[power] += Rational::from(coefficient * &constant);
            next[power + 1] -= coefficient;
        }
        if k > 0 {
            for (power, coefficient) in all[k - 1].iter().enumerate() {
                next[power] -= coefficient.clone() * Integer::from(k);
            }
        }
        next.iter_mut().for_each(|coefficient| *coefficient /= Integer::from(k + 4));
        all.push(next);
    }
    all
}

/// `k! (k + 1) (k + 2) (k + 3) / 6`, by which the coefficients of `L_k / L_k(0)` are whole, over the power of ten that
/// leaves one digit in front of the point.
fn scale(k: usize) -> Rational {
    let whole = Integer::from(Integer::factorial(k as u32)) * (k + 1) * (k + 2) * (k + 3) / 6u32;
    let digits = whole.to_string().len() as u32;
    Rational::from((whole, Integer::from(10).pow(digits - 1)))
}

/// `4 pi` with so many digits behind the point, rounded down.
fn four_pi(digits: u32) -> Rational {
    let power = Integer::from(10).pow(digits);
    let scaled = Float::with_val(4 * digits + 64, Constant::Pi) * 4u32 * &power;
    Rational::from((scaled.floor().to_integer().expect("it is finite"), power))
}

/// The program whose optimum is minus the least f(0) for polynomials of at most this degree.
///
/// At an even degree the signs of both conditions leave 0 alone for the first coefficient, so the program is that of
/// the odd degree below, which has an interior.
pub fn exact(degree: usize) -> Exact {
    let degree = if degree.is_multiple_of(2) { degree.saturating_sub(1) } else { degree };
    let scales = (0..=degree).map(scale).collect::<Vec<_>>();
    let signed = |k: usize, value: &Rational| if k.is_multiple_of(2) { value.clone() } else { -value.clone() };
    let negative = |_: usize, value: &Rational| -value.clone();
    let matrix = |polynomials: Vec<Vec<Rational>>, sign: &dyn Fn(usize, &Rational) -> Rational| {
        let one = |(k, p): (usize, Vec<Rational>)| p.iter().map(|c| sign(k, &(c.clone() * &scales[k]))).collect();
        polynomials.into_iter().enumerate().map(one).collect::<Vec<Vec<Rational>>>()
    };
    // The digits leave f(0) - 1 as it is, to several of its own.
    let far = four_pi(10 + degree as u32 / 10);
    Exact {
        objective: scales.iter().map(|scale| -scale.clone()).collect(),
        normalization: scales.iter().enumerate().map(|(k, scale)| signed(k, scale)).collect(),
        matrices: [matrix(laguerre(degree, &far), &negative), matrix(laguerre(degree, &Rational::new()), &signed)],
    }
}

/// The program of [`exact`] with its numbers rounded.
pub fn program(degree: usize, bits: u32) -> PolynomialProgram {
    let Exact { objective, normalization, matrices } = exact(degree);
    let floats = |list: &Vec<Rational>| list.iter().map(|value| Float::with_val(bits, value)).collect::<Polynomial>();
    let matrix = |polynomials: &Vec<Vec<Rational>>| PolynomialMatrix {
        dim: 1,
        entries: vec![polynomials.iter().map(floats).collect()],
        sampling: Sampling::default(),
    };
    PolynomialProgram {
        objective: floats(&objective),
        normalization: Some(floats(&normalization)),
        matrices: matrices.iter().map(matrix).collect(),
    }
}
