//! The bytes that a factorisation above a disk moves, counted without a disk.

use crate::runtime::CholeskyGraph;
use crate::runtime::policy::{BlockShape, Policy};
use crate::runtime::protocol::{Message, ProtocolAction, ProtocolEvent, ProtocolOptions, TaskMachine};
use crate::runtime::residency::{Move, Owner};
use crate::runtime::tile_level::{LevelShape, TileLevel};
use crate::tile::{OwnTiles, TileId};
use serde::Serialize;
use std::collections::HashSet;
use std::ops::Range;

/// Bytes between memory and disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LevelTraffic {
    /// Bytes of entries of the matrix, each read once.
    pub entry_bytes: u64,
    /// Bytes of finished tiles that are read again.
    pub operand_bytes: u64,
    /// Bytes of finished tiles that are written.
    pub written_bytes: u64,
}

impl LevelTraffic {
    /// All bytes read.
    pub fn read_bytes(&self) -> u64 {
        self.entry_bytes + self.operand_bytes
    }
}

/// Bytes of a tile on the disk.
#[derive(Clone, Copy)]
pub struct LevelBytes<'a> {
    /// Bytes of a tile as entries of the matrix.
    pub entries: &'a dyn Fn(TileId) -> u64,
    /// Bytes of a finished tile.
    pub finished: &'a dyn Fn(TileId) -> u64,
}

/// The options of the protocol of one out-of-core rank: `workers` runs at the same time, and the runs of one step of a
/// block planned in advance.
pub fn level_options(shape: &LevelShape, workers: usize) -> ProtocolOptions {
    let BlockShape { rows, cols } = shape.blocks;
    ProtocolOptions {
        most_updates: shape.most_updates,
        strip_tiles: shape.strip_tiles,
        ..ProtocolOptions::alone(Policy::Blocks { rows, cols }, workers + 2 * cols * rows.div_ceil(shape.strip_tiles))
    }
}

/// The bytes that one rank transfers, with a disk that answers at once, workers that do one run after the other, and
/// other ranks whose tiles arrive as soon as they are requested.
pub fn count_level(graph: CholeskyGraph, owner: Owner, shape: LevelShape, bytes: LevelBytes<'_>) -> LevelTraffic {
    let mut options = level_options(&shape, 1);
    options.slots = owner.grid.useful_slots(graph.tiles, usize::MAX);
    let mut machine = TaskMachine::unchecked(owner.grid, graph, owner.number, options);
    let mut level = TileLevel::new(graph, owner, shape, |_| false);
    let (mut traffic, mut finished) = (LevelTraffic::default(), HashSet::new());
    loop {
        while let Some(action) = machine.poll_near(&|_, _| true, &|tile| level.admits(tile, options.workers)) {
            match action {
                ProtocolAction::Run(run) => level.take(run),
                ProtocolAction::Send { message: Message::Request { tile, .. }, to } => {
                    traffic.written_bytes += (bytes.finished)(tile);
                    finished.insert(tile);
                    let message = Message::Tile { tile, clients: Vec::new(), depth: 1 };
                    machine.handle(ProtocolEvent::Message { from: to, message });
                }
                ProtocolAction::Send { .. } | ProtocolAction::Release(_) | ProtocolAction::Finished => {}
            }
        }
        while let Some(step) = level.next_move() {
            match step {
                Move::Fetch(tile) => {
                    match finished.contains(&tile) {
                        true => traffic.operand_bytes += (bytes.finished)(tile),
                        false => traffic.entry_bytes += (bytes.entries)(tile),
                    }
                    level.fetched(tile);
                }
                Move::WriteBack(tile) => {
                    traffic.written_bytes += (bytes.finished)(tile);
                    level.written(tile);
                }
                Move::Drop(_) => {}
            }
        }
        let Some((ticket, run)) = level.next_run() else { break };
        if run.finish {
            finished.extend(run.tiles());
        }
        level.done(ticket, &run);
        machine.handle(ProtocolEvent::Done(run));
    }
    traffic
}

