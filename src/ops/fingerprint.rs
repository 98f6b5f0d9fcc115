//! The hashed forms of names and shapes of matrices, tiles and options, which ranks compare.

use crate::comm::{Said, Say, say_as_number, say_fields};
use crate::kernels::ConversionCosts;
use crate::kernels::tiles::{EntryForm, TileLayout};
use crate::math::float::Head;
use crate::matrix::{Diag, Op, Side, Uplo};
use crate::ops::product::problem::Accuracy;
use crate::plan::{Cut, DeviceCut};
use crate::runtime::protocol::{DeliveryKind, Termination};
use crate::tile::{Along, Axis, Distribution, GridOrder, RankGrid, TileMap};

say_as_number!(Accuracy, Along, DeliveryKind, Diag, GridOrder, Op, Side, Termination, Uplo);

say_fields! { RankGrid { rows, cols } }
say_fields! { TileMap { rows, cols, tile_size, grid, triangle } }
say_fields! { Distribution { rows, cols, grid, order, row_axis, col_axis } }
say_fields! { Cut { batch_primes, band_panels, chunk_rows } }
say_fields! { DeviceCut { band_cols, strip_cols, chunk_rows, batch_moduli, piece_entries } }
say_fields! { TileLayout { form, entry_form, entry_limbs, primes } }
say_fields! { ConversionCosts { saved, operands, results, result_bits } }

impl Say for Head {
    fn say(&self, said: &mut Said) {
        said.number(self.0);
    }
}

impl Say for EntryForm {
    fn say(&self, said: &mut Said) {
        match self {
            EntryForm::Limbs(count) => (0u64, count).say(said),
            EntryForm::Digits(count) => (1u64, count).say(said),
        }
    }
}

impl Say for Axis {
    fn say(&self, said: &mut Said) {
        match self {
            Axis::Whole => 0u64.say(said),
            Axis::Cyclic { block, first, offset, along } => (1u64, block, first, offset, along).say(said),
            Axis::Consecutive { starts, along } => (2u64, starts, along).say(said),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_name_and_every_field_is_told_apart() {
        let grid = RankGrid { rows: 2, cols: 3 };
        let map = TileMap { rows: 8, cols: 9, tile_size: 8, grid, triangle: None };
        let maps = [
            map,
            TileMap { rows: 7, ..map },
            TileMap { cols: 8, ..map },
            TileMap { tile_size: 16, ..map },
            TileMap { grid: RankGrid { rows: 3, cols: 2 }, ..map },
            TileMap { triangle: Some(Uplo::Lower), ..map },
            TileMap { triangle: Some(Uplo::Upper), ..map },
        ];
        let cyclic = |first: usize, along: Along| Axis::Cyclic { block: 4, first, offset: 0, along };
        let consecutive = |starts: &[usize]| Axis::Consecutive { starts: starts.to_vec(), along: Along::GridRow };
        let axes = [
            Axis::Whole,
            cyclic(0, Along::GridRow),
            cyclic(1, Along::GridRow),
            cyclic(0, Along::ColumnMajor),
            consecutive(&[0, 8]),
            consecutive(&[0, 4, 8]),
        ];
        let named = [(Uplo::Lower, Op::Transpose), (Uplo::Upper, Op::Transpose), (Uplo::Lower, Op::NoTranspose)];
        let mut hashes = maps.iter().map(Said::hash).collect::<HashSet<_>>();
        hashes.extend(axes.iter().map(Said::hash));
        hashes.extend(named.iter().map(Said::hash));
        assert_eq!(hashes.len(), maps.len() + axes.len() + named.len());
    }
}
