//! Each bound at its edge: its promise holds, and would not hold with the next value.
//!
//! The inequalities are those of docs/ALGORITHM.md, written out anew: a changed constant must contradict one of them.

use super::*;
use crate::math::family::{F64_CHUNK_ROWS, f64_maximum_modulus_bits, ifma52_maximum_modulus_bits};
use rug::Integer;

#[test]
fn small_values_are_exact() {
    assert_eq!([0, 1, 2, 3, 4, 5, 4000, usize::MAX].map(ceil_log2), [0, 0, 1, 2, 2, 3, 12, 64]);
    assert_eq!(working_bits(1024, 4000), 1034);
    assert_eq!(ifma52_prime_count(modulus_bits(1034, 1034)), 40);
    assert_eq!([0, 1, 2, 1000, usize::MAX].map(trsm_guard_bits), [5, 5, 6, 7, 9]);
    assert_eq!([1, 2, 1000].map(cholesky_solve_guard_bits), [9, 10, 15]);
    assert_eq!([1, 1000].map(ldlt_guard_bits), [7, 9]);
    assert_eq!(cholesky_solve_guard_bits(1 << 27), 25);
    // Choices, which the bits of results depend on.
    assert_eq!([TRSM_FIXED_BITS, RESIDUAL_COVERED_BITS, RESIDUAL_SIZE_BITS, REFINE_GUARD_BITS], [32, 10, 24, 8]);
    assert_eq!(COMMON_WORKING_BITS, 5040);
}

#[test]
fn the_largest_f64_modulus_is_the_largest() {
    // kc h^2 + 2 (h + 2), where the second summand decides.
    assert_eq!([(10, 7), (1, 0)].map(|(rows, half)| f64_chunk_sum(rows, half)), [508, 4]);
    assert_eq!(f64_largest_modulus(1), 2 * 94_906_264 + 1);
    for rows in [1usize, 2, 256, 1000, 4096, 100_000] {
        let half = (f64_largest_modulus(rows) - 1) / 2;
        assert!(f64_chunk_sum(rows, half) <= 1 << 53 && f64_chunk_sum(rows, half + 1) > 1 << 53, "rows {rows}");
    }
}

#[test]
fn f64_digits_are_as_wide_as_their_sums_allow() {
    // 32 bits at most; a sum of exactly 2^51 is too long.
    assert_eq!([(1, 3), (1, (1 << 21) + 1), (1, (1 << 21) - 1)].map(|(n, p)| f64_digit_bits(n, p)), [32, 31, 32]);
    assert_eq!(f64_digit_bits((1 << 26) - 1, 1 << 26), 1);
    for (terms, modulus) in [(1, 8_388_593u64), (45, 8_388_593), (480, 5_931_641)] {
        let bits = f64_digit_bits(terms, modulus);
        let sum = |bits: u32| (terms as u64 * (modulus / 2)) << (bits - 1);
        assert!(sum(bits) < 1 << 51 && sum(bits + 1) >= 1 << 51, "{terms} terms modulo {modulus}: {bits} bits");
    }
}

/// Orders and counts around every power of two and of four.
fn edges() -> impl Iterator<Item = usize> {
    (0..40).flat_map(|log2| [(1usize << log2) - 1, 1 << log2, (1 << log2) + 1]).filter(|&count| count > 0)
}

/// Whether `bits` is the least number of bits with `2^bits >= wanted`.
fn is_least(bits: u32, wanted: u128) -> bool {
    1 << bits >= wanted && 1 << (bits - 1) < wanted
}

