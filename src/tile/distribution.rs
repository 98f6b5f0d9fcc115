//! How the entries of a matrix are dealt out to ranks: a formula for each axis.

use super::diagonal::{Line, LocalDiagonal};
use super::{RankGrid, TileMap};
use crate::error::{Error, Result};
use std::ops::Range;

/// How the ranks of a group are numbered within their grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GridOrder {
    /// Rank `r * grid_cols + c` is at row `r`, column `c`.
    #[default]
    RowMajor,
    /// Rank `c * grid_rows + r` is at row `r`, column `c`, as in Elemental's default grids.
    ColumnMajor,
}

/// The number of a rank that says which indices of an axis are its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Along {
    /// Its row in the grid; Elemental's `MC`.
    GridRow,
    /// Its column in the grid; Elemental's `MR`.
    GridCol,
    /// Its number among all ranks of the grid, counted column by column; Elemental's `VC`.
    ColumnMajor,
    /// Its number among all ranks of the grid, counted row by row; Elemental's `VR`.
    RowMajor,
}

/// How the rows of a matrix, or its columns, are dealt out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Axis {
    /// Every rank has all of them; Elemental's `STAR`.
    Whole,
    /// In blocks of `block` indices, dealt in turn, from number `first` on.
    Cyclic {
        /// Indices of a block; from 1 on.
        block: usize,
        /// The number that has the first block.
        first: usize,
        /// Which number of a rank counts.
        along: Along,
    },
    /// Number `k` has the indices from `starts[k]` to `starts[k + 1]`.
    Consecutive {
        /// One more than there are numbers, ascending, from 0 to the length of the axis.
        starts: Vec<usize>,
        /// Which number of a rank counts.
        along: Along,
    },
}

