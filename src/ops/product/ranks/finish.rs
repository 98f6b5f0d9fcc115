//! The last steps of a product on ranks: each rank's tiles from the exact product, the entries that are summed term by
//! term where each is promised by its own terms, and the report of all.

use super::DistOutcome;
use crate::comm::{Reduction, agree, agreed};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::EntryIndex;
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::exact_sum::ExactEntry;
use crate::ops::product::clock::{PhaseClock, RankPhase, spread_over_ranks};
use crate::ops::product::combine::Epilogue;
use crate::ops::product::entrywise::{Singles, Terms};
use crate::ops::product::plan::Plan;
use crate::ops::product::report::{Phases, Report, TeamReport};
use crate::ops::product::scale::NormPass;
use crate::ops::product::sink::in_triangle;
use crate::site::Site;
use crate::site::Team;
use crate::tile::{TileId, TileMap};

/// The memory that nodes may take: bytes in addition to those that each rank's node holds already, and whether one of
/// its ranks has a limit.
pub(super) struct NodeLimits<'a> {
    pub bytes: &'a [u64],
    pub limited: &'a [bool],
    pub held_bytes: u64,
}

/// The result where no product is formed: 0, or `combination` applied to 0. Only this result counts against a limit;
/// kept windows do not. Collective.
///
/// # Errors
/// [`Error::MemoryLimit`] where a node has no room for it.
pub(super) fn without_product(
    team: &Team,
    map: TileMap,
    precision_bits: u32,
    limits: NodeLimits<'_>,
    epilogue: Option<&Epilogue<'_>>,
) -> Result<DistOutcome> {
    let (layout, world) = (team.layout(), team.world());
    let of = |ranks: &[usize]| ranks.iter().map(|&rank| DistMatrix::bytes_for(&map, rank, precision_bits)).sum::<u64>();
    for (ranks, &limit_bytes) in layout.nodes.iter().zip(limits.bytes) {
        let minimum_bytes = of(ranks);
        if minimum_bytes > limit_bytes {
            return Err(Error::MemoryLimit { limit_bytes, minimum_bytes });
        }
    }
    let node = layout.node_of[team.rank()];
    let roomy = team.make_room(of(&layout.nodes[node]) + limits.held_bytes, limits.limited[node]);
    let roomy = roomy.and(if limits.limited[node] { team.close_product_windows() } else { Ok(()) });
    agree(world, team.in_world(roomy))?;
    let mut result = agreed(world, DistMatrix::zeros(map, team.rank(), precision_bits))?;
    let report = Report { team: Some(TeamReport::default()), ..Report::default() };
    agree(world, epilogue.map_or(Ok(()), |epilogue| finish_tiles(epilogue, &mut result)))?;
    Ok(DistOutcome { result, report, spans: Vec::new() })
}

/// Fills a rank's tiles where no row is contracted and the product is 0.
fn finish_tiles(epilogue: &Epilogue<'_>, result: &mut DistMatrix) -> Result<()> {
    let (map, precision_bits) = (*result.map(), result.precision_bits());
    for (id, tile) in result.tiles_mut() {
        let (rows, cols, width) = (map.row_range(id.row), map.col_range(id.col), tile.limbs_per_element());
        let (heads, limbs) = tile.parts_mut();
        let mut entries = heads.iter_mut().zip(limbs.chunks_exact_mut(width));
        for (col, row) in cols.flat_map(|col| rows.clone().map(move |row| (col, row))) {
            let (head, limbs) = entries.next().expect("an entry for each place");
            if map.triangle.is_none_or(|uplo| in_triangle(uplo, row, col)) {
                *head = epilogue.finish(ExactEntry::ZERO, EntryIndex { row, col }, precision_bits, limbs)?.0;
            }
        }
    }
    Ok(())
}

/// Replaces single entries in a rank's tiles. Collective.
pub(super) fn finish_singles(
    site: Site<'_>,
    terms: &Terms<'_>,
    singles: &Singles,
    epilogue: &Epilogue<'_>,
    result: &mut DistMatrix,
) -> Result<()> {
    let (map, precision_bits) = (*result.map(), result.precision_bits());
    singles.sum(&NormPass::of_ranks(site), terms, |place, exact| {
        let id = TileId { row: place.row / map.tile_size, col: place.col / map.tile_size };
        let Some(tile) = result.tile_mut(id) else { return Ok(()) };
        let at = place.row % map.tile_size + place.col % map.tile_size * tile.rows();
        let width = tile.limbs_per_element();
        let (heads, limbs) = tile.parts_mut();
        heads[at] = epilogue.finish(exact, place, precision_bits, &mut limbs[at * width..][..width])?.0;
        Ok(())
    })
}

/// The report, the same on all ranks. Collective.
pub(super) fn make_report(
    ctx: &Context,
    team: &Team,
    plan: &Plan,
    precision_bits: u32,
    clock: &PhaseClock,
) -> Result<Report> {
    let mut most = [clock.seconds().to_bits(), team.window_bytes()];
    team.world().all_reduce(Reduction::Max, &mut most)?; // positive doubles are ordered like their bits
    let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
    let exchange = [clock.hidden_seconds(), clock.seconds_in(RankPhase::Exchange)].map(nanoseconds);
    let mut sums = [8 * clock.sent_words(), exchange[0], exchange[1]];
    team.world().all_reduce(Reduction::Sum, &mut sums)?;
    let [exchanged_bytes, hidden, whole] = sums;
    let rank_phases = spread_over_ranks(team.world(), &clock.totals())?;
    let team_plan = plan.team.clone().unwrap_or_default();
    Ok(Report {
        seconds: f64::from_bits(most[0]),
        checked: ctx.self_check() || ctx.freivalds(),
        team: Some(TeamReport {
            plan: team_plan,
            rank_phases,
            window: team.window_kind(),
            window_bytes: most[1],
            exchanged_bytes,
            exchange_hidden: hidden as f64 / whole.max(1) as f64,
        }),
        ..Report::new(plan, precision_bits, Phases::longest(&rank_phases))
    })
}
