//! The tiles of one rank: own ones under work or finished, and those that came from other ranks.

use super::plan::{Plan, units};
use super::unpoisoned;
use crate::comm::post::Body;
use crate::context::Context;
use crate::drive::{self, Meter, RankTiles};
use crate::error::{Error, Result};
use crate::kernels::tiles::{DiagonalData, UpdateTile};
use crate::math::pivot::RowWeight;
use crate::matrix::Matrix;
use crate::ops::cholesky::tile_work::{FailedRow, TileWork};
use crate::ops::distributed::DistMatrix;
use crate::runtime::protocol::TileRun;
use crate::tile::TileId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, RwLock, RwLockReadGuard};

/// What one worker has for itself.
pub(super) struct Local<'w> {
    pub scratch: &'w mut [u64],
}

/// An own tile.
struct OwnTile<'a, 'w> {
    words: RwLock<&'w mut [u64]>,
    /// Running sums of its rows: before its last task those that the tile before it has left, then its own.
    weights: Mutex<Vec<RowWeight>>,
    /// Of a finished tile on the diagonal.
    data: OnceLock<Box<dyn DiagonalData>>,
    /// The entries to be factored.
    source: &'a Matrix,
}

/// A tile that came.
struct Guest<'w> {
    words: &'w mut [u64],
    weights: Vec<RowWeight>,
    data: Option<Box<dyn DiagonalData>>,
}

/// The tiles of one rank.
pub(super) struct RankFactor<'a, 'w> {
    work: TileWork<'a>,
    own: HashMap<TileId, OwnTile<'a, 'w>>,
    guests: RwLock<HashMap<TileId, Arc<Guest<'w>>>>,
    free: Mutex<Vec<&'w mut [u64]>>,
    failed: Mutex<Option<FailedRow>>,
    meter: Meter<'a>,
}

/// A finished tile that is read.
enum Operand<'t, 'w> {
    Own(RwLockReadGuard<'t, &'w mut [u64]>),
    Guest(Arc<Guest<'w>>),
}

impl Operand<'_, '_> {
    fn words(&self) -> &[u64] {
        match self {
            Operand::Own(words) => words,
            Operand::Guest(guest) => guest.words,
        }
    }
}

impl<'a, 'w> RankFactor<'a, 'w> {
    /// The tiles of `a` in `words`, of which the slots are the rest.
    pub fn new(
        work: TileWork<'a>,
        a: &'a DistMatrix,
        plan: &Plan,
        first_weights: &[RowWeight],
        (words, meter): (&'w mut [u64], Meter<'a>),
    ) -> RankFactor<'a, 'w> {
        let (mut words, slots) = words.split_at_mut(plan.tile_words);
        let tiles = plan.tiling.tile_rows();
        let mut own = HashMap::new();
        for (id, source) in a.tiles().iter().filter(|(id, _)| id.row < tiles) {
            let tile = TileId { row: id.row, col: id.col };
            let (first, rest) = words.split_at_mut(work.engine.tile_words(work.shape(tile)));
            words = rest;
            let weights = first_weights[plan.tiling.row_range(tile.row)].to_vec();
            let (words, weights) = (RwLock::new(first), Mutex::new(weights));
            own.insert(tile, OwnTile { words, weights, data: OnceLock::new(), source });
        }
        let free = slots.chunks_exact_mut(plan.operand_words.max(1)).collect();
        let (guests, failed) = (RwLock::new(HashMap::new()), Mutex::new(None));
        RankFactor { work, own, guests, free: Mutex::new(free), failed, meter }
    }

    /// The row that ended the factorisation, where this rank found it.
    pub fn failed(&self) -> Option<FailedRow> {
        unpoisoned(self.failed.lock()).clone()
    }

    /// Rounds the finished own tiles into the tiles of `factor`, as many rows as it has.
    ///
    /// # Errors
    /// [`Error::ExponentRange`], with the place in the whole matrix; [`Error::Cancelled`].
    pub fn store(&self, ctx: &Context, factor: &mut DistMatrix, locals: &mut [Local<'_>]) -> Result<()> {
        let mut tiles = factor.tiles_mut().iter_mut();
        let work = |local: &mut Local<'_>, (id, matrix): (TileId, &mut Matrix)| {
            if let Some(own) = self.own.get(&id) {
                self.work.store(id, &unpoisoned(own.words.read()), matrix, local.scratch)?;
            }
            self.meter.add("unscale", 0)
        };
        let next = |_: &mut Local<'_>| tiles.next().map(|(id, matrix)| (TileId { row: id.row, col: id.col }, matrix));
        ctx.install(|| drive::share(locals, next, work))
    }

    fn own(&self, tile: TileId) -> &OwnTile<'a, 'w> {
        self.own.get(&tile).expect("a rank works on its own tiles")
    }

    fn guest(&self, tile: TileId) -> Arc<Guest<'w>> {
        unpoisoned(self.guests.read()).get(&tile).expect("an operand is here before its task").clone()
    }

