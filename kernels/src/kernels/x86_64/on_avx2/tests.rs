//! Vectors and products against plain arithmetic; the tests of `ifma52::problem_lanes` run on the copies as well.

use super::columns::{ProductSums, doubles};
use super::{cpu, reconstruct, vectors::*};
use crate::plan::BLOCK;
use rug::{Integer, rand::RandState};

fn words(of: __m512i) -> [u64; BLOCK] {
    // SAFETY: both are 64 bytes of any value.
    unsafe { std::mem::transmute(of) }
}

fn vector(words: [u64; BLOCK]) -> __m512i {
    // SAFETY: as above.
    unsafe { std::mem::transmute(words) }
}

/// Words of all lengths, ones and neighbours of powers of two.
fn word(rng: &mut RandState<'_>) -> u64 {
    let power = 1u64 << rng.below(64);
    let any = Integer::from(Integer::random_bits(64, rng)).to_u64_wrapping();
    [any, any >> rng.below(64), power, power - 1, power.wrapping_neg(), u64::MAX, rng.below(70).into(), 0]
        [rng.below(8) as usize]
}

/// Each lane by itself; masks give bits.
#[test]
fn vectors_do_what_the_instructions_of_512_bits_do() {
    if cpu::has_ifma52().is_err() {
        return println!("skipped: no AVX2");
    }
    let mut rng = RandState::new();
    rng.seed(&Integer::from(2));
    for _ in 0..2000 {
        let [a, b, c]: [[u64; BLOCK]; 3] = std::array::from_fn(|_| std::array::from_fn(|_| word(&mut rng)));
        let (mask, by) = (word(&mut rng) as u8, b.map(|word| word % 70));
        // SAFETY: the CPU has the instructions.
        unsafe { compare([a, b, c], mask, by) };
    }
}

#[target_feature(enable = "avx2,fma")]
fn compare([a, b, c]: [[u64; BLOCK]; 3], mask: u8, by: [u64; BLOCK]) {
    let each = |of: &dyn Fn(usize) -> u64| -> [u64; BLOCK] { std::array::from_fn(of) };
    let lanes = |of: &dyn Fn(usize) -> bool| (0..BLOCK).fold(0u8, |bits, lane| bits | u8::from(of(lane)) << lane);
    let (x, y, z, counts) = (vector(a), vector(b), vector(c), vector(by));
    let shifted = |value: u64, by: u64| value.checked_shr(by as u32).unwrap_or(0);
    let shifted_up = |value: u64, by: u64| value.checked_shl(by as u32).unwrap_or(0);
    let same = |of: &str, got: __m512i, want: [u64; BLOCK]| assert_eq!(words(got), want, "{of} {a:x?} {b:x?} {mask:b}");
    same("add", _mm512_add_epi64(x, y), each(&|i| a[i].wrapping_add(b[i])));
    same("sub", _mm512_sub_epi64(x, y), each(&|i| a[i].wrapping_sub(b[i])));
    same("mullo", _mm512_mullo_epi64(x, y), each(&|i| a[i].wrapping_mul(b[i])));
    same("and", _mm512_and_si512(x, y), each(&|i| a[i] & b[i]));
    same("andnot", _mm512_andnot_si512(x, y), each(&|i| !a[i] & b[i]));
    same("or", _mm512_or_si512(x, y), each(&|i| a[i] | b[i]));
    same("srlv", _mm512_srlv_epi64(x, counts), each(&|i| shifted(a[i], by[i])));
    same("sllv", _mm512_sllv_epi64(x, counts), each(&|i| shifted_up(a[i], by[i])));
    same("srli", _mm512_srli_epi64::<52>(x), each(&|i| a[i] >> 52));
    same("srai", _mm512_srai_epi64::<52>(x), each(&|i| (a[i].cast_signed() >> 52).cast_unsigned()));
    same("slli", _mm512_slli_epi64::<51>(x), each(&|i| a[i] << 51));
    same("abs", _mm512_abs_epi64(x), each(&|i| a[i].cast_signed().wrapping_abs().cast_unsigned()));
    same("lzcnt", _mm512_lzcnt_epi64(x), each(&|i| a[i].leading_zeros().into()));
    let of = |lane: usize| mask >> lane & 1 == 1;
    let chosen = |yes: [u64; BLOCK], no: [u64; BLOCK]| each(&|i| if of(i) { yes[i] } else { no[i] });
    same("mask_mov", _mm512_mask_mov_epi64(x, mask, y), chosen(b, a));
    same("mask_add", _mm512_mask_add_epi64(z, mask, x, y), chosen(each(&|i| a[i].wrapping_add(b[i])), c));
    same("mask_sub", _mm512_mask_sub_epi64(z, mask, x, y), chosen(each(&|i| a[i].wrapping_sub(b[i])), c));
    same("mask_or", _mm512_mask_or_epi64(z, mask, x, y), chosen(each(&|i| a[i] | b[i]), c));
    same("mask_andnot", _mm512_mask_andnot_epi64(z, mask, x, y), chosen(each(&|i| !a[i] & b[i]), c));
    same("maskz_set1", _mm512_maskz_set1_epi64(mask, 9), chosen([9; BLOCK], [0; BLOCK]));
    let masks = [
        (_mm512_cmpeq_epi64_mask(x, y), lanes(&|i| a[i] == b[i])),
        (_mm512_cmpgt_epi64_mask(x, y), lanes(&|i| a[i].cast_signed() > b[i].cast_signed())),
        (_mm512_cmplt_epi64_mask(x, y), lanes(&|i| a[i].cast_signed() < b[i].cast_signed())),
        (_mm512_cmpgt_epu64_mask(x, y), lanes(&|i| a[i] > b[i])),
        (_mm512_cmple_epu64_mask(x, y), lanes(&|i| a[i] <= b[i])),
        (_mm512_test_epi64_mask(x, y), lanes(&|i| a[i] & b[i] != 0)),
    ];
    assert!(masks.iter().all(|(got, want)| got == want), "{a:x?} {b:x?}: {masks:?}");
}

