//! The plain vectors against their definition, and those of this CPU against the plain ones.

use super::*;
use crate::math::bound::I8_LARGEST_DIGITS;
use crate::plan::BLOCK;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn words<V: Vector>(vector: V) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    vector.store(&mut words);
    words
}

/// The results of every operation on the same operands.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn results<V: Vector>(operands: &[[u32; WORDS]; WORDS], limbs: &[u64], firsts: &[i64]) -> Vec<[u32; WORDS]> {
    let mut vectors = [V::splat(0); WORDS];
    for (vector, words) in vectors.iter_mut().zip(operands) {
        *vector = V::load(words);
    }
    let [a, b, c, d, ..] = vectors;
    let mut halves = [0; HALVES];
    a.store_halves(&mut halves);
    let mut streamed = [[0; HALVES]; 3];
    streamed[1] = halves;
    b.stream_halves(&mut streamed[0]);
    V::fence();
    let mut out = vec![
        words(V::load_halves(&halves)),
        words(V::load_halves(&streamed[0])),
        words(V::splat_half(operands[0][0] as u16)),
        words(a.xor(b)),
        words(a.add_halves(b)),
        words(a.subtract_halves(b)),
        words(a.multiply_halves(b)),
        words(a.least_halves(b)),
        words(a.digits()),
        words(a.group_rows()),
        words(a.add_bytes(b)),
        words(a.join_low_halves(b)),
        words(a.add(b)),
        words(a.subtract(b)),
        words(a.multiply(b)),
        words(a.add_products(b, c)),
        words(a.least(b)),
        words(a.shift_left_7()),
    ];
    out.extend(V::turn_quarters([a, b, c, d]).map(words));
    out.extend(V::swap_quarters([a, b, c, d]).map(words));
    out.extend(V::turn(vectors).map(words));
    out.extend(firsts.iter().map(|&first| words(V::bits_from(limbs, first))));
    out
}

fn random_operands(rng: &mut ChaCha8Rng) -> [[u32; WORDS]; WORDS] {
    std::array::from_fn(|_| {
        std::array::from_fn(|_| {
            if rng.random_ratio(1, 8) { [0, u32::MAX, 1 << 31][rng.random_range(0..3)] } else { rng.random() }
        })
    })
}

#[test]
fn words_and_quarters_are_turned() {
    let operands = random_operands(&mut ChaCha8Rng::seed_from_u64(1));
    let turned = PlainVector::turn(operands.map(|words| PlainVector::load(&words))).map(words);
    assert!((0..256).all(|at| turned[at % 16][at / 16] == operands[at / 16][at % 16]));
    let four = [0, 1, 2, 3].map(|at| PlainVector::load(&operands[at]));
    let (turned, swapped) = (PlainVector::turn_quarters(four).map(words), PlainVector::swap_quarters(four).map(words));
    for (vector, quarter, word) in (0..64).map(|at| (at / 16, at / 4 % 4, at % 4)) {
        assert_eq!(turned[word][4 * quarter + vector], operands[vector][4 * quarter + word]);
        assert_eq!(swapped[quarter][4 * vector + word], operands[vector][4 * quarter + word]);
    }
}

#[test]
fn digits_are_signed_bytes_of_halves() {
    let limit = I8_LARGEST_DIGITS as i16;
    for number in -limit..=limit {
        let word = words(PlainVector::splat_half(number as u16).digits())[0];
        let (low, high) = (i16::from(word as u8 as i8), i16::from((word >> 8) as u8 as i8));
        assert!((-64..64).contains(&low) && 128 * high + low == number, "{number} has the digits {low} and {high}");
        assert_eq!(word >> 16, word & 0xffff);
    }
}