    fn operand(&self, tile: TileId) -> Operand<'_, 'w> {
        match self.own.get(&tile) {
            Some(own) => Operand::Own(unpoisoned(own.words.read())),
            None => Operand::Guest(self.guest(tile)),
        }
    }

    /// SYRK and GEMM.
    fn update(&self, run: &TileRun, words: &mut [u64], scratch: &mut [u64]) -> Result<()> {
        let TileId { row, col } = run.tile;
        let row_of = |row: usize| run.updates.clone().map(move |col| self.operand(TileId { row, col }));
        let right = row_of(col).collect::<Vec<_>>();
        let left = if row == col { Vec::new() } else { row_of(row).collect::<Vec<_>>() };
        let y = right.iter().map(Operand::words).collect::<Vec<_>>();
        let x = if row == col { y.clone() } else { left.iter().map(Operand::words).collect() };
        let shape = self.work.shape(run.tile);
        self.work.update(run.tile, &mut [UpdateTile { shape, words, x }], &y, scratch)
    }

    /// Takes over the weights that the tile before this one in its row has left; that one was just read.
    fn inherit(&self, tile: TileId) {
        let before = TileId { col: tile.col - 1, ..tile };
        let weights = match self.own.get(&before) {
            Some(own) => unpoisoned(own.weights.lock()).clone(),
            None => self.guest(before).weights.clone(),
        };
        *unpoisoned(self.own(tile).weights.lock()) = weights;
    }

    /// POTRF or TRSM.
    fn finish(&self, tile: TileId, words: &mut [u64], scratch: &mut [u64]) -> Result<()> {
        let own = self.own(tile);
        let mut weights = unpoisoned(own.weights.lock());
        if tile.row == tile.col {
            let factored = self.work.factor(tile, words, &mut weights, scratch);
            let data = factored.map_err(|failed| {
                *unpoisoned(self.failed.lock()) = Some(failed);
                Error::Cancelled // ends the others; the caller says what happened
            })?;
            let _ = own.data.set(data); // each tile is finished once
            return Ok(());
        }
        let above = TileId { row: tile.col, col: tile.col };
        match self.own.get(&above) {
            Some(diagonal) => {
                let data = diagonal.data.get().expect("the diagonal tile is finished");
                let above = unpoisoned(diagonal.words.read());
                self.work.solve(tile, words, &mut weights, (&above, &**data), scratch);
            }
            None => {
                let guest = self.guest(above);
                let data = guest.data.as_ref().expect("a tile on the diagonal comes with its data");
                self.work.solve(tile, words, &mut weights, (guest.words, &**data), scratch);
            }
        }
        Ok(())
    }
}

impl<'w> RankTiles for RankFactor<'_, 'w> {
    type Local = Local<'w>;

    const UNPACKS: bool = true;

    fn run(&self, local: &mut Local<'w>, run: &TileRun) -> Result<()> {
        let own = self.own(run.tile);
        let mut words = unpoisoned(own.words.write());
        if run.updates.start == 0 && (run.tile.col == 0 || !run.updates.is_empty()) {
            self.work.load(run.tile, own.source.view(), &mut words, local.scratch);
        }
        if !run.updates.is_empty() {
            self.update(run, &mut words, local.scratch)?;
            if run.updates.end == run.tile.col {
                self.inherit(run.tile);
            }
        }
        if run.finish { self.finish(run.tile, &mut words, local.scratch) } else { Ok(()) }
    }

    fn pack(&self, local: &mut Local<'w>, tile: TileId) -> Result<Body> {
        let own = self.own(tile);
        let mut payload = vec![0; self.payload_words(tile)];
        let weights = unpoisoned(own.weights.lock());
        self.work.pack(tile, (&unpoisoned(own.words.read()), &weights), &mut payload, local.scratch);
        Ok(Arc::new(payload))
    }

    fn payload_words(&self, tile: TileId) -> usize {
        self.work.payload_words(tile)
    }

    fn unpack(&self, local: &mut Local<'w>, tile: TileId, body: &Body) -> Result<()> {
        let slot = unpoisoned(self.free.lock()).pop().expect("a tile comes only where a slot is free");
        let words = &mut slot[..self.work.operand_words(tile)];
        let data = self.work.unpack(tile, body, words, local.scratch);
        let weights = self.work.unpack_weights(tile, body);
        let guest = Arc::new(Guest { words: slot, weights, data });
        unpoisoned(self.guests.write()).insert(tile, guest);
        Ok(())
    }

    fn release(&self, tile: TileId) {
        let gone = unpoisoned(self.guests.write()).remove(&tile);
        // Its readers are done, so this is the last handle.
        if let Some(guest) = gone.and_then(Arc::into_inner) {
            unpoisoned(self.free.lock()).push(guest.words);
        }
    }

    fn advanced(&self, run: &TileRun) -> Result<()> {
        let tasks = run.updates.len() + usize::from(run.finish);
        self.meter.add("factor", units(self.work.tiling, run.tile, tasks))
    }
}