/// A distribution of a `rows x cols` matrix over the ranks of a grid: entry `(i, j)` lies on the ranks whose number
/// along the rows owns `i` and whose number along the columns owns `j`. A rank stores its entries in the order of their
/// indices, as one matrix.
///
/// It is a formula: it has no list that grows with the matrix. Ranks beyond the grid have nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Distribution {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// The grid of ranks.
    pub grid: RankGrid,
    /// How ranks are numbered in it.
    pub order: GridOrder,
    /// How rows are dealt out.
    pub row_axis: Axis,
    /// How columns are dealt out.
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

    /// The whole matrix on rank `root` of `ranks`, which must be one of them; Elemental's `[CIRC, CIRC]`.
    pub fn on_root(rows: usize, cols: usize, ranks: usize, root: usize) -> Distribution {
        let starts = (0..=ranks).map(|rank| if rank <= root { 0 } else { rows }).collect();
        Distribution::row_blocks(starts, cols)
    }

    /// Blocks of `blocks` rows and columns, dealt to the rows and columns of a grid from `first` on, as a descriptor of
    /// ScaLAPACK has them: `(MB, NB)` and `(RSRC, CSRC)`.
    pub fn block_cyclic(
        (rows, cols): (usize, usize),
        (grid, order): (RankGrid, GridOrder),
        blocks: (usize, usize),
        first: (usize, usize),
    ) -> Distribution {
        let row_axis = Axis::Cyclic { block: blocks.0, first: first.0, along: Along::GridRow };
        let col_axis = Axis::Cyclic { block: blocks.1, first: first.1, along: Along::GridCol };
        Distribution { rows, cols, grid, order, row_axis, col_axis }
    }

    /// Entry by entry over the numbers `pair` of the ranks, `None` for [`Axis::Whole`], with the first entry on the
    /// numbers `align`: Elemental's `DistMatrix<T, U, V>` with its column and row alignments.
    pub fn entry_cyclic(
        (rows, cols): (usize, usize),
        (grid, order): (RankGrid, GridOrder),
        pair: (Option<Along>, Option<Along>),
        align: (usize, usize),
    ) -> Distribution {
        let axis = |along: Option<Along>, first: usize| {
            along.map_or(Axis::Whole, |along| Axis::Cyclic { block: 1, first, along })
        };
        let (row_axis, col_axis) = (axis(pair.0, align.0), axis(pair.1, align.1));
        Distribution { rows, cols, grid, order, row_axis, col_axis }
    }

    /// That of tiles, all of which exist.
    pub(crate) fn of_tiles(map: &TileMap) -> Distribution {
        let blocks = (map.tile_size, map.tile_size);
        Distribution::block_cyclic((map.rows, map.cols), (map.grid, GridOrder::RowMajor), blocks, (0, 0))
    }

    /// The distribution of the transpose of the matrix, for local parts that are transposed where they lie.
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
                Axis::Cyclic { block, first, along } => Axis::Cyclic { block, first, along: turned(along) },
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

    /// The numbers of a rank along the rows and along the columns, 0 for a whole axis; `None` beyond the grid.
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

    /// Refuses what is no distribution over `ranks` ranks.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a grid without ranks or with more of them, blocks without indices, a first number
    /// that no rank has, starts that do not fit, and entries that no rank would have.
    pub fn check(&self, ranks: usize) -> Result<()> {
        let RankGrid { rows, cols } = self.grid;
        let refuse = |message: String| Err(Error::InvalidArgument(message));
        if self.grid.size() == 0 || self.grid.size() > ranks {
            return refuse(format!("a grid of {rows} x {cols} ranks for {ranks} ranks"));
        }
        for (deal, what) in [(self.row_deal(), "rows"), (self.col_deal(), "columns")] {
            match deal.axis {
                Axis::Whole => {}
                Axis::Cyclic { block: 0, .. } => return refuse(format!("{what} in blocks of 0")),
                Axis::Cyclic { first, .. } if *first >= deal.numbers => {
                    return refuse(format!("the first {what} on number {first} of {}", deal.numbers));
                }
                Axis::Cyclic { .. } => {}
                Axis::Consecutive { starts, .. } => {
                    let fits = starts.len() == deal.numbers + 1 && starts[0] == 0 && starts.is_sorted();
                    if !fits || starts.last() != Some(&deal.len) {
                        return refuse(format!("{} {what} for {} ranks start at {starts:?}", deal.len, deal.numbers));
                    }
                }
            }
        }
        if self.holders().lists.iter().any(Vec::is_empty) {
            return refuse(format!(
                "rows {:?} and columns {:?} leave entries without a rank",
                self.row_axis, self.col_axis
            ));
        }
        Ok(())
    }

    pub(crate) fn row_deal(&self) -> Deal<'_> {
        Deal { axis: &self.row_axis, len: self.rows, numbers: self.row_axis.numbers(self.grid) }
    }

    pub(crate) fn col_deal(&self) -> Deal<'_> {
        Deal { axis: &self.col_axis, len: self.cols, numbers: self.col_axis.numbers(self.grid) }
    }

    /// Which ranks have which entries.
    pub(crate) fn holders(&self) -> Holders {
        let (rows, cols) = (self.row_deal().numbers, self.col_deal().numbers);
        let mut lists = vec![Vec::new(); rows * cols];
        for rank in 0..self.grid.size() {
            if let Some((row, col)) = self.numbers(rank) {
                lists[row * cols + col].push(rank);
            }
        }
        Holders { lists, cols }
    }

    /// Where the diagonal passes through the part of a rank.
    pub fn local_diagonal(&self, rank: usize) -> LocalDiagonal {
        let (row, col) = self.numbers(rank).unwrap_or((0, 0));
        let (count, width) = self.local_shape(rank);
        LocalDiagonal { rows: self.row_deal().line(row), cols: self.col_deal().line(col), count, width }
    }
}

impl Axis {
    fn along(&self) -> Option<Along> {
        match self {
            Axis::Whole => None,
            Axis::Cyclic { along, .. } | Axis::Consecutive { along, .. } => Some(*along),
        }
    }

    /// How many numbers there are along the axis.
    fn numbers(&self, grid: RankGrid) -> usize {
        match self.along() {
            None => 1,
            Some(Along::GridRow) => grid.rows,
            Some(Along::GridCol) => grid.cols,
            Some(Along::ColumnMajor | Along::RowMajor) => grid.size(),
        }
    }
}

/// An axis with its length and its numbers, once it has been checked.
#[derive(Clone, Copy)]
pub(crate) struct Deal<'a> {
    axis: &'a Axis,
    len: usize,
    /// How many there are.
    pub numbers: usize,
}

