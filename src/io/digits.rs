//! Digits to limbs: the inner loops of reading a number.
//!
//! Eight digits are converted at a time inside one 64-bit word. Independent of: signs, exponents, rounding.

/// The leading bytes that are digits. `is_digit` should be free of branches: 16 bytes are tried at a time.
#[inline]
pub(super) fn take_digits(text: &[u8], is_digit: impl Fn(&u8) -> bool) -> &[u8] {
    let (chunks, _) = text.as_chunks::<16>();
    let whole = chunks.iter().take_while(|chunk| chunk.iter().fold(true, |all, byte| all & is_digit(byte))).count();
    let start = 16 * whole;
    let rest = &text[start..];
    let count = start + rest.iter().position(|byte| !is_digit(byte)).unwrap_or(rest.len());
    &text[..count]
}

/// Appends the hexadecimal integer `digits` to the empty list `limbs`, least limb first.
pub(super) fn hexadecimal(digits: &[u8], limbs: &mut Vec<u64>) {
    let (head, chunks) = digits.as_rchunks::<16>();
    for chunk in chunks.iter().rev() {
        let (high, low) = (chunk.first_chunk::<8>(), chunk.last_chunk::<8>());
        if let (Some(high), Some(low)) = (high, low) {
            limbs.push(eight_hexadecimal(*high) << 32 | eight_hexadecimal(*low));
        }
    }
    if !head.is_empty() {
        let mut padded = [b'0'; 16];
        padded[16 - head.len()..].copy_from_slice(head);
        hexadecimal(&padded, limbs);
    }
}

/// Appends the decimal integer `digits` to the empty list `limbs`, least limb first. Quadratic in the digits.
pub(super) fn decimal(digits: &[u8], limbs: &mut Vec<u64>) {
    let (head, chunks) = digits.as_rchunks::<19>();
    if !head.is_empty() {
        multiply_add(limbs, 1, nineteen_decimal(head));
    }
    for chunk in chunks {
        multiply_add(limbs, 10_000_000_000_000_000_000, nineteen_decimal(chunk));
    }
}

/// Value of at most 19 digits.
fn nineteen_decimal(digits: &[u8]) -> u64 {
    let (eights, rest) = digits.as_chunks::<8>();
    let value = eights.iter().fold(0, |value, eight| value * 100_000_000 + eight_decimal(*eight));
    rest.iter().fold(value, |value, &digit| value * 10 + u64::from(digit - b'0'))
}

/// Value of 8 decimal digits: neighbours are joined to pairs, pairs to fours, fours to eight.
fn eight_decimal(digits: [u8; 8]) -> u64 {
    let ones = u64::from_le_bytes(digits) & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (ones.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// Value of 8 hexadecimal digits.
fn eight_hexadecimal(digits: [u8; 8]) -> u64 {
    let bytes = u64::from_be_bytes(digits);
    // Letters have bit 6 set, and their low four bits count from 1.
    let letters = (bytes >> 6) & 0x0101_0101_0101_0101;
    let ones = (bytes & 0x0f0f_0f0f_0f0f_0f0f) + 9 * letters;
    let pairs = (ones | ones >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    (fours | fours >> 16) & 0xffff_ffff
}

/// `limbs := limbs * factor + summand`.
fn multiply_add(limbs: &mut Vec<u64>, factor: u64, summand: u64) {
    let mut carry = summand;
    for limb in limbs.iter_mut() {
        let product = u128::from(*limb) * u128::from(factor) + u128::from(carry);
        *limb = product as u64;
        carry = (product >> 64) as u64;
    }
    if carry != 0 {
        limbs.push(carry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::{Integer, integer::Order};

    #[test]
    fn all_lengths_and_digits() {
        for length in 0..70usize {
            for start in 0..22 {
                let digits: Vec<u8> = (start..start + length).map(|at| b"0123456789abcdefABCDEF"[at % 22]).collect();
                let mut limbs = Vec::new();
                hexadecimal(&digits, &mut limbs);
                let text = if length == 0 { "0" } else { std::str::from_utf8(&digits).unwrap() };
                assert_eq!(Integer::from_digits(&limbs, Order::Lsf), Integer::from_str_radix(text, 16).unwrap());
                let digits: Vec<u8> = (start..start + length).map(|at| b'0' + (9 * at % 10) as u8).collect();
                limbs.clear();
                decimal(&digits, &mut limbs);
                let text = if length == 0 { "0" } else { std::str::from_utf8(&digits).unwrap() };
                assert_eq!(Integer::from_digits(&limbs, Order::Lsf), text.parse::<Integer>().unwrap());
            }
        }
    }

    #[test]
    fn digits_end_at_the_first_other_byte() {
        for length in 0..40 {
            for end in 0..=length {
                let mut text = vec![b'7'; length];
                text[end..].fill(b'x');
                assert_eq!(take_digits(&text, u8::is_ascii_digit).len(), end);
            }
        }
    }
}
