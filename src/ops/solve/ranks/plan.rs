//! The memory that a solve over ranks takes, before there is a factor.

use super::blocks::pieces;
use super::columns::{Goal, letters_bytes, panel_share};
use super::sums::SumSizes;
use super::{first_kernel, is_small, of_node, ranks_together, vectors_bytes};
use crate::comm::{Transport, agreed};
use crate::context::Context;
use crate::error::Result;
use crate::math::bound::cholesky_solve_guard_bits;
use crate::matrix::Matrix;
use crate::ops::distributed::Team;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::memory::{Bands, FirstKernel, LeftColumns, SolveMemory};
use crate::ops::solve::path::{Method, Path};
use crate::ops::solve::plan::check_sizes;
use crate::ops::solve::problem::{CHOLESKY, ScaledRows, working_bits};
use crate::ops::solve::sums::SumBits;
use crate::ops::solve::tiles::Together;

/// Rows of the tiles in which a plan takes the factor to be: those of the C and Python packages. Smaller ones cost
/// longer lists.
const FACTOR_TILE: usize = 64;

/// The plan of [`super::solve_with`] for a factor of `order` rows and `columns` right sides whose entries have
/// `right_bits`: the bytes that this rank takes beside the factor. Collective.
///
/// Nothing is computed; the kernel's tables are made and kept in the context. The memory limit of the context is that
/// of the node, as for the solve. Pivots are taken to be as in [`crate::plan_trsm`].
///
/// # Errors
/// [`crate::Error::MemoryLimit`] with the least limit that would do; [`crate::Error::Precision`];
/// [`crate::Error::DimensionOverflow`]; on every rank.
pub fn plan_solve(
    ctx: &Context,
    team: &Team,
    (order, columns): (usize, usize),
    (right_bits, precision_bits): (u32, u32),
    accuracy: Accuracy,
) -> Result<u64> {
    let (world, together): (&dyn Transport, _) =
        (team.world(), ranks_together(ctx, team, (order, FACTOR_TILE), accuracy)?);
    let needs = own_needs(ctx, (team, together), (order, columns), (right_bits, precision_bits), accuracy);
    let (mut memory, own) = match agreed(world, needs)? {
        Needs::Bytes(bytes) => return Ok(bytes),
        Needs::Columns(memory, own) => (memory, own),
    };
    memory.first_tries = first_kernel(team, &memory, Bands::widest(own).columns)?;
    agreed(world, memory.plan(own).map(|(_, bytes)| bytes).map_err(|error| of_node(ctx, team.ranks_here(), error)))
}

/// What this rank's part of a solve takes.
enum Needs {
    /// So many bytes.
    Bytes(u64),
    /// What this memory says for so many right sides.
    Columns(SolveMemory, usize),
}

