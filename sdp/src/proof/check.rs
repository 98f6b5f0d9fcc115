//! Checks proofs: all numbers are rational and exact, every inequality is decided in integers.
//!
//! The theorem and its proof: docs/CHECKS.md, "Certificates of semidefinite programs". Independent of: the solver, how
//! proofs are found.

use super::certificate::{GramProof, LowerGroup, LowerProof, Proof, UpperProof, free_bits};
use super::definite::{Witness, is_definite, shifted_product};
use super::group::ProofGroup;
use super::limits::MAXIMUM_EXPONENT;
use super::program::Program;
use super::room::Room;
use super::scaled::{Fixed, Scaled, power_of_two, triangle};
use super::shape::{Gram, ProofShape};
use super::sizes::{check_samplings, check_sizes};
use rug::Rational;
use sunzi::{Error, Result};

/// The message where a Gram matrix has another factor.
const DEPENDENT: &str = "the proof does not show that the Gram matrix of the equations is positive definite";

/// The reason why a proof is refused.
type Refusal<T> = std::result::Result<T, String>;

/// Checks a proof against its program.
///
/// A lower bound: there is a dual feasible point with at least this objective, so no primal feasible point has a
/// smaller one. An upper bound: there is a primal feasible point with at most this objective, so no dual feasible point
/// has a larger one. A ray: the opposite program has no feasible point.
///
/// Accuracy: exact; numbers are rounded in the safe direction, and rounding errors are included. Cost, in integers of
/// the lengths of the certificate's numbers: `n^3 / 6` products for each factor of n rows, on `threads` threads; for a
/// polynomial matrix of m rows at D points `m^2 D^3 / 8` for its equations and as many for X, `D^3 / 2` for its Gram
/// matrix; `P N^2 / 2` for the equations of N free variables with P numbers in each. Memory: docs/SDP.md has all
/// limits. Source: docs/CHECKS.md, "Certificates of semidefinite programs".
///
/// # Errors
/// [`Error::Verification`] with the first statement that is not proven.
pub fn verify(program: &Program, proof: &Proof, threads: usize) -> Result<()> {
    let refused = |side: &str, message: String| Error::verification(format!("{side}: {message}"));
    if proof.digest != program.digest {
        let (found, wanted) = (&proof.digest, &program.digest);
        return Err(Error::verification(format!(
            "the proof belongs to another program: its digest is {found} instead of {wanted}"
        )));
    }
    if proof.is_empty() {
        return Err(Error::verification("the proof has neither a bound nor a ray"));
    }
    if let Some(exponent) =
        proof.exponents().into_iter().find(|exponent| !(-MAXIMUM_EXPONENT..=MAXIMUM_EXPONENT).contains(exponent))
    {
        return Err(Error::verification(format!(
            "the proof contains 2^{exponent}, but exponents are limited to +-{MAXIMUM_EXPONENT}"
        )));
    }
    let room = Room::new(program.bytes.saturating_add(proof.bytes()));
    check_samplings(&room, program, &proof.samplings).map_err(Error::verification)?;
    let program = &*program.at(&proof.samplings).map_err(Error::verification)?;
    check_sizes(&room, program, proof).map_err(Error::verification)?;
    if let Some(lower) = &proof.lower {
        check_lower(program, lower, threads).map_err(|message| refused("lower bound", message))?;
    }
    if let Some(upper) = &proof.upper {
        check_upper(program, upper, threads).map_err(|message| refused("upper bound", message))?;
    }
    let wrong_side = || Err("its objective has the wrong sign".to_string());
    if let Some(ray) = &proof.no_primal {
        let found = if ray.claim > 0 { check_lower(&program.without_costs(), ray, threads) } else { wrong_side() };
        found.map_err(|message| refused("dual ray", message))?;
    }
    if let Some(ray) = &proof.no_dual {
        let found =
            if ray.claim < 0 { check_upper(&program.without_right_sides(), ray, threads) } else { wrong_side() };
        found.map_err(|message| refused("primal ray", message))?;
    }
    Ok(())
}

impl Witness {
    fn exponents(&self) -> [i64; 2] {
        [self.exponent, self.factor.bits.into()]
    }
}

impl GramProof {
    fn exponents(&self) -> impl Iterator<Item = i64> {
        self.scales.iter().copied().chain(self.witness.exponents())
    }
}

