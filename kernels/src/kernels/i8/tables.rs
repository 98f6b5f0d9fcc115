//! Moduli of one engine and the constant tables of its conversions.
//!
//! Depends on: big integers, once, while the tables are made. Independent of: matrices, instructions.
#![forbid(unsafe_code)]

use super::reduce::I8Reducer;
use super::tiles::{GROUP, SIDE, STEP, STEP_GROUPS, STEP_WORDS, TileRows};
use crate::kernels::EngineSpec;
use crate::kernels::radix::Digits;
use crate::math::family_i8::{I8_SINGLES, i8_moduli, i8_modulus_count, i8_modulus_count_redundant};
use crate::math::modulus::Modulus;
use rug::Integer;
use std::cmp::Ordering;
use std::ops::Range;

/// Number of planes for `spec`.
pub fn plane_count(spec: &EngineSpec) -> usize {
    let bits = spec.modulus_bits;
    if spec.redundant { i8_modulus_count_redundant(bits) } else { i8_modulus_count(bits) }
}

/// The constant factors of a conversion: outputs are rows of tiles.
pub struct I8Table {
    groups: usize,
    outputs: usize,
    strips: Vec<TileRows>,
}

impl I8Table {
    /// A table of zeros for `groups` groups of four terms.
    fn new(groups: usize, outputs: usize) -> I8Table {
        let steps = groups.div_ceil(STEP_GROUPS) * outputs.div_ceil(SIDE);
        I8Table { groups, outputs, strips: vec![[[0; STEP_GROUPS]; SIDE]; steps] }
    }

    fn set(&mut self, term: usize, output: usize, factor: i64) {
        let byte = i8::try_from(factor).expect("factors are bytes") as u8;
        let step = output / SIDE * self.groups.div_ceil(STEP_GROUPS) + term / STEP;
        let word = &mut self.strips[step][output % SIDE][term / GROUP % STEP_GROUPS];
        *word |= u32::from(byte) << (8 * (term % GROUP));
    }

    /// Groups of terms.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Steps of terms.
    pub fn steps(&self) -> usize {
        self.groups.div_ceil(STEP_GROUPS)
    }

    /// Tiles of outputs.
    pub fn strips(&self) -> usize {
        self.outputs.div_ceil(SIDE)
    }

    /// The factors of one tile of outputs, step by step.
    #[inline(always)]
    pub fn strip(&self, index: usize) -> &[TileRows] {
        &self.strips[index * self.steps()..][..self.steps()]
    }

    fn bytes(&self) -> u64 {
        (self.strips.len() * STEP_WORDS * 4) as u64
    }
}

/// Moduli whose residues come from one tile of sums: of singles each from one row, of triples from two.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModulusGroup {
    /// The moduli.
    pub moduli: Range<usize>,
    /// Whether a residue is `low + 128 high` of two rows.
    pub is_triple: bool,
}

/// All constants of an engine.
pub struct I8Tables {
    /// The moduli in plane order.
    pub moduli: Vec<u64>,
    /// The number of them that take one plane of bytes.
    pub singles: usize,
    /// The moduli, ready for reductions.
    pub reducers: Vec<I8Reducer>,
    /// Limbs of a scaled integer.
    pub operand_limbs: usize,
    /// Residues of the radix powers: terms are the bytes of an integer in two's complement, a carry and a sign;
    /// outputs are rows.
    pub radix_powers: I8Table,
    /// The moduli of each tile of outputs.
    pub groups: Vec<ModulusGroup>,
    /// `(M / m_i)^-1` modulo `m_i`, balanced.
    pub weights: Vec<i32>,
    /// The doubles nearest to the inverses of the moduli.
    pub inverses: Vec<f64>,
    /// The reconstructed integers, four of their bytes at a time.
    pub result_words: Digits,
    /// Bytes of `M / m_i` for each byte of a weighted residue, then those of `-M` for each byte of the quotient.
    pub cofactors: I8Table,
    /// Limbs of `M`.
    pub magnitude_limbs: usize,
}

