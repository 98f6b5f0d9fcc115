//! Norm exponents of columns whose rows lie on many ranks: two all-reduces, whose order cannot change a bit.
//!
//! First the largest exponent of each column, then the sums of the squares' bounds, which are integers in a unit that
//! the largest fixes. So the exponents are those of one matrix with all the rows (`math::scale`).

use crate::comm::{Reduction, Transport, agree};
use crate::context::Context;
use crate::drive;
use crate::error::Result;
use crate::math::float::Head;
use crate::math::scale::{norm_exponent, square_bound};
use crate::matrix::{MAXIMUM_EXPONENT, MatrixView, Op};
use crate::ops::product::problem::Operand;
use crate::ops::product::scale::{check_operand_integers, column_heads, first_out_of_range};

/// Bits of each of the three words that a sum travels in: a rank's sum of up to 2^40 rows fits, and the sums of 2^30
/// ranks cannot overflow.
const SUM_BITS: u32 = 34;

/// Columns of a view that a worker takes at a time.
const GROUP_COLUMNS: usize = 16;

/// The norm exponent of each of `cols` columns over the rows of all ranks' `blocks`. Collective.
///
/// # Errors
/// [`Error::Rank`] around [`Error::ExponentRange`] or, with `exact_integers`, [`Error::NotInteger`]; rows and columns
/// are those of the block that the rank passed. [`Error::Transport`].
pub(crate) fn norm_exponents(
    ctx: &Context,
    world: &dyn Transport,
    blocks: &[MatrixView<'_>],
    cols: usize,
    exact_integers: bool,
) -> Result<Vec<i64>> {
    let operands = || blocks.iter().map(|&block| Operand::new(block, Op::NoTranspose));
    let integers = || operands().try_for_each(|operand| check_operand_integers(ctx.threads(), &operand));
    agree(world, if exact_integers { ctx.install(integers) } else { Ok(()) })?;
    let heads = |col: usize| blocks.iter().flat_map(move |block| column_heads(block, col));
    let exponents = exponents_over_ranks(ctx, world, cols, heads)?;
    let in_range = exponents.iter().all(|exponent| exponent.unsigned_abs() <= 2 * MAXIMUM_EXPONENT as u64);
    let found = if in_range { None } else { operands().find_map(|operand| first_out_of_range(&operand)) };
    agree(world, found.map_or(Ok(()), Err))?;
    Ok(exponents)
}

/// The norm exponent of each of `count` columns, of which this rank has the entries with the heads `heads(column)`.
/// Collective.
///
/// # Errors
/// [`crate::Error::Transport`].
pub(crate) fn exponents_over_ranks<I: Iterator<Item = Head>>(
    ctx: &Context,
    world: &dyn Transport,
    count: usize,
    heads: impl Fn(usize) -> I + Sync,
) -> Result<Vec<i64>> {
    // Exponents as unsigned words in the same order; 0 stands for a column of zeros.
    let mut largest = vec![0u64; count];
    each_column(ctx, &mut largest, |col, word| {
        for head in heads(col).filter(|head| !head.is_zero()) {
            *word = (*word).max(ordered(head.exponent()));
        }
    });
    world.all_reduce(Reduction::Max, &mut largest)?;
    let mut sums = vec![[0u64; 3]; count];
    each_column(ctx, &mut sums, |col, words| {
        let unit = unordered(largest[col]);
        let sum = heads(col).map(|head| u128::from(square_bound(head, unit))).sum::<u128>();
        *words = [0, 1, 2].map(|part| (sum >> (part * SUM_BITS)) as u64 & ((1 << SUM_BITS) - 1));
    });
    world.all_reduce(Reduction::Sum, sums.as_flattened_mut())?;
    let exponent = |(&largest, words): (&u64, &[u64; 3])| {
        let parts = words.iter().zip(0..).map(|(&word, part)| u128::from(word) << (part * SUM_BITS));
        norm_exponent(parts.sum(), if largest == 0 { 0 } else { unordered(largest) })
    };
    Ok(largest.iter().zip(&sums).map(exponent).collect())
}

/// Calls `work` with each column's number and item, on the context's threads.
fn each_column<T: Send>(ctx: &Context, items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
    let mut groups = items.chunks_mut(GROUP_COLUMNS).enumerate();
    let mut locals = vec![(); ctx.threads()];
    let run = || {
        drive::share(
            &mut locals,
            |()| groups.next(),
            |(), (group, items)| {
                items.iter_mut().enumerate().for_each(|(index, item)| work(group * GROUP_COLUMNS + index, item));
                Ok(())
            },
        )
    };
    ctx.install(run).expect("the work cannot fail");
}

fn ordered(exponent: i64) -> u64 {
    (exponent as u64) ^ (1 << 63)
}

fn unordered(word: u64) -> i64 {
    (word ^ (1 << 63)) as i64
}
