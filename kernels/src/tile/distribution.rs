//! The distribution of the entries of a matrix over ranks: a formula for each axis.

use super::axis::{Along, Axis};
use super::deal::{Deal, Holders};
use super::diagonal::LocalDiagonal;
use super::{RankGrid, TileMap};
use crate::error::{Error, Result};
use std::ops::Range;

/// Largest number of rows or columns of a block or a tile for which the block-cyclic turns are counted: a multiple
/// of 8.
pub const LARGEST_BLOCK: usize = u32::MAX as usize - 7;

/// The numbering of the ranks of a group within their grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GridOrder {
    /// Rank `r * grid_cols + c` is at row `r`, column `c`.
    #[default]
    RowMajor,
    /// Rank `c * grid_rows + r` is at row `r`, column `c`, as in Elemental's default grids.
    ColumnMajor,
}

/// A distribution of a `rows x cols` matrix over the ranks of a grid: entry `(i, j)` lies on the ranks whose row
/// coordinate owns `i` and whose column coordinate owns `j`. A rank stores its entries in the order of their indices,
/// as one matrix.
///
/// A distribution is a formula, without lists that grow with the matrix. Ranks outside the grid have no entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Distribution {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// The grid of ranks.
    pub grid: RankGrid,
    /// The numbering of the ranks in the grid.
    pub order: GridOrder,
    /// The distribution of the rows.
    pub row_axis: Axis,
    /// The distribution of the columns.
    pub col_axis: Axis,
}

impl Distribution {
    /// Whole rows in blocks, `starts[r]..starts[r + 1]` on rank `r`.
    pub fn row_blocks(starts: Vec<usize>, cols: usize) -> Distribution {
        let grid = RankGrid { rows: starts.len().saturating_sub(1), cols: 1 };
        let rows = starts.last().copied().unwrap_or(0);
        let row_axis = Axis::Consecutive { starts, along: Along::GridRow };
        Distribution { rows, cols, grid, order: GridOrder::RowMajor, row_axis, col_axis: Axis::Whole }
    }

    /// Whole columns in blocks, `starts[r]..starts[r + 1]` on rank `r`.
    pub fn col_blocks(rows: usize, starts: Vec<usize>) -> Distribution {
        Distribution::row_blocks(starts, rows).transposed()
    }

    /// The whole matrix on rank `root` of `ranks`, with `root < ranks`; Elemental's `[CIRC, CIRC]`.
    pub fn on_root(rows: usize, cols: usize, ranks: usize, root: usize) -> Distribution {
        let starts = (0..=ranks).map(|rank| if rank <= root { 0 } else { rows }).collect();
        Distribution::row_blocks(starts, cols)
    }

    /// The whole matrix on each of `ranks` ranks; Elemental's `[STAR, STAR]`.
    pub fn replicated((rows, cols): (usize, usize), ranks: usize) -> Distribution {
        let (grid, order) = (RankGrid { rows: ranks, cols: 1 }, GridOrder::RowMajor);
        Distribution { rows, cols, grid, order, row_axis: Axis::Whole, col_axis: Axis::Whole }
    }

    /// Blocks of `blocks` rows and columns, assigned cyclically to the rows and columns of a grid from `first` on, as
    /// in a descriptor of ScaLAPACK: `(MB, NB)` and `(RSRC, CSRC)`.
    pub fn block_cyclic(
        (rows, cols): (usize, usize),
        (grid, order): (RankGrid, GridOrder),
        blocks: (usize, usize),
        first: (usize, usize),
    ) -> Distribution {
        let row_axis = Axis::Cyclic { block: blocks.0, first: first.0, offset: 0, along: Along::GridRow };
        let col_axis = Axis::Cyclic { block: blocks.1, first: first.1, offset: 0, along: Along::GridCol };
        Distribution { rows, cols, grid, order, row_axis, col_axis }
    }