#[test]
fn guard_bits_are_the_least_that_the_proofs_ask_for() {
    for count in edges() {
        let depth = u128::from(ceil_log2(count));
        assert!(1usize << depth >= count && (count == 1 || 1 << (depth - 1) < count), "{count}");
        // 2^g >= 16 sqrt(K), squared.
        let guard = guard_bits(count);
        assert!(1u128 << (2 * guard) >= 256 * count as u128, "{count} terms");
        assert!(1u128 << (2 * guard - 2) < 256 * count as u128, "{count} terms: {guard} guard bits are one too many");
        assert_eq!(working_bits(100, count), 100 + guard);
        assert!(is_least(vector_solve_bits(90, count) - 90, 64 * count as u128), "{count} unknowns");
        assert!(is_least(trsm_guard_bits(count), 4 * (depth + 8)), "order {count}");
        assert!(is_least(ldlt_guard_bits(count), 32 * (depth + 4)), "order {count}");
        // 2^g >= 64 (d + 5) sqrt(n): two factors, each rounded up to a power of two.
        let solve = cholesky_solve_guard_bits(count);
        let wanted = (64 * (depth + 5)).pow(2) * count as u128;
        assert!(1u128 << (2 * solve) >= wanted && 1u128 << (2 * solve - 4) < wanted, "order {count}");
        assert_eq!(ldlt_solve_guard_bits(count), solve + 1);
        assert_eq!([-3, 0, 7].map(|norm| cholesky_inverse_guard_bits(count, norm) - i64::from(solve)), [0, 0, 7]);
    }
}

#[test]
fn moduli_have_room_for_what_is_reconstructed_and_no_bit_more() {
    // A quotient is right while |x| / M stays below 1/2 by the error of its estimate, 0.23 at most.
    let fits = |hundredths: f64, spare: u32| hundredths / f64::from(1 << spare) < 0.27;
    let products = modulus_bits(500, 600) - 1100;
    assert!(fits(1.07, products) && !fits(1.07, products - 1));
    let factors = cholesky_modulus_bits(700) - 1400;
    assert!(fits(2.01, factors) && !fits(2.01, factors - 1));
    // The length of 2.01 * 2^(2 B), and one spare bit.
    assert_eq!(TILE_SPARE_BITS, (201u32 * 1024 / 100).ilog2() + 1 - 10 + 1);
    assert_eq!(cholesky_working_bits(53), 55);
    // |x| <= 1.07 * 2^(2 B) passes the check, whose bound is below M / 2.
    assert_eq!(range_check_bits(modulus_bits(500, 600)), 1101);
}

#[test]
fn primes_of_52_bits_are_counted_at_every_edge() {
    for bits in (1..11_000).flat_map(|count| [52 * count - 1, 52 * count]).take_while(|&bits| bits < 11_100) {
        let count = ifma52_prime_count(bits) as u32;
        assert!(52 * count > bits && 52 * (count - 1) <= bits, "{bits} bits: {count} primes");
    }
}

#[test]
fn sums_of_the_ifma_kernel_fill_their_words() {
    let sum = |rows: usize| (rows as u128 + 3) << 52;
    assert!(sum(IFMA52_CHUNK_ROWS) < 1 << 64);
    assert!(sum(IFMA52_CHUNK_ROWS + 1) >= 1 << 64, "a chunk could be longer");
}

#[test]
fn signed_bytes_and_their_sums_reach_the_ends_of_their_range() {
    let is_byte = |value: i64| i8::try_from(value).is_ok();
    // Balanced residues: an even modulus has one more below 0.
    let single = |modulus: u64| is_byte(-((modulus / 2) as i64)) && is_byte((modulus as i64 - 1) / 2);
    assert!(single(I8_LARGEST_SINGLE) && !single(I8_LARGEST_SINGLE + 1));
    let triple = |bits: u32| {
        (1 - (1i64 << (bits - 1))..1 << (bits - 1)).all(|residue| {
            let high = (residue + 64).div_euclid(128);
            let low = residue - 128 * high;
            is_byte(high) && is_byte(low) && is_byte(low + high)
        })
    };
    assert!(triple(I8_TRIPLE_BITS) && !triple(I8_TRIPLE_BITS + 1));
    // Powers of two of rows; twice as many leave 32 bits.
    let sum = |rows: usize| rows as u64 * (128 * 128);
    assert!(I8_CHUNK_ROWS.is_power_of_two());
    assert!(i32::try_from(sum(I8_CHUNK_ROWS)).is_ok() && i32::try_from(sum(2 * I8_CHUNK_ROWS)).is_err());
    // L + 128 (S - L - H) + 2^14 H.
    let together = sum(I8_CHUNK_ROWS) * (1 + 3 * 128 + (1 << 14));
    assert!((1 << (I8_SUM_BITS - 1)..1 << I8_SUM_BITS).contains(&together));
}