impl Proof {
    /// The exponents of all powers of two that it names.
    fn exponents(&self) -> Vec<i64> {
        let mut all = self.samplings.iter().flat_map(|sampling| sampling.exponents.iter().copied()).collect::<Vec<_>>();
        for part in [&self.lower, &self.no_primal].into_iter().flatten() {
            all.push(part.y.bits.into());
            all.extend(part.groups.iter().flat_map(|group| group.gram.exponents()));
            all.extend(part.groups.iter().flat_map(|group| group.blocks.iter().flat_map(Witness::exponents)));
        }
        for part in [&self.upper, &self.no_dual].into_iter().flatten() {
            all.extend(part.x.iter().map(|x| i64::from(x.bits)));
            all.extend(part.gram.iter().flat_map(GramProof::exponents));
            all.extend(part.blocks.iter().flatten().flat_map(Witness::exponents));
        }
        all
    }

    /// A proof without statements.
    pub fn new(digest: &str) -> Proof {
        Proof { digest: digest.into(), samplings: Vec::new(), lower: None, upper: None, no_primal: None, no_dual: None }
    }

    /// Whether it has no statements.
    pub fn is_empty(&self) -> bool {
        self.lower.is_none() && self.upper.is_none() && self.no_primal.is_none() && self.no_dual.is_none()
    }
}

fn wrong_length(what: &str, found: usize, wanted: usize) -> Refusal<()> {
    match found == wanted {
        true => Ok(()),
        false => Err(format!("{what}: {found} in the proof, {wanted} in the program")),
    }
}

/// Whether a proof is of a Gram matrix of `order` rows, before it is computed: the memory that takes is then no more
/// than that of the proof.
fn is_of_order(proof: &GramProof, order: usize) -> Refusal<()> {
    wrong_length("scales of equations", proof.scales.len(), order)?;
    wrong_length("numbers of a factor", proof.witness.factor.values.len(), triangle(order))
}

/// The square of the largest correction, in the Frobenius norm, that makes equations with these residuals exact, where
/// their scaled Gram matrix is shown to be at least half of tau.
fn correction_of(rest: &[Rational], repeats: &[u32], proof: &GramProof) -> Rational {
    let order = proof.scales.len();
    let scaled = rest.iter().enumerate().map(|(at, rest)| rest * power_of_two(proof.scales[at % order]));
    let scaled = Scaled::new(&scaled.collect::<Vec<_>>());
    scaled.squares(0..rest.len(), |at| repeats[at / order]) * power_of_two(1 - proof.witness.exponent)
}

/// The square of the size of the correction for the equations of a group.
///
/// # Errors
/// A text where the Gram matrix is not shown to be positive definite.
fn correction_square(gram: &Gram, rest: &[Rational], proof: &GramProof, threads: usize) -> Refusal<Rational> {
    is_of_order(proof, gram.order)?;
    wrong_length("residuals", rest.len(), gram.order * gram.repeats.len())?;
    match is_definite(&gram.matrix, &proof.scales, &proof.witness, threads) {
        true => Ok(correction_of(rest, &gram.repeats, proof)),
        false => Err(DEPENDENT.into()),
    }
}

/// The square of the size of the correction for the equations of the free variables.
///
/// # Errors
/// A text where the Gram matrix is not shown to be positive definite.
fn free_correction(program: &Program, x: &[Fixed], proof: &GramProof, threads: usize) -> Refusal<Rational> {
    is_of_order(proof, program.free_variables())?;
    let numbers = program.groups.iter().map(|group| group.free.numerators.len()).sum();
    let bits = free_bits(numbers, proof.witness.exponent);
    let bits = u32::try_from(bits).map_err(|_| format!("2^{} is out of range", proof.witness.exponent))?;
    let gram = program.free_gram(&proof.scales, bits);
    if !is_definite(&gram, &vec![0; proof.scales.len()], &proof.witness, threads) {
        return Err(DEPENDENT.into());
    }
    // The part cut off reduces half of tau by less than 2^-20 of it.
    let lost = Rational::from((1 << 19, (1 << 19) - 1));
    Ok(correction_of(&program.free_rest(x), &[1], proof) * lost)
}

/// Y as the proof has it.
///
/// # Errors
/// A text with the block, from 1.
pub fn dual_blocks(shapes: &[ProofShape], blocks: &[Witness]) -> Refusal<Vec<Fixed>> {
    wrong_length("blocks of Y", blocks.len(), shapes.len())?;
    let block = |(at, (shape, witness)): (usize, (&ProofShape, &Witness))| {
        wrong_length(&format!("numbers of block {}", at + 1), witness.factor.values.len(), shape.stored())?;
        let below = || format!("block {}: tau is smaller than the last bit of the numbers in the proof", at + 1);
        if !shape.diagonal {
            return shifted_product(witness, shape.order).ok_or_else(below);
        }
        match is_at_least(&witness.factor, witness.exponent) {
            true => Ok(witness.factor.clone()),
            false => Err(format!("block {}: a number on the diagonal is below tau", at + 1)),
        }
    };
    shapes.iter().zip(blocks).enumerate().map(block).collect()
}