    /// Rows and columns assigned one by one, cyclically, to the coordinates `pair` of the ranks (`None` stands for
    /// [`Axis::Whole`]), the first ones to the coordinates `align`: Elemental's `DistMatrix<T, U, V>` with its column
    /// and row alignments.
    pub fn entry_cyclic(
        (rows, cols): (usize, usize),
        (grid, order): (RankGrid, GridOrder),
        pair: (Option<Along>, Option<Along>),
        align: (usize, usize),
    ) -> Distribution {
        let axis = |along: Option<Along>, first: usize| {
            along.map_or(Axis::Whole, |along| Axis::Cyclic { block: 1, first, offset: 0, along })
        };
        let (row_axis, col_axis) = (axis(pair.0, align.0), axis(pair.1, align.1));
        Distribution { rows, cols, grid, order, row_axis, col_axis }
    }

    /// The distribution of a matrix in tiles, all of which are stored.
    #[doc(hidden)]
    pub fn of_tiles(map: &TileMap) -> Distribution {
        let blocks = (map.tile_size, map.tile_size);
        Distribution::block_cyclic((map.rows, map.cols), (map.grid, GridOrder::RowMajor), blocks, (0, 0))
    }

    /// The distribution of the transpose of the matrix, for local parts that are transposed in place.
    pub fn transposed(&self) -> Distribution {
        let axis = |axis: &Axis| {
            let turned = |along: Along| match along {
                Along::GridRow => Along::GridCol,
                Along::GridCol => Along::GridRow,
                Along::ColumnMajor => Along::RowMajor,
                Along::RowMajor => Along::ColumnMajor,
            };
            match axis.clone() {
                Axis::Whole => Axis::Whole,
                Axis::Cyclic { block, first, offset, along } => {
                    Axis::Cyclic { block, first, offset, along: turned(along) }
                }
                Axis::Consecutive { starts, along } => Axis::Consecutive { starts, along: turned(along) },
            }
        };
        let order = match self.order {
            GridOrder::RowMajor => GridOrder::ColumnMajor,
            GridOrder::ColumnMajor => GridOrder::RowMajor,
        };
        let (rows, cols) = (self.cols, self.rows);
        let grid = RankGrid { rows: self.grid.cols, cols: self.grid.rows };
        Distribution { rows, cols, grid, order, row_axis: axis(&self.col_axis), col_axis: axis(&self.row_axis) }
    }

    /// The distribution of some rows and columns of the matrix as a separate matrix, on the same ranks. In the part of
    /// a rank they begin after [`Distribution::local_before`].
    pub fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Distribution {
        let (row_axis, col_axis) = (self.row_deal().part(&rows), self.col_deal().part(&cols));
        Distribution { rows: rows.len(), cols: cols.len(), row_axis, col_axis, ..*self }
    }

    /// The distribution of a matrix of `cols` columns with the same rows on the same ranks; `None` if the rows of this
    /// matrix are not whole on one rank each.
    pub fn with_whole_rows(&self, cols: usize) -> Option<Distribution> {
        let is_whole = self.col_deal().numbers == 1 && self.holders().lists.iter().all(|ranks| ranks.len() == 1);
        is_whole.then(|| Distribution { cols, col_axis: Axis::Whole, ..self.clone() })
    }

    /// Number of rows of the part of a rank before row `row` of the matrix, and number of columns before `col`.
    pub fn local_before(&self, rank: usize, row: usize, col: usize) -> (usize, usize) {
        let before = |(rows, cols)| (self.row_deal().count_below(rows, row), self.col_deal().count_below(cols, col));
        self.numbers(rank).map_or((0, 0), before)
    }

    /// The coordinates of a rank along the rows and along the columns, 0 for a whole axis; `None` outside the grid.
    pub fn numbers(&self, rank: usize) -> Option<(usize, usize)> {
        if rank >= self.grid.size() {
            return None;
        }
        let RankGrid { rows, cols } = self.grid;
        let (row, col) = match self.order {
            GridOrder::RowMajor => (rank / cols, rank % cols),
            GridOrder::ColumnMajor => (rank % rows, rank / rows),
        };
        let number = |axis: &Axis| match axis.along() {
            None => 0,
            Some(Along::GridRow) => row,
            Some(Along::GridCol) => col,
            Some(Along::ColumnMajor) => col * rows + row,
            Some(Along::RowMajor) => row * cols + col,
        };
        Some((number(&self.row_axis), number(&self.col_axis)))
    }

