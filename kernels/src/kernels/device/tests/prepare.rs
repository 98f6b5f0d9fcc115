//! Scaling, unpacking, and the two conversions of digits.

use super::super::{DeviceDigits, DeviceToResidues, Residues, Scale, ToPlanes, Unpack};
use super::{PRECISIONS, Rig, Source, balanced, integers_from, least, rigs};
use crate::device::Region;
use crate::kernels::device::DeviceFamily;
use crate::math::scale::scaled_integer;
use crate::matrix::Matrix;
use rug::Integer;
use rug::integer::Order;

const DIRT: u32 = 0xA7A7_A7A7;

/// Where a block is put into digits: leading dimension, first column, columns of the whole.
struct Place {
    ld: usize,
    first_col: usize,
    count: usize,
}

impl Place {
    /// Scales a matrix with these shifts and compares every place of the digits.
    fn scale_and_compare(&self, rig: &Rig, matrix: &Matrix, row_shifts: Option<&[i64]>, col_shifts: &[i64]) {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let stride = (self.first_col + cols) * self.ld + 3;
        let region = rig.dirty((self.count + 1) * stride * 4).whole();
        let (heads, limbs) = matrix.parts();
        let (heads, limbs, col_region) = (rig.send(heads), rig.send(limbs), rig.send(col_shifts));
        let row_region = row_shifts.map(|shifts| rig.send(shifts));
        let scale = Scale {
            heads: &heads,
            limbs: &limbs,
            limbs_per_element: matrix.limbs_per_element(),
            row_shifts: row_region.as_ref(),
            col_shifts: Some(&col_region),
            rows,
            cols,
            digits: DeviceDigits { region: &region, count: self.count, stride },
            ld: self.ld,
            first_col: self.first_col,
        };
        rig.launcher().scale(&scale).unwrap();
        let shift = |row: usize, col: usize| col_shifts[col] + row_shifts.map_or(0, |shifts| shifts[row]);
        let want = |row: usize, col: usize| scaled_integer(matrix.get(row, col), shift(row, col));
        self.compare(rig, &region, stride, [rows, cols], want);
    }

    fn compare(
        &self,
        rig: &Rig,
        region: &Region,
        stride: usize,
        [rows, cols]: [usize; 2],
        want: impl Fn(usize, usize) -> Integer,
    ) {
        let words = rig.fetch::<u32>(region);
        for place in 0..stride {
            let word = |digit: usize| words[digit * stride + place];
            let (row, col) = (place % self.ld.max(1), place / self.ld.max(1));
            if self.ld == 0 || col < self.first_col || col >= self.first_col + cols {
                assert!((0..=self.count).all(|digit| word(digit) == DIRT), "place {place} is not of the block");
                continue;
            }
            let want = if row < rows { want(row, col - self.first_col) } else { Integer::new() };
            let digits = (0..self.count).map(word).collect::<Vec<_>>();
            assert_eq!(Integer::from_digits(&digits, Order::Lsf), want.clone().abs(), "row {row}, column {col}");
            assert_eq!(word(self.count), u32::from(want < 0), "sign of {want}");
        }
    }
}

#[test]
fn scaling_equals_the_definition() {
    let mut source = Source::new(1);
    for bits in PRECISIONS {
        let rig = Rig::new(DeviceFamily::F64, bits);
        for (rows, cols) in [(0, 3), (1, 1), (3, 2), (5, 0), (17, 3)] {
            let mut matrix = Matrix::zeros(rows, cols, bits + 9).unwrap();
            for index in 0..rows * cols {
                // Exponents over thousands of bits, some so small that they round to 0, some zeros.
                let exponent = i64::from(source.below(6000)) - 3000;
                let integer = if index % 7 == 6 { Integer::new() } else { source.integer(bits + 9) };
                matrix.set_integer_exponent(index % rows, index / rows, &integer, exponent).unwrap();
            }
            let largest = |col: usize| (0..rows).map(|row| matrix.get(row, col).head.exponent()).max().unwrap_or(0);
            let col_shifts = (0..cols).map(|col| i64::from(bits) - largest(col)).collect::<Vec<_>>();
            let place = Place { ld: rows, first_col: 0, count: rig.engine.digits() };
            place.scale_and_compare(&rig, &matrix, None, &col_shifts);
            let row_shifts = (0..rows as i64).map(|row| -3 * row).collect::<Vec<_>>();
            let place = Place { ld: rows + 5, first_col: 2, count: rig.engine.digits() };
            place.scale_and_compare(&rig, &matrix, Some(&row_shifts), &col_shifts);
        }
    }
}

