//! Which instructions large products run on, where the CPU has several: measured once in a process.
//!
//! The order in which `lanes` names them holds for conversions and products on most processors; one that lowers its
//! clock for long vectors may be faster with shorter ones. So a small product is made in turns on all of them, with its
//! conversions: another set than the first is taken where it is a tenth faster. Bits and sizes are the same on all.

use super::lanes::Isa;
use super::{I16Engine, I16Kernel, RESIDUE_WORDS};
use crate::error::Result;
use crate::kernels::form::Form;
use crate::kernels::{BlockResidues, EngineSpec, IntegerBlock, PanelSource, PlaneEngine, PlaneProduct};
use crate::math::processor::{Level, level};
use crate::matrix::Matrix;
use crate::plan::{BLOCK, BlockGrid};
use std::sync::OnceLock;
use std::time::Instant;

/// Multiplications of residues in one plane of a call from which on it is worth to have measured: its planes together
/// take ten times as long as that or more.
const LEAST_MULTIPLICATIONS: u64 = 1 << 27;

/// Turns, of which the fastest of each counts; the first one finds cold caches and clocks.
const TURNS: usize = 5;

/// The part of the time of the first set that another one may take at most.
const LARGEST_PART: f64 = 0.9;

/// Rows and columns of the operand that is measured with: a few tenths of a millisecond for each turn.
const ROWS: usize = 384;
const COLUMNS: usize = 96;

/// Bits of its integers and moduli for them: some twenty primes.
const SPEC: EngineSpec = EngineSpec { operand_bits: 120, modulus_bits: 250, redundant: false };

/// What was measured, and what follows.
pub struct Choice {
    /// The instructions of large calls.
    pub isa: Isa,
    /// Seconds of the least turn on each set, the first ones first; none where there was nothing to choose.
    pub times: Vec<(Isa, f64)>,
}

static CHOICE: OnceLock<Choice> = OnceLock::new();

/// The instructions of a call with so many multiplications in a plane, for an engine that was made for `own`: those
/// measured, if that has been done or is worth it now, where `own` is what the order alone says.
pub fn of_call(own: Isa, multiplications: u64) -> Isa {
    match CHOICE.get() {
        None if multiplications < LEAST_MULTIPLICATIONS => own,
        _ if own != Isa::detect() => own,
        Some(choice) => choice.isa,
        None => measured().isa,
    }
}

/// Measures, if nobody has: some ten milliseconds on the calling thread.
pub fn measured() -> &'static Choice {
    CHOICE.get_or_init(|| {
        let first = Isa::detect();
        // Who hides instructions has chosen.
        let sets = match level() {
            Level::Native => Isa::available().filter(|isa| !isa.is_portable()).collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        let times = if sets.len() > 1 { measure(&sets).unwrap_or_default() } else { Vec::new() };
        Choice { isa: fastest(first, &times), times }
    })
}

/// The first set, unless another one is faster by a margin that no other work on the machine explains.
fn fastest<S: Copy>(first: S, times: &[(S, f64)]) -> S {
    let Some(&(_, own)) = times.first() else { return first };
    let best = times.iter().min_by(|(_, one), (_, other)| one.total_cmp(other));
    best.filter(|&&(_, seconds)| seconds < LARGEST_PART * own).map_or(first, |&(set, _)| set)
}

/// Seconds of the least turn on each of these sets.
fn measure(sets: &[Isa]) -> Result<Vec<(Isa, f64)>> {
    let mut trial = Trial::new()?;
    let mut times = sets.iter().map(|&isa| (isa, f64::INFINITY)).collect::<Vec<_>>();
    for _ in 0..TURNS {
        for (isa, seconds) in &mut times {
            *seconds = seconds.min(trial.turn(*isa));
        }
    }
    Ok(times)
}

/// A product with its conversions.
struct Trial {
    engine: I16Engine,
    operand: Matrix,
    shifts: Vec<i64>,
    planes: Vec<u64>,
    products: Vec<u64>,
    scratch: Vec<u64>,
    integers: IntegerBlock,
}