    /// Rows and columns of the part of a rank.
    pub fn local_shape(&self, rank: usize) -> (usize, usize) {
        self.numbers(rank).map_or((0, 0), |(row, col)| (self.row_deal().count_of(row), self.col_deal().count_of(col)))
    }

    /// Returns an error for values that are not a distribution over `ranks` ranks.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a grid without ranks or with more than `ranks`, blocks without indices, a first
    /// block that lacks all of its indices, a first coordinate that does not exist, starts that do not fit, and entries
    /// that no rank would have.
    pub fn check(&self, ranks: usize) -> Result<()> {
        let refuse = |message: String| Err(Error::InvalidArgument(message));
        self.grid.check_ranks(ranks)?;
        for (deal, what) in [(self.row_deal(), "rows"), (self.col_deal(), "columns")] {
            match deal.axis {
                Axis::Whole => {}
                Axis::Cyclic { block: 0, .. } => {
                    return refuse(format!("{what} in blocks of 0: a block must have at least 1 of the {what}"));
                }
                Axis::Cyclic { block, .. } if *block > LARGEST_BLOCK => {
                    return refuse(format!("{what} in blocks of {block}: a block has at most {LARGEST_BLOCK} {what}"));
                }
                Axis::Cyclic { block, offset, .. } if offset >= block => {
                    return refuse(format!(
                        "the offset into the first block of {what} is {offset}: it must be less than {block}, the \
                         {what} of a block"
                    ));
                }
                Axis::Cyclic { first, .. } if *first >= deal.numbers => {
                    let numbers = deal.numbers;
                    return refuse(format!(
                        "the first block of {what} is assigned to coordinate {first} of the grid of ranks: it must be \
                         less than {numbers}, the number of coordinates (counted from 0)"
                    ));
                }
                Axis::Cyclic { .. } => {}
                Axis::Consecutive { starts, .. } => {
                    let fits = starts.len() == deal.numbers + 1 && starts[0] == 0 && starts.is_sorted();
                    if !fits || starts.last() != Some(&deal.len) {
                        return refuse(format!(
                            "the {} {what} of {} ranks start at {starts:?}: there must be {} numbers, in ascending \
                             order, from 0 to {}",
                            deal.len,
                            deal.numbers,
                            deal.numbers + 1,
                            deal.len
                        ));
                    }
                }
            }
        }
        if self.holders().lists.iter().any(Vec::is_empty) {
            return refuse(format!(
                "some entries have no rank that holds them: rows are distributed as {:?} and columns as {:?} over a \
                 grid of {} x {} ranks; rows and columns must use different coordinates of the grid",
                self.row_axis, self.col_axis, self.grid.rows, self.grid.cols
            ));
        }
        Ok(())
    }