/// The largest and the smallest digits, those whose products lie half-way between two multiples of `2^52`, and as many
/// products as a sum takes.
#[test]
fn products_of_digits_by_doubles_are_exact() {
    if cpu::has_ifma52().is_err() {
        return println!("skipped: no AVX2");
    }
    let mut rng = RandState::new();
    rng.seed(&Integer::from(3));
    let most = (1u64 << 52) - 1;
    for case in 0..600u32 {
        let count = if case % 9 == 0 { 2044 } else { 1 + case as usize % 5 };
        let mut want: [Integer; BLOCK] = std::array::from_fn(|_| Integer::new());
        let mut terms = Vec::new();
        for _ in 0..count {
            let mut digit = || match rng.below(6) {
                0 => most - u64::from(rng.below(2)),
                1 => 1 << rng.below(52),
                2 => (1 << 26) * (2 * u64::from(rng.below(1 << 20)) + 1),
                3 => rng.below(3).into(),
                4 if case % 18 == 0 => most,
                _ => word(&mut rng) & most,
            };
            let pair: [[u64; BLOCK]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| digit()));
            let pair = if case % 18 == 0 { [[most; BLOCK]; 2] } else { pair };
            for (lane, want) in want.iter_mut().enumerate() {
                *want += Integer::from(pair[0][lane]) * pair[1][lane];
            }
            terms.push(pair);
        }
        // SAFETY: the CPU has the instructions.
        let (low, high) = unsafe { sum(&terms) };
        for (lane, want) in want.iter().enumerate() {
            assert!(low[lane] <= most && high[lane].cast_signed() >= 0, "case {case}");
            assert_eq!((Integer::from(high[lane]) << 52u32) + low[lane], *want, "case {case}, lane {lane}");
        }
    }
}

#[target_feature(enable = "avx2,fma")]
fn sum(terms: &[[[u64; BLOCK]; 2]]) -> ([u64; BLOCK], [u64; BLOCK]) {
    let mut sums = ProductSums::new();
    for &[x, y] in terms {
        sums.add(doubles(vector(x)), doubles(vector(y)));
    }
    let (low, high) = sums.halves();
    (words(low), words(high))
}

#[test]
fn groups_of_digits_become_limbs() {
    if cpu::has_ifma52().is_err() {
        return println!("skipped: no AVX2");
    }
    let mut rng = RandState::new();
    rng.seed(&Integer::from(4));
    for limbs in 1..30usize {
        let digits = (64 * limbs).div_ceil(52);
        let all: [Integer; BLOCK] = std::array::from_fn(|_| Integer::random_bits(52 * digits as u32, &mut rng).into());
        let mut out = vec![0xdead_beef_dead_beef; BLOCK * limbs];
        for group in 0..digits.div_ceil(8) {
            let digit = |at: usize, lane: usize| {
                Integer::from(&all[lane] >> (52 * (8 * group + at) as u32)).keep_bits(52).to_u64().unwrap()
            };
            let rows = std::array::from_fn(|at| vector(std::array::from_fn(|lane| digit(at, lane))));
            // SAFETY: the CPU has the instructions.
            unsafe { reconstruct::pack_group(rows, group, limbs, &mut out) };
        }
        for (lane, value) in all.iter().enumerate() {
            let got = Integer::from_digits(&out[lane * limbs..][..limbs], rug::integer::Order::Lsf);
            assert_eq!(got, Integer::from(value.keep_bits_ref(64 * limbs as u32)), "{limbs} limbs, lane {lane}");
        }
    }
}
