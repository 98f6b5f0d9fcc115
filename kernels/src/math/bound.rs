//! Every inequality of the method, each as a named function; docs/ALGORITHM.md proves them.
//!
//! Depends on: bit counts. Independent of: matrices, kernels. No other code of the package may repeat one of these
//! bounds.

/// `ceil(log2(max(count, 1)))`.
pub fn ceil_log2(count: usize) -> u32 {
    usize::BITS - (count.max(1) - 1).leading_zeros()
}

/// Guard bits for a contraction over `contracted` terms: `ceil(ceil(log2 max(K, 1)) / 2) + 4`.
///
/// Rounding the scaled entries moves `Q_ij` by at most `2 * sqrt(K)/2 + K/4 * 2^-B` units of `2^B`, that is by less
/// than `2^(-b-1)` of `||p_i|| ||p_j||` with these guard bits.
pub fn guard_bits(contracted: usize) -> u32 {
    ceil_log2(contracted).div_ceil(2) + 4
}

/// Bits beyond [`working_bits`] with which an entry whose largest term lies `depth` bits below the product of the norms
/// keeps `2^(1 - b)` of the sum of its terms' magnitudes: `max(depth - 1, 0)`, in whole steps.
///
/// The scaled integers are off by less than `1.004 2^(depth - g - 2) 2^-b` of that sum, which must not exceed `2^-b`.
pub fn range_bits(depth: u32) -> u32 {
    depth.saturating_sub(1).next_multiple_of(RANGE_STEP_BITS)
}

/// These bits come in steps, so that calls on matrices that differ little share an engine.
pub const RANGE_STEP_BITS: u32 = 8;

/// Bits over which exponents are expected to spread, and that a condition and a scaling may need, if nothing is known.
/// A need beyond them does not justify a slower kernel with more bits.
pub const EXPECTED_SPREAD_BITS: u32 = 256;

/// Working bits `B = b + guard_bits`: the scaled column `p_j * 2^(B - e_j)` is rounded to integers.
pub fn working_bits(precision_bits: u32, contracted: usize) -> u32 {
    precision_bits + guard_bits(contracted)
}

/// Bits of the modulus product: `M > 2^modulus_bits` makes a signed product of magnitude at most
/// `2^(left_bits + right_bits + 1)` unique, where the columns' norms are at most `2^left_bits`, `2^right_bits`.
pub fn modulus_bits(left_bits: u32, right_bits: u32) -> u32 {
    left_bits + right_bits + 2
}

/// Working bits of a Cholesky factorisation: `b + 2`.
///
/// One rounding per entry of the scaled factor, whose rows have norm at most 1, leaves a residual of at most
/// `2^(2 - B) sqrt(a_ii a_jj)` at `B` working bits; rounding the factor to `b` bits adds `2^(1 - b)` and little more.
pub fn cholesky_working_bits(precision_bits: u32) -> u32 {
    precision_bits + 2
}

/// Bits beyond [`cholesky_working_bits`] with which entry `(i, j)` of a factor keeps `|A - L L^T|_ij` within
/// `2^(2 - b)` of the sum of its terms' magnitudes: `pivot + depth`, one more on the diagonal.
///
/// The largest of its terms lies `depth` bits below the product of the norms of the rows `i` and `j`, and the exponent
/// of `l_jj` is that of the norm of row `j` plus `pivot`. The roundings of `T_ij` and of the quotient are then below
/// `2^-b` of the sum, those on the diagonal below `1.125 * 2^-b`.
pub fn cholesky_range_bits(pivot: i64, depth: u32, is_diagonal: bool) -> u32 {
    (pivot + i64::from(depth) + i64::from(is_diagonal)).clamp(0, u32::MAX.into()) as u32
}

/// Bits of the modulus product of a Cholesky factorisation: rows that are not rejected keep
/// `|T_ij| < 2.01 * 2^(2B)`, which is below 0.26 of `2^(2B + 3)`.
pub fn cholesky_modulus_bits(working_bits: u32) -> u32 {
    2 * working_bits + 3
}

/// Guard bits of an LU factorisation: its working bits beyond the precision and the range of its entries.
pub const LU_GUARD_BITS: u32 = 3;

/// Bits by which entries of `U` may exceed those of their columns of the matrix in a first try: twice what partial
/// pivoting shows on random matrices, `order^(2/3)`, and some more.
pub fn lu_first_growth_bits(order: usize) -> u32 {
    2 * ceil_log2(order).div_ceil(3) + 3
}

