//! Balls: results hold the exact ones for every point of their operands, and are not much wider than these make them.

mod general;
mod points;
mod products;
mod systems;
mod triangles;

use crate::common::effort;

/// Operands of a test: few as a rule, thousands with the effort of a soak.
fn operands(few: u64, many: u64) -> u64 {
    if effort() == 1 { few } else { many * effort() / 20 }
}