#[test]
fn ties_go_to_even_and_what_rounds_to_zero_has_no_sign() {
    let rig = Rig::new(DeviceFamily::I8, 64);
    for zeros in [0, 1, 31, 32, 33, 62, 63, 64, 65, 127, 128, 190] {
        // Odd multiples of a half at every place of a limb's or a digit's boundary, and their neighbours.
        let values: Vec<Integer> =
            (-9i32..10).chain([(1 << 20) - 1]).map(|value| Integer::from(value) << zeros).collect();
        let near =
            values.iter().flat_map(|value| [value.clone(), Integer::from(value + 1u32), Integer::from(value - 1u32)]);
        let values = near.collect::<Vec<_>>();
        let matrix = Matrix::from_integers(values.len(), 1, 256, &values).unwrap();
        for shift in [1 - i64::from(zeros), -1 - i64::from(zeros), -i64::from(zeros), -i64::from(zeros) - 2, -300] {
            let place = Place { ld: values.len(), first_col: 0, count: 3 };
            place.scale_and_compare(&rig, &matrix, None, &[shift]);
        }
    }
}

#[test]
fn all_ones_round_up_through_every_digit() {
    for bits in [20u32, 31, 32, 33, 63, 64, 200] {
        let rig = Rig::new(DeviceFamily::F64, bits);
        let ones = (Integer::from(1) << (bits + 70)) - 1u32;
        let matrix = Matrix::from_integers(2, 1, bits + 70, &[ones.clone(), -ones]).unwrap();
        // The result is 2^bits: the largest magnitude that digits must hold.
        Place { ld: 2, first_col: 0, count: rig.engine.digits() }.scale_and_compare(&rig, &matrix, None, &[-70]);
    }
}

#[test]
fn exponents_and_shifts_may_be_huge() {
    let rig = Rig::new(DeviceFamily::F64, 64);
    let huge = (1i64 << 30) - 1;
    let mut matrix = Matrix::zeros(4, 2, 64).unwrap();
    for (col, exponent) in [(0, huge - 4), (1, -huge)] {
        for (row, value) in [5, -7, 0, 1].into_iter().enumerate() {
            matrix.set_integer_exponent(row, col, &Integer::from(value), exponent).unwrap();
        }
    }
    let place = Place { ld: 4, first_col: 0, count: 3 };
    place.scale_and_compare(&rig, &matrix, None, &[20 - huge, 20 + huge]);
    place.scale_and_compare(&rig, &matrix, Some(&[huge; 4]), &[20 - 2 * huge, 20]);
    for negligible in [-3 * huge, -5 * huge] {
        place.scale_and_compare(&rig, &matrix, Some(&[negligible; 4]), &[huge, huge]);
    }
}

#[test]
fn packed_integers_become_digits() {
    let mut source = Source::new(2);
    for (limbs, count) in [(1, 2), (2, 4), (3, 5), (2, 7)] {
        let rig = Rig::new(DeviceFamily::I8, 200);
        for (rows, cols, ld, first_col) in [(3, 2, 3, 0), (1, 1, 4, 1), (5, 3, 16, 2), (0, 2, 3, 0), (4, 0, 4, 1)] {
            let integers = source.integers(32 * (2 * limbs as u32).min(count as u32), rows * cols);
            let mut packed = Vec::new();
            for integer in &integers {
                packed.push(u64::from(*integer < 0));
                let digits = Integer::from(integer.abs_ref()).to_digits::<u64>(Order::Lsf);
                packed.extend((0..limbs).map(|limb| digits.get(limb).copied().unwrap_or(0)));
            }
            let stride = (first_col + cols) * ld + 1;
            let region = rig.dirty((count + 1) * stride * 4).whole();
            let unpack = Unpack {
                packed: &rig.send(&packed),
                limbs_per_element: limbs,
                rows,
                cols,
                digits: DeviceDigits { region: &region, count, stride },
                ld,
                first_col,
            };
            rig.launcher().unpack(&unpack).unwrap();
            let want = |row: usize, col: usize| integers[col * rows + row].clone();
            Place { ld, first_col, count }.compare(&rig, &region, stride, [rows, cols], want);
        }
    }
}

