//! Whole products through wrappers and the device's own multiplication.

use super::super::{DeviceDigits, DeviceToResidues, Reduce, ReduceInto, Residues, Scale, ToPlanes};
use super::{PRECISIONS, Rig, Source, least, rigs};
use crate::device::{Device, Element, Gemm, GemmOperand, Region};
use crate::math::bound::F64_SUM_BITS;
use crate::math::float::FloatRef;
use crate::math::scale::{column_exponent, scaled_integer};
use crate::matrix::Matrix;
use rug::Integer;
use std::ops::Range;

impl Rig {
    /// `X^T X` of operand planes, `rows x cols` with columns `ld` apart, into residues.
    fn square(&self, planes: &Region, [rows, cols, ld]: [usize; 3], moduli: Range<usize>, into: Target<'_>) {
        let (stride, batch) = (ld * cols, self.engine.planes(moduli.clone()).len());
        let element = self.engine.element();
        let sums = self.dirty(batch * cols * cols * element.product_bytes()).whole();
        let operand = GemmOperand { region: planes.clone(), ld, stride };
        let gemm = Gemm {
            element,
            m: cols,
            n: cols,
            k: rows,
            a: operand.clone(),
            b: operand,
            c: GemmOperand { region: sums.clone(), ld: cols, stride: cols * cols },
            batch,
            negate: false,
            accumulate: false,
            by_rows: false,
        };
        self.device.multiply(self.stream, &gemm).unwrap();
        let Target { residues, into } = into;
        let entries = cols * cols;
        self.launcher().reduce(&Reduce { sums: &sums, sum_stride: entries, entries, moduli, residues, into }).unwrap();
    }

    /// Rows from column to column that products of this family ask for.
    fn leading_dimension(&self, rows: usize) -> usize {
        if self.engine.element() == Element::I8 { rows.next_multiple_of(16) } else { rows }
    }
}

struct Target<'a> {
    residues: Residues<'a>,
    into: ReduceInto,
}

/// The integers of a matrix with these column shifts.
fn scaled(matrix: &Matrix, shifts: &[i64]) -> Vec<Integer> {
    let entry = |value: FloatRef<'_>, col: usize| scaled_integer(value, shifts[col]);
    (0..matrix.rows() * matrix.cols())
        .map(|index| (index % matrix.rows(), index / matrix.rows()))
        .map(|(row, col)| entry(matrix.get(row, col), col))
        .collect()
}

/// Entries of `P^T P`.
fn exact_square(integers: &[Integer], rows: usize, cols: usize) -> Vec<Integer> {
    let dot = |index: usize| {
        let (row, col) = (index % cols, index / cols);
        (0..rows).map(|k| Integer::from(&integers[row * rows + k] * &integers[col * rows + k])).sum()
    };
    (0..cols * cols).map(dot).collect()
}

/// The Gram matrix in two chunks of rows and two batches of moduli, added up as residues.
#[test]
fn a_gram_matrix_is_exact() {
    let mut source = Source::new(9);
    for bits in PRECISIONS {
        for rig in rigs(bits) {
            let (rows, cols, cut) = (21, 3, 12);
            let mut matrix = Matrix::zeros(rows, cols, bits).unwrap();
            for index in 0..rows * cols {
                let (integer, exponent) = (source.integer(bits), i64::from(source.below(2 * bits)) - 5000);
                matrix.set_integer_exponent(index % rows, index / rows, &integer, exponent).unwrap();
            }
            let exponent = |col: usize| column_exponent((0..rows).map(|row| matrix.get(row, col).head));
            let shifts = (0..cols).map(|col| i64::from(bits) - exponent(col)).collect::<Vec<_>>();
            let moduli = rig.engine.moduli().len();
            let out = rig.dirty(moduli * cols * cols * rig.engine.residue_bytes()).whole();
            let residues = Residues { region: &out, first_modulus: 0, stride: cols * cols, offset: 0 };
            for (chunk, into) in [(0..cut, ReduceInto::Overwrite), (cut..rows, ReduceInto::Add)] {
                let part = copy_rows(&matrix, chunk.clone());
                let digits = load(&rig, &part, &shifts);
                for batch in [0..moduli / 3, moduli / 3..moduli] {
                    let ld = rig.leading_dimension(chunk.len());
                    let planes = to_planes(&rig, &digits, ld * cols, batch.clone());
                    rig.square(&planes, [chunk.len(), cols, ld], batch, Target { residues, into });
                }
            }
            let want = exact_square(&scaled(&matrix, &shifts), rows, cols);
            assert_eq!(rig.reconstruct(residues, cols * cols), want, "{bits} bits");
        }
    }
}

fn copy_rows(matrix: &Matrix, rows: Range<usize>) -> Matrix {
    let mut part = Matrix::zeros(rows.len(), matrix.cols(), matrix.precision_bits()).unwrap();
    for col in 0..matrix.cols() {
        for (to, from) in rows.clone().enumerate() {
            part.set(to, col, matrix.get(from, col));
        }
    }
    part
}

