//! Correct digits: what is estimated and what is proven, beside the errors that a run with four times the bits shows.

use crate::common::definite::ill_conditioned;
use crate::common::{Rng, seeds};
use rug::Float;
use sunzi::gallery::{self, Size, generate};
use sunzi::{Accuracy, Cholesky, CholeskyOptions, Context, Error, Matrix, Outcome, cholesky, cholesky_with, syrk};

/// Kinds of ill-conditioned matrices.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Family {
    /// `1 / (i + j + s)`, rounded.
    Hilbert,
    /// Eigenvalues over many orders of magnitude, random vectors.
    Spectrum,
    /// Pivots that fall evenly.
    Pivots,
    /// One of the others with rows and columns scaled by powers of two far apart.
    Graded,
    /// `P^T P` of random rows, and of the crossing derivatives of the conformal bootstrap.
    Gram,
    /// A condition that is about what the precision bears.
    Border,
}

const FAMILIES: [Family; 6] =
    [Family::Hilbert, Family::Spectrum, Family::Pivots, Family::Graded, Family::Gram, Family::Border];

/// A matrix, and the precision to work at.
struct Case {
    label: String,
    a: Matrix,
    bits: u32,
    rng: Rng,
}

fn context() -> Context {
    Context::builder().threads(1).build().unwrap()
}

/// `V diag(2^-k) V^T` for a random `V` and exponents from 0 to about `lost`.
fn spectrum(rng: &mut Rng, n: usize, lost: u32, bits: u32) -> Matrix {
    let drop = rng.below(3);
    let exponent = |col: usize, rng: &mut Rng| match drop {
        0 => lost as usize * col / n,
        1 if col + 1 < n => 0,
        1 => lost as usize,
        _ => rng.below(lost as usize + 1),
    };
    let exponents: Vec<usize> = (0..n).map(|col| exponent(col, rng)).collect();
    let factor = Matrix::from_fn(n, n, 64, |row, _| {
        Float::with_val(64, rng.within(1 << 40)) >> (40 + exponents[row] / 2) as u32
    });
    syrk(&context(), &factor.unwrap(), bits).unwrap().into_matrix()
}

fn case(family: Family, seed: u64) -> Case {
    let mut rng = Rng::new(7000 + seed);
    let n = 2 + rng.below(24);
    let lost = 10 + rng.below(400) as u32;
    let spare = rng.below(250) as u32;
    let (a, bits) = match family {
        Family::Hilbert => {
            let bits = 5 * n as u32 + 8 + spare;
            let shift = rng.below(3);
            let entry = |row: usize, col: usize| Float::with_val(bits + 40, row + col + 1 + shift).recip();
            (Matrix::from_fn(n, n, bits + 40, entry).unwrap(), bits)
        }
        Family::Spectrum => (spectrum(&mut rng, n, lost, 2 * lost + 400), lost + 2 + spare),
        Family::Pivots => {
            let (_, mut a) = ill_conditioned(n, lost / 2, seed);
            for (row, col) in (0..n).flat_map(|row| (0..n).map(move |col| (row, col))) {
                a.set_float(row, col, &(a.float(row, col) / 3u32)).unwrap();
            }
            (a, lost + 2 + spare)
        }
        Family::Border => {
            (spectrum(&mut rng, n, lost, 2 * lost + 400), lost.saturating_sub(4).max(8) + rng.below(14) as u32)
        }
        Family::Gram => {
            let bits = 53 + rng.below(500) as u32;
            let kind = if rng.coin() { gallery::Kind::Random } else { gallery::Kind::Bootstrap1d };
            let rows = if kind == gallery::Kind::Random { n + rng.below(3) } else { 4 * n };
            let p = generate(kind, Size { rows, cols: n, precision_bits: bits + 100 }, seed).unwrap();
            (syrk(&context(), &p, 2 * bits + 100).unwrap().into_matrix(), bits)
        }
        Family::Graded => {
            let mut a = spectrum(&mut rng, n, lost, 2 * lost + 400);
            let scales: Vec<i32> = (0..n).map(|_| rng.within(300) as i32).collect();
            for (row, col) in (0..n).flat_map(|row| (0..n).map(move |col| (row, col))) {
                let entry = a.float(row, col) << (scales[row] + scales[col]);
                a.set_float(row, col, &entry).unwrap();
            }
            (a, lost + 2 + spare)
        }
    };
    Case { label: format!("{family:?}, seed {seed}, {n} rows, {bits} bits"), a, bits, rng }
}

/// `-log10` of the relative error in the maximum norm; of columns the worst.
fn true_digits(got: &Matrix, exact: &Matrix, by_columns: bool) -> f64 {
    let most = |values: &[Float]| {
        values.iter().fold(Float::new(64), |most, value| most.max(&Float::with_val(64, value.abs_ref())))
    };
    let bits = exact.precision_bits();
    let (got, all) = (got.view().to_floats(), exact.view().to_floats());
    let length = if by_columns { exact.rows() } else { all.len() };
    let digits = got.chunks(length).zip(all.chunks(length)).map(|(got, exact)| {
        let errors: Vec<Float> = got.iter().zip(exact).map(|(got, exact)| Float::with_val(bits, got - exact)).collect();
        -(most(&errors) / most(exact)).log10().to_f64()
    });
    digits.fold(f64::INFINITY, f64::min)
}