#[test]
fn sums_of_doubles_are_whole_numbers_that_doubles_hold() {
    let exact = |bits: u32| ((1u64 << bits) - 1) as f64 as u64 == (1 << bits) - 1;
    assert!(exact(F64_SUM_BITS) && !exact(F64_SUM_BITS + 1));
    let half = (f64_largest_modulus(F64_CHUNK_ROWS) - 1) / 2;
    assert!(f64_chunk_sum(F64_CHUNK_ROWS, half) <= 1 << F64_SUM_BITS);
    assert!(f64_chunk_sum(F64_CHUNK_ROWS, half + 1) > 1 << F64_SUM_BITS);
}

#[test]
fn words_of_a_device_have_room_and_its_quotients_are_right() {
    for (terms, largest) in [(1usize, (1u64 << 32) - 1), (480, 8_947_848), (1 << 16, (1 << 16) - 1)] {
        assert!(device_sum_fits(terms, largest) && !device_sum_fits(terms, largest + 1), "{terms} terms");
        let column = (terms as u128 * u128::from(largest) + 1) * ((1 << 32) - 1);
        assert!(column < 1 << 64, "{terms} terms");
    }
    // 2^15 shares and one half in a word; n p < 2^32 leaves an error below 2^-16.
    let shares = |bits: u32| (1u128 << (15 + bits)) + (1 << (bits - 1));
    assert!(shares(DEVICE_QUOTIENT_BITS) < 1 << 64 && shares(DEVICE_QUOTIENT_BITS + 1) >= 1 << 64);
    assert_eq!(DEVICE_QUOTIENT_BITS, 32 + 16);
}

#[test]
fn quotients_by_a_pivot_are_read_within_their_window() {
    // The error of cutting the numerator, against 2^-54; then all errors in units of 2^-52.
    let cut = |guard: u32| (256.0 + 2.0) * 2f64.powi(1 - guard as i32);
    assert!(cut(CHOLESKY_GUARD_BITS) < 2f64.powi(-54) && cut(CHOLESKY_GUARD_BITS - 1) > 2f64.powi(-54));
    let units = (cut(CHOLESKY_GUARD_BITS) + 2f64.powi(-65) + 2f64.powi(-44)) * 2f64.powi(52) + 1.0;
    assert!(units < QUOTIENT_WINDOW as f64);
    // One entry in 2^41 is divided exactly: a wider window would cost time.
    assert_eq!(2 * QUOTIENT_WINDOW, 1 << (52 - 41));
}

#[test]
fn sums_scalar_by_scalar_are_right_beyond_their_precision() {
    for precision_bits in [2u32, 63, 64, 65, 1000] {
        // The lowest bit stands at 62 - 64 L below the largest term; the proof needs p + 66 bits.
        let low = |extra: usize| 64 * (i64::from(precision_bits.div_ceil(64)) + extra as i64) - 62;
        let wanted = i64::from(precision_bits) + 66;
        assert!(low(FIXED_SUM_EXTRA_LIMBS) >= wanted && low(FIXED_SUM_EXTRA_LIMBS - 1) < wanted, "{precision_bits}");
    }
}

#[test]
fn rows_of_solves_in_fixed_point_may_lie_so_deep_and_no_deeper() {
    for order in [1usize, 2, 4, 64, 1 << 20, 1 << 40] {
        for extra in [64, 128, 1024] {
            // The roundings over the largest term, in units of 2^-p.
            let quotient = |depth: u32| {
                let roundings = 1.02 * (order as f64).sqrt() + 1.1;
                roundings * 2f64.powi(depth as i32 + 1 - extra as i32)
            };
            let deepest = trsm_fixed_depth(extra, order);
            assert!(quotient(deepest) < 0.54, "{order} rows");
            // Between powers of 4 the root is rounded up.
            let is_sharp = ceil_log2(order).is_multiple_of(2);
            assert!(!is_sharp || order > 1 << 10 || quotient(deepest + 1) > 0.54, "{order} rows");
        }
    }
}

