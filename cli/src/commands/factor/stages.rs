//! The stages of a factorisation and of the results made from the factor, for the progress of the whole run.

use super::{Factoring, Task};
use crate::files::{header, stated_precision};
use crate::progress::{Stage, factor_seconds, inverse_seconds, solve_seconds};
use crate::session::{Session, Work};
use sunzi::io::FileInfo;

/// Words of a product with a residual, relative to those of a factorisation.
const REFINED_STEPS: f64 = 3.0;

/// Announces the stages to the session; `together` where ranks share the work.
pub fn expect(session: &Session, config: &Factoring, together: bool) {
    let a = &config.factor.a;
    let given = config.factor.precision.typed(None).bits;
    // An error in the file is reported where it is read.
    let Ok(Some(info)) = header(a) else { return };
    let Ok(bits) = stated_precision(given, a, Some(&info)) else { return };
    session.expect(&config.files(), bits, |infos| {
        let (order, cols) = (infos[0].rows, infos.last().map_or(0, |b| b.cols));
        let stages = if together { vec![compute(config, infos, bits)] } else { alone(config, infos, bits) };
        let shape = match config.task {
            Task::Cholesky => (order, order),
            Task::Solve { .. } => (order, cols),
            // A symmetric file has one triangle.
            Task::Inverse => (order, order.div_ceil(2)),
        };
        Work { stages, output: config.output.as_ref().map(|output| (output.path.as_path(), shape)) }
    });
}

/// All on ranks, as one stage.
fn compute(config: &Factoring, infos: &[FileInfo], bits: u32) -> Stage {
    let stages = alone(config, infos, bits);
    let seconds = stages.iter().map(|stage| stage.weight).sum();
    if stages.len() == 1 { Stage::call("compute", seconds) } else { Stage::calls("compute", seconds) }
}

/// The steps of one process.
fn alone(config: &Factoring, infos: &[FileInfo], bits: u32) -> Vec<Stage> {
    let (order, cols) = (infos[0].rows, infos.last().map_or(0, |b| b.cols));
    let factor = factor_seconds(order, bits);
    let solve = solve_seconds(order, cols, bits);
    if let Task::Solve { refine_from_bits: Some(factor_bits), .. } = config.task {
        return vec![Stage::calls("refine", factor_seconds(order, factor_bits) + REFINED_STEPS * solve)];
    }
    let one = solve_seconds(order, 1, bits);
    let mut stages = vec![Stage::call("factor", factor)];
    if config.factor.condition {
        stages.push(Stage::calls("condition", REFINED_STEPS * one));
    }
    match config.task {
        Task::Cholesky => {}
        Task::Solve { .. } => stages.push(Stage::calls("solve", solve)),
        Task::Inverse => stages.push(Stage::calls("inverse", inverse_seconds(order, bits))),
    }
    let has_answer = !matches!(config.task, Task::Cholesky) || config.wants_log_det();
    if has_answer && !config.factor.digits.no_estimate {
        stages.push(Stage::calls("estimate", REFINED_STEPS * one + 0.05 * factor));
    }
    if has_answer && config.factor.digits.certified {
        stages.push(Stage::calls("certify", factor + solve));
    }
    stages
}