/// Whether no number is below `2^exponent`.
fn is_at_least(numbers: &Fixed, exponent: i64) -> bool {
    let bound = power_of_two(exponent + i64::from(numbers.bits));
    numbers.values.iter().all(|value| *value >= bound)
}

/// Y of one group, and the square of the correction that makes its equations exact.
///
/// # Errors
/// A text.
pub fn lower_group(
    group: &ProofGroup,
    y: &Fixed,
    proof: &LowerGroup,
    threads: usize,
) -> Refusal<(Vec<Fixed>, Rational)> {
    is_of_order(&proof.gram, group.gram_order())?;
    let blocks = dual_blocks(&group.shapes(), &proof.blocks)?;
    let mut rest = group.rest(y);
    rest.iter_mut().zip(group.pairings(&blocks)).for_each(|(rest, pairing)| *rest -= pairing);
    let square = correction_square(&group.gram(), &rest, &proof.gram, threads)?;
    Ok((blocks, square))
}

/// The dual objective at the point of a proof, and a number whose square root bounds the change of it by the
/// correction.
///
/// # Errors
/// A text that names what is not shown.
pub fn lower_value(program: &Program, proof: &LowerProof, threads: usize) -> Refusal<(Rational, Rational)> {
    wrong_length("free variables", proof.y.values.len(), program.free_variables())?;
    wrong_length("groups", proof.groups.len(), program.groups.len())?;
    let mut value = program.constant.clone() + program.objective.dot(0, &proof.y);
    let (mut corrections, mut constants) = (Rational::new(), Rational::new());
    for (number, (group, part)) in program.groups.iter().zip(&proof.groups).enumerate() {
        let named = |message: String| format!("group {}: {message}", number + 1);
        let (blocks, square) = lower_group(group, &proof.y, part, threads).map_err(named)?;
        for (at, block) in part.blocks.iter().enumerate() {
            if square > power_of_two(2 * block.exponent) {
                return Err(named(format!("the correction may make block {} indefinite", at + 1)));
            }
        }
        value += group.constant_pairing(&blocks);
        corrections += square;
        constants += group.constant_square();
    }
    Ok((value, corrections * constants))
}

fn check_lower(program: &Program, proof: &LowerProof, threads: usize) -> Refusal<()> {
    let (value, square) = lower_value(program, proof, threads)?;
    let distance = value - &proof.claim;
    match distance >= 0 && distance.square() >= square {
        true => Ok(()),
        false => Err("the proof does not show that the dual objective reaches the claimed bound".into()),
    }
}

/// The primal objective at the point of a proof, and a number whose square root bounds the change by the correction.
///
/// # Errors
/// A text that names what is not shown.
pub fn upper_value(program: &Program, proof: &UpperProof, threads: usize) -> Refusal<(Rational, Rational)> {
    wrong_length("groups", proof.x.len(), program.groups.len())?;
    wrong_length("groups", proof.blocks.len(), program.groups.len())?;
    for (group, x) in program.groups.iter().zip(&proof.x) {
        wrong_length("variables", x.values.len(), group.variables())?;
    }
    let correction = match (&proof.gram, program.free_variables()) {
        (_, 0) => Rational::new(),
        (None, _) => return Err("the proof omits the equations of the free variables".into()),
        (Some(gram), _) => free_correction(program, &proof.x, gram, threads)?,
    };
    for (number, (group, (x, blocks))) in program.groups.iter().zip(proof.x.iter().zip(&proof.blocks)).enumerate() {
        let shapes = group.shapes();
        wrong_length("blocks of X", blocks.len(), shapes.len())?;
        for (cone, (shape, witness)) in shapes.iter().zip(blocks).enumerate() {
            let named = |message: &str| Err(format!("group {}, block {}: {message}", number + 1, cone + 1));
            let wanted = if shape.diagonal { 0 } else { triangle(shape.order) };
            wrong_length("numbers of a factor", witness.factor.values.len(), wanted)?;
            if !is_inside(&group.slack(cone, x), *shape, witness, threads) {
                return named("the proof does not show that X is positive definite");
            }
            if group.square_sum(cone) * &correction > power_of_two(2 * witness.exponent - 2) {
                return named("the correction may make X indefinite");
            }
        }
    }
    Ok((program.primal_objective(&proof.x), correction * program.costs_square()))
}

/// Whether a block is shown to be at least `tau / 2` times the identity.
pub fn is_inside(block: &Scaled, shape: ProofShape, witness: &Witness, threads: usize) -> bool {
    if !shape.diagonal {
        return is_definite(block, &vec![0; shape.order], witness, threads);
    }
    let bound = power_of_two(witness.exponent - 1) * &block.denominator;
    witness.factor.values.is_empty() && block.numerators.iter().all(|entry| *entry >= bound)
}