/// The working bits beyond the precision with which an entry of `P A - L U` is small relative to the terms of its sum,
/// the largest of which lies below `2^largest` (`None` where all are 0). An entry of `L` is that below the pivot of its
/// column, which lies below `2^pivot`; `own` is how many bits the entry of the matrix lies below the largest of its
/// column, `None` for 0.
pub fn lu_range_bits(largest: Option<i64>, pivot: Option<i64>, own: impl FnOnce() -> Option<u32>) -> u32 {
    let bits = match (largest, pivot) {
        (Some(largest), None) => 2 - largest,
        (Some(largest), Some(pivot)) => 3 - largest + pivot,
        // All terms are 0: so is the residual, unless the entry itself was lost.
        (None, pivot) => own().map_or(0, |depth| i64::from(depth) + 2 + pivot.unwrap_or(0).max(0)),
    };
    bits.clamp(0, u32::MAX.into()) as u32
}

/// Bits of the product of moduli for an LU factorisation of `order` rows with `working_bits` bits, where entries of the
/// scaled `U` are at most `2^growth_bits`.
///
/// Entries of `L` are at most 1.5. An entry of the matrix less its products is at most `1 + 1.5 order 2^growth_bits`,
/// and the product of moduli exceeds it twice.
pub fn lu_modulus_bits(working_bits: u32, growth_bits: u32, order: usize) -> u32 {
    2 * working_bits + growth_bits + ceil_log2(order) + 2
}

/// Bits by which the rest of an entry of a tile may be longer than `2 working_bits`: rows that are not rejected keep it
/// below `2.01 * 2^(2B)`, whose length is `2B + 2`, and one bit is spare.
pub const TILE_SPARE_BITS: u32 = 3;

/// Fixed-point bits of a Cholesky solve of order `order` by substitution: `p + ceil(log2 n) + 6`.
///
/// Cut entries and unknowns leave residuals of at most `8 sqrt(n)` and `17 n` units in the two substitutions.
pub fn vector_solve_bits(precision_bits: u32, order: usize) -> u32 {
    precision_bits + ceil_log2(order) + 6
}

/// Bits below a pivot's leading bit from which numerators are cut, and bits to which its reciprocal is longer than a
/// quotient.
pub const CHOLESKY_GUARD_BITS: u32 = 64;

/// Distance of a quotient's 52-bit fraction from one half, in units of `2^-52`, up to which it is divided exactly.
///
/// Cutting the numerator, the reciprocal and the product moves the fraction by less than `2^-44`, that is 256 units.
pub const QUOTIENT_WINDOW: u64 = 1 << 10;

/// Bits that a fraction of whole limbs has at least beyond the working bits, if a root and its reciprocal are computed
/// together: the root is then too small by less than `2^-69`, and the error of a quotient by the reciprocal is less
/// than `2^-56`.
pub const INVERSE_ROOT_SPARE_BITS: u32 = 90;

/// Distance of a root's fraction of one limb below one half, in units of `2^-64`, up to which the root is computed by
/// another method.
///
/// The root is short by less than one unit, and cutting its fraction loses less than another.
pub const ROOT_WINDOW: u64 = 8;

/// Distance of a quotient's fraction of one limb from one half, in units of `2^-64`, up to which it is divided exactly.
///
/// Cutting the numerator and the reciprocal moves the fraction by less than `2^-62`, cutting the product by one unit
/// more: by less than 5 in all.
pub const LIMB_QUOTIENT_WINDOW: u64 = 8;

/// Bit length that no reconstructed product may exceed: `|x| < 2^(modulus_bits - 1)` for every true product, and a
/// single wrong residue moves `x` beyond it if a redundant prime is included.
pub fn range_check_bits(modulus_bits: u32) -> u32 {
    modulus_bits - 1
}

/// Number of primes `p = 2^52 - c`, `c < 2^14`, whose product exceeds `2^modulus_bits`.
///
/// With `n = floor(modulus_bits / 52) + 1`, `52 n >= modulus_bits + 1`, and the product is at least
/// `2^(52 n) (1 - n 2^-38) > 2^(52 n - 1)` for `n < 2^37`.
pub fn ifma52_prime_count(modulus_bits: u32) -> usize {
    modulus_bits as usize / 52 + 1
}

