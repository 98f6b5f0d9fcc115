//! A few columns of a factorisation with partial pivoting with the vector instructions for 52-bit integers, if the
//! processor has them: [`PivotLanes`].

pub use crate::kernels::pivot_cells::{CellLane, Finished, LargestLanes};
#[cfg(target_arch = "x86_64")]
pub use crate::kernels::x86_64::ifma52::pivot_lanes::{LanePivot, PivotLanes};

#[cfg(not(target_arch = "x86_64"))]
pub use absent::{LanePivot, PivotLanes};

#[cfg(not(target_arch = "x86_64"))]
#[expect(missing_docs, reason = "documented in the module for x86-64")]
mod absent {
    use super::{CellLane, Finished, LargestLanes};
    use crate::kernels::PlaneEngine;
    use crate::kernels::plane_tiles::rules::BlockSums;
    use crate::kernels::tiles::TileSource;
    use std::ops::Range;

    /// There is none.
    #[derive(Clone, Copy)]
    pub enum PivotLanes {}

    /// Nor this.
    pub enum LanePivot {}

    impl PivotLanes {
        pub fn new(_working_bits: u32, _entry_bits: u32, _modulus_bits: u32) -> Option<PivotLanes> {
            None
        }

        pub fn block_words(&self) -> usize {
            match *self {}
        }

        pub fn entry_limbs(&self) -> usize {
            match *self {}
        }

        pub fn scratch_words(&self, _precision_bits: u32) -> usize {
            match *self {}
        }

        pub fn load(&self, _source: &TileSource<'_>, _block: &mut [u64], _scratch: &mut [u64]) {
            match *self {}
        }

        pub fn take_off(&self, _block: &mut [u64], _cells: usize, _sums: BlockSums<'_>, _scratch: &mut [u64]) {
            match *self {}
        }

        pub fn transpose(&self, _block: &mut [u64]) {
            match *self {}
        }

        pub fn swap_rows(&self, _blocks: &mut [u64], _rows: [usize; 2]) {
            match *self {}
        }

        pub fn subtract(&self, _block: &mut [u64], _cell: usize, _terms: Range<usize>, _others: &[u64], _lane: usize) {
            match *self {}
        }

        pub fn magnitudes(&self, _block: &mut [u64], _cell: usize) -> u8 {
            match *self {}
        }

        pub fn see(&self, _block: &[u64], _cell: usize, _panel: usize, _live: u8, _largest: &mut LargestLanes) {
            match *self {}
        }

        pub fn largest_words(&self) -> usize {
            match *self {}
        }

        pub fn finish_upper(&self, _block: &mut [u64], _cell: usize, _signs: u8, _live: u8) -> Result<(), u32> {
            match *self {}
        }

        pub fn copy(&self, _block: &[u64], _cell: usize, _out: &mut [u64]) {
            match *self {}
        }

        pub fn set_lane(&self, _from: &[u64], _lane: usize, _block: &mut [u64], _to: CellLane) {
            match *self {}
        }

        pub fn pivot(&self, _block: &[u64], _at: CellLane, _scratch: &mut [u64]) -> Option<LanePivot> {
            match *self {}
        }

        pub fn pivot_bytes(&self) -> u64 {
            match *self {}
        }

        pub fn divide(
            &self,
            _block: &mut [u64],
            _cell: usize,
            _pivot: &LanePivot,
            _signs_and_live: [u8; 2],
            _scratch: &mut [u64],
        ) {
            match *self {}
        }

        pub fn limbs(&self, _block: &[u64], _cell: usize, _out: &mut [u64]) -> u8 {
            match *self {}
        }

        pub fn round(
            &self,
            _block: &[u64],
            _cell: usize,
            _precision_bits: u32,
            _out: Finished<'_>,
            _scratch: &mut [u64],
        ) -> u32 {
            match *self {}
        }

        pub fn to_residues(
            self,
            _block: &[u64],
            _cells: usize,
            _engine: &dyn PlaneEngine,
            _planes: &mut [&mut [u64]],
            _scratch: &mut [u64],
        ) -> bool {
            match *self {}
        }
    }
}