#[test]
fn entries_of_a_factor_have_as_many_bits_as_their_bound_asks_for() {
    // In units of 2^-b of the sum of the terms' magnitudes: the error before the last rounding, then that of the last
    // rounding.
    let total = |bits: u32, missing: i32, before: f64| {
        let unit = 2f64.powi(-(bits as i32));
        before * 2f64.powi(missing) + 2.0 + unit
    };
    for bits in [2, 53, 300] {
        for (is_diagonal, before) in [(false, 1.0), (true, 1.125)] {
            assert!(total(bits, 0, before) <= 4.0, "{bits} bits");
            assert!(total(bits, 1, before) >= 4.0, "{bits} bits"); // beyond it, but for the rounding of this sum
            assert_eq!(cholesky_range_bits(-3, 10, is_diagonal), 7 + u32::from(is_diagonal));
        }
    }
    assert_eq!(cholesky_range_bits(-30, 10, true), 0);
}

#[test]
fn solves_in_fixed_point_meet_their_residual() {
    // 4.01 * 2.2 * 2^(h - B - 1) < 0.56 * 2^-p, with B = p + h + spare.
    let residual = |spare: u32| 4.01 * 2.2 * 2f64.powi(-(spare as i32) - 1);
    assert!(residual(TRSM_FIXED_SPARE_BITS) < 0.56 && residual(TRSM_FIXED_SPARE_BITS - 1) > 0.56);
    // sqrt(n) <= 2^h / 8 for n <= 2^40.
    const { assert!(20 + 3 <= TRSM_FIXED_BITS - TRSM_FIXED_SPARE_BITS) };
    // Every family reaches the working bits at which all kernels make the same tries.
    for most in [ifma52_maximum_modulus_bits(), f64_maximum_modulus_bits()] {
        assert!(cholesky_modulus_bits(COMMON_WORKING_BITS) <= most, "{most}");
    }
}

#[test]
fn residuals_are_measured_closely_enough() {
    // Norms cover an entry up to 2^(C + 1) (|A| |X| + |B|): its size is then off by less than 2^-12, its residual by
    // 0.36 units.
    let covered = RESIDUAL_COVERED_BITS as i32 + 1;
    let size = 0.36 * 2f64.powi(covered - RESIDUAL_SIZE_BITS as i32) + 2f64.powi(1 - RESIDUAL_SIZE_BITS as i32);
    assert!(size < 2f64.powi(-12));
    assert_eq!(residual_bits(200) as i32 - 200, covered);
    assert_eq!(residual_bits(u32::MAX), u32::MAX);
}

#[test]
fn sums_of_digits_fit_their_accumulators() {
    let size = |digits: usize, terms: usize| (2 * digits * terms + 1) as u128 * ((1 << 52) - 1);
    for digits in 1..=110 {
        let terms = digit_sum_terms(digits);
        assert!(terms > 0 && size(digits, terms) < 1 << 63 && size(digits, terms + 1) > 1 << 63, "{digits} digits");
    }
}

#[test]
fn sums_of_halves_of_digits_fit_their_accumulators() {
    let size =
        |halves: usize, terms: usize| (halves * terms) as u128 * ((1u128 << 26) - 1).pow(2) + (1 << 38) + (1 << 26);
    for halves in (2..=230).step_by(2).chain([2047]) {
        let terms = half_digit_sum_terms(halves);
        assert!(terms > 0 && size(halves, terms) < 1 << 63 && size(halves, terms + 1) >= 1 << 63, "{halves} halves");
    }
}

#[test]
fn sums_of_eight_lanes_fit_with_what_they_begin_with() {
    // Two digits in each lane, and the carry of a digit to the next one.
    let size = |digits: usize, terms: usize| (2 * digits * terms + 16) as u128 * ((1 << 52) - 1) + (1 << 11) - 1;
    for digits in 1..=48 {
        let terms = row_lane_terms(digits);
        assert!(terms > 0 && size(digits, terms) < 1 << 63 && size(digits, terms + 1) >= 1 << 63, "{digits} digits");
    }
}

