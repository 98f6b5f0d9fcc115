//! SDPA's result file, as SDPA-GMP writes it. Its primal problem is `min c^T x`, as here.

use super::decimal;
use super::text::braces;
use crate::block::Block;
use crate::iterate::{Solution, Termination};
use crate::options::SolverOptions;
use rug::Float;
use std::fmt::Write;

/// SDPA's name of the final state of a run.
pub fn phase(solution: &Solution, options: &SolverOptions) -> &'static str {
    let primal = *solution.quality.primal_error() < options.primal_error_threshold;
    let dual = solution.quality.dual_error < options.dual_error_threshold;
    match (solution.termination, primal, dual) {
        (Termination::PrimalDualOptimal, ..) => "pdOPT",
        (Termination::PrimalUnbounded, ..) => "pUNBD",
        (Termination::DualUnbounded, ..) => "dUNBD",
        (Termination::PrimalInfeasible, _, true) => "pINF_dFEAS",
        (Termination::DualInfeasible, true, _) => "pFEAS_dINF",
        (Termination::PrimalInfeasible | Termination::DualInfeasible, ..) => "pdINF",
        (_, true, true) => "pdFEAS",
        (_, true, false) => "pFEAS",
        (_, false, true) => "dFEAS",
        (_, false, false) => "noINFO",
    }
}

fn blocks(text: &mut String, name: &str, blocks: &[Block]) {
    let _ = writeln!(text, "{name} = \n{{");
    for block in blocks {
        let _ = match block {
            Block::Diagonal(diagonal) => {
                writeln!(text, "{}", braces((0..diagonal.rows()).map(|row| diagonal.float(row, 0))))
            }
            Block::Dense(matrix) => {
                let row = |row: usize| braces((0..matrix.cols()).map(move |col| matrix.float(row, col)));
                writeln!(text, "{{ {} }}", (0..matrix.rows()).map(row).collect::<Vec<_>>().join(",\n  "))
            }
        };
    }
    text.push_str("}\n");
}

/// The rows of all blocks together, and `X . Y`.
fn complementarity(solution: &Solution) -> (usize, Float) {
    let bits = solution.quality.primal_objective.prec();
    let mut sum = Float::new(bits);
    let mut rows = 0;
    for (x, y) in solution.point.primal.iter().zip(&solution.point.dual) {
        let (x, y) = (x.stored(), y.stored());
        rows += x.rows();
        for (row, col) in (0..x.cols()).flat_map(|col| (0..x.rows()).map(move |row| (row, col))) {
            sum += x.float(row, col) * y.float(row, col);
        }
    }
    (rows, sum)
}

/// A number with `digits` digits, as C's `%e` writes it.
fn scientific(value: &Float, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    match text.split_once('e').map(|(digits, exponent)| (digits, exponent.parse::<i64>())) {
        Some((digits, Ok(exponent))) => format!("{digits}e{exponent:+03}"),
        _ if value.is_zero() => format!("{:.*}e+00", digits - 1, 0.0),
        _ => text,
    }
}

/// The choices of the run under SDPA's names, where it has them.
fn parameters(options: &SolverOptions, bits: u32) -> String {
    let mut text = String::from("Parameters are\n** Parameters **\n");
    let _ = writeln!(text, "maxIteration =    {}", options.max_iterations);
    let bound = |value: &Option<Float>| value.as_ref().map_or("none".into(), |value| scientific(value, 4));
    let lines = [
        ("epsilonStar", scientific(&options.duality_gap_threshold, 4)),
        ("lambdaStar", scientific(&options.initial_matrix_scale_primal, 4)),
        ("lowerBound", bound(&options.lower_bound)),
        ("upperBound", bound(&options.upper_bound)),
        ("betaStar", scientific(&options.feasible_centering_parameter, 4)),
        ("betaBar", scientific(&options.infeasible_centering_parameter, 4)),
        ("gammaStar", scientific(&options.step_length_reduction, 4)),
        ("epsilonDash", scientific(&options.primal_error_threshold, 4)),
    ];
    for (name, value) in lines {
        let _ = writeln!(text, "{name:<12} = {value}");
    }
    let _ = writeln!(text, "precision    =    {bits}");
    text
}

/// The text of SDPA's result file. The relative gap is SDPA's, `|p - d| / max((|p| + |d|) / 2, 1)`; the gap is
/// `X . Y`.
pub fn sdpa_result(solution: &Solution, options: &SolverOptions) -> String {
    let quality = &solution.quality;
    let bits = quality.primal_objective.prec();
    let (primal, dual) = (&quality.primal_objective, &quality.dual_objective);
    let off = Float::with_val(bits, primal - dual).abs();
    let mean = Float::with_val(bits, primal.abs_ref()) + &*dual.as_abs();
    let mean = Float::with_val(bits, mean >> 1u32);
    let relative = Float::with_val(bits, &off / mean.clone().max(&Float::with_val(bits, 1)));
    let digits = match off.is_zero() || mean.is_zero() {
        // As many as there are.
        true => Float::with_val(64, bits) * Float::with_val(64, 2).log10(),
        false => -Float::with_val(64, off / mean).log10(),
    };
    let (rows, gap) = complementarity(solution);
    let mu = Float::with_val(bits, &gap / rows.max(1) as u64);
    let short = |value: &Float| scientific(value, 17);
    let mut text = String::new();
    let _ = writeln!(text, "phase.value = {:<10}", phase(solution, options));
    let _ = writeln!(text, "   Iteration = {}", solution.iterations);
    let _ = writeln!(text, "          mu = {}", short(&mu));
    let _ = writeln!(text, "relative gap = {}", short(&relative));
    let _ = writeln!(text, "         gap = {}", short(&gap));
    let _ = writeln!(text, "      digits = {}", short(&digits));
    let _ = writeln!(text, "objValPrimal = {}", decimal(primal));
    let _ = writeln!(text, "objValDual   = {}", decimal(dual));
    let _ = writeln!(text, "p.feas.error = {}", short(quality.primal_error()));
    let _ = writeln!(text, "d.feas.error = {}", short(&quality.dual_error));
    let _ = writeln!(text, "relative eps = {}", short(&(Float::with_val(64, 1) >> bits)));
    let _ = writeln!(text, "total time   = {:.3}", solution.seconds);
    let _ = writeln!(text, "\n\n{}", parameters(options, bits));
    let x = solution.point.x.iter().flat_map(|x| (0..x.rows()).map(move |row| x.float(row, 0)));
    let _ = writeln!(text, "xVec = \n{}", braces(x));
    blocks(&mut text, "xMat", &solution.point.primal);
    blocks(&mut text, "yMat", &solution.point.dual);
    text
}