fn own_needs(
    ctx: &Context,
    (team, together): (&Team, Option<Together>),
    (order, columns): (usize, usize),
    (right_bits, precision_bits): (u32, u32),
    accuracy: Accuracy,
) -> Result<Needs> {
    check_sizes(order, columns, precision_bits)?;
    if order == 0 || columns == 0 {
        return Ok(Needs::Bytes(0));
    }
    let (world, ranks_here): (&dyn Transport, _) = (team.world(), team.ranks_here());
    let working_bits = working_bits(ctx, precision_bits, cholesky_solve_guard_bits(order), order)?;
    let method = Method::choose(CHOLESKY, order, columns, accuracy);
    if method.path == Path::Dots {
        let bytes = vectors_bytes(ctx, (order, columns), (right_bits, precision_bits));
        ctx.admit(bytes.saturating_mul(ranks_here))?;
        return Ok(Needs::Bytes(bytes));
    }
    let ranks = world.size();
    if method.path == Path::Sums {
        let bits = SumBits { working: working_bits, precision: precision_bits };
        let sizes = SumSizes { order, columns, bits, right_bits, factor_bits: precision_bits, ranks };
        ctx.admit(sizes.bytes().saturating_mul(ranks_here))?;
        return Ok(Needs::Bytes(sizes.bytes()));
    }
    let own = panel_share(columns, ranks, world.rank()).len();
    let own_bytes = Matrix::bytes_for(order, own, right_bits) + Matrix::bytes_for(order, own, precision_bits);
    let expected = TriangleCut::expected(order, working_bits, method);
    let (held_bytes, message_bytes, left, cut) = match is_small(order, method) {
        true => {
            let factor_bytes = Matrix::bytes_for(order, order, precision_bits) + ScaledRows::bytes(order);
            (own_bytes + factor_bytes, 0, LeftColumns::Parts, expected)
        }
        false => {
            let pieces = pieces((order, precision_bits), accuracy, ranks);
            let cut = TriangleCut { pieces, ..expected };
            let messages = letters_bytes(method.path, &cut, precision_bits, ranks);
            let result = match method.path {
                Path::Tiles => Goal::Tiles.result_bytes(order, (own, columns), precision_bits, ranks),
                _ => 0,
            };
            (own_bytes + result, messages, LeftColumns::shared(columns), cut)
        }
    };
    let memory = SolveMemory {
        ctx: ctx.with_memory(ctx.memory().divided(ranks_here)).holding(held_bytes),
        cuts: vec![cut; CHOLESKY.len()],
        piece_row_bytes: Matrix::bytes_for(1, order, precision_bits),
        message_bytes,
        left,
        together,
        first_tries: FirstKernel::Own,
    };
    Ok(Needs::Columns(memory, own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;
    use crate::kernels;
    use crate::ops::distribution::team::TeamOptions;

    /// The names of the kernels that ranks with these contexts take for a solve, so many of them a node; "" is that of
    /// the context.
    fn kernels_of(contexts: &[Context], ranks_per_node: usize, shape: (usize, usize)) -> Vec<&'static str> {
        local::run(contexts.len(), |rank| {
            let options = TeamOptions::new().ranks_per_node(ranks_per_node);
            let (ctx, team) = (&contexts[rank.rank()], Team::new(rank.split(0).unwrap(), options).unwrap());
            let together = ranks_together(ctx, &team, (shape.0, FACTOR_TILE), Accuracy::Norm).unwrap();
            let needs = own_needs(ctx, (&team, together), shape, (60, 60), Accuracy::Norm);
            let Ok(Needs::Columns(mut memory, own)) = needs else { panic!("solved in bands") };
            let columns = Bands::widest(own).columns;
            memory.first_tries = first_kernel(&team, &memory, columns).unwrap();
            memory.first_kernel(columns).map_or("", |kernel| kernel.name())
        })
    }

    #[test]
    fn the_ranks_of_a_node_take_one_kernel() {
        let builder = || Context::builder().threads(1);
        let free = || builder().build().unwrap();
        let other = kernels::preferred_for_large_solves().map_or("", |(kernel, _)| kernel.name());
        let forced = || builder().kernel(free().kernel().name()).build().unwrap();
        let limited = || builder().memory_bytes(1 << 40).build().unwrap();
        // As many right sides for each node as one process has.
        for (ranks, ranks_per_node, columns, want) in [
            (2, 2, 400, other),
            (2, 2, 384, ""),
            (4, 4, 512, other),
            // One of the four has fewer than 96.
            (4, 4, 400, ""),
            (4, 2, 800, other),
            (2, 1, 400, ""),
        ] {
            let contexts = (0..ranks).map(|_| free()).collect::<Vec<_>>();
            let found = kernels_of(&contexts, ranks_per_node, (700, columns));
            assert_eq!(found, vec![want; ranks], "{ranks} ranks, {ranks_per_node} a node, {columns} right sides");
        }
        assert_eq!(kernels_of(&[free(), free()], 2, (600, 400)), ["", ""]);
        assert_eq!(kernels_of(&[free(), forced()], 2, (700, 400)), ["", ""]);
        assert_eq!(kernels_of(&[limited(), free()], 2, (700, 400)), ["", ""]);
        // Ranks that share no window choose each for itself, and so do nodes.
        assert_eq!(kernels_of(&[free(), forced()], 1, (700, 800)), [other, ""]);
        assert_eq!(kernels_of(&[free(), free(), forced(), free()], 2, (700, 800)), [other, other, "", ""]);
        // Too few right sides for each worker.
        let threads = || Context::builder().threads(4).build().unwrap();
        assert_eq!(kernels_of(&[threads(), threads()], 2, (700, 752)), ["", ""]);
        assert_eq!(kernels_of(&[threads(), threads()], 2, (700, 768)), [other, other]);
    }
}
