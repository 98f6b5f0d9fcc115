//! The ranks that keep their tiles in one window, and that window.

use crate::comm::window::SharedWindow;
use crate::comm::{Reduction, Said, agree};
use crate::error::Result;
use crate::kernels::tiles::{TileEngine, TileShape};
use crate::math::processor;
use crate::ops::factor::node_tiles::NodeTilePlan;
use crate::ops::factor::tile_work::TileWork;
use crate::ops::factor::tiling::shape_of;
use crate::runtime::protocol::Memories;
use crate::site::Site;
use crate::site::{Team, close_all};
use crate::tile::{RankGrid, TileId};

/// The ranks that would have their tiles in a window of their node: all ranks of a node where tiles have the same
/// layout, no rank has devices, and the window has room. Only where no rank has a memory limit, since windows would be
/// kept. Collective.
pub(super) fn memories(Site { ctx, team }: Site<'_>, work: &TileWork<'_>, kernel: &str) -> Result<Memories> {
    let (world, layout) = (team.world(), team.layout());
    if team.drop_windows_if_limited(ctx.memory_bytes())? {
        return Ok(Memories::apart());
    }
    let here = &layout.nodes[layout.node_of[team.rank()]];
    let window = || SharedWindow::bytes_for(NodeTilePlan::new(work, here, team.rank()).window_words());
    let can = here.len() > 1
        && (1..=world.size()).contains(&work.tiling.grid.size())
        && ctx.devices().is_empty()
        && window() <= team.tile_window_room();
    let own = if can { layout_of(work, kernel) | 1 } else { 0 };
    let mut all = vec![0; world.size()];
    world.all_gather(&[own], &mut all)?;
    let share = |ranks: &[usize]| all[ranks[0]] != 0 && ranks.iter().all(|&rank| all[rank] == all[ranks[0]]);
    // Ranks that share nothing get numbers beyond those of the nodes.
    let of = |rank: usize| {
        let node = layout.node_of[rank];
        if share(&layout.nodes[node]) { node } else { layout.nodes.len() + rank }
    };
    Ok(Memories::new((0..world.size()).map(of).collect()))
}

/// Whether this rank expects that no tile travels, as all ranks of `grid` may have theirs in one window.
pub(super) fn may_share(Site { ctx, team }: Site<'_>, grid: RankGrid) -> bool {
    let is_one_node = team.layout().nodes.len() == 1 && (1..=team.size()).contains(&grid.size());
    is_one_node && team.size() > 1 && ctx.devices().is_empty() && ctx.memory_bytes().is_none()
}

/// Whether tiles of `tile_rows` rows have room in one window, as far as this rank can see.
pub(super) fn has_room(team: &Team, engine: &dyn TileEngine, order: usize, tile_rows: usize) -> bool {
    let tiles = order.div_ceil(tile_rows.max(1));
    let each = engine.tile_words(TileShape { rows: tile_rows, cols: tile_rows, diagonal: false });
    let bytes = (tiles as u128 * (tiles as u128 + 1) / 2) * each as u128 * 8;
    bytes <= u128::from(team.tile_window_room())
}

/// A hash of all that must be the same for ranks to read each other's tiles. A kernel may have the same name with other
/// instructions, and then another layout of words.
fn layout_of(work: &TileWork<'_>, kernel: &str) -> u64 {
    let words = work.engine.tile_words(shape_of(work.tiling, TileId { row: 0, col: 0 }));
    Said::hash(&(kernel, processor::level().name(), work.engine.tile_layout(), words))
}

/// The tiles of this node in its window, where it has one.
pub(super) fn node_plan(team: &Team, work: &TileWork<'_>, memories: &Memories) -> Option<NodeTilePlan> {
    let here = &team.layout().nodes[team.layout().node_of[team.rank()]];
    (here.len() > 1 && memories.share(here[0], here[1])).then(|| NodeTilePlan::new(work, here, team.rank()))
}

/// The windows of the nodes for `memories`, or none and ranks by themselves where one of them cannot be opened: tiles
/// also travel. Collective.
pub(super) fn open(
    team: &Team,
    work: &TileWork<'_>,
    memories: Memories,
) -> Result<(Memories, Option<[SharedWindow; 2]>)> {
    let words = node_plan(team, work, &memories).as_ref().map(NodeTilePlan::window_words);
    let opened = words.map(|words| team.take_tile_windows([0, words])).transpose();
    let mut failed = [u64::from(opened.is_err())];
    team.world().all_reduce(Reduction::Max, &mut failed)?;
    match opened {
        Ok(windows) if failed[0] == 0 => Ok((memories, windows)),
        opened => {
            agree(team.world(), opened.ok().flatten().map_or(Ok(()), close_all))?;
            Ok((Memories::apart(), None))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Transport;
    use crate::comm::local;
    use crate::comm::window::WindowKind;
    use crate::context::Context;
    use crate::ops::factor::options::DistCholeskyOptions;
    use crate::ops::factor::ranks::cholesky_tiles;
    use crate::site::TeamOptions;

    fn on_two_ranks(check: impl Fn(&Context, &mut Team) + Sync) {
        local::run(2, |rank| {
            let ctx = Context::builder().threads(1).build().unwrap();
            let options = TeamOptions::new().window(WindowKind::Heap);
            let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
            check(&ctx, &mut team);
            team.close().unwrap();
        });
    }

    #[test]
    fn tiles_are_as_low_as_between_nodes_where_a_window_has_no_room() {
        on_two_ranks(|ctx, team| {
            let options = DistCholeskyOptions::default();
            let rows = |team: &Team| cholesky_tiles(ctx, team, 2000, 768, &options).unwrap().tile_size;
            let tall = rows(team);
            team.machine_bytes = || Some(1 << 20);
            let low = rows(team);
            assert!(low <= 112 && low <= tall, "{low} {tall}");
            let engine = ctx.tile_engine(ctx.kernel(), 300).unwrap();
            assert!(has_room(team, &*engine, 8, 48) && !has_room(team, &*engine, 1 << 30, 128));
        });
    }

    #[test]
    fn tiles_are_shared_on_one_node_by_the_ranks_of_a_grid_that_they_fill() {
        on_two_ranks(|ctx, team| {
            let shares = |rows, cols| may_share(Site { ctx, team }, RankGrid { rows, cols });
            assert!(shares(1, 2) && shares(2, 1) && shares(1, 1));
            assert!(!shares(0, 2) && !shares(2, 2) && !shares(usize::MAX, usize::MAX));
            let limited = Context::builder().threads(1).memory_bytes(1 << 30).build().unwrap();
            assert!(!may_share(Site { ctx: &limited, team }, RankGrid { rows: 1, cols: 2 }));
        });
    }
}
