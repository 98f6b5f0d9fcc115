//! SYRK and GEMM over ranks.

use super::matrix::{DistOperand, triangle};
use super::opening::Routine;
use super::rows::Rows;
use super::{Ranks, collective};
use crate::api::op_of;
use crate::api::products::{Applied, Terms};
use crate::array::Triangle;
use crate::call::Call;
use crate::context::sunzi_context;
use crate::failure::Outcome;
use crate::types::{sunzi_dist_matrix, sunzi_matrix, sunzi_status};
use sunzi::comm::Transport;
use sunzi::distributed::{
    DistMatrix, DistOptions, DistOutcome, Distribution, RankGrid, Team, TileMap, contracted_rows, gemm_rows, syrk,
    travel_bytes,
};
use sunzi::{Matrix, MatrixView, Op, Uplo};

/// Computes `C := alpha A A^T + beta C` or `C := alpha A^T A + beta C` as `sunzi_syrk` does, on matrices that are
/// distributed over the ranks. Collective.
///
/// Arguments: as in `sunzi_syrk`; A and C have distributions of their own.
///
/// Memory on each rank, in addition to the arrays: a copy of its part of A, unless A is in limbs; an even share of the
/// rows of A^T (of A with `SUNZI_TRANS`), unless the ranks hold whole rows of it in about equal numbers; its tiles of
/// C; a copy of its part of C, unless C is in limbs; messages of about 8 MiB; and the bytes in the plan of the product.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_syrk(
    ctx: *const sunzi_context,
    uplo: i32,
    trans: i32,
    alpha: *const sunzi_matrix,
    a: *const sunzi_dist_matrix,
    beta: *const sunzi_matrix,
    c: *const sunzi_dist_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        let arguments = &["uplo", "trans", "alpha", "a", "beta", "c"];
        collective(
            ctx,
            Routine { name: "sunzi_mpi_syrk", arguments },
            |open| {
                let (uplo, op) = (open.symmetric(uplo)?, open.choice("trans", op_of("trans", trans))?);
                Ok((uplo, op, open.terms(alpha, beta)?, open.matrix("a", a)?, open.matrix("c", c)?))
            },
            |call, team, (uplo, op, terms, a, c), parts| {
                let a = Applied { matrix: a.place(parts)?, op };
                syrk_over(call, team, uplo, a, &terms, &c.place(parts)?)
            },
        )
    }
}

/// `c := alpha op(a) op(a)^T + beta c` on a triangle, or on both. Collective.
///
/// # Safety
/// The header's rules.
pub(super) unsafe fn syrk_over(
    call: &Call<'_>,
    team: &mut Team,
    uplo: Option<Uplo>,
    a: Applied<DistOperand>,
    terms: &Terms,
    c: &DistOperand,
) -> Outcome<()> {
    let a = a.into_left();
    let order = a.shape().1;
    c.check_shape(order, order)?;
    // Both triangles of the matrix that is added must be the same.
    let part = uplo.map(triangle);
    let product = Product { part, triangle: uplo, terms };
    // SAFETY: by contract, for all below.
    unsafe {
        let prepared = product.prepare(&Ranks::new(call, team), &[&a], c)?;
        let options = prepared.options(call, terms).uplo(uplo.unwrap_or_default());
        let rows = prepared.rows(0);
        Ranks::new(call, team).settle()?;
        let done = call.done(syrk(&call.context(), team, &[rows], prepared.bits, &options));
        prepared.give_back(call);
        let done = done?;
        finish(call, team, &done, part, c)
    }
}

/// Computes `C := alpha op(A) op(B) + beta C` as `sunzi_gemm` does, on matrices that are distributed over the ranks.
/// Collective. Each matrix has a distribution of its own. Memory as `sunzi_mpi_syrk`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_gemm(
    ctx: *const sunzi_context,
    trans_a: i32,
    trans_b: i32,
    alpha: *const sunzi_matrix,
    a: *const sunzi_dist_matrix,
    b: *const sunzi_dist_matrix,
    beta: *const sunzi_matrix,
    c: *const sunzi_dist_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        let arguments = &["trans_a", "trans_b", "alpha", "a", "b", "beta", "c"];
        collective(
            ctx,
            Routine { name: "sunzi_mpi_gemm", arguments },
            |open| {
                let ops = ["trans_a", "trans_b"].into_iter().zip([trans_a, trans_b]);
                let ops =
                    ops.map(|(name, trans)| open.choice(name, op_of(name, trans))).collect::<Outcome<Vec<_>>>()?;
                let terms = open.terms(alpha, beta)?;
                Ok((ops, terms, open.matrix("a", a)?, open.matrix("b", b)?, open.matrix("c", c)?))
            },
            |call, team, (ops, terms, a, b, c), parts| {
                let a = Applied { matrix: a.place(parts)?, op: ops[0] };
                let b = Applied { matrix: b.place(parts)?, op: ops[1] };
                gemm_over(call, team, a, b, &terms, &c.place(parts)?)
            },
        )
    }
}

