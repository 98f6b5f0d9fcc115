//! Eight small problems side by side with the vector instructions for 52-bit integers, where the processor has them:
//! [`ProblemLanes`].

pub use crate::kernels::problems::{Columns, Matrices, PROBLEMS, Products, Rounded};
#[cfg(target_arch = "x86_64")]
pub use crate::kernels::x86_64::ifma52::problem_lanes::ProblemLanes;
#[cfg(not(target_arch = "x86_64"))]
pub use absent::ProblemLanes;

#[cfg(not(target_arch = "x86_64"))]
#[expect(missing_docs, reason = "that of the module for x86-64")]
mod absent {
    use super::{Matrices, Products, Rounded};

    /// There is none.
    pub enum ProblemLanes {}

    impl ProblemLanes {
        pub fn new(_bits: u32) -> Option<ProblemLanes> {
            None
        }

        pub fn most_terms(&self) -> usize {
            match *self {}
        }

        pub fn factor_words(&self, _order: usize, _precision_bits: u32) -> usize {
            match *self {}
        }

        pub fn factor(&self, _matrices: &Matrices<'_>, _words: &mut [u64], _out: &mut Rounded<'_>) -> u8 {
            match *self {}
        }

        pub fn product_words(&self, _size: (usize, usize), _precision_bits: u32) -> usize {
            match *self {}
        }

        pub fn multiply(&self, _products: &Products<'_>, _words: &mut [u64], _out: &mut Rounded<'_>) {
            match *self {}
        }
    }
}