    /// The coordinates of the ranks along the rows.
    #[doc(hidden)]
    pub fn row_deal(&self) -> Deal<'_> {
        Deal { axis: &self.row_axis, len: self.rows, numbers: self.row_axis.numbers(self.grid) }
    }

    /// The coordinates of the ranks along the columns.
    #[doc(hidden)]
    pub fn col_deal(&self) -> Deal<'_> {
        Deal { axis: &self.col_axis, len: self.cols, numbers: self.col_axis.numbers(self.grid) }
    }

    /// The ranks of each entry.
    #[doc(hidden)]
    pub fn holders(&self) -> Holders {
        let (rows, cols) = (self.row_deal().numbers, self.col_deal().numbers);
        let mut lists = vec![Vec::new(); rows * cols];
        for rank in 0..self.grid.size() {
            if let Some((row, col)) = self.numbers(rank) {
                lists[row * cols + col].push(rank);
            }
        }
        Holders { lists, cols }
    }

    /// The diagonal within the part of a rank.
    pub fn local_diagonal(&self, rank: usize) -> LocalDiagonal {
        let (row, col) = self.numbers(rank).unwrap_or((0, 0));
        let (count, width) = self.local_shape(rank);
        LocalDiagonal { rows: self.row_deal().line(row), cols: self.col_deal().line(col), count, width }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs() -> Vec<(Option<Along>, Option<Along>)> {
        use Along::{ColumnMajor, GridCol, GridRow, RowMajor};
        let mut pairs = vec![(None, None)];
        for (one, other) in [(GridRow, Some(GridCol)), (GridRow, None), (GridCol, None), (ColumnMajor, None)] {
            pairs.extend([(Some(one), other), (other, Some(one))]);
        }
        pairs.push((Some(RowMajor), None));
        pairs
    }

    #[test]
    fn formulas_agree_with_a_count_of_every_index() {
        let shapes = [(0, 5), (1, 1), (7, 13), (24, 9)];
        let grids = [(1, 1), (2, 3), (3, 2), (1, 4)].map(|(rows, cols)| RankGrid { rows, cols });
        for (shape, grid) in shapes.into_iter().flat_map(|shape| grids.map(|grid| (shape, grid))) {
            for (pair, order) in
                pairs().into_iter().flat_map(|pair| [GridOrder::RowMajor, GridOrder::ColumnMajor].map(|o| (pair, o)))
            {
                let mut all = vec![Distribution::entry_cyclic(shape, (grid, order), pair, (0, 0))];
                if pair == (Some(Along::GridRow), Some(Along::GridCol)) {
                    all.push(Distribution::block_cyclic(shape, (grid, order), (3, 4), (grid.rows - 1, 0)));
                }
                let of = |share: usize| (0..=grid.size()).map(|rank| (rank * share).min(shape.0)).collect::<Vec<_>>();
                let mut starts = of(5);
                *starts.last_mut().unwrap() = shape.0;
                all.push(Distribution::row_blocks(starts, shape.1));
                all.push(Distribution::on_root(shape.0, shape.1, grid.size(), grid.size() - 1));
                let parts = |one: &Distribution| {
                    let (rows, cols) = (one.rows, one.cols);
                    [one.part(0..rows / 2, 1.min(cols)..cols), one.part(rows / 3..rows, cols / 2..cols)]
                };
                let cut = all.iter().flat_map(parts).collect::<Vec<_>>();
                all.extend(cut);
                for one in &all {
                    one.check(grid.size()).unwrap();
                    check(one, grid.size());
                    check(&one.transposed(), grid.size());
                    assert_eq!(one.transposed().transposed(), *one);
                }
            }
        }
    }

    fn check(one: &Distribution, ranks: usize) {
        let (rows, cols) = (one.row_deal(), one.col_deal());
        let holders = one.holders();
        let mut entries = 0;
        for rank in 0..ranks {
            let (row_number, col_number) = one.numbers(rank).unwrap();
            assert!(holders.of(row_number, col_number).contains(&rank));
            assert_eq!(one.transposed().numbers(rank), Some((col_number, row_number)), "{one:?}");
            for (deal, number, len) in [(rows, row_number, one.rows), (cols, col_number, one.cols)] {
                let own = (0..len).filter(|&index| deal.run_at(index).0 == number).collect::<Vec<_>>();
                assert_eq!(deal.runs(number, 0..len).flatten().collect::<Vec<_>>(), own, "{one:?}");
                let part = len / 3..len.saturating_sub(1);
                let within = own.iter().copied().filter(|index| part.contains(index)).collect::<Vec<_>>();
                assert_eq!(deal.runs(number, part).flatten().collect::<Vec<_>>(), within, "{one:?}");
                for (local, &index) in own.iter().enumerate() {
                    assert_eq!((deal.local(index), deal.line(number).index(local)), (local, index), "{one:?}");
                }
                for end in 0..=len {
                    assert_eq!(deal.count_below(number, end), own.iter().filter(|&&index| index < end).count());
                }
            }
            let (local_rows, local_cols) = one.local_shape(rank);
            entries += local_rows * local_cols;
            let diagonal = one.local_diagonal(rank);
            let (row_line, col_line) = (rows.line(row_number), cols.line(col_number));
            for (row, col) in (0..local_rows).flat_map(|row| (0..local_cols).map(move |col| (row, col))) {
                let (i, j) = (row_line.index(row), col_line.index(col));
                assert_eq!((row >= diagonal.row_on(col), row >= diagonal.row_below(col)), (i >= j, i > j), "{one:?}");
                let turned = diagonal.transposed();
                assert_eq!((col >= turned.row_on(row), col >= turned.row_below(row)), (j >= i, j > i), "{one:?}");
                assert!(diagonal.row_below(col) <= local_rows);
            }
        }
        let copies = holders.of(0, 0).len();
        assert_eq!(entries, one.rows * one.cols * copies, "{one:?}");
        // Elemental's alignments are numbers of the first entry.
        if let (Axis::Cyclic { block: 1, first, .. }, true) = (&one.row_axis, one.rows > 0) {
            assert_eq!(rows.run_at(0).0, *first);
        }
    }

    #[test]
    fn parts_of_a_matrix_lie_where_the_matrix_has_them() {
        let grid = RankGrid { rows: 2, cols: 3 };
        let whole = Distribution::block_cyclic((23, 19), (grid, GridOrder::ColumnMajor), (3, 4), (1, 2));
        for (rows, cols) in [(0..23, 0..19), (4..17, 5..19), (7..8, 18..19), (5..5, 3..9), (23..23, 19..19)] {
            let part = whole.part(rows.clone(), cols.clone());
            for rank in 0..6 {
                let (row_number, col_number) = whole.numbers(rank).unwrap();
                let own = |deal: Deal<'_>, number, range: Range<usize>| {
                    deal.runs(number, range).flatten().map(|index| deal.local(index)).collect::<Vec<_>>()
                };
                let (before_rows, before_cols) = whole.local_before(rank, rows.start, cols.start);
                let (local_rows, local_cols) = part.local_shape(rank);
                let expected = (before_rows..before_rows + local_rows).collect::<Vec<_>>();
                assert_eq!(own(whole.row_deal(), row_number, rows.clone()), expected);
                let expected = (before_cols..before_cols + local_cols).collect::<Vec<_>>();
                assert_eq!(own(whole.col_deal(), col_number, cols.clone()), expected);
            }
        }
        assert_eq!(whole.local_before(6, 20, 10), (0, 0), "a rank beyond the grid");
        assert_eq!(whole.part(4..17, 5..19).part(2..9, 1..3), whole.part(6..13, 6..8));
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        let grid = RankGrid { rows: 2, cols: 3 };
        let good = Distribution::block_cyclic((10, 10), (grid, GridOrder::RowMajor), (2, 2), (1, 2));
        good.check(6).unwrap();
        good.check(7).unwrap();
        let axis = |block, first, along| Axis::Cyclic { block, first, offset: 0, along };
        let lacking = |block, offset| Axis::Cyclic { block, first: 0, offset, along: Along::GridRow };
        let wrong = [
            (Distribution { grid: RankGrid { rows: 0, cols: 3 }, ..good.clone() }, "0 x 3"),
            (Distribution { row_axis: axis(0, 0, Along::GridRow), ..good.clone() }, "blocks of 0"),
            (
                Distribution { row_axis: lacking(2, 2), ..good.clone() },
                "the first block of rows is 2: it must be less than 2",
            ),
            (
                Distribution { row_axis: axis(2, 2, Along::GridRow), ..good.clone() },
                "coordinate 2 of the grid of ranks: it must be less than 2,",
            ),
            (
                Distribution { col_axis: axis(2, 3, Along::GridCol), ..good.clone() },
                "coordinate 3 of the grid of ranks: it must be less than 3,",
            ),
            (Distribution { col_axis: axis(2, 0, Along::GridRow), ..good.clone() }, "entries have no rank"),
            (Distribution { col_axis: axis(2, 0, Along::RowMajor), ..good.clone() }, "entries have no rank"),
            (Distribution::row_blocks(vec![0, 4, 3, 10], 10), "start at"),
            (Distribution::row_blocks(vec![1, 4, 10], 10), "start at"),
            (Distribution { rows: 11, ..Distribution::row_blocks(vec![0, 4, 10], 10) }, "11 rows"),
        ];
        for (wrong, words) in wrong {
            let error = wrong.check(6).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(good.check(5).unwrap_err().to_string().contains("has 6 ranks, but there are only 5"));
    }
}
