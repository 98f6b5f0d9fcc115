//! SDPA's result file. Its primal problem is `min c^T x`, as here.

use super::decimal;
use super::text::braces;
use crate::block::Block;
use crate::iterate::{Solution, Termination};
use crate::options::SolverOptions;
use rug::Float;
use std::fmt::Write;

/// SDPA's name of the state in which a run ended.
pub fn phase(solution: &Solution, options: &SolverOptions) -> &'static str {
    let primal = *solution.quality.primal_error() < options.primal_error_threshold;
    let dual = solution.quality.dual_error < options.dual_error_threshold;
    match (solution.termination, primal, dual) {
        (Termination::PrimalDualOptimal, ..) => "pdOPT",
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

/// The text of SDPA's result file.
pub fn sdpa_result(solution: &Solution, options: &SolverOptions) -> String {
    let quality = &solution.quality;
    let bits = quality.primal_objective.prec();
    let gap = Float::with_val(bits, &quality.primal_objective - &quality.dual_objective).abs();
    let digits = if quality.gap == 0 { 0.0 } else { -quality.gap.to_f64().log10() };
    let mut text = String::new();
    let _ = writeln!(text, "phase.value  = {}", phase(solution, options));
    let _ = writeln!(text, "   Iteration = {}", solution.iterations);
    let _ = writeln!(text, "relative gap = {}", decimal(&Float::with_val(64, &quality.gap)));
    let _ = writeln!(text, "        gap  = {}", decimal(&Float::with_val(64, gap)));
    let _ = writeln!(text, "     digits  = {digits:.3}");
    let _ = writeln!(text, "objValPrimal = {}", decimal(&quality.primal_objective));
    let _ = writeln!(text, "objValDual   = {}", decimal(&quality.dual_objective));
    let _ = writeln!(text, "p.feas.error = {}", decimal(&Float::with_val(64, quality.primal_error())));
    let _ = writeln!(text, "d.feas.error = {}", decimal(&Float::with_val(64, &quality.dual_error)));
    let _ = writeln!(text, "total time   = {:.6}\n", solution.seconds);
    let x = solution.point.x.iter().flat_map(|x| (0..x.rows()).map(move |row| x.float(row, 0)));
    let _ = writeln!(text, "xVec = \n{}", braces(x));
    blocks(&mut text, "xMat", &solution.point.primal);
    blocks(&mut text, "yMat", &solution.point.dual);
    text
}
