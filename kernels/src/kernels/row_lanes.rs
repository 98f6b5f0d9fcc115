//! Exact products of a few columns of integers with the vector instructions for 52-bit integers, if the processor has
//! them: [`RowLanes`].

#[cfg(target_arch = "x86_64")]
pub use crate::kernels::x86_64::ifma52::row_lanes::{ENTRIES, LaneColumns, RowLanes};

#[cfg(not(target_arch = "x86_64"))]
pub use absent::{ENTRIES, LaneColumns, RowLanes};

#[cfg(not(target_arch = "x86_64"))]
#[expect(missing_docs, reason = "documented in the module for x86-64")]
mod absent {
    use crate::matrix::{EntryIndex, MatrixView};

    pub const ENTRIES: usize = 8;

    /// There is none.
    #[derive(Clone, Copy)]
    pub enum RowLanes {}

    #[derive(Clone, Copy)]
    pub struct LaneColumns<'a> {
        pub left: &'a [u64],
        pub right: &'a [u64],
        pub rows: usize,
    }

    impl RowLanes {
        pub fn new(_bits: u32) -> Option<RowLanes> {
            None
        }

        pub fn digits(&self) -> usize {
            match *self {}
        }

        pub fn column_words(&self, _rows: usize) -> usize {
            match *self {}
        }

        pub fn scratch_words(&self, _precision_bits: u32) -> usize {
            match *self {}
        }

        pub fn cut(&self, _view: MatrixView<'_>, _shifts: &[i64], _out: &mut [u64], _scratch: &mut [u64]) {
            match *self {}
        }

        pub fn multiply(&self, _columns: LaneColumns<'_>, _entries: &[EntryIndex], _scratch: &mut [u64]) -> u8 {
            match *self {}
        }

        pub fn round<'s>(
            &self,
            _signs: u8,
            _exponents: &[i64; ENTRIES],
            _precision_bits: u32,
            _heads: &mut [u64; ENTRIES],
            _scratch: &'s mut [u64],
        ) -> &'s [u64] {
            match *self {}
        }

        pub fn limbs(&self) -> usize {
            match *self {}
        }

        pub fn magnitude(&self, _lane: usize, _scratch: &[u64], _out: &mut [u64]) {
            match *self {}
        }
    }
}
