//! The binary format as docs/FORMATS.md has it, byte for byte, read by other means.

use crate::common::Rng;
use rug::integer::Order;
use rug::{Float, Integer};
use sunzi::Matrix;
use sunzi::io::{FileFormat, Symmetry, WriteOptions, write_stream};
use xxhash_rust::xxh3::xxh3_64;

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn the_layout_is_that_of_the_page() {
    let mut rng = Rng::new(3);
    for (order, bits) in [(3, 64), (4, 100), (5, 257)] {
        let mut matrix = Matrix::zeros(order, order, bits).unwrap();
        for row in 0..order {
            for col in 0..row {
                let (value, exponent) = (rng.integer(bits), rng.within(1000));
                matrix.set_integer_exponent(row, col, &value, exponent).unwrap();
                matrix.set_integer_exponent(col, row, &value, exponent).unwrap();
            }
        }
        for (symmetry, flag) in [(Symmetry::General, 0), (Symmetry::SymmetricLower, 1)] {
            let mut bytes = Vec::new();
            let options = WriteOptions::new().symmetry(symmetry);
            write_stream(&mut bytes, "x".as_ref(), FileFormat::Binary, &matrix, &options).unwrap();
            assert_eq!(bytes[..16], *b"\x89SNZ\r\n\x1a\n\x01\0\0\0\x04\x03\x02\x01");
            assert_eq!((word(&bytes, 16), word(&bytes, 24)), (order as u64, order as u64));
            assert_eq!((bytes[36], bytes[37]), (flag, 1));
            assert_eq!(word(&bytes, 32) as u32, bits);
            assert_eq!((word(&bytes, 48), word(&bytes, 56)), (0, xxh3_64(&bytes[..56])));
            let first = |col| if flag == 1 { col } else { 0 };
            let places = (0..order).flat_map(|col| (first(col)..order).map(move |row| (row, col)));
            let (count, limbs) = (word(&bytes, 40) as usize, bits.div_ceil(64) as usize);
            assert_eq!(count, if flag == 1 { order * (order + 1) / 2 } else { order * order });
            assert_eq!(bytes.len(), 64 + 8 * count * (1 + limbs) + 8);
            let end = bytes.len() - 8;
            assert_eq!(word(&bytes, end), xxh3_64(&bytes[64..end]));
            for (index, (row, col)) in places.enumerate() {
                let head = word(&bytes, 64 + 8 * index);
                let start = 64 + 8 * count + 8 * limbs * index;
                let significand = Integer::from_digits(&bytes[start..start + 8 * limbs], Order::Lsf);
                let want = matrix.float(row, col);
                if head == 0 {
                    assert!(want.is_zero() && significand == 0);
                    continue;
                }
                assert_eq!((head >> 1 & 1, significand.significant_bits()), (1, 64 * limbs as u32));
                let exponent = (head as i64 >> 2) as i32 - 64 * limbs as i32;
                let value = Float::with_val(64 * limbs as u32, significand) << exponent;
                assert_eq!(if head & 1 == 1 { -value } else { value }, want);
            }
        }
    }
}