impl Deal<'_> {
    /// The number that owns `index`, and where the run of consecutive indices ends that it owns as one block.
    pub fn run_at(&self, index: usize) -> (usize, usize) {
        match self.axis {
            Axis::Whole => (0, self.len),
            Axis::Cyclic { block, first, .. } => {
                let number = index / block;
                ((number + first) % self.numbers, ((number + 1) * block).min(self.len))
            }
            Axis::Consecutive { starts, .. } => {
                let number = starts.partition_point(|&start| start <= index) - 1;
                (number, starts[number + 1])
            }
        }
    }

    /// The runs of a number, as far as they lie in `range`, ascending.
    pub fn runs(&self, number: usize, range: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<'_> {
        let (first, step) = match self.axis {
            Axis::Cyclic { block, first, .. } => {
                let turn = (number + self.numbers - first) % self.numbers;
                // The first block of the number that ends beyond the range's start.
                let before = (range.start / block).saturating_sub(turn).div_ceil(self.numbers);
                ((turn + before * self.numbers) * block, Some(self.numbers * block))
            }
            Axis::Whole => (0, None),
            Axis::Consecutive { starts, .. } => (starts[number], None),
        };
        let end_of = move |start: usize| match self.axis {
            Axis::Whole => self.len,
            Axis::Cyclic { block, .. } => (start + block).min(self.len),
            Axis::Consecutive { starts, .. } => starts[number + 1],
        };
        let most = range.end.min(self.len);
        let starts = std::iter::successors(Some(first), move |start| step.map(|step| start + step));
        starts
            .take_while(move |&start| start < most)
            .map(move |start| start.max(range.start)..end_of(start).min(most))
            .filter(|run| !run.is_empty())
    }

    /// The place of `index` among those of its owner.
    pub fn local(&self, index: usize) -> usize {
        match self.axis {
            Axis::Whole => index,
            Axis::Cyclic { block, .. } => index / (block * self.numbers) * block + index % block,
            Axis::Consecutive { starts, .. } => index - starts[self.run_at(index).0],
        }
    }

    /// The indices of a number.
    fn line(&self, number: usize) -> Line {
        match self.axis {
            Axis::Whole => Line { start: 0, block: usize::MAX, step: usize::MAX },
            Axis::Cyclic { block, first, .. } => {
                let turn = (number + self.numbers - first) % self.numbers;
                Line { start: turn * block, block: *block, step: self.numbers * block }
            }
            Axis::Consecutive { starts, .. } => Line { start: starts[number], block: usize::MAX, step: usize::MAX },
        }
    }

    /// How many indices a number has.
    fn count_of(&self, number: usize) -> usize {
        self.count_below(number, self.len)
    }

    /// How many indices below `end` a number has.
    fn count_below(&self, number: usize, end: usize) -> usize {
        let end = end.min(self.len);
        match self.axis {
            Axis::Whole => end,
            Axis::Cyclic { block, first, .. } => {
                let turn = (number + self.numbers - first) % self.numbers;
                let (blocks, rest) = (end / block, end % block);
                let whole = (blocks + self.numbers - 1 - turn) / self.numbers * block;
                whole + if blocks % self.numbers == turn { rest } else { 0 }
            }
            Axis::Consecutive { starts, .. } => end.clamp(starts[number], starts[number + 1]) - starts[number],
        }
    }
}

/// The ranks that have the entries of each pair of numbers, ascending.
pub(crate) struct Holders {
    lists: Vec<Vec<usize>>,
    cols: usize,
}

impl Holders {
    /// Those of the entries of a pair.
    pub fn of(&self, row: usize, col: usize) -> &[usize] {
        &self.lists[row * self.cols + col]
    }

    /// The one that gives rank `to` the entries of a pair: itself where it has them.
    pub fn provider(&self, row: usize, col: usize, to: usize) -> usize {
        let list = self.of(row, col);
        if list.binary_search(&to).is_ok() { to } else { list[to % list.len()] }
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
    fn what_is_no_distribution_is_refused() {
        let grid = RankGrid { rows: 2, cols: 3 };
        let good = Distribution::block_cyclic((10, 10), (grid, GridOrder::RowMajor), (2, 2), (1, 2));
        good.check(6).unwrap();
        good.check(7).unwrap();
        let axis = |block, first, along| Axis::Cyclic { block, first, along };
        let wrong = [
            (Distribution { grid: RankGrid { rows: 0, cols: 3 }, ..good.clone() }, "0 x 3"),
            (Distribution { row_axis: axis(0, 0, Along::GridRow), ..good.clone() }, "blocks of 0"),
            (Distribution { row_axis: axis(2, 2, Along::GridRow), ..good.clone() }, "number 2 of 2"),
            (Distribution { col_axis: axis(2, 3, Along::GridCol), ..good.clone() }, "number 3 of 3"),
            (Distribution { col_axis: axis(2, 0, Along::GridRow), ..good.clone() }, "without a rank"),
            (Distribution { col_axis: axis(2, 0, Along::RowMajor), ..good.clone() }, "without a rank"),
            (Distribution::row_blocks(vec![0, 4, 3, 10], 10), "start at"),
            (Distribution::row_blocks(vec![1, 4, 10], 10), "start at"),
            (Distribution { rows: 11, ..Distribution::row_blocks(vec![0, 4, 10], 10) }, "11 rows"),
        ];
        for (wrong, words) in wrong {
            let error = wrong.check(6).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(good.check(5).unwrap_err().to_string().contains("2 x 3 ranks for 5"));
    }
}
