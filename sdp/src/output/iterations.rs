//! SDPB's `iterations.json`.

use super::decimal;
use crate::iterate::Iteration;

/// The list of all iterations, with SDPB's keys.
pub fn iterations_json(iterations: &[Iteration]) -> String {
    let line = |iteration: &Iteration| {
        let Iteration { number, seconds, mu, quality, primal_step, dual_step, beta, precision_bits } = iteration;
        let numbers = [
            ("mu", mu),
            ("P-obj", &quality.primal_objective),
            ("D-obj", &quality.dual_objective),
            ("gap", &quality.gap),
            ("P-err", &quality.primal_matrix_error),
            ("p-err", &quality.primal_free_error),
            ("D-err", &quality.dual_error),
            ("P-step", primal_step),
            ("D-step", dual_step),
            ("beta", beta),
        ];
        let numbers = numbers.map(|(key, value)| format!("\"{key}\": \"{}\"", decimal(value))).join(", ");
        let (total, own) = seconds;
        format!(
            "{{ \"iteration\": {number}, \"total_time\": {total:.3}, \"iter_time\": {own:.3}, \"precision\": \
             {precision_bits}, {numbers} }}"
        )
    };
    format!("[\n{}\n]\n", iterations.iter().map(line).collect::<Vec<_>>().join(",\n"))
}
