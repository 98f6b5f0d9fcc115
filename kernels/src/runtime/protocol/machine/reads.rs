//! The tiles that tasks have read: tiles of other ranks are released when the last task of this rank has read them.

use super::TaskMachine;
use crate::runtime::protocol::TileRun;
use crate::runtime::protocol::progress::Operand;
use crate::tile::TileId;

impl TaskMachine {
    /// Records that a run has read its operands: operands of other ranks may be released.
    pub(super) fn operands_read(&mut self, run: &TileRun) {
        for tile in run.tiles() {
            for k in run.updates.clone() {
                let (left, right) = self.progress.operands(tile, k).expect("they were read");
                self.consumed(left);
                if tile.row != tile.col {
                    self.consumed(right);
                }
            }
            if run.finish && tile.row != tile.col {
                let above = self.progress.above(tile).expect("it was read");
                self.consumed(above);
            }
        }
    }

    fn consumed(&mut self, operand: Operand) {
        if let Operand::Slot(place) = operand {
            let slot = self.admission.slot(place);
            slot.consumers -= 1;
            if slot.consumers == 0 {
                self.serve_slot(place);
            }
        }
    }

    /// Records that all tasks of an own tile have read their operands.
    pub(super) fn was_done(&mut self, tile: TileId) {
        let TileId { row, col } = tile;
        for k in 0..col {
            self.was_read(TileId { row, col: k });
            if row != col {
                self.was_read(TileId { row: col, col: k });
            }
        }
        if row != col {
            self.was_read(TileId { row: col, col });
        }
    }

    fn was_read(&mut self, tile: TileId) {
        let owner = self.grid.owner(tile);
        if owner != self.rank && !self.memories.share(owner, self.rank) {
            self.admission.was_read(tile);
        }
    }
}
