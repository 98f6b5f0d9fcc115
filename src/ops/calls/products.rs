//! SYRK and GEMM over ranks, on matrices where the caller has them.

use super::CallOutcome;
use super::caller::{CallNote, CallRanks, Caller, LocalArray, LocalInput, TrianglePart};
use super::matrix::{PlacedMatrix, PlacedRows};
use crate::comm::Transport;
use crate::matrix::{Matrix, MatrixView, Op, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::redistribute::contracted_rows;
use crate::ops::distribution::travel::travel_bytes;
use crate::ops::product::ranks::{DistOptions, gemm_rows, syrk};
use crate::ops::{Accuracy, Report};
use crate::site::Team;
use crate::tile::{Distribution, RankGrid, TileMap};
use rug::Float;

/// Rows of the tiles that matrices are in which are added.
const TILE: usize = 64;

/// The scalars of a product; `None` means 1 for alpha, and for beta that no matrix is added.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProductTerms<'a> {
    /// The factor of the product.
    pub alpha: Option<&'a Float>,
    /// The factor of the matrix that is added.
    pub beta: Option<&'a Float>,
}

impl ProductTerms<'_> {
    /// Whether alpha is 0: as in the BLAS, the operands of the product are then not read.
    fn without_product(&self) -> bool {
        self.alpha.is_some_and(Float::is_zero)
    }
}

/// An operand with its contracted index first: `op(a)^T` where it stands on the left.
fn contracted_first<A: LocalArray>(a: PlacedMatrix<A>, is_first: bool) -> PlacedMatrix<A> {
    if is_first { a } else { a.transposed() }
}

/// The operand of a SYRK with its contracted index first, and the result's shape checked.
pub(super) fn syrk_operand<C: Caller>(
    op: Op,
    a: PlacedMatrix<C::Array>,
    c: &PlacedMatrix<C::Array>,
) -> CallOutcome<PlacedMatrix<C::Array>, C> {
    let a = contracted_first(a, op == Op::Transpose);
    c.check_shape::<C::Failure>(a.cols(), a.cols())?;
    Ok(a)
}

/// The operands of a GEMM with their contracted indices first, and all shapes checked.
pub(super) fn gemm_operands<C: Caller>(
    ops: [Op; 2],
    a: PlacedMatrix<C::Array>,
    b: PlacedMatrix<C::Array>,
    c: &PlacedMatrix<C::Array>,
) -> CallOutcome<[PlacedMatrix<C::Array>; 2], C> {
    let a = contracted_first(a, ops[0] == Op::Transpose);
    let b = contracted_first(b, ops[1] == Op::NoTranspose);
    b.check_shape::<C::Failure>(a.rows(), b.cols())?;
    c.check_shape::<C::Failure>(a.cols(), b.cols())?;
    Ok([a, b])
}

/// Computes `c := alpha op(a) op(a)^T + beta c` on a triangle, or on both. Collective.
///
/// Cost: that of [`crate::distributed::syrk`], and a copy of a part that is not in place; each entry of `a` and of `c`
/// travels at most once to each rank that gets it.
/// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
///
/// # Errors
/// Errors of shapes; the errors of the caller and of [`crate::distributed::syrk`]; on all ranks.
pub fn syrk_over<C: Caller>(
    caller: &C,
    team: &mut Team,
    uplo: Option<Uplo>,
    op: Op,
    terms: ProductTerms<'_>,
    a: PlacedMatrix<C::Array>,
    c: &mut PlacedMatrix<C::Array>,
) -> CallOutcome<(), C> {
    let a = syrk_operand::<C>(op, a, c)?;
    // Both triangles of the matrix that is added must be the same.
    let part = uplo.map(TrianglePart::from);
    let product = PlacedProduct { part, triangle: uplo, terms };
    let prepared = product.prepare(&CallRanks::new(caller, team), &[&a], c)?;
    let account = caller.account();
    let options = prepared.options(account.accuracy(), terms).uplo(uplo.unwrap_or_default());
    let rows = prepared.rows(0);
    CallRanks::new(caller, team).count_held()?;
    let done = account.done(syrk(&account.context(), team, &[rows], prepared.bits, &options));
    prepared.give_back(caller);
    let done = done?;
    finish(&CallRanks::new(caller, team), c, part, &done.result, &done.report)
}

/// Computes `c := alpha op(a) op(b) + beta c`, with the two operations in `ops`. Collective.
///
/// Cost: that of [`crate::distributed::gemm_rows`]; entries travel as in [`syrk_over`].
/// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
///
/// # Errors
/// As [`syrk_over`].
pub fn gemm_over<C: Caller>(
    caller: &C,
    team: &mut Team,
    ops: [Op; 2],
    terms: ProductTerms<'_>,
    a: PlacedMatrix<C::Array>,
    b: PlacedMatrix<C::Array>,
    c: &mut PlacedMatrix<C::Array>,
) -> CallOutcome<(), C> {
    let [a, b] = gemm_operands::<C>(ops, a, b, c)?;
    let product = PlacedProduct { part: None, triangle: None, terms };
    let prepared = product.prepare(&CallRanks::new(caller, team), &[&a, &b], c)?;
    let account = caller.account();
    let options = prepared.options(account.accuracy(), terms);
    let blocks = (&[prepared.rows(0)][..], &[prepared.rows(1)][..]);
    CallRanks::new(caller, team).count_held()?;
    let done = account.done(gemm_rows(&account.context(), team, blocks, prepared.bits, &options));
    prepared.give_back(caller);
    let done = done?;
    finish(&CallRanks::new(caller, team), c, None, &done.result, &done.report)
}

