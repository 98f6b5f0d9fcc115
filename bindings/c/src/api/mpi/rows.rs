//! This rank's rows of an operand of a product.

use crate::call::{Call, Input};
use sunzi::{Matrix, MatrixView};

/// This rank's rows of an operand.
pub(crate) enum Rows<'a> {
    /// Where the caller has them, or a copy in the same order.
    Placed(Input<'a>),
    /// Moved here.
    Moved(Matrix),
}

impl Rows<'_> {
    /// The rows.
    pub fn view(&self) -> MatrixView<'_> {
        match self {
            Rows::Placed(input) => input.view(),
            Rows::Moved(share) => share.view(),
        }
    }

    /// Keeps the memory of copies for the next call.
    pub fn give_back(self, call: &Call<'_>) {
        match self {
            Rows::Placed(input) => call.keep_input(input),
            Rows::Moved(share) => call.keep(share),
        }
    }
}
