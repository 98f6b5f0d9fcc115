//! The data that ranks have of each other's arguments once a call is open.

/// The most matrices over ranks that a call has.
pub(super) const PARTS: usize = 3;

/// Sizes of the parts of all ranks, and whether memory is limited.
#[derive(Clone, Debug)]
pub struct RankShapes {
    shapes: Vec<[[usize; 2]; PARTS]>,
    limited: bool,
}

impl RankShapes {
    /// Rows and columns of each rank's part of each matrix; whether any rank has a memory limit.
    pub(super) fn new(shapes: Vec<[[usize; 2]; PARTS]>, limited: bool) -> RankShapes {
        RankShapes { shapes, limited }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.shapes.len()
    }

    /// Whether any of them has a memory limit.
    pub fn limited(&self) -> bool {
        self.limited
    }

    /// Rows and columns of a rank's part of the matrix with number `at` among the arguments.
    pub fn of(&self, rank: usize, at: usize) -> [usize; 2] {
        self.shapes[rank][at]
    }
}
