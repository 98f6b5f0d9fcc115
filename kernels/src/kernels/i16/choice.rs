//! The choice of instructions for large products, if the CPU has several: measured once in a process, between the
//! operations that plan their memory.
//!
//! The order in which `lanes` names them holds for conversions and products on most processors; one that lowers its
//! clock for long vectors may be faster with shorter ones. So a small product is made over and over on each of them,
//! with its conversions: another set than the first is taken where it is a tenth faster. Bits and sizes are the same on
//! all.

use super::lanes::I16Isa;
use super::{I16Engine, I16Kernel, RESIDUE_WORDS};
use crate::error::Result;
use crate::kernels::form::Form;
use crate::kernels::{BlockResidues, EngineSpec, IntegerBlock, PanelSource, PlaneEngine, PlaneFormat, PlaneProduct};
use crate::math::processor::{Level, level};
use crate::matrix::Matrix;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use crate::store::{with_room, zeroed};
use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Multiplications of residues for each thread of an operation from which a measurement pays: a second at the rate of
/// the fastest instructions, thirty times what the measurement takes.
const LEAST_MULTIPLICATIONS: u64 = 1 << 37;

/// The number of timings of each set; the first one has cold caches.
const ROUNDS: usize = 3;

/// Seconds that a set runs before its turns count: a core that changes its clock for it has done so by then.
const WARM: f64 = 1e-3;

/// Seconds of the turns that count, of which the fastest is taken.
const COUNTED: f64 = 2e-3;

/// The part of the time of the first set that another one may take at most.
const LARGEST_PART: f64 = 0.9;

/// Rows and columns of the operand that is measured with: a few tenths of a millisecond for each turn.
const ROWS: usize = 384;
const COLUMNS: usize = 96;

/// Bits of its integers and moduli for them: some twenty primes.
const SPEC: EngineSpec = EngineSpec { operand_bits: 120, modulus_bits: 250, redundant: false };

/// The measured rates, and the choice that follows from them.
pub struct Choice {
    /// The instructions of all calls that begin from then on.
    pub isa: I16Isa,
    /// Seconds of the least turn on each set, the first ones first; none where there was nothing to choose, or no
    /// memory to measure with.
    pub times: Vec<(I16Isa, f64)>,
}

static CHOICE: OnceLock<Choice> = OnceLock::new();

/// Whether a thread measures, or has measured.
static IS_BEGUN: AtomicBool = AtomicBool::new(false);

/// The instructions of a call of an engine that was made for `own`: those that were measured as fastest, if any were,
/// where `own` is the first by order. Never measures, since its caller's memory is planned.
pub fn of_call(own: I16Isa) -> I16Isa {
    CHOICE.get().map_or(own, |choice| after(choice, own, I16Isa::detect()))
}

/// What follows from a choice for an engine made for `own`, where `first` is the first by order: tests make engines for
/// other instructions, which keep them.
fn after(choice: &Choice, own: I16Isa, first: I16Isa) -> I16Isa {
    if own == first { choice.isa } else { own }
}

/// Measures if no thread has begun to, and if `multiplications` for each thread are worth it. No thread waits for the
/// measurement of another.
pub fn settle(multiplications: u64) {
    if is_worth_it(multiplications) && !IS_BEGUN.swap(true, Ordering::Relaxed) {
        measured();
    }
}

fn is_worth_it(multiplications: u64) -> bool {
    multiplications >= LEAST_MULTIPLICATIONS
}

/// Measures, if no thread has: some thirty milliseconds on the calling thread, and 3 MB.
pub fn measured() -> &'static Choice {
    IS_BEGUN.store(true, Ordering::Relaxed);
    CHOICE.get_or_init(|| {
        let sets = candidates();
        // Without memory for the trial the order stays.
        let times = if sets.len() > 1 { measure(&sets).unwrap_or_default() } else { Vec::new() };
        Choice { isa: fastest(I16Isa::detect(), &times), times }
    })
}

/// The sets to choose from, the first of the order first. Where `SUNZI_CPU` hides instructions, the user has chosen.
fn candidates() -> Vec<I16Isa> {
    match level() {
        Level::Native => I16Isa::available().filter(|isa| !isa.is_portable()).collect(),
        _ => Vec::new(),
    }
}