/// `c := alpha op(a) op(b) + beta c`. Collective.
///
/// # Safety
/// The header's rules.
pub(super) unsafe fn gemm_over(
    call: &Call<'_>,
    team: &mut Team,
    a: Applied<DistOperand>,
    b: Applied<DistOperand>,
    terms: &Terms,
    c: &DistOperand,
) -> Outcome<()> {
    let (a, b) = (a.into_left(), b.into_right());
    b.check_shape(a.shape().0, b.shape().1)?;
    c.check_shape(a.shape().1, b.shape().1)?;
    let product = Product { part: None, triangle: None, terms };
    // SAFETY: by contract, for all below.
    unsafe {
        let prepared = product.prepare(&Ranks::new(call, team), &[&a, &b], c)?;
        let options = prepared.options(call, terms);
        let blocks = (&[prepared.rows(0)][..], &[prepared.rows(1)][..]);
        Ranks::new(call, team).settle()?;
        let done = call.done(gemm_rows(&call.context(), team, blocks, prepared.bits, &options));
        prepared.give_back(call);
        let done = done?;
        finish(call, team, &done, None, c)
    }
}

impl Applied<DistOperand> {
    /// The left factor of a product with the contracted index first.
    pub(super) fn into_left(self) -> DistOperand {
        if self.op == Op::Transpose { self.matrix } else { self.matrix.transposed() }
    }

    /// The right factor of a product with the contracted index first.
    pub(super) fn into_right(self) -> DistOperand {
        if self.op == Op::Transpose { self.matrix.transposed() } else { self.matrix }
    }
}

/// A product over ranks.
struct Product<'a> {
    /// The triangle of the result that is written; `None` for all of it.
    part: Option<Triangle>,
    triangle: Option<Uplo>,
    terms: &'a Terms,
}

/// Its operands, taken in.
struct Prepared<'a> {
    bits: u32,
    /// Each operand's rows of this rank; none where the product does not count.
    operands: Vec<Rows<'a>>,
    added: Option<DistMatrix>,
}

impl Product<'_> {
    /// Takes the operands in. Collective.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn prepare<'a>(
        &self,
        ranks: &Ranks<'_>,
        operands: &[&DistOperand],
        c: &DistOperand,
    ) -> Outcome<Prepared<'a>> {
        // SAFETY: by contract, for all below.
        unsafe {
            let bits = c.result_place(ranks, self.part)?;
            let placed = operands.iter().map(|operand| &operand.distribution).collect::<Vec<_>>();
            let to = contracted_rows(&placed, ranks.world.size());
            let take = |operand: &&DistOperand| match self.terms.without_product() {
                true => Ok(Rows::Moved(Matrix::zeros(0, operand.shape().1, 2)?)),
                false => operand.take_rows(ranks, &to),
            };
            let operands = operands.iter().map(take).collect::<Outcome<Vec<_>>>()?;
            let adds = self.terms.beta.as_ref().is_some_and(|beta| !beta.is_zero());
            let added = if adds { Some(self.take_added(ranks, c)?) } else { None };
            Ok(Prepared { bits, operands, added })
        }
    }

    /// # Safety
    /// The header's rules.
    unsafe fn take_added(&self, ranks: &Ranks<'_>, c: &DistOperand) -> Outcome<DistMatrix> {
        let (rows, cols) = c.shape();
        let grid = RankGrid::for_ranks(ranks.world.size());
        let map = TileMap { rows, cols, tile_size: TILE, grid, triangle: self.triangle };
        // SAFETY: by contract.
        let added = unsafe { c.take(ranks, self.part, map) }?;
        if self.triangle.is_some() { Ok(added.into_symmetric()?) } else { Ok(added) }
    }
}

/// Rows of the tiles that matrices are in which are added.
const TILE: usize = 64;

impl Prepared<'_> {
    /// This rank's rows of an operand.
    fn rows(&self, operand: usize) -> MatrixView<'_> {
        self.operands[operand].view()
    }

    /// Keeps the memory of copies for the next call.
    fn give_back(self, call: &Call<'_>) {
        self.operands.into_iter().for_each(|rows| rows.give_back(call));
    }

    fn options<'o>(&'o self, call: &Call<'_>, terms: &'o Terms) -> DistOptions<'o> {
        let options = DistOptions::new().accuracy(call.accuracy()).alpha(terms.alpha.as_ref());
        let options = options.accumulate(self.added.as_ref());
        options.beta(self.added.as_ref().and(terms.beta.as_ref()))
    }
}

/// Bytes of the messages in which a product in these tiles becomes this rank's part: of a triangle either, or of both
/// one after the other.
pub(super) fn result_messages(world: &dyn Transport, map: &TileMap, c: &DistOperand, bits: u32) -> u64 {
    let tiles = Distribution::of_tiles(map);
    let of = |from: &Distribution, triangle| travel_bytes(world, from, &c.distribution, triangle, bits);
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
///
/// # Safety
/// The header's rules.
unsafe fn finish(
    call: &Call<'_>,
    team: &Team,
    done: &DistOutcome,
    part: Option<Triangle>,
    c: &DistOperand,
) -> Outcome<()> {
    let DistOutcome { result, report, .. } = done;
    let bits = result.precision_bits();
    call.note_accuracy(report.accuracy, report.range_bits);
    call.note(|report| report.precision_bits = bits.into());
    // Windows are the node's; each of its ranks has an equal share.
    let share = report.planned_bytes.div_ceil(team.node().size() as u64);
    let messages = result_messages(team.world(), result.map(), c, bits);
    // SAFETY: by contract.
    let placed = unsafe { c.placed_bytes(bits) };
    call.count(|tally| tally.travel(messages, share + placed));
    // SAFETY: by contract.
    unsafe { c.give(&Ranks::new(call, team), part, result) }
}
