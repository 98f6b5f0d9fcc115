//! The lengths of the numbers of a check, before any is made.
//!
//! Products have the bits of their factors together, sums one more for each doubling of their terms; bounds of these
//! kinds, times the numbers that are made, have to fit into the room that the files give. Independent of: values.

use super::certificate::{GramProof, LowerProof, Proof, UpperProof, free_bits};
use super::definite::Witness;
use super::group::{ProofConstraints, ProofGroup};
use super::limits::{bytes_of_many, common, longest};
use super::polynomial::{ProofPolynomialMatrix, ProofSampling};
use super::program::Program;
use super::room::Room;
use super::scaled::{Fixed, Scaled, triangle};
use rug::Integer;

/// Bits that sums have more than their terms: no file has 2^64 numbers.
const SUM_BITS: u64 = 64;

type Refusal<T> = Result<T, String>;

impl Fixed {
    /// Bits of the longest number, or those behind the point.
    fn length(&self) -> u64 {
        longest(&self.values).max(self.bits.into())
    }

    /// Letters of a file that has it.
    fn letters(&self) -> u64 {
        self.values.iter().map(|value| 2 + u64::from(value.significant_bits()) / 4).sum()
    }
}

impl Scaled {
    fn length(&self) -> u64 {
        longest(&self.numerators).max(self.denominator.significant_bits().into())
    }
}

impl Witness {
    fn length(&self) -> u64 {
        self.factor.length().max(self.exponent.unsigned_abs())
    }
}

impl GramProof {
    fn length(&self) -> u64 {
        self.scales.iter().map(|scale| scale.unsigned_abs()).max().unwrap_or(0)
    }

    fn letters(&self) -> u64 {
        2 * self.scales.len() as u64 + self.witness.factor.letters()
    }
}

impl Proof {
    /// Bytes of a file that has it, at least: everything except its numbers is left out.
    pub fn bytes(&self) -> u64 {
        let sampling =
            |one: &ProofSampling| one.points.letters() + 2 * one.exponents.len() as u64 + one.basis.letters();
        let mut sum = self.samplings.iter().map(sampling).sum::<u64>();
        for part in [&self.lower, &self.no_primal].into_iter().flatten() {
            let blocks = part.groups.iter().flat_map(|group| &group.blocks);
            sum += part.y.letters() + blocks.map(|block| block.factor.letters()).sum::<u64>();
            sum += part.groups.iter().map(|group| group.gram.letters()).sum::<u64>();
        }
        for part in [&self.upper, &self.no_dual].into_iter().flatten() {
            sum += part.x.iter().map(Fixed::letters).sum::<u64>();
            sum += part.gram.iter().map(GramProof::letters).sum::<u64>();
            sum += part.blocks.iter().flatten().map(|block| block.factor.letters()).sum::<u64>();
        }
        sum
    }
}

/// Takes the room of the equations of a polynomial program at the points of a proof.
///
/// # Errors
/// A text where there is too little, or where samplings do not fit.
pub fn check_samplings(room: &Room, program: &Program, samplings: &[ProofSampling]) -> Refusal<()> {
    for (number, (matrix, sampling)) in program.polynomials.iter().zip(samplings).enumerate() {
        let named = |message: String| format!("polynomial matrix {}: {message}", number + 1);
        sampling.check(matrix.degree).map_err(named)?;
        room.take(sampled_bytes(matrix, sampling).map_err(named)?).map_err(named)?;
    }
    Ok(())
}

fn sampled_bytes(matrix: &ProofPolynomialMatrix, sampling: &ProofSampling) -> Refusal<u64> {
    let (points, degree) = (sampling.points.values.len(), matrix.degree as u64);
    let exponent = sampling.exponents.iter().map(|exponent| exponent.unsigned_abs()).max().unwrap_or(0);
    // Numerator and denominator of a power of x.
    let x = sampling.points.length();
    let polynomials = || matrix.entries.iter().flatten();
    let whole = u64::from(common(polynomials().map(|polynomial| &polynomial.denominator))?.significant_bits());
    let mut sum = 0u64;
    for polynomial in polynomials().filter(|polynomial| longest(&polynomial.numerators) > 0) {
        let powers = polynomial.numerators.len() as u64 - 1;
        let value = longest(&polynomial.numerators) + x * powers + exponent + SUM_BITS;
        let denominator = whole + x * degree + exponent;
        // As a rational number, and over the common denominator.
        sum = sum.saturating_add(bytes_of_many(2 * points, value + denominator));
    }
    let basis = sampling.basis.length();
    let row = |row: u64| bytes_of_many(4 * points, basis + x * degree.max(row) + SUM_BITS);
    let rows = (0..=degree / 2).map(row).fold(0, u64::saturating_add);
    Ok(sum.saturating_add(rows).saturating_add(bytes_of_many(4 * points, x + exponent)))
}