/// The first set, unless another one is faster by a margin that no other work on the machine explains.
fn fastest<S: Copy>(first: S, times: &[(S, f64)]) -> S {
    let Some(&(_, own)) = times.first() else { return first };
    let best = times.iter().min_by(|(_, one), (_, other)| one.total_cmp(other));
    best.filter(|&&(_, seconds)| seconds < LARGEST_PART * own).map_or(first, |&(set, _)| set)
}

/// Seconds of the least turn on each of these sets.
fn measure(sets: &[I16Isa]) -> Result<Vec<(I16Isa, f64)>> {
    let mut trial = Trial::new()?;
    let mut times = sets.iter().map(|&isa| (isa, f64::INFINITY)).collect::<Vec<_>>();
    for _ in 0..ROUNDS {
        for (isa, seconds) in &mut times {
            *seconds = seconds.min(trial.row(*isa));
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
        let mut shifts = with_room(COLUMNS)?;
        shifts.resize(COLUMNS, bits.into());
        let limbs = engine.magnitude_limbs();
        Ok(Trial {
            operand,
            shifts,
            planes: zeroed(count * COLUMNS / BLOCK * engine.panel_words(ROWS))?,
            products: zeroed(count * engine.plane_words(&grid))?,
            scratch: zeroed(engine.scratch_words(ROWS, &grid))?,
            integers: IntegerBlock { limbs, negative: [false; BLOCK_WORDS], magnitudes: zeroed(BLOCK_WORDS * limbs)? },
            engine,
        })
    }

    /// Seconds of the least turn on one set of instructions, of a row of them after a core has its clock for it.
    fn row(&mut self, isa: I16Isa) -> f64 {
        let start = thread_seconds();
        while thread_seconds() - start < WARM {
            self.turn(isa);
        }
        let (start, mut least) = (thread_seconds(), f64::INFINITY);
        while thread_seconds() - start < COUNTED {
            least = least.min(self.turn(isa));
        }
        least
    }

    /// Seconds on one set of instructions.
    fn turn(&mut self, isa: I16Isa) -> f64 {
        let Trial { engine, operand, shifts, planes, products, scratch, integers } = self;
        engine.isa = isa;
        let start = thread_seconds();
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
        thread_seconds() - start
    }
}

/// Seconds of processor time of this thread: the time of other threads must not count.
fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
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

    /// All trials make the same products, whatever the instructions.
    #[test]
    fn trials_give_the_same_products_on_all_instructions() {
        let mut trial = Trial::new().unwrap();
        let mut found: Option<(Vec<u64>, Vec<u64>)> = None;
        for isa in I16Isa::all() {
            trial.products.fill(7);
            assert!(trial.turn(isa) > 0.0);
            let own = (trial.products.clone(), trial.integers.magnitudes[..BLOCK_WORDS].to_vec());
            assert!(found.get_or_insert_with(|| own.clone()) == &own, "{}", isa.name());
        }
    }

    /// Every set that there is to choose from has its time, and only engines of the first of the order change.
    #[test]
    fn what_is_measured_is_taken() {
        let (choice, sets) = (measured(), candidates());
        let timed = choice.times.iter().map(|&(isa, _)| isa.name()).collect::<Vec<_>>();
        let named = sets.iter().map(|isa| isa.name()).collect::<Vec<_>>();
        assert_eq!(timed, if sets.len() > 1 { named } else { Vec::new() });
        assert!(choice.times.iter().all(|&(_, seconds)| seconds > 0.0 && seconds < 1.0));
        assert!(of_call(I16Isa::detect()) == choice.isa);
        let portable = I16Isa::all().find(|isa| isa.is_portable()).unwrap();
        for first in I16Isa::all() {
            let other = Choice { isa: portable, times: Vec::new() };
            for own in I16Isa::all() {
                let want = if own == first { portable } else { own };
                assert!(after(&other, own, first) == want, "{} {}", own.name(), first.name());
            }
        }
        assert!(!is_worth_it(LEAST_MULTIPLICATIONS - 1) && is_worth_it(LEAST_MULTIPLICATIONS));
    }
}
