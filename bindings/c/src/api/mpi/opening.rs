//! The arguments of a call over ranks, checked on each rank by itself and compared between all.

use super::DistArgument;
use crate::api::products::Terms;
use crate::api::{products::terms_of, scalar, symmetric_of};
use crate::array::{Operand, invalid};
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::types::*;
use rug::Float;
use std::fmt::{Debug, Display};
use sunzi::Uplo;
use sunzi::advanced::calls::{DistributionNumbers, Opening as SharedOpening, RankShapes, Routine};
use sunzi::comm::Transport;
use sunzi::distributed::{Along, GridOrder};

/// One rank's record of the arguments of a call.
pub(crate) struct Opening<'a> {
    pub call: &'a Call<'a>,
    world: &'a dyn Transport,
    /// The values that must be the same on all ranks.
    pub shared: SharedOpening<'a>,
}

impl<'a> Opening<'a> {
    pub fn new(call: &'a Call<'a>, world: &'a dyn Transport) -> Opening<'a> {
        let mut shared = SharedOpening::new(world);
        // Options of the context, not arguments: they have no numbers.
        shared.choice("accuracy", call.accuracy());
        shared.say("devices", "there are", if call.has_devices() { "some" } else { "none" });
        Opening { call, world, shared }
    }

    /// This rank's number.
    pub fn rank(&self) -> usize {
        self.world.rank()
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.world.size()
    }

    /// Records a value of an argument; `what` begins the sentence that ends with the value.
    pub fn say(&mut self, argument: &'static str, what: &str, value: impl Display) {
        self.shared.say(argument, what, value);
    }

    /// Records a value of an entry of an argument, counted from 1.
    pub fn say_of_entry(&mut self, argument: &'static str, entry: usize, what: &str, value: impl Display) {
        self.shared.say_of_entry(argument, Some(entry), what, value);
    }

    /// An argument that must be the same on all ranks, where it is one at all.
    pub fn choice<T: Debug>(&mut self, name: &'static str, value: Outcome<T>) -> Outcome<T> {
        Ok(self.shared.choice(name, value?))
    }

    /// The triangle of a symmetric matrix that is used; `None` for both.
    pub fn symmetric(&mut self, uplo: i32) -> Outcome<Option<Uplo>> {
        let found = symmetric_of(uplo)?;
        self.say("uplo", "it is", found.map_or("both triangles".into(), |uplo| format!("{uplo:?}")));
        Ok(found)
    }

    /// A scalar by its value.
    pub fn number(&mut self, name: &'static str, number: Option<Float>) -> Option<Float> {
        self.shared.number(name, number)
    }

    /// A scalar that may be null.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn scalar(&mut self, name: &'static str, number: *const sunzi_matrix) -> Outcome<Option<Float>> {
        // SAFETY: by contract.
        let number = unsafe { scalar(self.call, name, number) }?;
        Ok(self.number(name, number))
    }

    /// The scalars of a product.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn terms(&mut self, alpha: *const sunzi_matrix, beta: *const sunzi_matrix) -> Outcome<Terms> {
        // SAFETY: by contract.
        let Terms { alpha, beta } = unsafe { terms_of(self.call, alpha, beta) }?;
        Ok(Terms { alpha: self.number("alpha", alpha), beta: self.number("beta", beta) })
    }

    /// A matrix over ranks; [`DistArgument::place`] makes an operand of it.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn matrix(&mut self, name: &'static str, matrix: *const sunzi_dist_matrix) -> Outcome<DistArgument> {
        // SAFETY: null or live by contract.
        let Some(matrix) = (unsafe { matrix.as_ref() }) else { return Err(Failure::null(name)) };
        // SAFETY: by contract.
        let local = unsafe { Operand::new(name, &matrix.local) }?;
        let described: DistArgument = self.shared.matrix(local, &numbers_of(name, matrix)?)?;
        let numbers = [
            ("rows is", matrix.rows),
            ("cols is", matrix.cols),
            ("grid_rows is", matrix.grid_rows),
            ("grid_cols is", matrix.grid_cols),
            ("grid_order is", matrix.grid_order.into()),
            ("row_along is", matrix.row_along.into()),
            ("col_along is", matrix.col_along.into()),
            ("row_block is", matrix.row_block),
            ("col_block is", matrix.col_block),
            ("row_first is", matrix.row_first),
            ("col_first is", matrix.col_first),
        ];
        for (what, number) in numbers {
            self.say(name, what, number);
        }
        Ok(described)
    }

    /// The result of this rank's checks, where they succeeded on all ranks with the same values; else, on every rank,
    /// the first argument that is wrong on any, or that differs. Collective.
    pub fn agreed<T>(self, routine: Routine<'_>, own: Outcome<T>) -> Outcome<(T, RankShapes)> {
        self.shared.agreed(routine, self.call.limit_bytes().is_some(), own)
    }
}

/// The numbers of a description, its constants read.
fn numbers_of(name: &'static str, matrix: &sunzi_dist_matrix) -> Outcome<DistributionNumbers> {
    let along = |value: i32, what: &str| match value {
        SUNZI_ALONG_NONE => Ok(None),
        SUNZI_ALONG_GRID_ROW => Ok(Some(Along::GridRow)),
        SUNZI_ALONG_GRID_COL => Ok(Some(Along::GridCol)),
        SUNZI_ALONG_COL_MAJOR => Ok(Some(Along::ColumnMajor)),
        SUNZI_ALONG_ROW_MAJOR => Ok(Some(Along::RowMajor)),
        other => {
            let known = "choose SUNZI_ALONG_NONE (0) to SUNZI_ALONG_ROW_MAJOR (4)";
            Err(invalid(name, format!("{what} = {other} is not valid; {known}")))
        }
    };
    let order = match matrix.grid_order {
        SUNZI_ROW_MAJOR => GridOrder::RowMajor,
        SUNZI_COL_MAJOR => GridOrder::ColumnMajor,
        other => {
            let known = "choose SUNZI_ROW_MAJOR (101) or SUNZI_COL_MAJOR (102)";
            return Err(invalid(name, format!("grid_order = {other} is not valid; {known}")));
        }
    };
    Ok(DistributionNumbers {
        rows: matrix.rows,
        cols: matrix.cols,
        grid_rows: matrix.grid_rows,
        grid_cols: matrix.grid_cols,
        order,
        row_along: along(matrix.row_along, "row_along")?,
        col_along: along(matrix.col_along, "col_along")?,
        row_block: matrix.row_block,
        col_block: matrix.col_block,
        row_first: matrix.row_first,
        col_first: matrix.col_first,
    })
}
