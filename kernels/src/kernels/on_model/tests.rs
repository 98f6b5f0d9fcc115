//! The model against the CPU, where it has the instructions, and against results by hand where it has not.

use super::avx512::*;

#[test]
fn products_are_those_of_52_bits() {
    let most = (1i64 << 52) - 1;
    let (a, b, one) = (_mm512_set1_epi64(most), _mm512_set1_epi64(-1), _mm512_set1_epi64(1));
    // `(2^52 - 1)^2 = 2^52 (2^52 - 2) + 1`; bits from 52 on count for nothing.
    assert_eq!(_mm512_madd52lo_epu64(one, a, b).0, [2; 8]);
    assert_eq!(_mm512_madd52hi_epu64(one, a, b).0, [(1 << 52) - 1; 8]);
    assert_eq!(_mm512_madd52lo_epu64(b, a, b).0, [0; 8], "sums wrap");
}

#[test]
fn masks_and_places_are_counted_from_the_lowest_lane() {
    let (a, b) = (_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set_epi64(17, 16, 15, 14, 13, 12, 11, 10));
    assert_eq!(_mm512_mask_mov_epi64(a, 0b1000_0001, b).0, [10, 1, 2, 3, 4, 5, 6, 17]);
    assert_eq!(_mm512_unpacklo_epi64(a, b).0, [0, 10, 2, 12, 4, 14, 6, 16]);
    assert_eq!(_mm512_unpackhi_epi64(a, b).0, [1, 11, 3, 13, 5, 15, 7, 17]);
    assert_eq!(_mm512_shuffle_i64x2::<0x8d>(a, b).0, [2, 3, 6, 7, 10, 11, 14, 15]);
    assert_eq!(_mm512_permutexvar_epi64(b, a).0, [2, 3, 4, 5, 6, 7, 0, 1]);
    assert_eq!(_mm512_cmpgt_epi64_mask(a, _mm512_set1_epi64(5)), 0b1100_0000);
    let mut words = [9; 8];
    // SAFETY: the lanes of the mask lie in the array, which begins two lanes further on.
    unsafe { _mm512_mask_storeu_epi64(words.as_mut_ptr().wrapping_sub(2), 0b0100_0100, b) };
    assert_eq!(words, [12, 9, 9, 9, 16, 9, 9, 9]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_model_does_what_the_cpu_does() {
    let has = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma");
    let has = has && is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512dq");
    let has = has && is_x86_feature_detected!("avx512cd") && is_x86_feature_detected!("avx512vl");
    if !(has && is_x86_feature_detected!("avx512vbmi") && is_x86_feature_detected!("avx512vbmi2")) {
        return println!("skipped: no AVX-512 IFMA");
    }
    // SAFETY: the CPU has all features that the function needs.
    unsafe { on_cpu::all() };
}

#[cfg(target_arch = "x86_64")]
mod on_cpu {
    use super::super::avx512 as model;
    use rug::{Integer, rand::RandState};
    use std::arch::x86_64 as cpu;

    /// A type that both take or return, as the CPU has it and as words.
    trait Value {
        type Cpu: Copy;
        fn cpu(self) -> Self::Cpu;
        fn words(self) -> [u64; 8];
        fn words_of(cpu: Self::Cpu) -> [u64; 8];
    }

    macro_rules! scalars {
        ($($type:ty)*) => {$(
            impl Value for $type {
                type Cpu = $type;
                fn cpu(self) -> $type {
                    self
                }
                fn words(self) -> [u64; 8] {
                    [self as u64; 8]
                }
                fn words_of(cpu: $type) -> [u64; 8] {
                    [cpu as u64; 8]
                }
            }
        )*};
    }

    macro_rules! vectors {
        ($($type:ident $words:literal)*) => {$(
            impl Value for model::$type {
                type Cpu = cpu::$type;
                fn cpu(self) -> cpu::$type {
                    // SAFETY: both are as many bytes of any value.
                    unsafe { std::mem::transmute(self) }
                }
                fn words(self) -> [u64; 8] {
                    let mut all = [0; 8];
                    // SAFETY: both are as many bytes of any value.
                    all[..$words].copy_from_slice(&unsafe { std::mem::transmute::<model::$type, [u64; $words]>(self) });
                    all
                }
                fn words_of(cpu: cpu::$type) -> [u64; 8] {
                    // SAFETY: both are as many bytes of any value.
                    let own: model::$type = unsafe { std::mem::transmute(cpu) };
                    own.words()
                }
            }
        )*};
    }

    scalars!(u8 u32 i16 i64 u64 f64);
    vectors!(__m512i 8 __m512d 8 __m256i 4);

    fn check<T: Value>(what: &str, model: T, cpu: T::Cpu) {
        assert_eq!(model.words(), T::words_of(cpu), "{what}");
    }

    macro_rules! same {
        ($($name:ident $(::<$imm:literal>)? ($($value:ident),*);)*) => {$(
            check(stringify!($name $($value)*), model::$name$(::<$imm>)?($($value),*),
                cpu::$name$(::<$imm>)?($(Value::cpu($value)),*));
        )*};
    }

    /// Words of all lengths, ones, small ones and neighbours of powers of two.
    fn word(rng: &mut RandState<'_>) -> u64 {
        let power = 1u64 << rng.below(64);
        let any = Integer::from(Integer::random_bits(64, rng)).to_u64_wrapping();
        [any, any >> rng.below(64), power, power - 1, power.wrapping_neg(), u64::MAX, u64::from(rng.below(70)), 0]
            [rng.below(8) as usize]
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512ifma,avx512vbmi,avx512vbmi2")]
    pub fn all() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(52));
        for _ in 0..3000 {
            let [a, b, c] = [(); 3].map(|()| model::__m512i(std::array::from_fn(|_| word(&mut rng))));
            let (k, wide, x) = (word(&mut rng) as u8, word(&mut rng), word(&mut rng) as i64);
            arithmetic([a, b, c], k);
            bits([a, b, c], (k, wide), x);
            halves([a, b, c], wide as u32, x as i16);
            four_lanes([a, b, c].map(|a| model::__m256i(std::array::from_fn(|lane| a.0[lane]))), k, x);
            doubles(a.0.map(|word| word as f64 * 0.5), b.0.map(|word| word as f64 / 3e15));
            // SAFETY: the CPU has the features that this function needs.
            unsafe { memory([a, b], k, wide) };
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512cd,avx512ifma")]
    fn arithmetic([a, b, c]: [model::__m512i; 3], k: u8) {
        same! {
            _mm512_madd52lo_epu64(a, b, c);
            _mm512_madd52hi_epu64(a, b, c);
            _mm512_add_epi64(a, b);
            _mm512_mask_add_epi64(c, k, a, b);
            _mm512_sub_epi64(a, b);
            _mm512_mask_sub_epi64(c, k, a, b);
            _mm512_mullo_epi64(a, b);
            _mm512_abs_epi64(a);
            _mm512_min_epu64(a, b);
            _mm512_min_epi64(a, b);
            _mm512_max_epi64(a, b);
            _mm512_reduce_add_epi64(a);
            _mm512_lzcnt_epi64(a);
            _mm512_cvtepu64_pd(a);
            _mm512_test_epi64_mask(a, b);
            _mm512_cmpeq_epi64_mask(a, b);
            _mm512_cmpgt_epi64_mask(a, b);
            _mm512_cmplt_epi64_mask(a, b);
            _mm512_cmpgt_epu64_mask(a, b);
            _mm512_cmple_epu64_mask(a, b);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
    fn halves([a, b, c]: [model::__m512i; 3], k: u32, x: i16) {
        same! {
            _mm512_set1_epi16(x);
            _mm512_mullo_epi16(a, b);
            _mm512_sub_epi16(a, b);
            _mm512_add_epi16(a, b);
            _mm512_min_epu16(a, b);
            _mm512_mulhrs_epi16(a, b);
            _mm512_mask_sub_epi16(c, k, a, b);
            _mm512_mask_mov_epi16(c, k, a);
            _mm512_cmpgt_epi16_mask(a, b);
        }
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
    fn four_lanes([a, b, c]: [model::__m256i; 3], k: u8, x: i64) {
        same! {
            _mm512_zextsi256_si512(a);
            _mm256_setzero_si256();
            _mm256_set1_epi64x(x);
            _mm256_madd52lo_epu64(a, b, c);
            _mm256_madd52hi_epu64(a, b, c);
            _mm256_add_epi64(a, b);
            _mm256_sub_epi64(a, b);
            _mm256_mask_add_epi64(c, k, a, b);
            _mm256_test_epi64_mask(a, b);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
    fn bits([a, b, c]: [model::__m512i; 3], (k, wide): (u8, u64), x: i64) {
        same! {
            _mm512_setzero_si512();
            _mm512_set1_epi64(x);
            _mm512_maskz_set1_epi64(k, x);
            _mm512_and_si512(a, b);
            _mm512_and_epi64(a, b);
            _mm512_maskz_and_epi64(k, a, b);
            _mm512_andnot_si512(a, b);
            _mm512_mask_andnot_epi64(c, k, a, b);
            _mm512_or_si512(a, b);
            _mm512_mask_or_epi64(c, k, a, b);
            _mm512_mask_xor_epi64(c, k, a, b);
            _mm512_srlv_epi64(a, b);
            _mm512_sllv_epi64(a, b);
            _mm512_srli_epi64::<52>(a);
            _mm512_srli_epi64::<63>(a);
            _mm512_slli_epi64::<52>(a);
            _mm512_srai_epi64::<2>(a);
            _mm512_srai_epi64::<52>(a);
            _mm512_mask_srli_epi64::<12>(c, k, a);
            _mm512_shrdv_epi64(a, b, c);
            _mm512_mask_mov_epi64(c, k, a);
            _mm512_mask_blend_epi64(k, a, b);
            _mm512_unpacklo_epi64(a, b);
            _mm512_unpackhi_epi64(a, b);
            _mm512_shuffle_i64x2::<0x44>(a, b);
            _mm512_shuffle_i64x2::<0x88>(a, b);
            _mm512_shuffle_i64x2::<0xdd>(a, b);
            _mm512_shuffle_i64x2::<0xee>(a, b);
            _mm512_permutexvar_epi64(a, b);
            _mm512_permutexvar_epi8(a, b);
            _mm512_maskz_permutexvar_epi8(wide, a, b);
            _mm512_set_epi64(x, x, x, x, x, x, x, x);
            _mm512_setr_epi64(x, x, x, x, x, x, x, x);
        }
    }

    /// Halves of integers are rounded among others.
    #[target_feature(enable = "avx512f,avx512dq")]
    fn doubles(a: [f64; 8], b: [f64; 8]) {
        let (x, negative) = (a[0], model::__m512d(a.map(|a| -a - 1.0)));
        let (a, b) = (model::__m512d(a), model::__m512d(b));
        same! {
            _mm512_setzero_pd();
            _mm512_set1_pd(x);
            _mm512_fmadd_pd(a, b, a);
            _mm512_cvtpd_epu64(a);
            _mm512_cvtpd_epu64(b);
            _mm512_cvtpd_epu64(negative);
        }
    }

    /// # Safety
    /// The CPU has the instructions.
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn memory([a, b]: [model::__m512i; 2], k: u8, wide: u64) {
        let source = a.0.map(|word| word as i64);
        let offsets = model::__m512i(b.0.map(|word| word % 8));
        // SAFETY: 64 bytes of an array are read or written, or eight of its lanes.
        unsafe {
            let (words, bytes) = (source.as_ptr(), source.as_ptr().cast());
            check(
                "gather",
                model::_mm512_mask_i64gather_epi64::<8>(b, k, offsets, words),
                cpu::_mm512_mask_i64gather_epi64::<8>(b.cpu(), k, offsets.cpu(), words),
            );
            check("bytes", model::_mm512_maskz_loadu_epi8(wide, bytes), cpu::_mm512_maskz_loadu_epi8(wide, bytes));
            check("lanes", model::_mm512_maskz_loadu_epi64(k, words), cpu::_mm512_maskz_loadu_epi64(k, words));
            check("vector", model::_mm512_loadu_si512(words.cast()), cpu::_mm512_loadu_si512(words.cast()));
            let mut stored = [source; 2];
            model::_mm512_mask_storeu_epi8(stored[0].as_mut_ptr().cast(), wide, b);
            cpu::_mm512_mask_storeu_epi8(stored[1].as_mut_ptr().cast(), wide, b.cpu());
            assert_eq!(stored[0], stored[1]);
            model::_mm512_mask_storeu_epi64(stored[0].as_mut_ptr(), k, b);
            cpu::_mm512_mask_storeu_epi64(stored[1].as_mut_ptr(), k, b.cpu());
            assert_eq!(stored[0], stored[1]);
        }
    }
}