impl I8Tables {
    /// The tables for `spec`, which is in range.
    pub fn new(spec: &EngineSpec) -> I8Tables {
        let moduli = i8_moduli()[..plane_count(spec)].to_vec();
        let singles = moduli.len().min(I8_SINGLES.len());
        let product = moduli.iter().fold(Integer::from(1), |product, &modulus| product * modulus);
        // The magnitude itself may be 2^operand_bits.
        let operand_limbs = (spec.operand_bits + 1).div_ceil(64) as usize;
        let groups = modulus_groups(singles, moduli.len());
        // Not every modulus is prime.
        let weight = |&modulus: &u64| {
            let inverse =
                Integer::from(&product / modulus).invert(&Integer::from(modulus)).expect("moduli are coprime");
            Modulus::new(modulus).balanced(inverse.to_u64().expect("a residue is a word")) as i32
        };
        // Two bits more than those of M, and a byte: for signs, and because rows for the upper byte of a residue or
        // a quotient are 256 times the others.
        let bytes = (product.significant_bits() + 2).div_ceil(8) as usize + 1;
        let result = Digits { bits: 8, count: bytes.next_multiple_of(GROUP) };
        I8Tables {
            reducers: moduli.iter().map(|&modulus| I8Reducer::new(modulus)).collect(),
            operand_limbs,
            radix_powers: radix_powers(operand_limbs, &groups, &moduli),
            groups,
            weights: moduli.iter().map(weight).collect(),
            inverses: moduli.iter().map(|&modulus| 1.0 / modulus as f64).collect(),
            result_words: Digits { bits: 32, count: result.count / GROUP },
            cofactors: cofactors(&moduli, singles, &product, result),
            magnitude_limbs: product.significant_digits::<u64>(),
            singles,
            moduli,
        }
    }

    /// Planes of bytes that a product needs at most.
    pub fn most_planes(&self) -> usize {
        if self.singles < self.moduli.len() { 3 } else { 1 }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let moduli = self.moduli.len() as u64;
        let groups = (self.groups.len() * size_of::<ModulusGroup>()) as u64;
        self.radix_powers.bytes() + self.cofactors.bytes() + groups + moduli * (8 + 8 + 4 + 8)
    }
}

fn modulus_groups(singles: usize, moduli: usize) -> Vec<ModulusGroup> {
    let of = |range: Range<usize>, is_triple: bool| {
        let width = if is_triple { SIDE / 2 } else { SIDE };
        let starts = range.clone().step_by(width);
        starts.map(move |start| ModulusGroup { moduli: start..(start + width).min(range.end), is_triple })
    };
    of(0..singles, false).chain(of(singles..moduli, true)).collect()
}

/// Residues of the powers of 256, balanced: as bytes, or as `low + 128 high` in two rows. Behind the powers for the
/// bytes of a magnitude stand 1 and the correction for negative numbers in two's complement.
fn radix_powers(limbs: usize, groups: &[ModulusGroup], moduli: &[u64]) -> I8Table {
    let bytes = 8 * limbs;
    let mut table = I8Table::new(bytes / GROUP + 1, groups.len() * SIDE);
    for (group, first) in groups.iter().zip((0..).step_by(SIDE)) {
        for (number, &modulus) in moduli[group.moduli.clone()].iter().enumerate() {
            let modulus = Modulus::new(modulus);
            for term in 0..bytes + 2 {
                let power = modulus.power(256, if term > bytes { bytes as u64 } else { term as u64 });
                let residue = match term.cmp(&bytes) {
                    Ordering::Less => modulus.balanced(power),
                    Ordering::Equal => 1,
                    Ordering::Greater => modulus.balanced(modulus.subtract(0, power)),
                };
                if group.is_triple {
                    let high = (residue + 64) >> 7;
                    table.set(term, first + 2 * number, residue - 128 * high);
                    table.set(term, first + 2 * number + 1, high);
                } else {
                    table.set(term, first + number, residue);
                }
            }
        }
    }
    table
}

/// First term of a modulus among those of a reconstruction: singles take one, triples two.
fn first_term(modulus: usize, singles: usize) -> usize {
    if modulus < singles { modulus } else { singles.next_multiple_of(GROUP) + 2 * (modulus - singles) }
}

fn cofactors(moduli: &[u64], singles: usize, product: &Integer, result: Digits) -> I8Table {
    let quotient = first_term(moduli.len().max(singles), singles).next_multiple_of(GROUP);
    let mut table = I8Table::new(quotient / GROUP + 1, result.count);
    let mut set = |term: usize, integer: &Integer| {
        for (output, digit) in result.balanced(integer).into_iter().enumerate() {
            table.set(term, output, digit);
        }
    };
    for (number, &modulus) in moduli.iter().enumerate() {
        let (cofactor, term) = (Integer::from(product / modulus), first_term(number, singles));
        set(term, &cofactor);
        if number >= singles {
            set(term + 1, &(cofactor << 8));
        }
    }
    let negative = Integer::from(-product);
    set(quotient, &negative);
    set(quotient + 1, &(negative << 8));
    table
}