/// How stated digits compare with true ones.
#[derive(Default, Debug)]
struct Tally {
    answers: usize,
    /// Said to have more digits than are right.
    above: usize,
    /// Said to have more than two digits fewer.
    below: usize,
    /// Digits proven, beside the true ones.
    proven: usize,
    loose: usize,
}

impl Tally {
    fn note(&mut self, label: &str, stated: f64, truth: f64) {
        self.answers += 1;
        self.above += usize::from(stated > truth.max(0.0));
        self.below += usize::from(stated < truth.max(0.0) - 2.0);
        if std::env::var_os("SHOW").is_some() && (stated > truth || stated < truth.max(0.0) - 2.0) {
            let mark = if stated > truth { "ABOVE " } else { "" };
            println!("{mark}{label}: stated {stated:.2}, true {truth:.2}");
        }
    }

    fn prove(&mut self, label: &str, proven: f64, truth: f64) {
        assert!(proven <= truth.max(0.0), "{label}: proven {proven}, true {truth}");
        self.proven += 1;
        self.loose += usize::from(proven < truth - 2.0);
        if std::env::var_os("SHOW").is_some() && proven < truth - 2.0 {
            println!("{label}: proven {proven:.2}, true {truth:.2}");
        }
    }
}

#[test]
fn stated_digits_beside_true_ones() {
    let mut tallies: [Tally; 3] = Default::default();
    let mut refused = 0;
    for (seed, family) in seeds(9).flat_map(|seed| FAMILIES.map(|family| (seed, family))) {
        let mut case = case(family, seed);
        let accuracy = if case.rng.coin() { Accuracy::Norm } else { Accuracy::Entrywise };
        match cholesky_with(&context(), &case.a, case.bits, &CholeskyOptions::new().accuracy(accuracy)) {
            Ok(Outcome { result, .. }) => judge(&mut case, &result, &mut tallies),
            Err(Error::NotPositiveDefinite { .. }) => refused += 1,
            Err(error) => panic!("{}: {error}", case.label),
        }
    }
    println!("{refused} refused; {tallies:?}");
    for tally in tallies {
        assert!(tally.answers > refused, "{tally:?}");
        assert!(1000 * tally.above <= tally.answers.max(1000), "{tally:?}");
        assert!(10 * tally.below <= tally.answers, "{tally:?}");
    }
}

/// The log-determinant, a solution and the inverse.
fn judge(case: &mut Case, factor: &Cholesky, tallies: &mut [Tally; 3]) {
    let (ctx, n, Case { label, a, bits, rng }) = (&context(), case.a.rows(), case);
    let true_bits = 4 * a.precision_bits().max(*bits);
    let exact = cholesky(ctx, &*a, true_bits).unwrap();
    let certificate = factor.certify(ctx, &*a).unwrap();

    let label_of = |what: &str| format!("{label}, {what}");
    let (own, value) = (factor.log_det(), exact.log_det());
    let truth = -(Float::with_val(true_bits, &own - &value) / &value).abs().log10().to_f64();
    tallies[0].note(&label_of("log det"), factor.log_det_digits(ctx).unwrap(), truth);
    if let Some(certificate) = &certificate {
        tallies[0].prove(&label_of("log det"), certificate.log_det_digits(ctx).unwrap(), truth);
    }

    let cols = rng.pick(&[1, 1, 2, 3, 5, 20]);
    let b = Matrix::from_fn(n, cols, *bits, |_, _| Float::with_val(*bits, rng.within(1 << 30)) >> 30).unwrap();
    let x = factor.solve(ctx, &b, *bits).unwrap();
    let truth = true_digits(&x, &exact.solve(ctx, &b, true_bits).unwrap(), true);
    let label_of = |what: &str| format!("{label}, {what}");
    tallies[1].note(&label_of(&format!("{cols} columns")), factor.solution_digits(ctx, &*a, &b, &x).unwrap(), truth);
    if let Some(certificate) = &certificate {
        tallies[1].prove(&label_of("solution"), certificate.solution_digits(ctx, &b, &x).unwrap(), truth);
    }

    let inverse = factor.inverse(ctx, *bits).unwrap();
    let truth = true_digits(&inverse, &exact.inverse(ctx, true_bits).unwrap(), false);
    tallies[2].note(&label_of("inverse"), factor.inverse_digits(ctx, &*a, &inverse).unwrap(), truth);
    if let Some(certificate) = &certificate {
        tallies[2].prove(&label_of("inverse"), certificate.inverse_digits(ctx, &inverse).unwrap(), truth);
    }
}
