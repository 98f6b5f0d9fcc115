//! The picture of a run of `sunzi sdp`: how gap, errors, steps and bits went over its iterations.

use std::path::Path;
use sunzi::Result;
use sunzi::rug::Float;
use sunzi_sdp::Iteration;
use sunzi_session::plot::{Chart, Line, Scale, draw_lines};

/// The line of a number's decimal logarithm; where it is 0, no point.
fn logarithm(iterations: &[Iteration], label: &'static str, of: impl Fn(&Iteration) -> &Float) -> Line {
    let point = |iteration: &Iteration| {
        let value = Float::with_val(53, of(iteration)).abs();
        (!value.is_zero()).then(|| (iteration.number as f64, value.log10().to_f64()))
    };
    Line { label, points: iterations.iter().filter_map(point).collect() }
}

fn plain(iterations: &[Iteration], label: &'static str, of: impl Fn(&Iteration) -> f64) -> Line {
    Line { label, points: iterations.iter().map(|iteration| (iteration.number as f64, of(iteration))).collect() }
}

/// Writes the picture as SVG.
///
/// # Errors
/// [`sunzi::Error::Io`].
pub fn draw(iterations: &[Iteration], path: &Path) -> Result<()> {
    let all = iterations;
    let charts = [
        Chart {
            caption: "gap and complementarity",
            count: "iteration",
            scale: Scale::Logarithmic,
            lines: vec![
                logarithm(all, "gap", |iteration| &iteration.quality.gap),
                logarithm(all, "mu", |iteration| &iteration.mu),
            ],
        },
        Chart {
            caption: "errors",
            count: "iteration",
            scale: Scale::Logarithmic,
            lines: vec![
                logarithm(all, "P-err", |iteration| &iteration.quality.primal_matrix_error),
                logarithm(all, "p-err", |iteration| &iteration.quality.primal_free_error),
                logarithm(all, "D-err", |iteration| &iteration.quality.dual_error),
            ],
        },
        Chart {
            caption: "steps and centring",
            count: "iteration",
            scale: Scale::Linear,
            lines: vec![
                plain(all, "P-step", |iteration| iteration.primal_step.to_f64()),
                plain(all, "D-step", |iteration| iteration.dual_step.to_f64()),
                plain(all, "beta", |iteration| iteration.beta.to_f64()),
            ],
        },
        Chart {
            caption: "precision",
            count: "iteration",
            scale: Scale::Linear,
            lines: vec![plain(all, "bits", |iteration| iteration.precision_bits.into())],
        },
    ];
    draw_lines(&charts, path)
}
