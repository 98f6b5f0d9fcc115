//! Moduli of one engine and the sizes that follow from them.
#![forbid(unsafe_code)]

use crate::device::Element;
use crate::error::{Error, Result};
use crate::kernels::EngineSpec;
use crate::math::bound::{F64_SUM_BITS, I8_CHUNK_ROWS, I8_SUM_BITS, device_sum_fits};
use crate::math::family::{
    F64_CHUNK_ROWS, f64_maximum_modulus_bits, f64_prime_count, f64_prime_count_redundant, f64_primes,
};
use crate::math::family_i8::{
    I8_SINGLES, i8_maximum_modulus_bits, i8_moduli, i8_modulus_count, i8_modulus_count_redundant, i8_planes,
};
use rug::Integer;
use std::ops::Range;

/// The family of moduli with which a device multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeviceFamily {
    /// The primes of the family `f64`, balanced residues in doubles.
    F64,
    /// Moduli of signed bytes, products in 32-bit integers.
    I8,
}

impl DeviceFamily {
    /// Both families.
    pub const ALL: [DeviceFamily; 2] = [DeviceFamily::F64, DeviceFamily::I8];

    /// The family whose kernel is called `name`.
    pub fn by_name(name: &str) -> Option<DeviceFamily> {
        DeviceFamily::ALL.into_iter().find(|family| family.name() == name)
    }

    /// Name of the kernel on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            DeviceFamily::F64 => "cuda-f64",
            DeviceFamily::I8 => "cuda-i8",
        }
    }

    /// Name of the modulus family.
    pub fn family(self) -> &'static str {
        match self {
            DeviceFamily::F64 => "f64",
            DeviceFamily::I8 => "i8",
        }
    }

    /// Largest `modulus_bits` of the moduli, including the redundant one.
    pub fn maximum_modulus_bits(self) -> u32 {
        match self {
            DeviceFamily::F64 => f64_maximum_modulus_bits(),
            DeviceFamily::I8 => i8_maximum_modulus_bits(),
        }
    }

    /// Number of moduli of an engine for `spec`, without making it; the spec is in range (asserted).
    pub fn modulus_count(self, spec: &EngineSpec) -> usize {
        assert!(spec.modulus_bits <= self.maximum_modulus_bits(), "{} bits are too many", spec.modulus_bits);
        match (self, spec.redundant) {
            (DeviceFamily::F64, false) => f64_prime_count(spec.modulus_bits),
            (DeviceFamily::F64, true) => f64_prime_count_redundant(spec.modulus_bits),
            (DeviceFamily::I8, false) => i8_modulus_count(spec.modulus_bits),
            (DeviceFamily::I8, true) => i8_modulus_count_redundant(spec.modulus_bits),
        }
    }

    /// Number of operand planes of an engine for `spec`, without making it; the spec is in range (asserted).
    pub fn plane_count(self, spec: &EngineSpec) -> usize {
        self.planes(0..self.modulus_count(spec)).end
    }

    /// The operand planes of these moduli.
    pub fn planes(self, moduli: Range<usize>) -> Range<usize> {
        match self {
            DeviceFamily::F64 => moduli,
            DeviceFamily::I8 => i8_planes(moduli),
        }
    }

    /// The element type of operand planes and sums.
    pub fn element(self) -> Element {
        match self {
            DeviceFamily::F64 => Element::F64,
            DeviceFamily::I8 => Element::I8,
        }
    }

    /// Bytes of a stored residue.
    pub fn residue_bytes(self) -> usize {
        match self {
            DeviceFamily::F64 => 4,
            DeviceFamily::I8 => 2,
        }
    }

    /// Largest number of rows whose products may be summed before they are reduced.
    pub fn largest_chunk_rows(self) -> usize {
        match self {
            DeviceFamily::F64 => F64_CHUNK_ROWS,
            DeviceFamily::I8 => I8_CHUNK_ROWS,
        }
    }

    /// The moduli, in plane order.
    pub(super) fn moduli(self) -> &'static [u64] {
        match self {
            DeviceFamily::F64 => f64_primes(),
            DeviceFamily::I8 => i8_moduli(),
        }
    }

    /// Number of moduli, the first ones, that have one plane each.
    pub(super) fn single_count(self) -> usize {
        match self {
            DeviceFamily::F64 => f64_primes().len(),
            DeviceFamily::I8 => I8_SINGLES.len(),
        }
    }

    /// Sums of a chunk are at most `2^sum_bits` in magnitude.
    pub(super) fn sum_bits(self) -> u32 {
        match self {
            DeviceFamily::F64 => F64_SUM_BITS,
            DeviceFamily::I8 => I8_SUM_BITS,
        }
    }
}