#[test]
fn columns_of_a_sum_leave_out_less_than_its_rounding_can_show() {
    for (bits, terms) in (2..4000usize).flat_map(|bits| [1usize, 7, (1 << 20) - 1].map(|terms| (bits, terms))) {
        let columns = sum_columns(bits as u32, terms);
        let two = |exponent: usize| Integer::from(1) << exponent as u32;
        // `n (C + 2) 2^(-52 C) <= 2^(-b - 6)`. The counts of bits for logarithms are at most one too high.
        let left_out = |columns: usize| two(bits + 6) * terms * (columns + 2);
        assert!(left_out(columns) <= two(52 * columns), "{bits} bits, {terms} terms");
        assert!(left_out(columns + 1) * 4 > two(52 * (columns - 1)), "{bits} bits, {terms} terms: one column too many");
    }
}

#[test]
fn eight_lanes_know_their_reciprocals_roots_and_quotients() {
    for bits in 2..4000 {
        // `v^2 <= 2^(2 - 2 P)` is at most `2^-(B + 36)`.
        let known = |root_bits: u32| 2 * root_bits >= bits + 38;
        assert!(known(lane_root_bits(bits)) && !known(lane_root_bits(bits) - 1), "{bits} bits");
    }
    // Of quotients: the relative error of reciprocals, their floor, columns of the product that are left out, and the
    // part missing from the sum; of roots: their own error and the part missing from the sum. In units of `2^-50`.
    let unit = |exponent: u32| 1u64 << (50 - exponent);
    let quotients = |error_bits: u32| unit(35) + unit(36) + unit(45) + unit(error_bits + 1) < unit(error_bits);
    let roots = |error_bits: u32| unit(34) + unit(error_bits + 1) < unit(error_bits);
    assert!(quotients(LANE_ERROR_BITS) && roots(LANE_ERROR_BITS) && !roots(LANE_ERROR_BITS + 1));
}

#[test]
fn sums_of_eight_lanes_are_known_as_far_as_they_are_looked_at() {
    for (bits, precision) in [(64u32, 30u32), (300, 256), (812, 768), (1070, 1024), (130, 128)] {
        for (digits, terms) in [(2usize, 1usize), (6, 20), (17, 31), (22, 100)] {
            let last = 2 * digits;
            let (column, known) = lane_sum_column(bits, precision, digits, terms, last);
            // The lowest bit that is looked at of a sum of `2 B - 24` bits: 40 below the first one cut.
            let lowest = i64::from(2 * bits - 24) - i64::from(precision) - 1 - i64::from(LANE_CHECK_BITS);
            // `(2 d k + 1) 2^(52 c)` is less than one unit of the first bit that is known.
            let unit = |column: usize| Integer::from(2 * digits * terms + 1) << (52 * column as u32);
            let fits = |column: usize| unit(column) <= Integer::from(1) << lowest.max(0) as u32;
            if column == 0 {
                assert_eq!(known, i64::MIN);
                assert!(lowest < 52 || !fits(1), "{bits} bits, {digits} digits, {terms} terms");
                continue;
            }
            assert!(
                known <= lowest && unit(column) <= Integer::from(1) << known as u32,
                "{bits} bits, {digits} digits"
            );
            assert!(column == last || !fits(column + 1), "{bits} bits, {digits} digits, {terms} terms");
            assert_eq!(lane_sum_column(bits, precision, digits, terms, column - 1).0, column - 1);
        }
    }
}

#[test]
fn sums_of_sixteen_bits_fit_and_one_pair_more_does_not() {
    // The least of all: every residue at its largest, and a power that folds worst.
    assert_eq!(i16_sum_pairs(4095, 4095, 4095), 60);
    for (left, right, fold) in [(4095u32, 4095u32, 4095u32), (4095, 4095, 8), (2047, 2047, 2047), (4097, 4095, 2000)] {
        let pairs = i16_sum_pairs(left, right, fold) as u64;
        let largest = |pairs: u64| 2 * pairs * u64::from(left * right) + ((u64::from(fold) + 1) << 15) + (1 << 15);
        assert!(largest(pairs) < 1 << 31 && largest(pairs + 1) >= 1 << 31, "{left}, {right}, {fold}");
    }
    // Digits of 16 bits, each at its largest, and known residues: with one more in total a sum does not fit.
    for fold in [0, 8, 2000, 4095] {
        let most = (0..1 << 17).take_while(|&residues| i16_digit_sum_fits(residues, fold)).last().unwrap();
        let largest = |residues: u64| (residues << 15) + ((u64::from(fold) + 1) << 15) + (1 << 15);
        assert!(largest(most) < 1 << 31 && largest(most + 1) >= 1 << 31, "{fold}");
    }
}