/// Digits of a matrix, padded as the family needs.
fn load(rig: &Rig, matrix: &Matrix, shifts: &[i64]) -> Region {
    let (heads, limbs) = matrix.parts();
    let (ld, count) = (rig.leading_dimension(matrix.rows()), rig.engine.digits());
    let stride = ld * matrix.cols();
    let region = rig.dirty((count + 1) * stride * 4).whole();
    let scale = Scale {
        heads: &rig.send(heads),
        limbs: &rig.send(limbs),
        limbs_per_element: matrix.limbs_per_element(),
        row_shifts: None,
        col_shifts: Some(&rig.send(shifts)),
        rows: matrix.rows(),
        cols: matrix.cols(),
        digits: DeviceDigits { region: &region, count, stride },
        ld,
        first_col: 0,
    };
    rig.launcher().scale(&scale).unwrap();
    region
}

fn to_planes(rig: &Rig, digits: &Region, entries: usize, moduli: Range<usize>) -> Region {
    let count = rig.engine.digits();
    let planes = rig.engine.planes(moduli.clone()).len();
    let region = rig.dirty(planes * entries * rig.engine.element().operand_bytes()).whole();
    let digits = DeviceDigits { region: digits, count, stride: entries };
    rig.launcher().to_planes(&ToPlanes { digits, entries, moduli, planes: &region, stride: entries }).unwrap();
    region
}

/// `A - P^T P`, with A of twice the bits, as a tile of a factorisation is updated.
#[test]
fn a_product_is_subtracted_from_what_is_there() {
    let mut source = Source::new(10);
    for bits in [64, 200, 1034] {
        for rig in rigs(bits) {
            let (rows, cols) = (16, 2);
            let integers = source.integers(bits, rows * cols);
            let square = source.integers(2 * bits, cols * cols);
            let (moduli, count) = (rig.engine.moduli().len(), (2 * bits as usize + 1).div_ceil(32));
            let digits = rig.send_digits(&square, count, cols * cols);
            let digits = DeviceDigits { region: &digits, count, stride: cols * cols };
            let out = rig.dirty(moduli * cols * cols * rig.engine.residue_bytes()).whole();
            let residues = Residues { region: &out, first_modulus: 0, stride: cols * cols, offset: 0 };
            let to = DeviceToResidues { digits, entries: cols * cols, moduli: 0..moduli, residues };
            rig.launcher().to_residues(&to).unwrap();
            // Sums of 16 products may be beyond the moduli: compared as residues.
            let operand = rig.send_digits(&integers, rig.engine.digits(), rows * cols);
            let planes = to_planes(&rig, &operand, rows * cols, 0..moduli);
            let target = Target { residues, into: ReduceInto::Subtract };
            rig.square(&planes, [rows, cols, rows], 0..moduli, target);
            let stored = rig.fetch_stored(&out);
            let product = exact_square(&integers, rows, cols);
            for (index, &modulus) in rig.engine.moduli().iter().enumerate() {
                for entry in 0..cols * cols {
                    let want = Integer::from(&square[entry] - &product[entry]);
                    assert_eq!(stored[index * cols * cols + entry], least(&want, modulus), "modulo {modulus}");
                }
            }
        }
    }
}

/// The longest chunk of operands whose residues are all at one end: no sum may be out of range.
#[test]
fn the_largest_sums_are_exact() {
    for rig in rigs(220) {
        let (rows, moduli) = (rig.engine.largest_chunk_rows(), rig.engine.moduli().len());
        for extreme in [rig.extreme(), -rig.extreme(), -rig.extreme() - 1u32] {
            let integers = vec![extreme.clone(); rows];
            let count = rig.engine.largest_digits();
            let digits = rig.send_digits(&integers, count, rows);
            let digits = DeviceDigits { region: &digits, count, stride: rows };
            let planes = rig.engine.plane_count();
            let region = rig.dirty(planes * rows * rig.engine.element().operand_bytes()).whole();
            let to = ToPlanes { digits, entries: rows, moduli: 0..moduli, planes: &region, stride: rows };
            rig.launcher().to_planes(&to).unwrap();
            let out = rig.dirty(moduli * rig.engine.residue_bytes()).whole();
            let residues = Residues { region: &out, first_modulus: 0, stride: 1, offset: 0 };
            let target = Target { residues, into: ReduceInto::Overwrite };
            rig.square(&region, [rows, 1, rows], 0..moduli, target);
            let want = Integer::from(&extreme * &extreme) * rows as u64;
            for (&modulus, stored) in rig.engine.moduli().iter().zip(rig.fetch_stored(&out)) {
                assert_eq!(stored, least(&want, modulus), "modulo {modulus}");
            }
        }
        assert!(
            rig.engine.element() == Element::I8
                || rows as u64 * (rig.engine.moduli()[0] / 2).pow(2) <= 1 << F64_SUM_BITS
        );
    }
}
