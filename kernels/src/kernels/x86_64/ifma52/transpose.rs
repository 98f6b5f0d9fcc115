//! The 8 x 8 transpose of 64-bit lanes: between one digit of 8 entries and 8 digits of one entry.

use std::arch::x86_64::*;

/// Row `i`, lane `j` becomes row `j`, lane `i`.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn transpose(rows: [__m512i; 8]) -> [__m512i; 8] {
    let mut pairs = rows;
    for i in 0..4 {
        pairs[2 * i] = _mm512_unpacklo_epi64(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm512_unpackhi_epi64(rows[2 * i], rows[2 * i + 1]);
    }
    // pairs[2i + s], 128-bit part q: column 2q + s of rows 2i and 2i + 1.
    let mut result = rows;
    for s in 0..2 {
        let (a, b, c, d) = (pairs[s], pairs[2 + s], pairs[4 + s], pairs[6 + s]);
        let low_ab = _mm512_shuffle_i64x2::<0x44>(a, b); // a0 a1 b0 b1
        let high_ab = _mm512_shuffle_i64x2::<0xEE>(a, b); // a2 a3 b2 b3
        let low_cd = _mm512_shuffle_i64x2::<0x44>(c, d);
        let high_cd = _mm512_shuffle_i64x2::<0xEE>(c, d);
        result[s] = _mm512_shuffle_i64x2::<0x88>(low_ab, low_cd); // a0 b0 c0 d0
        result[2 + s] = _mm512_shuffle_i64x2::<0xDD>(low_ab, low_cd); // a1 b1 c1 d1
        result[4 + s] = _mm512_shuffle_i64x2::<0x88>(high_ab, high_cd);
        result[6 + s] = _mm512_shuffle_i64x2::<0xDD>(high_ab, high_cd);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        if crate::kernels::x86_64::ifma52::probe().is_err() {
            return println!("skipped: no AVX-512");
        }
        // SAFETY: the CPU has AVX-512 F; the arrays are plain words of the same size.
        let words: [[u64; 8]; 8] = unsafe {
            let rows: [[u64; 8]; 8] = std::array::from_fn(|i| std::array::from_fn(|j| (8 * i + j) as u64));
            std::mem::transmute(transpose(std::mem::transmute::<[[u64; 8]; 8], [__m512i; 8]>(rows)))
        };
        assert!((0..64).all(|at| words[at % 8][at / 8] == at as u64));
    }
}