#[test]
fn folded_sums_are_reduced_by_one_comparison() {
    use crate::math::family_i16::i16_primes;
    use crate::math::modulus::Modulus;
    for &prime in i16_primes() {
        let balanced = |bits: u32| Modulus::new(prime).balanced((1u64 << bits) % prime).unsigned_abs() as u32;
        let sum = i16_lifted_sum(balanced(16), balanced(32));
        assert!(i16_montgomery_fits(sum, prime), "{prime}");
        // Two products of balanced residues, as a sum of two rows is, each with a residue that is a difference of two.
        assert!(i16_montgomery_fits(4 * (prime / 2).pow(2), prime), "{prime}");
    }
    // The edge, by all possible halves: one more does not suffice.
    let reduced = |sum: i64, prime: i64| {
        let multiples = |lower: i64| (lower * prime) >> 16;
        let (upper, odd) = ((sum + (1 << 15)) >> 16, [-(1i64 << 15), (1 << 15) - 1]);
        odd.map(|lower| upper - multiples(lower) - 1)
    };
    for prime in [8191u64, 4099, 2053, 1031] {
        let edge = (0..1u64 << 31).step_by(1 << 15).take_while(|&sum| i16_montgomery_fits(sum, prime)).last().unwrap();
        let edge = (edge..).take_while(|&sum| i16_montgomery_fits(sum, prime)).last().unwrap() as i64;
        let range = -(prime as i64)..prime as i64;
        let fits =
            |sum: i64| [sum, -sum].into_iter().flat_map(|sum| reduced(sum, prime as i64)).all(|s| range.contains(&s));
        assert!(fits(edge) && !fits(edge + 1), "{prime}: {edge}");
    }
}

#[test]
fn weighted_residues_and_their_digits_fit() {
    let weighted = |residue: f64| 8191.0 * (0.5 + residue / 65536.0);
    assert!(weighted(4095.0) <= f64::from(I16_LARGEST_WEIGHTED) && weighted(4104.0) > f64::from(I16_LARGEST_WEIGHTED));
    // A damaged residue may be any number of 16 bits, and counts for two.
    assert!(weighted(32768.0) < 2.0 * f64::from(I16_LARGEST_WEIGHTED));
    assert_eq!([1usize, 12, 13, 165, 225, 226, 856].map(i16_digit_bits), [16, 16, 15, 12, 12, 11, 10]);
    for terms in [1usize, 13, 165, 231, 232, 856] {
        let sum = |bits: u32| ((terms as u64 + 2) * u64::from(I16_LARGEST_WEIGHTED)) << (bits - 1);
        let bits = i16_digit_bits(terms);
        assert!(sum(bits) < 1 << 31 && (bits == 16 || sum(bits + 1) >= 1 << 31), "{terms} terms");
    }
    // Each constant is off by up to a half: all together by less than 2^-9, one bit less would not do.
    let error = |bits: u32| 856.0 * f64::from(I16_LARGEST_WEIGHTED) / 2.0 / 2f64.powi(bits as i32);
    assert!(error(I16_QUOTIENT_BITS) < 2f64.powi(-9) && error(I16_QUOTIENT_BITS - 1) > 2f64.powi(-9));
}

