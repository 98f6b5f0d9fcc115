//! The table of iterations, a line for each, with SDPB's columns and what is left.

use crate::iterate::Iteration;
use rug::Float;

/// What stands above the lines of [`table_row`].
pub const TABLE_HEADER: &str = concat!(
    "        time    mu       P-obj       D-obj       gap        P-err      p-err      D-err      ",
    "P-step   D-step   beta   left\n",
    "-------------------------------------------------------------------------------------------",
    "-----------------------------------"
);

/// A number in so many characters, with an exponent.
fn short(value: &Float, digits: usize) -> String {
    format!("{value:.digits$e}")
}

/// The line of an iteration; `left` says how long the run still takes, where that is known.
pub fn table_row(iteration: &Iteration, left: Option<&str>) -> String {
    let Iteration { number, seconds, mu, quality, primal_step, dual_step, beta, .. } = iteration;
    let row = format!(
        "{number:<4} {:>7.1}  {:<8} {:<11} {:<11} {:<10} {:<10} {:<10} {:<10} {:<8.3} {:<8.3} {:<6.3} {}",
        seconds.0,
        short(mu, 1),
        short(&quality.primal_objective, 3),
        short(&quality.dual_objective, 3),
        short(&quality.gap, 2),
        short(&quality.primal_matrix_error, 2),
        short(&quality.primal_free_error, 2),
        short(&quality.dual_error, 2),
        primal_step.to_f64(),
        dual_step.to_f64(),
        beta.to_f64(),
        left.unwrap_or(""),
    );
    row.trim_end().into()
}