impl Trial {
    fn new() -> Result<Trial> {
        let engine = I16Kernel.engine(&SPEC, Form::Rows)?;
        let (bits, grid) = (SPEC.operand_bits, BlockGrid::triangle(COLUMNS));
        let mut operand = Matrix::zeros(ROWS, COLUMNS, bits)?;
        let (heads, limbs) = operand.parts_mut();
        let mut state = 1u64;
        for limb in limbs.iter_mut() {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            *limb = state | 1 << 63;
        }
        heads.fill(crate::math::float::Head::new(false, 0).0);
        let count = engine.moduli().len();
        Ok(Trial {
            operand,
            shifts: vec![bits.into(); COLUMNS],
            planes: vec![0; count * COLUMNS / BLOCK * engine.panel_words(ROWS)],
            products: vec![0; count * engine.plane_words(&grid)],
            scratch: vec![0; engine.scratch_words(ROWS, &grid)],
            integers: IntegerBlock::new(engine.magnitude_limbs()),
            engine,
        })
    }

    /// Seconds on one set of instructions.
    fn turn(&mut self, isa: Isa) -> f64 {
        let Trial { engine, operand, shifts, planes, products, scratch, integers } = self;
        engine.isa = isa;
        let start = Instant::now();
        let (count, grid) = (engine.moduli().len(), BlockGrid::triangle(COLUMNS));
        let (panel, plane) = (engine.panel_words(ROWS), planes.len() / count);
        for first in (0..COLUMNS).step_by(BLOCK) {
            let source =
                PanelSource { view: operand.view(), columns: first..first + BLOCK, rows: 0..ROWS, shifts: &shifts[..] };
            let at = first / BLOCK * panel;
            let mut own = planes.chunks_exact_mut(plane).map(|words| &mut words[at..at + panel]).collect::<Vec<_>>();
            engine.to_residues(0..count, &source, &mut own, scratch);
        }
        let words = engine.plane_words(&grid);
        for (prime, (x, c)) in planes.chunks_exact(plane).zip(products.chunks_exact_mut(words)).enumerate() {
            let blocks = 0..grid.len();
            let product = PlaneProduct { x, y: x, rows: ROWS, grid, blocks, accumulate: false };
            engine.multiply(prime, &product, c, scratch);
        }
        for block in 0..grid.len() {
            let offset = block * RESIDUE_WORDS;
            let residues = BlockResidues { window: products, plane_words: words, offset };
            engine.reconstruct(&residues, integers, scratch);
        }
        start.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::BLOCK_WORDS;

    #[test]
    fn another_set_than_the_first_is_taken_where_it_is_a_tenth_faster() {
        let first =
            |times: &[f64]| fastest('a', &['a', 'b', 'c'].into_iter().zip(times.iter().copied()).collect::<Vec<_>>());
        assert_eq!(first(&[]), 'a');
        assert_eq!(first(&[1.0, 0.95, 0.91]), 'a');
        assert_eq!(first(&[1.0, 1.2, 0.89]), 'c');
        assert_eq!(first(&[1.0, 0.7, 0.8]), 'b');
        assert_eq!(first(&[1.0, f64::INFINITY, 2.0]), 'a');
    }

    /// All turns make the same products, whatever the instructions; small calls measure nothing.
    #[test]
    fn trials_give_the_same_products_on_all_instructions() {
        let mut trial = Trial::new().unwrap();
        let mut found: Option<(Vec<u64>, Vec<u64>)> = None;
        for isa in Isa::all() {
            trial.products.fill(7);
            assert!(trial.turn(isa) > 0.0);
            let own = (trial.products.clone(), trial.integers.magnitudes[..BLOCK_WORDS].to_vec());
            assert!(found.get_or_insert_with(|| own.clone()) == &own, "{}", isa.name());
        }
        for isa in Isa::all() {
            let chosen = of_call(isa, 0);
            assert!(chosen == isa || isa == Isa::detect(), "{}", isa.name());
        }
        let choice = measured();
        assert!(choice.times.is_empty() || choice.times.len() > 1);
        assert!(Isa::available().any(|isa| isa == choice.isa) && of_call(Isa::detect(), u64::MAX) == choice.isa);
    }
}