/// The smallest number of bytes that blocks of this shape read on one rank: for each block the finished tiles of its
/// rows and columns left of the block column, the tiles of the block column that come from elsewhere, and its own
/// entries.
pub fn least_level_bytes(graph: CholeskyGraph, owner: Owner, own_blocks: BlockShape, bytes: LevelBytes<'_>) -> u64 {
    let (tiles, Owner { grid, number }) = (graph.tiles, owner);
    let (blocks, place) = (own_blocks.over(grid), grid.place(number));
    let (block_rows, block_cols) = (tiles.div_ceil(blocks.rows.max(1)), tiles.div_ceil(blocks.cols.max(1)));
    let range = |block: usize, side: usize| block * side..((block + 1) * side).min(tiles);
    let own = |range: Range<usize>, at: usize, step: usize| range.filter(move |tile| tile % step == at);
    let own_tiles = OwnTiles::new(grid, tiles, number).in_columns(0..tiles);
    let mut sum = own_tiles.map(|tile| (bytes.entries)(tile)).sum::<u64>();
    let mut row_sums = vec![0; tiles]; // finished tiles of each row left of the block column
    for block_col in 0..block_cols {
        let cols = range(block_col, blocks.cols);
        for block_row in cols.start / blocks.rows..block_rows {
            let rows = range(block_row, blocks.rows);
            let below = rows.start.max(cols.start)..rows.end;
            let below_rows = own(below.clone(), place.row, grid.rows).collect::<Vec<_>>();
            if below_rows.is_empty() {
                continue;
            }
            let right = own(cols.clone(), place.col, grid.cols).filter(|row| *row < below.end);
            let right = right.filter(|row| !below_rows.contains(row)).collect::<Vec<_>>();
            sum += below_rows.iter().chain(&right).map(|&row| row_sums[row]).sum::<u64>();
            // Tiles of the block column that this block does not have: the tiles of the rows above it, which come
            // first, and the tiles of other ranks.
            let is_own = |tile: TileId| grid.owner(tile) == number;
            let left = |row: usize| (cols.start..cols.end.min(row + 1)).map(move |col| TileId { row, col });
            let above = right.iter().flat_map(|&row| left(row));
            let beside = below_rows.iter().flat_map(|&row| left(row)).filter(|&tile| !is_own(tile));
            let read = above.chain(beside).filter(|&tile| grid.consumers(tiles, number, tile) > 0);
            sum += read.map(|tile| (bytes.finished)(tile)).sum::<u64>();
        }
        for (row, sum) in row_sums.iter_mut().enumerate().skip(cols.start) {
            let passed = cols.clone().filter(|&col| col <= row);
            *sum += passed.map(|col| (bytes.finished)(TileId { row, col })).sum::<u64>();
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::local::Ticket;
    use crate::runtime::policy::Draw;
    use crate::runtime::protocol::TileRun;
    use crate::tile::RankGrid;
    use std::collections::HashMap;
    use std::iter;

    const ONE: RankGrid = RankGrid { rows: 1, cols: 1 };
    const ALONE: Owner = Owner { grid: ONE, number: 0 };

    fn unit() -> LevelBytes<'static> {
        LevelBytes { entries: &|_| 1, finished: &|_| 1 }
    }

    fn shape(room_tiles: usize, rows: usize, cols: usize, strip_tiles: usize, most_updates: usize) -> LevelShape {
        LevelShape { room_tiles, blocks: BlockShape { rows, cols }, strip_tiles, most_updates }
    }

    #[test]
    fn with_room_for_all_every_tile_moves_once_each_way() {
        for tiles in 1..12 {
            let graph = CholeskyGraph { tiles };
            let traffic = count_level(graph, ALONE, shape(graph.tile_count() + 40, 3, 3, 3, 2), unit());
            let all = graph.tile_count() as u64;
            let expected = LevelTraffic { entry_bytes: all, operand_bytes: 0, written_bytes: all };
            assert_eq!(traffic, expected, "{tiles}");
        }
    }

    #[test]
    fn the_least_room_is_enough() {
        for tiles in 1..14 {
            for (rows, cols, strip, updates) in [(1, 1, 1, 1), (2, 2, 2, 1), (3, 2, 2, 2), (4, 4, 4, 3), (1, 3, 1, 2)] {
                let mut shape = shape(0, rows, cols, strip, updates);
                shape.room_tiles = shape.least_room(rows * cols);
                let graph = CholeskyGraph { tiles };
                let traffic = count_level(graph, ALONE, shape, unit());
                assert_eq!(traffic.entry_bytes, graph.tile_count() as u64, "{tiles} {shape:?}");
                assert_eq!(traffic.written_bytes, graph.tile_count() as u64, "{tiles} {shape:?}");
            }
        }
    }

    #[test]
    fn bytes_read_keep_to_a_fifth_above_the_least_for_their_blocks() {
        for (tiles, side) in [(20, 4), (24, 6), (40, 8), (33, 7)] {
            let blocks = BlockShape { rows: side, cols: side };
            let room = side * side + 2 * (side + 1);
            let graph = CholeskyGraph { tiles };
            let least = least_level_bytes(graph, ALONE, blocks, unit());
            let read = count_level(graph, ALONE, shape(room, side, side, side, 1), unit()).read_bytes();
            assert!(read as f64 <= 1.2 * least as f64, "{tiles} tiles, blocks of {side}: {read} of {least}");
            assert!(read + (room as u64) * (tiles as u64) >= least, "{tiles} tiles: {read} of {least}");
        }
    }

    /// A rank whose workers take a unit of time for each task, above a disk that moves a tile in `seconds`: tiles read.
    fn tiles_read(graph: CholeskyGraph, shape: LevelShape, workers: usize, seconds: f64) -> u64 {
        let mut machine = TaskMachine::unchecked(ONE, graph, 0, level_options(&shape, workers));
        let mut level = TileLevel::new(graph, ALONE, shape, |_| false);
        let (mut moves, mut runs, mut read) = (Vec::new(), Vec::new(), 0);
        let (mut now, mut disk_free) = (0.0f64, 0.0f64);
        loop {
            while let Some(ProtocolAction::Run(run)) = machine.poll() {
                level.take(run);
            }
            while let Some(step) = level.next_move() {
                read += u64::from(matches!(step, Move::Fetch(_)));
                if !matches!(step, Move::Drop(_)) {
                    disk_free = disk_free.max(now) + seconds;
                    moves.push((disk_free, step));
                }
            }
            while runs.len() < workers
                && let Some((ticket, run)) = level.next_run()
            {
                runs.push((now + (run.count * run.tasks_each()) as f64, ticket, run));
            }
            let first_move = (0..moves.len()).min_by(|&i, &j| f64::total_cmp(&moves[i].0, &moves[j].0));
            let first_run = (0..runs.len()).min_by(|&i, &j| f64::total_cmp(&runs[i].0, &runs[j].0));
            match (first_move, first_run) {
                (Some(at), run) if run.is_none_or(|run| moves[at].0 <= runs[run].0) => {
                    let (end, step) = moves.swap_remove(at);
                    now = end;
                    match step {
                        Move::Fetch(tile) => level.fetched(tile),
                        Move::WriteBack(tile) | Move::Drop(tile) => level.written(tile),
                    }
                }
                (_, Some(at)) => {
                    let (end, ticket, run) = runs.swap_remove(at);
                    now = end;
                    level.done(ticket, &run);
                    machine.handle(ProtocolEvent::Done(run));
                }
                _ => return read,
            }
        }
    }

    /// Doubles are summed in the order in which a tile's updates run, so there is one order, whichever operand arrives
    /// first.
    #[test]
    fn the_updates_of_a_tile_run_in_the_order_of_their_columns() {
        let graph = CholeskyGraph { tiles: 9 };
        for (seed, (rows, cols, strip, updates)) in
            (0..).zip([(1, 1, 1, 1), (2, 2, 2, 1), (3, 3, 2, 1), (3, 2, 3, 2), (9, 9, 4, 1), (4, 4, 4, 3)])
        {
            let mut shape = shape(0, rows, cols, strip, updates);
            shape.room_tiles = shape.least_room(rows * cols) + seed as usize;
            let mut machine = TaskMachine::unchecked(ONE, graph, 0, level_options(&shape, 3));
            let mut level = TileLevel::new(graph, ALONE, shape, |_| false);
            let (mut draw, mut events) = (Draw::new(seed), Vec::new());
            let mut applied = HashMap::<TileId, usize>::new();
            loop {
                while let Some(ProtocolAction::Run(run)) = machine.poll() {
                    level.take(run);
                }
                events.extend(iter::from_fn(|| level.next_move()).map(Happening::Moved));
                events.extend(iter::from_fn(|| level.next_run()).map(|(ticket, run)| Happening::Ran(ticket, run)));
                if events.is_empty() {
                    break;
                }
                // Any event under way may end next.
                match events.swap_remove(draw.below(events.len())) {
                    Happening::Moved(Move::Fetch(tile)) => level.fetched(tile),
                    Happening::Moved(Move::WriteBack(tile)) => level.written(tile),
                    Happening::Moved(Move::Drop(_)) => {}
                    Happening::Ran(ticket, run) => {
                        for tile in run.tiles() {
                            let before = applied.insert(tile, run.updates.end).unwrap_or(0);
                            assert_eq!(before, run.updates.start, "{shape:?}: {run:?}");
                            assert!(!run.finish || run.updates.end == tile.col, "{shape:?}: {run:?}");
                        }
                        level.done(ticket, &run);
                        machine.handle(ProtocolEvent::Done(run));
                    }
                }
            }
            assert!(applied.len() == graph.tile_count() && applied.iter().all(|(tile, &updates)| updates == tile.col));
        }
    }

    /// Work that ends some time after it has begun.
    enum Happening {
        Moved(Move<TileId>),
        Ran(Ticket, TileRun),
    }

    #[test]
    fn several_workers_and_a_slow_disk_read_little_more_than_was_counted() {
        let graph = CholeskyGraph { tiles: 32 };
        for (rows, cols, strip, room) in [(4, 3, 2, 29), (4, 4, 4, 34), (5, 5, 3, 48), (7, 7, 4, 80), (8, 8, 2, 100)] {
            let shape = shape(room, rows, cols, strip, 1);
            let counted = count_level(graph, ALONE, shape, unit()).read_bytes() as f64;
            for (workers, seconds) in [(1, 0.0), (2, 0.2), (2, 2.0)] {
                let read = tiles_read(graph, shape, workers, seconds) as f64;
                assert!(read <= 1.12 * counted, "{shape:?}, {workers} workers, {seconds}: {read} of {counted}");
            }
        }
    }
}