/// Takes the room of all other numbers that a check makes, and the products that it makes of them.
///
/// # Errors
/// A text where there is too little.
pub fn check_sizes(room: &Room, program: &Program, proof: &Proof) -> Refusal<()> {
    let denominators =
        common(program.groups.iter().flat_map(ProofGroup::denominators).chain([&program.objective.denominator]))?;
    let shared = u64::from(denominators.significant_bits());
    for part in [&proof.lower, &proof.no_primal].into_iter().flatten() {
        room.take(lower_bytes(program, part, shared))?;
        room.take_steps(lower_steps(program, part))?;
    }
    for part in [&proof.upper, &proof.no_dual].into_iter().flatten() {
        room.take(upper_bytes(program, part, shared))?;
        room.take_steps(upper_steps(program, part))?;
    }
    Ok(())
}

/// Products that a check of a dual point makes.
fn lower_steps(program: &Program, part: &LowerProof) -> u64 {
    let mut sum = 0u64;
    for (group, proof) in program.groups.iter().zip(&part.groups) {
        let blocks = group.shapes().into_iter().zip(&proof.blocks).enumerate();
        for (cone, (shape, witness)) in blocks.filter(|(_, (shape, _))| !shape.diagonal) {
            sum = sum.saturating_add(witness.steps(shape.order)).saturating_add(group.block_steps(cone));
        }
        sum = sum.saturating_add(group.gram_steps()).saturating_add(proof.gram.witness.steps(group.gram_order()));
    }
    sum
}

/// Products that a check of a primal point makes.
fn upper_steps(program: &Program, part: &UpperProof) -> u64 {
    let mut sum = 0u64;
    for (group, blocks) in program.groups.iter().zip(&part.blocks) {
        let blocks = group.shapes().into_iter().zip(blocks).enumerate();
        for (cone, (shape, witness)) in blocks.filter(|(_, (shape, _))| !shape.diagonal) {
            sum = sum.saturating_add(witness.steps(shape.order)).saturating_add(group.block_steps(cone));
        }
    }
    let Some(gram) = &part.gram else { return sum };
    let count = program.free_variables();
    let numbers = program.groups.iter().flat_map(|group| &group.free.numerators);
    let free = (numbers.filter(|number| !number.is_zero()).count() as u64).saturating_mul(count as u64);
    sum.saturating_add(free).saturating_add(gram.witness.steps(count))
}

impl ProofGroup {
    /// The denominators of all its numbers.
    fn denominators(&self) -> impl Iterator<Item = &Integer> {
        let (values, weights) = match &self.constraints {
            ProofConstraints::Sampled(sampled) => sampled.parts(),
            ProofConstraints::Sparse(sparse) => (&sparse.values, &sparse.values),
        };
        [&self.costs, &self.free, values, weights].into_iter().map(|list| &list.denominator)
    }

    /// Products that pairings with a block, or its slack, take where it is not one of sparse matrices.
    fn block_steps(&self, cone: usize) -> u64 {
        match &self.constraints {
            ProofConstraints::Sampled(sampled) => sampled.block_steps(cone),
            ProofConstraints::Sparse(_) => 0,
        }
    }

    /// Products that the Gram matrix takes.
    fn gram_steps(&self) -> u64 {
        match &self.constraints {
            ProofConstraints::Sampled(sampled) => sampled.gram_steps(),
            ProofConstraints::Sparse(sparse) => sparse.gram_steps(),
        }
    }