fn check_upper(program: &Program, proof: &UpperProof, threads: usize) -> Refusal<()> {
    let (value, square) = upper_value(program, proof, threads)?;
    let distance = Rational::from(&proof.claim - &value);
    match distance >= 0 && distance.square() >= square {
        true => Ok(()),
        false => Err("the proof does not show that the primal objective reaches the claimed bound".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::{Complete, Integer};

    #[test]
    fn what_is_cut_off_is_as_small_as_the_lemma_asks_and_a_bit_less_is_not() {
        for numbers in [1usize, 2, 3, 4, 5, 1023, 1024, 1025] {
            for exponent in [-300i64, -7, -1, 0, 1, 40] {
                let bits = free_bits(numbers, exponent);
                let all = |bits: i64| power_of_two(-bits) * Integer::from(numbers);
                let most = power_of_two(-24) * power_of_two(exponent.min(0));
                assert!(all(bits) <= most && all(bits - 1) > most, "{numbers} {exponent}");
                // (1 - 2^-24 min(tau, 1) / sqrt(tau / 2))^2 >= 1 - 2^-19, squared away: the quotient is below 2^-21.
                let quotient = most.square_ref().complete() * 2u32 / power_of_two(exponent);
                assert!(quotient <= power_of_two(-42));
            }
        }
    }

    /// `B = [[1/3, -1], [2, 1/7]]` in two groups, with columns times 2 and 1/4.
    #[test]
    fn the_gram_matrix_of_free_variables_is_that_of_the_numbers_cut_off() {
        let rows = [[(1, 3), (-1, 1)], [(2, 1), (1, 7)]].map(|row| row.map(Rational::from));
        let group = |row: &[Rational; 2]| {
            let sparse =
                super::super::sparse::ProofSparse { shapes: Vec::new(), places: Vec::new(), values: Scaled::new(&[]) };
            let constraints = super::super::group::ProofConstraints::Sparse(sparse);
            ProofGroup { costs: Scaled::zeros(1), free: Scaled::new(row), constraints }
        };
        let program =
            Program { objective: Scaled::zeros(2), groups: rows.iter().map(group).collect(), ..Program::empty() };
        let found = program.free_gram(&[1, -2], 10);
        // Units of 2^-10: [682, -256], [4096, 36].
        assert_eq!(found.denominator, Integer::from(1 << 20));
        let wanted = [682 * 682 + 4096 * 4096, 682 * -256 + 4096 * 36, 256 * 256 + 36 * 36];
        assert_eq!(found.numerators, wanted.map(Integer::from));
    }

    /// The program `min x` with `X = x >= 0` and the equation `x = 1`, a free variable's; a proof at the point x.
    fn one_equation(x: Rational) -> (Program, UpperProof) {
        use super::super::{group::ProofConstraints, sparse::Place, sparse::ProofSparse};
        let one = || Scaled::new(&[Rational::from(1)]);
        let places = vec![Place { variable: Some(0), cone: 0, row: 0, col: 0 }];
        let sparse = ProofSparse { shapes: vec![ProofShape { order: 1, diagonal: true }], places, values: one() };
        let group = ProofGroup { costs: one(), free: one(), constraints: ProofConstraints::Sparse(sparse) };
        let program = Program { objective: one(), groups: vec![group], ..Program::empty() };
        // The Gram matrix is 1, and 1 = 181^2 / 2^16 + 1/2 but for 2^-12: tau is 1/2.
        let factor = |bits: u32, values: Vec<Integer>| Fixed { bits, values };
        let witness = Witness { exponent: -1, factor: factor(8, vec![Integer::from(181)]) };
        let gram = Some(GramProof { scales: vec![0], witness });
        let x = vec![factor(24, vec![Integer::from((x << 24u32).floor_ref())])];
        let blocks = vec![vec![Witness { exponent: 0, factor: factor(0, Vec::new()) }]];
        (program, UpperProof { claim: Rational::from(100), x, gram, blocks })
    }

    /// With `X >= tau / 2`, tau = 1, the correction may be 1/2 and no more; it is twice the residual of the equation.
    #[test]
    fn a_correction_beyond_half_of_tau_is_refused() {
        let check = |missing: (i32, i32)| {
            let (program, proof) = one_equation(Rational::from(1) - Rational::from(missing));
            check_upper(&program, &proof, 1)
        };
        for missing in [(0, 1), (1, 8), ((1 << 18) - 2, 1 << 20)] {
            assert_eq!(check(missing), Ok(()), "{missing:?}");
        }
        for missing in [(1, 4), (3, 8), (7, 16)] {
            let message = check(missing).unwrap_err();
            assert!(message.contains("the correction may make X indefinite"), "{missing:?}: {message}");
        }
    }
}