#[test]
fn sums_of_bytes_on_a_cpu_fit_and_one_step_more_does_not() {
    use crate::math::family_i8::{I8_SINGLES, i8_moduli};
    // The sums of three planes in halves with signs, times balanced residues, and the start.
    let largest = i8_moduli().iter().max().unwrap();
    let joined = 6 * (1u64 << 15) * (largest / 2) + largest / 2;
    assert!(joined < 1 << 31 && joined + 4 * (1 << 15) * (largest / 2) > 1 << 31, "two more sums would not fit");
    let table = |terms: usize| (128 + 1) * 64 * 255 * terms as u64 + 129 * largest;
    assert!(table(I8_TABLE_TERMS) < 1 << 31);
    // Sums that are reduced stay below 2^18 moduli, and 2^19 would leave more than 9/16 of one.
    let most = f64::from(1 << I8_QUOTIENT_BITS);
    let single = |modulus: u64, rows: usize| ((modulus / 2).pow(2) * rows as u64) as f64 / modulus as f64;
    let singles = |rows: usize| I8_SINGLES.iter().map(|&modulus| single(modulus, rows)).fold(0.0, f64::max);
    assert!(singles(I8_PASS_ROWS) <= most && singles(I8_PASS_ROWS + 64) > most);
    assert!(128 * 128 * I8_PASS_ROWS as u64 <= 1 << 31, "a sum of digits");
    assert!(2f64.powi(31) / *i8_moduli().last().unwrap() as f64 <= most);
    assert!(65536.0 / 2.0 <= most);
    let error = |quotient: f64| 3.01 * 2f64.powi(-24) * quotient;
    assert!(error(most) < 1.0 / 16.0 && error(2.0 * most) > 1.0 / 16.0);
    // The result of a conversion has digits that are bytes, including the rest of the part before.
    let left = |terms: usize| *largest as f64 * (0.5 + error(255.0 * terms as f64 / 2.0 + 129.0 * 9.0 / 16.0));
    let fits = |terms: usize| left(terms).floor() as u64 <= I8_LARGEST_DIGITS;
    assert!(fits(I8_TABLE_TERMS) && !fits(I8_TABLE_TERMS + 64));
    let are_bytes = |residue: i64| {
        let high = (residue + 64).div_euclid(128);
        let low = residue - 128 * high;
        [low, high, low + high].into_iter().all(|digit| i8::try_from(digit).is_ok())
    };
    let limit = I8_LARGEST_DIGITS as i64;
    assert!((-limit..=limit).all(are_bytes) && !are_bytes(limit + 1));
}

/// The most products whose sum of digits fits, with its earlier content and the carries; one more need not fit.
#[test]
fn sums_of_digits_in_lanes_end_at_63_bits() {
    for (bits, levels) in (20..=DIGIT_LANE_BITS).flat_map(|bits| (0..4).map(move |levels| (bits, levels))) {
        for digits in [1, 2, 3, 7, 24, 100] {
            let terms = digit_lane_terms(bits, levels, digits);
            let most = |terms: usize| {
                let product = Integer::from(digits) << (2 * bits - 2 + 2 * levels);
                product * terms + (Integer::from(1) << (bits - 1)) + (Integer::from(1) << (64 - bits))
            };
            let room = Integer::from(1) << 63u32;
            assert!(most(terms) <= room && most(terms + 1) > room, "{bits} bits, {levels} levels, {digits} digits");
        }
    }
}

/// Sums of an LU factorisation stay below half of the moduli's product; one bit less would not do.
#[test]
fn moduli_of_lu_exceed_the_largest_sum_twice() {
    for order in (1..200).chain([255, 256, 257, 1024, 4096, 5000]) {
        for growth in [1, 2, 7, 40] {
            // Twice the largest sum, in units of 2^(2 w); the first entry of a column has no products.
            let largest = (Integer::from(3 * (order - 1)) << growth) + 2u32;
            let product = Integer::from(1) << lu_modulus_bits(0, growth, order);
            assert!(product > largest, "{order} rows, {growth} bits");
            if order.is_power_of_two() && order > 2 {
                assert!(product >> 1u32 < largest, "{order} rows, {growth} bits");
            }
        }
    }
}

#[test]
fn bits_of_lu_follow_the_largest_term() {
    // On and above the diagonal 2^(-w - 1) is at most 2^(d - 2 - p) with one bit to spare, below it so is 2^(-w + f).
    assert_eq!(lu_range_bits(Some(1), None, || None), 1);
    assert_eq!(lu_range_bits(Some(-20), None, || None), 22);
    assert_eq!(lu_range_bits(Some(-20), Some(-5), || None), 18);
    assert_eq!(lu_range_bits(Some(9), Some(1), || None), 0);
    assert_eq!((lu_range_bits(None, None, || None), lu_range_bits(None, Some(3), || Some(30))), (0, 35));
}