    /// Bits of an entry of a matrix.
    fn entry_length(&self) -> u64 {
        match &self.constraints {
            ProofConstraints::Sampled(sampled) => {
                let (values, weights) = sampled.parts();
                2 * values.length() + weights.length()
            }
            ProofConstraints::Sparse(sparse) => sparse.values.length(),
        }
    }
}

/// Bytes that a check of definiteness makes of a matrix whose entries have `entry` bits: the shifted entry and
/// denominator, the rest and its square. None is kept, but all are counted, which limits the time as well. Where the
/// factor is 0 nothing counts, since honest factors of sparse matrices are 0 in most places, two letters each; if the
/// matrix is not near to 0 there, the check ends with the row.
fn definite_bytes(order: usize, entry: u64, scales: u64, witness: &Witness) -> u64 {
    let values = witness.factor.values.iter().filter(|value| !value.is_zero());
    let count = triangle(order).min(values.count());
    bytes_of_many(3 * count, entry + 2 * witness.length() + 2 * scales + SUM_BITS)
}

fn lower_bytes(program: &Program, part: &LowerProof, shared: u64) -> u64 {
    let y = part.y.length();
    let mut sum = 0u64;
    for (group, proof) in program.groups.iter().zip(&part.groups) {
        let block = 2 * proof.blocks.iter().map(Witness::length).max().unwrap_or(0) + SUM_BITS;
        for (shape, witness) in group.shapes().iter().zip(&proof.blocks) {
            sum = sum.saturating_add(bytes_of_many(shape.stored().min(witness.factor.values.len()), block));
        }
        let entry = group.entry_length();
        let rest = group.costs.length() + group.free.length() + y + entry + block + SUM_BITS;
        // The residuals, the same with their scales, and over a common denominator: two parts each.
        sum = sum.saturating_add(bytes_of_many(4 * group.variables(), rest + proof.gram.length()));
        let count = triangle(group.gram_order()).min(proof.gram.witness.factor.values.len());
        sum = sum.saturating_add(bytes_of_many(count, 2 * entry + SUM_BITS));
        let gram = &proof.gram;
        let order = group.gram_order();
        sum = sum.saturating_add(definite_bytes(order, 2 * entry + SUM_BITS, gram.length(), &gram.witness));
        // The sums over groups.
        sum = sum.saturating_add(bytes_of_many(4, 4 * shared + 2 * (rest + proof.gram.length())));
    }
    sum
}

fn upper_bytes(program: &Program, part: &UpperProof, shared: u64) -> u64 {
    let mut sum = 0u64;
    for (group, (x, blocks)) in program.groups.iter().zip(part.x.iter().zip(&part.blocks)) {
        let entry = group.entry_length();
        for (shape, witness) in group.shapes().iter().zip(blocks) {
            let count =
                if shape.diagonal { shape.order } else { triangle(shape.order).min(witness.factor.values.len()) };
            sum = sum.saturating_add(bytes_of_many(count, entry + x.length() + SUM_BITS));
            if !shape.diagonal {
                sum = sum.saturating_add(definite_bytes(shape.order, entry + x.length() + SUM_BITS, 0, witness));
            }
        }
        sum = sum.saturating_add(bytes_of_many(4, 4 * shared + x.length() + group.costs.length() + SUM_BITS));
    }
    let Some(gram) = &part.gram else { return sum };
    let free = program.groups.iter().map(|group| group.free.length()).max().unwrap_or(0);
    let x = part.x.iter().map(Fixed::length).max().unwrap_or(0);
    let count = program.free_variables().min(gram.scales.len());
    let rest = bytes_of_many(4 * count, 2 * shared + free + x + gram.length() + SUM_BITS);
    // B, scaled, and its rounded quotients; its Gram matrix.
    let numbers = program.groups.iter().map(|group| group.free.numerators.len()).sum::<usize>();
    let bits = free_bits(numbers, gram.witness.exponent).unsigned_abs();
    let rounded = free + gram.length() + bits;
    let square = bytes_of_many(2 * numbers, rounded).saturating_add(bytes_of_many(triangle(count), 2 * rounded));
    let definite = definite_bytes(count, 2 * rounded + SUM_BITS, 0, &gram.witness);
    sum.saturating_add(rest).saturating_add(square).saturating_add(definite)
}
