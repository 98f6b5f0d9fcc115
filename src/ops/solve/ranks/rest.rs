//! The right-hand sides that ranks cannot solve for on their own: one rank does, with the whole factor.

use crate::comm::{Incoming, Outgoing, Reduction, Transport, agree, agreed};
use crate::context::Context;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::ops::distributed::DistMatrix;
use crate::ops::solve::band::{gather, scatter, with_column};
use std::ops::Range;

/// The rank that solves.
const ROOT: usize = 0;

/// The right sides of a call, of which each rank has whole columns.
pub(super) struct Shares<'a> {
    /// The columns of this rank, and where they are.
    pub b: &'a Matrix,
    pub x: &'a mut Matrix,
    /// The columns of each rank.
    pub of_rank: &'a dyn Fn(usize) -> Range<usize>,
    /// Right sides in all.
    pub total: usize,
}

/// Solves for the columns `own` of this rank's, and of every other one's, on one rank: `solve` has the whole factor
/// and the right sides, which its context holds. How many columns there were over all ranks. Collective.
///
/// # Errors
/// Those of `solve`, on every rank; [`crate::Error::MemoryLimit`] where the factor does not fit beside the right sides;
/// [`crate::Error::Transport`], [`crate::Error::OutOfMemory`].
pub(super) fn solve_gathered(
    (ctx, world): (&Context, &dyn Transport),
    factor: &DistMatrix,
    shares: Shares<'_>,
    own: &[usize],
    solve: impl FnOnce(&Context, &Matrix, &Matrix) -> Result<Matrix>,
) -> Result<usize> {
    let rank = world.rank();
    let mut wanted = vec![0; shares.total];
    let first = (shares.of_rank)(rank).start;
    own.iter().for_each(|col| wanted[first + col] = 1);
    world.all_reduce(Reduction::Max, &mut wanted)?;
    let columns = wanted.iter().enumerate().filter(|(_, said)| **said == 1).map(|(col, _)| col).collect::<Vec<_>>();
    if columns.is_empty() {
        return Ok(0);
    }
    let (order, precision_bits) = (factor.map().rows, factor.precision_bits());
    let held_bytes = Matrix::bytes_for(order, order, precision_bits).saturating_add(Matrix::bytes_for(
        order,
        columns.len(),
        shares.b.precision_bits(),
    ));
    agree(world, if rank == ROOT { ctx.admit(held_bytes) } else { Ok(()) })?;
    let counts = (0..world.size()).map(|rank| {
        let share = (shares.of_rank)(rank);
        columns.iter().filter(|&col| share.contains(col)).count()
    });
    let counts = counts.collect::<Vec<_>>();
    let mut part = agreed(world, Matrix::zeros(0, 0, 2))?;
    agree(world, gather(shares.b, own, &mut part))?;
    let right = collect(world, &counts, &part)?;
    let whole = factor.gather(world, ROOT)?;
    let solved = whole.zip(right).map(|(whole, right)| solve(&ctx.holding(held_bytes), &whole, &right));
    let solved = agreed(world, solved.transpose().map_err(|error| with_column(error, &columns)))?;
    part = agreed(world, Matrix::zeros(order, own.len(), shares.x.precision_bits()))?;
    hand_out(world, &counts, solved.as_ref(), &mut part)?;
    scatter(&part, own, &[], shares.x);
    Ok(columns.len())
}

/// The columns of all ranks side by side, on the root.
fn collect(world: &dyn Transport, counts: &[usize], part: &Matrix) -> Result<Option<Matrix>> {
    let (rows, all) = (part.rows(), counts.iter().sum::<usize>());
    let is_root = world.rank() == ROOT;
    let made = is_root.then(|| Matrix::zeros(rows, all, part.precision_bits())).transpose();
    let (heads, limbs) = part.parts();
    let Some(mut whole) = agreed(world, made)? else {
        if !heads.is_empty() {
            world.exchange(&[heads, limbs].map(|words| Outgoing { to: ROOT, words }), &mut [])?;
        }
        return Ok(None);
    };
    let width = whole.limbs_per_element();
    let (mut all_heads, mut all_limbs) = whole.parts_mut();
    for (from, count) in counts.iter().enumerate().filter(|(_, count)| **count * rows > 0) {
        let (own_heads, rest_heads) = all_heads.split_at_mut(count * rows);
        let (own_limbs, rest_limbs) = all_limbs.split_at_mut(count * rows * width);
        if from == ROOT {
            own_heads.copy_from_slice(heads);
            own_limbs.copy_from_slice(limbs);
        } else {
            world.exchange(&[], &mut [own_heads, own_limbs].map(|words| Incoming { from, words }))?;
        }
        (all_heads, all_limbs) = (rest_heads, rest_limbs);
    }
    Ok(Some(whole))
}

/// The way back from [`collect`].
fn hand_out(world: &dyn Transport, counts: &[usize], whole: Option<&Matrix>, part: &mut Matrix) -> Result<()> {
    let rows = part.rows();
    let Some(whole) = whole else {
        let (heads, limbs) = part.parts_mut();
        if !heads.is_empty() {
            world.exchange(&[], &mut [heads, limbs].map(|words| Incoming { from: ROOT, words }))?;
        }
        return Ok(());
    };
    let width = whole.limbs_per_element();
    let (mut all_heads, mut all_limbs) = whole.parts();
    for (to, count) in counts.iter().enumerate().filter(|(_, count)| **count * rows > 0) {
        let (own_heads, rest_heads) = all_heads.split_at(count * rows);
        let (own_limbs, rest_limbs) = all_limbs.split_at(count * rows * width);
        if to == ROOT {
            let (heads, limbs) = part.parts_mut();
            heads.copy_from_slice(own_heads);
            limbs.copy_from_slice(own_limbs);
        } else {
            world.exchange(&[own_heads, own_limbs].map(|words| Outgoing { to, words }), &mut [])?;
        }
        (all_heads, all_limbs) = (rest_heads, rest_limbs);
    }
    Ok(())
}