/// The moduli and sizes for one [`EngineSpec`]; its tables are made and sent by [`DeviceEngine::upload`].
pub struct DeviceEngine {
    family: DeviceFamily,
    spec: EngineSpec,
    moduli: Vec<u64>,
    product: Integer,
    words: usize,
}

impl DeviceEngine {
    /// An engine for `spec`.
    ///
    /// # Errors
    /// [`Error::Precision`] where the family has too few moduli.
    pub fn new(family: DeviceFamily, spec: &EngineSpec) -> Result<DeviceEngine> {
        let maximum_bits = family.maximum_modulus_bits();
        if spec.modulus_bits > maximum_bits || spec.operand_bits > maximum_bits {
            let precision_bits = spec.modulus_bits.max(spec.operand_bits).into();
            return Err(Error::Precision { precision_bits, maximum_bits: maximum_bits.into() });
        }
        let moduli = family.moduli()[..family.modulus_count(spec)].to_vec();
        let product = moduli.iter().fold(Integer::from(1), |product, &modulus| product * modulus);
        // Two bits more than those of M: a number reconstructed from inadmissible residues may be a little beyond M/2
        // in magnitude, and the top bit is the sign.
        let words = (product.significant_bits() as usize + 2).div_ceil(32);
        let engine = DeviceEngine { family, spec: *spec, moduli, product, words };
        let terms = engine.moduli.len().max(engine.largest_digits());
        let largest = engine.moduli.iter().max().copied().unwrap_or(1);
        assert!(device_sum_fits(terms, largest), "{terms} terms modulo {largest}");
        Ok(engine)
    }

    /// The family.
    pub fn family(&self) -> DeviceFamily {
        self.family
    }

    /// The spec that it was made for.
    pub fn spec(&self) -> &EngineSpec {
        &self.spec
    }

    /// The moduli in plane order.
    pub fn moduli(&self) -> &[u64] {
        &self.moduli
    }

    /// The product of the moduli.
    pub fn product(&self) -> &Integer {
        &self.product
    }

    /// 32-bit digits of an operand's magnitude, which is at most `2^operand_bits`.
    pub fn digits(&self) -> usize {
        (self.spec.operand_bits as usize + 1).div_ceil(32)
    }

    /// Largest number of digits that `to_planes` and `to_residues` accept: those of any integer that the moduli
    /// determine, and those of an operand.
    pub fn largest_digits(&self) -> usize {
        self.words.max(self.digits())
    }

    /// 32-bit words of a reconstructed integer, with room for a sign bit.
    pub fn words(&self) -> usize {
        self.words
    }

    /// 64-bit limbs of a packed integer.
    pub fn limbs(&self) -> usize {
        self.words.div_ceil(2)
    }

    /// The element type of operand planes and sums.
    pub fn element(&self) -> Element {
        self.family.element()
    }

    /// Bytes of a stored residue.
    pub fn residue_bytes(&self) -> usize {
        self.family.residue_bytes()
    }

    /// The operand planes of these moduli.
    pub fn planes(&self, moduli: Range<usize>) -> Range<usize> {
        assert!(moduli.start <= moduli.end && moduli.end <= self.moduli.len(), "moduli {moduli:?}");
        self.family.planes(moduli)
    }

    /// Number of operand planes.
    pub fn plane_count(&self) -> usize {
        self.planes(0..self.moduli.len()).end
    }

    /// The largest number of rows whose products may be summed before they are reduced.
    pub fn largest_chunk_rows(&self) -> usize {
        self.family.largest_chunk_rows()
    }
}
