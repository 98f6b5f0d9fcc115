//! Blocks in SDPB's binary form, written out byte by byte: what Boost's library makes of them, see `boost_block.cpp`.

use sunzi::Matrix;
use sunzi::rug::{Float, integer::Order};

/// What may differ between writers.
#[derive(Clone, Copy)]
pub struct Layout {
    /// Bytes of Elemental's integers.
    pub integer_bytes: usize,
    /// Whether a number's exponent stands in front of its number of limbs.
    pub exponent_first: bool,
    /// Version of numbers: 0 has no mark of zeros.
    pub version: u32,
    /// Rows of a matrix beyond those that count.
    pub padding: usize,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout { integer_bytes: 4, exponent_first: false, version: 1, padding: 0 }
    }
}

/// A file that grows.
pub struct Writer {
    pub bytes: Vec<u8>,
    layout: Layout,
    limbs: usize,
    has_number: bool,
    has_matrix: bool,
}

impl Writer {
    /// The head of a file whose numbers have `bits` bits, in whole limbs.
    pub fn new(bits: u64, layout: Layout) -> Writer {
        let mut bytes = 22u64.to_le_bytes().to_vec();
        bytes.extend(b"serialization::archive");
        bytes.extend(18u16.to_le_bytes());
        bytes.extend([4, 8, 4, 8]);
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(bits.to_le_bytes());
        Writer { bytes, layout, limbs: bits as usize / 64 + 2, has_number: false, has_matrix: false }
    }

    fn class(&mut self, version: u32) {
        self.bytes.push(0);
        self.bytes.extend(version.to_le_bytes());
    }

    fn number(&mut self, value: &Float) {
        if !self.has_number {
            self.class(self.layout.version);
            self.has_number = true;
        }
        if self.layout.version > 0 {
            self.bytes.push(value.is_zero().into());
            if value.is_zero() {
                return;
            }
        }
        let mut words = Vec::new();
        let mut exponent = 0;
        if let Some((integer, power)) = value.to_integer_exp().filter(|(integer, _)| !integer.is_zero()) {
            let low = power.div_euclid(64);
            let integer = integer.abs() << power.rem_euclid(64) as u32;
            words = integer.to_digits::<u64>(Order::Lsf);
            exponent = i64::from(low) + words.len() as i64;
        }
        assert!(words.len() <= self.limbs);
        let size = words.len() as i32 * if value.is_sign_negative() { -1 } else { 1 };
        words.resize(self.limbs, 0x1234);
        let (size, exponent) = (size.to_le_bytes(), exponent.to_le_bytes());
        match self.layout.exponent_first {
            false => self.bytes.extend(size.iter().chain(&exponent)),
            true => self.bytes.extend(exponent.iter().chain(&size)),
        }
        words.iter().for_each(|word| self.bytes.extend(word.to_le_bytes()));
    }

    fn integer(&mut self, value: usize) {
        self.bytes.extend(&(value as u64).to_le_bytes()[..self.layout.integer_bytes]);
    }

    pub fn matrix(&mut self, matrix: &Matrix) {
        if !self.has_matrix {
            self.class(0);
            self.has_matrix = true;
        }
        let leading = matrix.rows().max(1) + self.layout.padding;
        self.integer(matrix.rows());
        self.integer(matrix.cols());
        self.integer(leading);
        for (col, row) in (0..matrix.cols()).flat_map(|col| (0..leading).map(move |row| (col, row))) {
            let inside = row < matrix.rows();
            self.number(&if inside { matrix.float(row, col) } else { Float::with_val(8, 7) });
        }
    }

    pub fn vector(&mut self, column: &Matrix) {
        self.class(0);
        self.bytes.extend((column.rows() as u64).to_le_bytes());
        self.bytes.extend(self.layout.version.to_le_bytes());
        (0..column.rows()).for_each(|row| self.number(&column.float(row, 0)));
    }
}

/// The file of a block.
pub fn block(bits: u64, layout: Layout, parts: [&Matrix; 4]) -> Vec<u8> {
    let [b, c, even, odd] = parts;
    let mut writer = Writer::new(bits, layout);
    writer.matrix(b);
    writer.vector(c);
    writer.matrix(even);
    writer.matrix(odd);
    writer.bytes
}