/// A product over ranks.
struct PlacedProduct<'a> {
    /// The triangle of the result that is written; `None` for all of it.
    part: Option<TrianglePart>,
    triangle: Option<Uplo>,
    terms: ProductTerms<'a>,
}

/// Its operands, taken in.
struct PreparedProduct<'a> {
    bits: u32,
    /// Each operand's rows of this rank; none where the product does not count.
    operands: Vec<PlacedRows<'a>>,
    added: Option<DistMatrix>,
}

impl PlacedProduct<'_> {
    /// Takes the operands in. Collective.
    fn prepare<'b, C: Caller>(
        &self,
        ranks: &CallRanks<'_, C>,
        operands: &[&'b PlacedMatrix<C::Array>],
        c: &PlacedMatrix<C::Array>,
    ) -> CallOutcome<PreparedProduct<'b>, C> {
        let bits = c.result_place(ranks, self.part)?;
        let placed = operands.iter().map(|operand| &operand.distribution).collect::<Vec<_>>();
        let to = contracted_rows(&placed, ranks.world.size());
        let take = |operand: &&'b PlacedMatrix<C::Array>| match self.terms.without_product() {
            true => Ok(PlacedRows::Moved(Matrix::zeros(0, operand.cols(), 2)?)),
            false => operand.take_rows(ranks, &to),
        };
        let operands = operands.iter().map(take).collect::<CallOutcome<Vec<_>, C>>()?;
        let adds = self.terms.beta.is_some_and(|beta| !beta.is_zero());
        let added = if adds { Some(self.take_added(ranks, c)?) } else { None };
        Ok(PreparedProduct { bits, operands, added })
    }

    fn take_added<C: Caller>(
        &self,
        ranks: &CallRanks<'_, C>,
        c: &PlacedMatrix<C::Array>,
    ) -> CallOutcome<DistMatrix, C> {
        let grid = RankGrid::for_ranks(ranks.world.size());
        let map = TileMap { rows: c.rows(), cols: c.cols(), tile_size: TILE, grid, triangle: self.triangle };
        let added = c.take(ranks, self.part, map)?;
        if self.triangle.is_some() { Ok(added.into_symmetric()?) } else { Ok(added) }
    }
}

impl PreparedProduct<'_> {
    /// This rank's rows of an operand.
    fn rows(&self, operand: usize) -> MatrixView<'_> {
        self.operands[operand].view()
    }

    /// Keeps the memory of copies for the next call.
    fn give_back<C: Caller>(self, caller: &C) {
        for rows in self.operands {
            match rows {
                PlacedRows::Placed(LocalInput::Copied(matrix, _)) | PlacedRows::Moved(matrix) => caller.keep(matrix),
                PlacedRows::Placed(LocalInput::InPlace(_)) => {}
            }
        }
    }

    fn options<'o>(&'o self, accuracy: Accuracy, terms: ProductTerms<'o>) -> DistOptions<'o> {
        let options = DistOptions::new().accuracy(accuracy).alpha(terms.alpha).accumulate(self.added.as_ref());
        options.beta(self.added.as_ref().and(terms.beta))
    }
}

/// Bytes of the messages in which a product in these tiles becomes this rank's part: of a triangle either, or of both
/// one after the other.
pub(super) fn result_messages(world: &dyn Transport, map: &TileMap, to: &Distribution, bits: u32) -> u64 {
    let tiles = Distribution::of_tiles(map);
    let of = |from: &Distribution, triangle| travel_bytes(world, from, to, triangle, bits);
    match map.triangle {
        None => of(&tiles, None),
        Some(_) => {
            let both = of(&tiles, Some(Uplo::Lower)).max(of(&tiles, Some(Uplo::Upper)));
            let mirrored = tiles.transposed();
            both.max(of(&mirrored, Some(Uplo::Lower))).max(of(&mirrored, Some(Uplo::Upper)))
        }
    }
}

/// Stores a result. Collective.
fn finish<C: Caller>(
    ranks: &CallRanks<'_, C>,
    c: &mut PlacedMatrix<C::Array>,
    part: Option<TrianglePart>,
    result: &DistMatrix,
    report: &Report,
) -> CallOutcome<(), C> {
    let bits = result.precision_bits();
    ranks.caller.note(CallNote::Reached(report.accuracy, report.range_bits));
    ranks.caller.note(CallNote::Precision(bits));
    // Windows are the node's; each of its ranks has an equal share.
    let share = report.planned_bytes.div_ceil(ranks.node.size() as u64);
    let messages = result_messages(ranks.world, result.map(), &c.distribution, bits);
    let placed = c.placed_bytes(bits);
    ranks.account().count(|tally| tally.travel(messages, share + placed));
    c.give(ranks, part, result)
}
