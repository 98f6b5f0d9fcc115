//! Random calls: every function, distributions, empty parts, ranks outside of grids, grading, limits, one fault.

use crate::common::{Kind, number};
use crate::dealt::{Choice, Deal, Rng, Whole};
use crate::problem::{Problem, Verb, Wrong};
use rug::Float;
use rug::float::Special;
use sunzi_c::*;

/// Which operand of a verb is which kind of matrix.
#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Any,
    Triangle(i32),
    Definite(i32),
}

/// What all numbers of a problem have in common.
struct Numbers {
    bits: u32,
    /// Whether every entry has bits of its own.
    mixed: bool,
    /// Bits by which neighbouring rows and columns differ.
    step: i32,
    seed: u64,
}

/// Rows and columns are graded by as many steps.
fn grade(index: usize) -> i32 {
    (5 * index as i32) % 7
}

impl Numbers {
    fn any(rng: &mut Rng) -> Numbers {
        let (bits, mixed) = (rng.pick(&[53, 64, 100, 200, 512]), rng.once_in(3));
        Numbers { bits, mixed, step: rng.pick(&[0, 0, 1, 100, 330]), seed: rng.word() }
    }

    fn entry(&self, operand: usize, row: usize, col: usize) -> Float {
        let seed = self.seed ^ (operand * 1_000_003 + row * 1009 + col) as u64;
        let more = if self.mixed { (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % 130 } else { 0 };
        number(seed, self.bits + more)
    }

    fn matrix(&self, operand: usize, shape: (usize, usize), sort: Sort) -> Whole {
        Whole::new(shape, |row, col| {
            let (low, high) = if sort == Sort::Any { (row, col) } else { (row.max(col), row.min(col)) };
            let entry = self.entry(operand, low, high);
            let (down, right) = (grade(row) * self.step, grade(col) * self.step);
            match sort {
                Sort::Any => entry << (down - right),
                Sort::Triangle(_) if row == col => 1 + entry.abs(),
                Sort::Triangle(_) => (entry >> 6u32) << (down - right),
                Sort::Definite(_) if row == col => (1 + entry.abs()) << (down + right),
                Sort::Definite(_) => (entry >> 6u32) << (down + right),
            }
        })
    }
}

fn any_verb(rng: &mut Rng) -> Verb {
    let uplo = rng.pick(&[SUNZI_LOWER, SUNZI_UPPER]);
    let (both, to) = (rng.pick(&[SUNZI_LOWER, SUNZI_UPPER, SUNZI_BOTH]), rng.pick(&[SUNZI_LOWER, SUNZI_UPPER]));
    let transposes = [SUNZI_NO_TRANS, SUNZI_TRANS];
    match rng.below(12) {
        0 => Verb::Syrk { uplo: both, trans: rng.pick(&transposes) },
        1 => Verb::Gemm { trans: [0; 2].map(|_| rng.pick(&transposes)) },
        2 => Verb::Cholesky { uplo: both },
        3 => Verb::Solve { uplo: both },
        4 => Verb::Inverse { uplo: both },
        5 | 6 => Verb::CholeskySolve { uplo },
        7 => Verb::LogDet { uplo },
        8 => match rng.below(4) {
            0 => Verb::FactorGet { uplo: both, to },
            1 => Verb::FactorInverse { uplo: both },
            2 => Verb::FactorLogDet { uplo: both },
            _ => Verb::FactorSolve { uplo: both },
        },
        _ => Verb::Trsm {
            side: rng.pick(&[SUNZI_LEFT, SUNZI_RIGHT]),
            uplo,
            trans: rng.pick(&transposes),
            diag: rng.pick(&[SUNZI_NON_UNIT, SUNZI_NON_UNIT, SUNZI_UNIT]),
        },
    }
}

/// The shapes and sorts of a verb's operands.
fn operands(verb: Verb, rng: &mut Rng) -> Vec<((usize, usize), Sort)> {
    let (n, m, k) =
        (rng.pick(&[0, 1, 2, 5, 9, 17, 20, 33, 60]), rng.pick(&[0, 1, 2, 3, 4, 7, 8, 9, 20]), rng.pick(&[0, 1, 4, 19]));
    let turned = |trans: i32, (rows, cols)| if trans == SUNZI_TRANS { (cols, rows) } else { (rows, cols) };
    let square = |sort| ((n, n), sort);
    match verb {
        Verb::Syrk { uplo, trans } => vec![(turned(trans, (n, k)), Sort::Any), square(Sort::Definite(uplo))],
        Verb::Gemm { trans: [a, b] } => {
            vec![(turned(a, (n, k)), Sort::Any), (turned(b, (k, m)), Sort::Any), ((n, m), Sort::Any)]
        }
        Verb::Trsm { side, uplo, .. } => {
            let right = if side == SUNZI_LEFT { (n, m) } else { (m, n) };
            vec![square(Sort::Triangle(uplo)), (right, Sort::Any)]
        }
        Verb::Cholesky { uplo } => vec![square(Sort::Definite(uplo))],
        Verb::Solve { uplo } | Verb::FactorSolve { uplo } => {
            vec![square(Sort::Definite(uplo)), ((n, m), Sort::Any)]
        }
        Verb::Inverse { uplo } | Verb::FactorInverse { uplo } | Verb::FactorGet { uplo, .. } => {
            vec![square(Sort::Definite(uplo)), square(Sort::Any)]
        }
        Verb::CholeskySolve { uplo } => vec![square(Sort::Triangle(uplo)), ((n, m), Sort::Any)],
        Verb::LogDet { uplo } => vec![square(Sort::Triangle(uplo))],
        Verb::FactorLogDet { uplo } => vec![square(Sort::Definite(uplo))],
    }
}

/// A problem for each seed, and the ranks that it is for.
pub fn any(seed: u64) -> (Problem, usize) {
    let mut rng = Rng(seed);
    let rng = &mut rng;
    let (ranks, verb, numbers) = (1 + rng.below(4), any_verb(rng), Numbers::any(rng));
    let sorts = operands(verb, rng);
    let twins = matches!(verb, Verb::Syrk { uplo: SUNZI_LOWER | SUNZI_UPPER, .. })
        || matches!(verb, Verb::Cholesky { uplo: SUNZI_LOWER | SUNZI_UPPER })
        || matches!(verb, Verb::Gemm { .. } | Verb::Trsm { .. } | Verb::CholeskySolve { .. });
    let scalapack = twins && rng.once_in(3);
    let wholes = sorts.iter().enumerate().map(|(at, (shape, sort))| numbers.matrix(at, *shape, *sort));
    let operands = wholes.collect::<Vec<_>>();
    let deals = operands.iter().map(|of| deal(rng, (of.rows, of.cols), ranks, scalapack)).collect();
    let (alone, kinds) = kinds(rng, ranks, numbers.mixed, scalapack);
    let scalar = |rng: &mut Rng| match rng.below(6) {
        0 => Some(Float::with_val(64, 0)),
        1 => Some(number(rng.word(), 90)),
        2 => Some(Float::with_val(64, -3)),
        _ => None,
    };
    let (alpha, beta) = (scalar(rng), scalar(rng));
    let choice = Choice {
        accuracy: if scalapack { 0 } else { rng.pick(&[0, 0, SUNZI_NORM]) },
        memory_bytes: rng.pick(&[0, 0, 0, 1 << 40, 1 << 15, 1 << 18, 1 << 21]),
    };
    let asks = (0..ranks).map(|_| !rng.once_in(3)).collect();
    let number_bits = rng.pick(&[64, 200]);
    let mut problem = Problem {
        verb,
        scalapack,
        alpha,
        beta,
        operands,
        deals,
        alone,
        kinds,
        number_bits,
        asks,
        choice,
        fault: None,
        wrong: None,
    };
    hide(rng, &mut problem, &sorts);
    if !scalapack && rng.once_in(12) {
        let wrong = rng.pick(&[Wrong::Format, Wrong::Layout, Wrong::Distance]);
        problem.wrong = Some((rng.below(ranks), rng.below(sorts.len()), wrong));
    } else {
        spoil(rng, &mut problem, &sorts);
    }
    (problem, ranks)
}

fn deal(rng: &mut Rng, shape: (usize, usize), ranks: usize, scalapack: bool) -> Deal {
    let mut deal = Deal::any(rng, shape, ranks);
    if scalapack {
        deal.along = [SUNZI_ALONG_GRID_ROW, SUNZI_ALONG_GRID_COL];
        deal.block = [0; 2].map(|_| rng.pick(&[1, 2, 5, 16]));
        deal.first = [0, 1].map(|axis| rng.below(deal.grid[axis]));
    }
    deal
}

/// The arrays of one process and of the ranks, whose entries are of kinds with the same precisions.
fn kinds(rng: &mut Rng, ranks: usize, mixed: bool, scalapack: bool) -> ((Kind, i32), Vec<(Kind, i32)>) {
    let layouts = [SUNZI_ROW_MAJOR, SUNZI_COL_MAJOR];
    if scalapack {
        return ((Kind::Mpfr, SUNZI_COL_MAJOR), vec![(Kind::Mpfr, SUNZI_COL_MAJOR); ranks]);
    }
    let of_all = rng.pick(&[Kind::Mpfr, Kind::Mpfr, Kind::Mpf]);
    let kinds = if of_all == Kind::Mpf || mixed { [of_all; 2] } else { [Kind::Mpfr, Kind::Limbs] };
    ((of_all, rng.pick(&layouts)), (0..ranks).map(|_| (rng.pick(&kinds), rng.pick(&layouts))).collect())
}

/// Makes no numbers of entries that no call may read.
fn hide(rng: &mut Rng, problem: &mut Problem, sorts: &[((usize, usize), Sort)]) {
    if problem.kinds.iter().any(|(kind, _)| *kind != Kind::Mpfr) || rng.once_in(2) {
        return;
    }
    for (whole, (_, sort)) in problem.operands.iter_mut().zip(sorts) {
        let (Sort::Triangle(uplo) | Sort::Definite(uplo)) = *sort else { continue };
        for col in 0..whole.cols {
            for row in (0..whole.rows).filter(|&row| !crate::common::within(uplo, row, col)) {
                let bits = whole.at(row, col).prec();
                *whole.at_mut(row, col) = Float::with_val(bits, Special::Nan);
            }
        }
    }
}

/// Puts a fault into one entry, sometimes.
fn spoil(rng: &mut Rng, problem: &mut Problem, sorts: &[((usize, usize), Sort)]) {
    let at = rng.below(sorts.len());
    let ((rows, cols), sort) = sorts[at];
    if rows * cols == 0 || !rng.once_in(3) {
        return;
    }
    let (mut row, mut col) = (rng.below(rows), rng.below(cols));
    let bits = problem.operands[at].at(row, col).prec();
    let value = match (rng.below(4), sort) {
        (0 | 1, _) if problem.kinds.iter().all(|(kind, _)| *kind == Kind::Mpfr) => Float::with_val(bits, Special::Nan),
        (2, Sort::Triangle(_) | Sort::Definite(_)) => {
            (row, col) = (row.min(cols - 1), row.min(cols - 1));
            Float::new(problem.operands[at].at(row, col).prec())
        }
        (3, _) => problem.operands[at].at(row, col).clone() << ((1u32 << 30) - 5000),
        _ => return,
    };
    *problem.operands[at].at_mut(row, col) = value;
    problem.fault = Some([at, row, col]);
}
