//! What C programs are told of the digits of their answers, against exact solutions of the problem as it was before
//! anything was rounded.

use crate::common::{Array, Ctx, Kind};
use crate::rational::{self, FAMILIES, System};
use crate::rng::claims;
use crate::tally::Tally;
use std::ptr;
use sunzi::{Accuracy, Matrix};
use sunzi_c::*;

/// Stated and proven digits of a solution and of the inverse, which are returned as well; `None` without a factor.
fn answers(case: &System, [a, b]: [&Array; 2], said: &sunzi_rounding) -> Option<([f64; 4], [Matrix; 2])> {
    let accuracy = if case.accuracy == Accuracy::Norm { SUNZI_NORM } else { SUNZI_ENTRYWISE };
    let ctx = Ctx::with(&sunzi_options { threads: 1, accuracy, ..sunzi_options_default() });
    let (uplo, n) = (SUNZI_LOWER, a.rows);
    let (mut factor, mut digits) = (ptr::null_mut(), [f64::NAN; 4]);
    let x = Array::of(Kind::Mpfr, SUNZI_ROW_MAJOR, &b.matrix(|_, _| true));
    let inverse = Array::of(Kind::Mpfr, SUNZI_COL_MAJOR, &Matrix::zeros(n, n, case.bits).unwrap());
    let [of_a, of_b, of_x, of_i] = [a, b, &x, &inverse].map(Array::describe);
    // SAFETY: all are live, each number has a place of its own, and the handle is freed once.
    unsafe {
        match sunzi_factor_new(ctx.0, uplo, case.bits.into(), &of_a, &mut factor) {
            sunzi_status::SUNZI_NOT_POSITIVE_DEFINITE => return None,
            status => ctx.ok(status, &case.label),
        }
        let (into, said) = (digits.as_mut_ptr(), ptr::from_ref(said));
        let place = |at: usize| into.add(at);
        let statuses = [
            sunzi_factor_solve(ctx.0, factor, &of_x),
            sunzi_factor_inverse(ctx.0, factor, SUNZI_BOTH, &of_i),
            sunzi_factor_solution_digits_with(ctx.0, factor, said, uplo, &of_a, &of_b, &of_x, place(0)),
            sunzi_factor_certified_solution_digits_with(ctx.0, factor, said, uplo, &of_a, &of_b, &of_x, place(1)),
            sunzi_factor_inverse_digits_with(ctx.0, factor, said, uplo, &of_a, &of_i, place(2)),
            sunzi_factor_certified_inverse_digits_with(ctx.0, factor, said, uplo, &of_a, &of_i, place(3)),
        ];
        statuses.into_iter().for_each(|status| ctx.ok(status, &case.label));
        sunzi_factor_free(factor);
    }
    Some((digits, [x, inverse].map(|array| array.matrix(|_, _| true))))
}

#[test]
fn digits_that_are_told_are_those_of_the_system_before_rounding() {
    let mut tallies: [Tally; 2] = Default::default();
    for (seed, family) in claims(20).flat_map(|seed| FAMILIES.map(|family| (seed, family))) {
        let case = System::random(family, 57_000 + 6 * seed + family as u64);
        let n = case.a.len();
        let (a, matrix_bits) = rational::rounded(&case.a, n, case.read_bits);
        let (b, right_bits) = rational::rounded(&case.b, case.b[0].len(), case.read_bits);
        let arrays = [a, b].map(|matrix| Array::of(Kind::Mpfr, SUNZI_ROW_MAJOR, &matrix));
        let [matrix_bits, right_bits] = [matrix_bits, right_bits].map(|bits| bits.map_or(0, i64::from));
        let said = sunzi_rounding { matrix_bits, right_bits };
        let Some((digits, [x, inverse])) = answers(&case, arrays.each_ref(), &said) else { continue };
        let exact = rational::solve(&case.a, &case.b).unwrap();
        let truth = rational::digits_of(&x, &exact, true);
        tallies[0].note((&case.label, case.read_bits), [digits[0], digits[1], truth]);
        let exact = rational::solve(&case.a, &rational::identity(n)).unwrap();
        let truth = rational::digits_of(&inverse, &exact, false);
        tallies[1].note((&case.label, case.bits), [digits[2], digits[3], truth]);
    }
    println!("solutions: {:?}, inverses: {:?}", tallies[0], tallies[1]);
    tallies.iter().for_each(Tally::check);
}