/// Largest number of terms that a 64-bit accumulator of 52-bit half products can hold: each is below `2^52`, and the
/// residue carried in and the fold add three more such terms.
pub const IFMA52_CHUNK_ROWS: usize = 4092;

/// Largest number of products of two numbers of `digits` digits of 52 bits whose sums fit the signed 64-bit
/// accumulators of their digits: each adds less than `2 digits * 2^52` to one, whose earlier content is below `2^52`.
pub fn digit_sum_terms(digits: usize) -> usize {
    ((1 << 11) - 1) / (2 * digits)
}

/// Largest number of products of two signed numbers of `halves` halves of 26 bits whose sums fit the signed 64-bit
/// accumulators of their halves: each adds at most `halves (2^26 - 1)^2` to one, and the carry into it is below `2^38 +
/// 2^26`.
pub fn half_digit_sum_terms(halves: usize) -> usize {
    ((1 << 11) - 1) / halves
}

/// Largest number of products of two positive numbers of `digits` digits of 52 bits, in eight lanes together, whose
/// sums fit signed 64-bit accumulators together with two digits in each lane.
pub fn row_lane_terms(digits: usize) -> usize {
    ((1 << 11) - 16) / (2 * digits)
}

/// Largest number of products of two positive numbers of `digits` digits of 52 bits whose sums fit signed 64-bit
/// accumulators, together with two sums of the same number of digits that subtract an offset, a digit, and a carry.
pub fn lane_problem_terms(digits: usize) -> usize {
    ((1 << 11) - 4) / (2 * digits + 1)
}

/// For eight problems in lanes, roots and quotients are known to within `2^-LANE_ERROR_BITS` before they are rounded.
pub const LANE_ERROR_BITS: u32 = 32;

/// Smallest number of bits of a root with whose reciprocal all quotients of `bits` bits have that accuracy: one
/// correction of its first approximation leaves the square of an error of `2^(1 - root bits)`.
pub fn lane_root_bits(bits: u32) -> u32 {
    (bits + 39) / 2
}

/// First column of digits in sums of `terms` products that are divided by a root of `root_bits` bits: the omitted
/// columns below it add up to less than `(2 digits terms + 1) 2^(52 column)`, and may change the quotient by less than
/// `2^-(LANE_ERROR_BITS + 1)`.
pub fn lane_first_column(root_bits: i64, digits: usize, terms: usize) -> usize {
    let left_out = ceil_log2(2 * digits * terms + 1);
    (root_bits - 2 - i64::from(left_out + LANE_ERROR_BITS)).max(0) as usize / 52
}

/// Bits below the cut that decide whether the omitted part of a sum could change its rounding.
pub const LANE_CHECK_BITS: u32 = 40;

/// First column of digits, at most `last`, of sums of `terms` products of integers of `bits` bits that are rounded to
/// `precision_bits`, and the first bit that is known up to 1: sums that are no more than 24 bits shorter than `2 bits`
/// are rounded with it.
pub fn lane_sum_column(bits: u32, precision_bits: u32, digits: usize, terms: usize, last: usize) -> (usize, i64) {
    let left_out = i64::from(ceil_log2(2 * digits * terms + 1));
    let known = 2 * i64::from(bits) - 24 - i64::from(precision_bits + LANE_CHECK_BITS + 1);
    let column = ((known - left_out).max(0) as usize / 52).min(last);
    (column, if column == 0 { i64::MIN } else { 52 * column as i64 + left_out })
}

/// Largest number of bits `b` of the digits whose products are summed four columns at a time: balanced, `-2^(b-1) <= d
/// < 2^(b-1)`, so that digits of sums of eight parts are numbers of 32 bits.
pub const DIGIT_LANE_BITS: u32 = 28;

/// Largest number of products of two numbers of `digits` balanced digits of `bits` bits, or of sums of `2^levels` such
/// numbers, whose sums fit signed 64 bits: each adds at most `digits * 2^(2 bits - 2 + 2 levels)` to one. Its earlier
/// content is at most `2^(bits - 1)`, and carries of at most `2^(63 - bits)` come on top at the end; the last sum,
/// which takes the carries of the others, belongs to no product.
pub const fn digit_lane_terms(bits: u32, levels: u32, digits: usize) -> usize {
    let room = (1u64 << 63) - (1 << (bits - 1)) - (1 << (64 - bits));
    (room >> (2 * bits - 2 + 2 * levels)) as usize / digits
}