/// Checks both conversions of some integers for a range of moduli.
fn convert_and_compare(rig: &Rig, integers: &[Integer], count: usize, moduli: std::ops::Range<usize>) {
    let (entries, engine) = (integers.len(), &rig.engine);
    let input = rig.send_digits(integers, count, entries + 2);
    let digits = DeviceDigits { region: &input, count, stride: entries + 2 };
    let stride = entries + 1;

    let planes = engine.planes(moduli.clone()).len();
    let region = rig.dirty(planes * stride * engine.element().operand_bytes()).whole();
    let to = ToPlanes { digits, entries, moduli: moduli.clone(), planes: &region, stride };
    rig.launcher().to_planes(&to).unwrap();
    let values: Vec<i64> = match engine.family() {
        DeviceFamily::F64 => rig.fetch::<f64>(&region).into_iter().map(|value| value as i64).collect(),
        DeviceFamily::I8 => rig.fetch::<i8>(&region).into_iter().map(i64::from).collect(),
    };

    let out = rig.dirty((moduli.end * stride + 7) * engine.residue_bytes()).whole();
    let residues = Residues { region: &out, first_modulus: 0, stride, offset: 4 };
    rig.launcher().to_residues(&DeviceToResidues { digits, entries, moduli: moduli.clone(), residues }).unwrap();
    let stored = rig.fetch_stored(&out);

    let first_plane = engine.planes(0..moduli.start).end;
    for index in moduli {
        let modulus = engine.moduli()[index];
        let own = engine.planes(index..index + 1);
        for (entry, integer) in integers.iter().enumerate() {
            let value = |plane: usize| values[(own.start - first_plane + plane) * stride + entry];
            let want = balanced(integer, modulus);
            match own.len() {
                1 => assert_eq!(value(0), want, "{integer} modulo {modulus}"),
                _ => {
                    assert_eq!(value(0) + 128 * value(1), want, "{integer} modulo {modulus}");
                    assert_eq!(value(0) + value(1), value(2), "{integer} modulo {modulus}");
                    assert!((-64..64).contains(&value(0)), "{integer} modulo {modulus}");
                }
            }
            assert_eq!(stored[index * stride + 4 + entry], least(integer, modulus), "{integer} modulo {modulus}");
        }
    }
}

#[test]
fn digits_become_planes_and_residues() {
    let mut source = Source::new(3);
    for bits in PRECISIONS {
        for rig in rigs(bits) {
            let moduli = rig.engine.moduli().len();
            let power = Integer::from(1) << bits;
            let mut integers = source.integers(bits, 9);
            integers.extend([Integer::new(), power.clone(), -power, Integer::from(-1)]);
            convert_and_compare(&rig, &integers, rig.engine.digits(), 0..moduli);
            for (first, end) in
                [(0, 1), (1, moduli.min(6)), (moduli / 2, moduli), (moduli, moduli), (moduli - 1, moduli)]
            {
                convert_and_compare(&rig, &integers[..3], rig.engine.digits(), first.min(end)..end);
            }
            // As many digits as there can be, and residues at both ends.
            let extreme = rig.extreme();
            let integers = [extreme.clone(), -extreme, Integer::from(rig.engine.product() - 1u32), Integer::from(3)];
            convert_and_compare(&rig, &integers, rig.engine.largest_digits(), 0..moduli);
        }
    }
}

#[test]
fn nothing_is_written_for_no_entries() {
    for rig in rigs(64) {
        convert_and_compare(&rig, &[], rig.engine.digits(), 0..rig.engine.moduli().len());
        assert!(integers_from(&[], 3, 0).is_empty());
    }
}
