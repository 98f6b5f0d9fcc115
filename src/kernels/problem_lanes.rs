//! Eight small problems side by side with the vector instructions for 52-bit integers, where the processor has them:
//! [`ProblemLanes`].

#[cfg(target_arch = "x86_64")]
pub use crate::kernels::x86_64::ifma52::problem_lanes::{Columns, Matrices, PROBLEMS, ProblemLanes, Products, Rounded};

#[cfg(not(target_arch = "x86_64"))]
pub use absent::{Columns, Matrices, PROBLEMS, ProblemLanes, Products, Rounded};

#[cfg(not(target_arch = "x86_64"))]
mod absent {
    use crate::matrix::MatrixView;

    pub const PROBLEMS: usize = 8;

    pub type Rounded<'o> = dyn FnMut((usize, usize), &[u64; PROBLEMS], &[u64]) + 'o;

    /// There is none.
    pub enum ProblemLanes {}

    pub struct Matrices<'a> {
        pub views: [MatrixView<'a>; PROBLEMS],
        pub order: usize,
        pub exponents: &'a [i64],
        pub limits: &'a [u64],
        pub precision_bits: u32,
    }

    #[derive(Clone, Copy)]
    pub struct Columns<'a> {
        pub views: [MatrixView<'a>; PROBLEMS],
        pub shifts: &'a [i64],
    }

    pub struct Products<'a> {
        pub left: Columns<'a>,
        pub right: Option<Columns<'a>>,
        pub precision_bits: u32,
        pub wanted: &'a dyn Fn(usize, usize) -> bool,
    }

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