/// Largest odd modulus `2 h + 1` whose balanced products sum exactly in a double over `chunk_rows` terms, with the
/// residue of earlier chunks carried in: `chunk_rows * h^2 + 2 (h + 2) <= 2^53`.
///
/// The carried residue is at most `h + 2`; the second `h + 2` keeps the multiple of the modulus that the reduction
/// subtracts below `2^53`, so that it needs no fused operation to be exact.
pub fn f64_largest_modulus(chunk_rows: usize) -> u64 {
    let fits = |half: u64| f64_chunk_sum(chunk_rows, half) <= 1 << 53;
    let (mut low, mut high) = (0u64, 1 << 27); // fits(low), not fits(high)
    while high - low > 1 {
        let middle = (low + high) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    2 * low + 1
}

fn f64_chunk_sum(chunk_rows: usize, half: u64) -> u128 {
    chunk_rows as u128 * u128::from(half) * u128::from(half) + 2 * (u128::from(half) + 2)
}

/// Bits of the balanced digits, `|d| <= 2^(bits - 1)`, whose products with `terms` balanced residues modulo at most
/// `modulus` sum to less than `2^51`: the largest number of bits `<= 32` with `terms * h * 2^(bits - 1) < 2^51`.
///
/// Below `2^51` a sum is reduced to the balanced residue in one step, and is converted to an integer by one addition.
pub fn f64_digit_bits(terms: usize, modulus: u64) -> u32 {
    let fits = |bits: &u32| (terms as u128 * u128::from(modulus / 2)) << (bits - 1) < 1 << 51;
    (1..=32).rev().find(fits).expect("fewer than 2^27 terms")
}

/// Number of bits of the largest primes of the `i16` family: their balanced residues are at most 4095.
pub const I16_PRIME_BITS: u32 = 13;

/// Largest number of pairs of products of the `i16` family that are summed in 32 bits before the sum is folded.
///
/// The factors are at most `left` and `right` in magnitude, and `fold` is that of `2^16` modulo the prime. A sum `S` is
/// kept as `S + 2^15`, whose upper half `h` and lower half `l` give `S = 2^16 h + (l - 2^15)`: folding leaves `fold h +
/// l - 2^15`, at most `2^15 (fold + 1)`. In addition, `2 left right pairs + 2^15` must stay below `2^31`.
pub fn i16_sum_pairs(left: u32, right: u32, fold: u32) -> usize {
    let room = (1 << 31) - 1 - ((u64::from(fold) + 2) << 15);
    (room / (2 * u64::from(left) * u64::from(right))) as usize
}

/// Largest magnitude of a sum of the `i16` family whose halves, of 16 bits each, were multiplied with `2^16` and `2^32`
/// modulo the prime, at most `low` and `high` in magnitude.
pub fn i16_lifted_sum(low: u32, high: u32) -> u64 {
    (u64::from(low) + u64::from(high)) << 15
}

/// Whether Montgomery's reduction of every `|S| <= sum` modulo `prime` is a balanced residue after one comparison.
///
/// `S + 2^15` has the upper half `u`, and `t` is that of a signed 16-bit integer times the prime: `u - t - 1` must be
/// at least `-p` and below `p`.
pub fn i16_montgomery_fits(sum: u64, prime: u64) -> bool {
    let (sum, prime, half) = (sum as i64, prime as i64, 1 << 15);
    let least = ((half - sum) >> 16) - (((half - 1) * prime) >> 16) - 1;
    let most = ((half + sum) >> 16) - ((-half * prime) >> 16) - 1;
    least >= -prime && most < prime
}

/// Bits of the balanced digits that an operand of the `i16` family is cut into: they are at most `2^15` in magnitude.
pub const I16_DIGIT_BITS: u32 = 16;

/// Whether products of such digits with residues, the sum of whose magnitudes is `residues`, are summed in 32 bits on
/// top of the result of a fold; `fold` is as in [`i16_sum_pairs`], and 0 where nothing was folded.
pub fn i16_digit_sum_fits(residues: u64, fold: u32) -> bool {
    (residues + u64::from(fold) + 2) << (I16_DIGIT_BITS - 1) < 1 << 31
}

/// Largest magnitude of a residue of the `i16` family times its weight: `p (1/2 + |r| / 2^16)` for `|r| <= 4095`.
pub const I16_LARGEST_WEIGHTED: u32 = 4608;

/// Bits of balanced digits, `|d| <= 2^(bits - 1)`, whose products with `terms` weighted residues of the `i16` family
/// and the quotient sum to less than `2^31`, even where one of them is that of a damaged residue: 16 at most.
pub fn i16_digit_bits(terms: usize) -> u32 {
    let sum = (terms as u64 + 2) * u64::from(I16_LARGEST_WEIGHTED);
    (1..=16).rev().find(|bits| sum << (bits - 1) < 1 << 31).expect("fewer than 2^18 terms")
}

/// Bits below the point of `round(2^30 / p)`, the sum of which over 856 weighted residues gives the quotient of a
/// reconstruction to 2^-9.
pub const I16_QUOTIENT_BITS: u32 = 30;

/// Largest modulus of the `i8` family whose residues are one signed byte: balanced, they lie in `[-128, 127]`.
pub const I8_LARGEST_SINGLE: u64 = 256;

/// The other moduli of the `i8` family are odd and below `2^14`: with `r = 128 high + low`, `-64 <= low < 64`, for a
/// balanced residue, `low`, `high` and `low + high` are signed bytes.
pub const I8_TRIPLE_BITS: u32 = 14;

/// Largest number of rows whose products of signed bytes are summed before they are reduced: a sum is at most `2^16 *
/// 2^14 = 2^30` in magnitude and fits 32 bits.
pub const I8_CHUNK_ROWS: usize = 1 << 16;

/// `|sum| <= 2^45` for every sum of a chunk of the `i8` family, including sums that are combined from three planes.
pub const I8_SUM_BITS: u32 = 45;

/// Largest number of rows of a plane product of the `i8` family on a CPU before residues are taken: 64 steps of 64.
///
/// Balanced residues modulo 256 give sums of up to `2^14 rows`, and their quotient must be at most `2^18`. Sums of the
/// digits of larger moduli fit 32 bits for more rows.
pub const I8_PASS_ROWS: usize = 64 * 64;

/// Largest number of bytes of a magnitude whose products with a residue are summed before it is reduced: 8 steps of 64.
///
/// The quotient is below `255 terms / 2 + 73`, and a reduction leaves no more than `m / 2` and the error of the
/// quotient times `m`: at most [`I8_LARGEST_DIGITS`].
pub const I8_TABLE_TERMS: usize = 8 * 64;

/// Largest magnitude of `128 high + low`, `-64 <= low < 64`, for which `low`, `high` and `low + high` are signed bytes:
/// the digits of 8383 are 63 and 65.
pub const I8_LARGEST_DIGITS: u64 = 8382;

/// Sums of the `i8` family on a CPU are reduced if `|sum / modulus| <= 2^18`: in single precision the error of the
/// quotient is less than `1/16`, and rounding changes it by at most a half, so that less than `9/16` of the modulus is
/// left.
pub const I8_QUOTIENT_BITS: u32 = 18;

/// `|sum| <= 2^53` for every sum of a chunk of the `f64` family.
pub const F64_SUM_BITS: u32 = 53;

/// Bits below the point of the shares `floor(2^48 / p)` that a device sums up to find a reconstruction's quotient.
pub const DEVICE_QUOTIENT_BITS: u32 = 48;

/// Whether `terms` products of a 32-bit word with a number below `modulus`, one further 32-bit word times `terms`, and
/// a carry fit 64 bits, as the conversions of a device need: `terms * modulus < 2^32`.
///
/// It also makes the quotient of a reconstruction from `terms` moduli correct: its error is below `2^-16`.
pub fn device_sum_fits(terms: usize, modulus: u64) -> bool {
    (terms as u128 * u128::from(modulus)) < 1 << 32
}

/// Columns of digits of 52 bits that a sum of `terms` products keeps for `precision_bits` bits.
///
/// The part left out is below `2^(-precision_bits - 4)` of the largest term.
pub fn sum_columns(precision_bits: u32, terms: usize) -> usize {
    let columns = |more: u32| (precision_bits + 6 + (usize::BITS - terms.leading_zeros()) + more).div_ceil(52);
    // The number of columns counts in as well.
    let more = u32::BITS - (columns(32) + 2).leading_zeros();
    columns(more) as usize
}

/// Limbs of a fixed-point sum beyond those of the precision: two keep the error of `k` cut terms below
/// `k 2^-63` units in the last place, and hold the carries of `2^60` terms.
pub const FIXED_SUM_EXTRA_LIMBS: usize = 2;

/// Guard bits of a triangular solve of order `n`: `ceil(log2(ceil(log2 n) + 8)) + 2`.
///
/// Each row is updated at most `ceil(log2 n)` times, each update rounds once more; before the last rounding the
/// residual is below `0.3 * 2^-b (||t_i|| ||x_j|| + |b_ij|)`.
pub fn trsm_guard_bits(order: usize) -> u32 {
    ceil_log2(ceil_log2(order) as usize + 8) + 2
}

/// A triangular solve in fixed point takes multiples of this number of bits beyond those of the unknowns.
pub const TRSM_FIXED_BITS: u32 = 32;

/// Part of these bits cover rounding errors in fixed point; unknowns may exceed their right-hand side by the other
/// bits.
pub const TRSM_FIXED_SPARE_BITS: u32 = 3;

/// Bits by which the largest term of a row may lie below the scale `2^e` of its column in a triangular solve in fixed
/// point with these `extra_bits`, for accuracy entry by entry: `extra - 3 - ceil(ceil(log2 n) / 2)`.
///
/// The roundings of a row are below `2^(e - p - extra - 1) (1.02 sqrt(n) + 1.1)`, the sum of its terms' magnitudes at
/// least `2^(e - depth - 2)`: a quotient below `0.54 * 2^-p`.
pub fn trsm_fixed_depth(extra_bits: u32, order: usize) -> u32 {
    extra_bits.saturating_sub(TRSM_FIXED_SPARE_BITS + ceil_log2(order).div_ceil(2))
}

/// Guard bits of a solve with a Cholesky factor of order `n`:
/// `6 + ceil(log2(ceil(log2 n) + 5)) + ceil(ceil(log2 n) / 2)`.
///
/// Two triangular solves with the row-scaled factor then leave, before the last rounding, at most half of
/// `2^-b (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| + |b_i|)` to the product of the factors.
pub fn cholesky_solve_guard_bits(order: usize) -> u32 {
    let depth = ceil_log2(order);
    6 + ceil_log2(depth as usize + 5) + depth.div_ceil(2)
}

/// Guard bits of the inverse of a row-scaled Cholesky factor of order `n`, where the inverse's Frobenius norm is at
/// most `2^norm_exponent`: those of a solve, and the norm's.
///
/// The columns of the inverse are then off by at most `2^(-b-4)` of their norms, and their products by less than
/// `2^(-b-2)`.
pub fn cholesky_inverse_guard_bits(order: usize, norm_exponent: i64) -> i64 {
    i64::from(cholesky_solve_guard_bits(order)) + norm_exponent.max(0)
}

/// Guard bits of an `L D L^T` factorisation of order `n`: `5 + ceil(log2(ceil(log2 n) + 4))`.
///
/// Before the factors are rounded, the residual is at most half of `2^-b sqrt(g_i g_j)`, `g_i = (|L| |D| |L^T|)_ii`.
pub fn ldlt_guard_bits(order: usize) -> u32 {
    5 + ceil_log2(ceil_log2(order) as usize + 4)
}

/// Guard bits of a solve with factors `L D L^T`: one more than with a Cholesky factor, since `D` is scaled to
/// `[1/4, 1)` only.
pub fn ldlt_solve_guard_bits(order: usize) -> u32 {
    cholesky_solve_guard_bits(order) + 1
}

/// Bits by which the norms of a row and a column may exceed `(|A| |X| + |B|)_ij` before that entry of a residual is
/// summed separately.
pub const RESIDUAL_COVERED_BITS: u32 = 10;

/// Precision at which `|A| |X|` is multiplied: an entry that is not covered is then correct to one part in `2^12`.
pub const RESIDUAL_SIZE_BITS: u32 = 24;

/// Precision of the product `A X` whose residual is correct to `2^-bits (|A| |X| + |B|)` if a bound by norms does not
/// suffice.
pub fn residual_bits(bits: u32) -> u32 {
    bits.saturating_add(RESIDUAL_COVERED_BITS + 1)
}

/// Bits of a refined solution and of its residuals beyond the requested ones: they allow for the rounding of the
/// solution within a backward error of `2^(1 - b)`.
pub const REFINE_GUARD_BITS: u32 = 8;

/// Bits of scaled integers that every modulus family supports, so that a choice based on them is the same on all
/// kernels.
pub const COMMON_WORKING_BITS: u32 = 5040;

#[cfg(test)]
mod tests;