#[test]
fn four_rows_become_words_of_four_terms() {
    // Digit `d` of column `c` in row `r`.
    let byte = |row: usize, column: usize, digit: usize| (64 * digit + 8 * column + row) as u8;
    let mut halves = [0; HALVES];
    for (at, half) in halves.iter_mut().enumerate() {
        let (row, column) = (at / BLOCK, at % BLOCK);
        *half = u16::from_le_bytes([byte(row, column, 0), byte(row, column, 1)]);
    }
    let grouped = words(PlainVector::load_halves(&halves).group_rows());
    for (digit, column) in (0..16).map(|at| (at / 8, at % 8)) {
        let word = grouped[8 * digit + column % 2 * 4 + column / 2];
        assert_eq!(word.to_le_bytes(), [0, 1, 2, 3].map(|row| byte(row, column, digit)));
    }
}

#[test]
fn products_of_halves_are_added() {
    for (a, b) in [(i16::MIN, i16::MIN), (i16::MIN, i16::MAX), (-1, 1), (300, -7)] {
        let pair = |x: i16, y: i16| u32::from(x as u16) | u32::from(y as u16) << 16;
        let sum = PlainVector::splat(5).add_products(PlainVector::splat(pair(a, b)), PlainVector::splat(pair(b, 3)));
        let wanted = 5 + i64::from(a) * i64::from(b) + 3 * i64::from(b);
        assert_eq!(words(sum), [wanted as u32; WORDS]);
    }
}

#[test]
fn bits_of_numbers_begin_anywhere() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for count in [0usize, 1, 2, 8, 17] {
        let limbs: Vec<u64> = (0..count).map(|_| rng.random()).collect();
        let bit = |at: i64| at >= 0 && at < 64 * count as i64 && limbs[at as usize / 64] >> (at % 64) & 1 == 1;
        for first in
            [i64::MIN, -1 << 40, -600, -513, -512, -65, -64, -1, 0, 1, 63, 64, 65, 500, 1024, 1088, i64::MAX - 600]
        {
            let found = words(PlainVector::bits_from(&limbs, first));
            let wanted = |at: i64| first.checked_add(at).is_some_and(bit);
            assert!(
                (0..512).all(|at| (found[at as usize / 32] >> (at % 32) & 1 == 1) == wanted(at)),
                "{count}, {first}"
            );
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn vectors_of_this_cpu_do_what_the_plain_ones_do() {
    use super::x86::I8Avx512;

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
    fn of_this_cpu(operands: &[[u32; WORDS]; WORDS], limbs: &[u64], firsts: &[i64]) -> Vec<[u32; WORDS]> {
        results::<I8Avx512>(operands, limbs, firsts)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
    fn rounded(sums: &[u32; WORDS], inverse: f32) -> [u32; WORDS] {
        words(I8Avx512::load(sums).round_product(inverse))
    }

    let has = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vnni");
    if !has {
        return println!("skipped: no AVX-512 with VBMI and VNNI");
    }
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for round in 0..300 {
        let operands = random_operands(&mut rng);
        let limbs: Vec<u64> = (0..round % 20).map(|_| rng.random()).collect();
        let firsts = [0, 64, -64, -512, 512, rng.random_range(-1100..1400), rng.random_range(-1100..1400), -1 << 40];
        // SAFETY: the CPU has the instructions.
        let found = unsafe { of_this_cpu(&operands, &limbs, &firsts) };
        assert_eq!(found, results::<PlainVector>(&operands, &limbs, &firsts), "round {round}");
        // Both round numbers that are no ties to the same integer; the two ways to round differ in the last bit of a
        // product.
        let sums = operands[0].map(|word| (word as i32 >> 8) as u32);
        let inverse = 1.0 / rng.random_range(29..16384) as f32;
        // SAFETY: the CPU has the instructions.
        let (found, plain) =
            (unsafe { rounded(&sums, inverse) }, words(PlainVector::load(&sums).round_product(inverse)));
        assert!(found.iter().zip(&plain).all(|(a, b)| a.abs_diff(*b) <= 1), "round {round}");
    }
}
