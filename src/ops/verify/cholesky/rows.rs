//! The numbers of the verifier, of matrices in memory or of files of which blocks are read, and the rows of a factor
//! before any product is formed: rows that no factor can have are refused, the others are measured.
//!
//! Both matrices are read as lower triangles.

use super::{FactorCheck, refusal};
use crate::context::Context;
use crate::drive::map_indices;
use crate::error::{Error, Result};
use crate::io::{Block, HeadVisitor, MatrixFile};
use crate::math::float::{FloatRef, Head};
use crate::math::pivot::diagonal_exponent;
use crate::matrix::{EntryIndex, Matrix, MatrixView, Uplo};
use crate::ops::disk::progress_of;
use crate::ops::verify::exact::{Dyadic, KEEP_ALL, term};
use std::ops::Range;

/// Rows and columns of the blocks in which the triangles of a file are compared.
const COMPARED_ROWS: usize = 128;

/// A matrix whose lower triangle is looked at.
#[derive(Clone, Copy)]
pub(super) enum LowerTriangle<'a> {
    /// A matrix in memory.
    Memory(MatrixView<'a>),
    /// A file; where it is transposed, its upper triangle is read.
    File { file: &'a MatrixFile, transposed: bool },
}

impl<'a> LowerTriangle<'a> {
    /// Rows and columns.
    pub fn shape(self) -> (usize, usize) {
        match self {
            LowerTriangle::Memory(view) => (view.rows(), view.cols()),
            LowerTriangle::File { file, transposed: false } => (file.rows(), file.cols()),
            LowerTriangle::File { file, transposed: true } => (file.cols(), file.rows()),
        }
    }

    /// Bits of the entries.
    pub fn precision_bits(self) -> u32 {
        match self {
            LowerTriangle::Memory(view) => view.precision_bits(),
            LowerTriangle::File { file, .. } => file.precision_bits(),
        }
    }

    /// Heads of the diagonal.
    ///
    /// # Errors
    /// The errors of reading.
    pub fn diagonal_heads(self) -> Result<Vec<Head>> {
        match self {
            LowerTriangle::Memory(view) => Ok((0..view.rows()).map(|i| view.get(i, i).head).collect()),
            LowerTriangle::File { file, .. } => file.diagonal_heads(),
        }
    }

    /// A diagonal entry with the head `head`, as an integer times a power of two.
    ///
    /// # Errors
    /// The errors of reading.
    pub fn diagonal_integer(self, i: usize, head: Head) -> Result<Dyadic> {
        match self {
            LowerTriangle::Memory(view) => Ok(Dyadic::of(view.get(i, i))),
            LowerTriangle::File { file, .. } => {
                let limbs = file.entry_limbs(i, i)?;
                Ok(Dyadic::of(FloatRef { head, limbs: &limbs }))
            }
        }
    }

    /// A block; of a file that stores one triangle, the other entries are 0.
    ///
    /// # Errors
    /// The errors of reading; [`crate::Error::OutOfMemory`].
    pub fn block(self, rows: &Range<usize>, cols: &Range<usize>) -> Result<Matrix> {
        match self {
            LowerTriangle::Memory(view) => view.block(rows.clone(), cols.clone())?.to_matrix(),
            LowerTriangle::File { file, transposed: false } => read(file, rows, cols),
            LowerTriangle::File { file, transposed: true } => read(file, cols, rows)?.transposed().to_matrix(),
        }
    }

    /// Announces that a block will be needed: a file can be read ahead.
    pub fn announce(self, rows: &Range<usize>, cols: &Range<usize>) {
        if let LowerTriangle::File { file, transposed } = self {
            let (rows, cols) = if transposed { (cols, rows) } else { (rows, cols) };
            file.announce_block(&Block { rows: rows.clone(), cols: cols.clone() });
        }
    }

    /// Bytes that a block takes while it is made.
    pub fn block_bytes(self, rows: usize, cols: usize) -> u64 {
        let copies = if matches!(self, LowerTriangle::File { transposed: true, .. }) { 2 } else { 1 };
        copies * Matrix::bytes_for(rows, cols, self.precision_bits())
    }
}

fn read(file: &MatrixFile, rows: &Range<usize>, cols: &Range<usize>) -> Result<Matrix> {
    let mut matrix = Matrix::zeros(rows.len(), cols.len(), file.precision_bits())?;
    let block = Block { rows: rows.clone(), cols: cols.clone() };
    // The system may cache what it has room for: all is read again.
    file.read_block(&block, matrix.words_mut())?;
    Ok(matrix)
}

/// Reads a whole file, checks it, and passes each number with its place in the triangle's matrix to `visit`; a number
/// that is stored once but stands for two entries is passed twice.
///
/// # Errors
/// The errors of [`MatrixFile::check`].
fn visit_file(
    ctx: &Context,
    file: &MatrixFile,
    transposed: bool,
    visit: impl FnMut(usize, usize, FloatRef<'_>),
) -> Result<()> {
    let mirrored = file.is_symmetric();
    file.check_heads(progress_of(ctx), &mut NumberVisitor { transposed, mirrored, visit }).map(|_| ())
}

/// Shows numbers to `visit`.
struct NumberVisitor<F> {
    transposed: bool,
    mirrored: bool,
    visit: F,
}

impl<F: FnMut(usize, usize, FloatRef<'_>)> HeadVisitor for NumberVisitor<F> {
    fn first(&mut self, _row: usize, _col: usize, _head: Head) -> Result<()> {
        Ok(())
    }

    fn second(&mut self, row: usize, col: usize, number: FloatRef<'_>) -> Result<()> {
        let (i, j) = if self.transposed { (col, row) } else { (row, col) };
        (self.visit)(i, j, number);
        if self.mirrored && i != j {
            (self.visit)(j, i, number);
        }
        Ok(())
    }
}

/// One row of the factor.
pub(super) struct Row {
    /// `a_ii`.
    pub diagonal: Dyadic,
    /// `s_i`: `a_ii 2^(-2 s_i)` lies in `[1/4, 1)`.
    pub scale: i64,
    /// Exponent of the lowest bit of the row.
    pub low: i64,
    /// Whether the row's integers `l_ij 2^-low` are short enough for residues.
    pub planar: bool,
}

impl Row {
    /// The row's integers are below 2 to this power.
    pub fn integer_bits(&self) -> i64 {
        self.scale + 1 - self.low
    }

    /// Bytes of the rows of a factor while they are measured.
    pub fn bytes(order: usize, precision_bits: u32) -> u64 {
        let each = size_of::<Row>() + size_of::<Extent>() + 2 * size_of::<i64>() + 16;
        Matrix::bytes_for(order, 1, precision_bits).saturating_add((order * each) as u64)
    }
}

/// The result of one pass over the entries of a row.
#[derive(Clone, Copy, Default)]
struct Extent {
    /// The diagonal entry of the factor.
    own: Option<Head>,
    /// Largest exponent, and that of the lowest bit, of the entries that are not 0.
    span: Option<(i64, i64)>,
    /// The first column beyond the diagonal with an entry that is not 0.
    beyond: Option<usize>,
    /// Whether an entry before the diagonal is not 0.
    is_set_before: bool,
    /// The first column of an entry of the matrix that is too large.
    huge: Option<usize>,
}

impl Extent {
    /// Takes in an entry of the factor.
    fn add(&mut self, i: usize, k: usize, value: FloatRef<'_>) {
        if k == i {
            self.own = Some(value.head);
        }
        if value.head.is_zero() {
            return;
        }
        if k > i {
            self.beyond = Some(self.beyond.map_or(k, |first| first.min(k)));
            return;
        }
        self.is_set_before |= k < i;
        let (top, low) = (value.head.exponent(), lowest_bit(value));
        self.span = Some(self.span.map_or((top, low), |span| (span.0.max(top), span.1.min(low))));
    }

    /// Takes in an entry of the matrix.
    fn add_own(&mut self, scales: &[i64], i: usize, j: usize, head: Head) {
        if j < i && !head.is_zero() && head.exponent() > scales[i] + scales[j] + 2 {
            self.huge = Some(self.huge.map_or(j, |first| first.min(j)));
        }
    }
}

/// Exponent of the lowest bit of a number that is not 0.
fn lowest_bit(value: FloatRef<'_>) -> i64 {
    term(value, KEEP_ALL).map_or(0, |term| term.low + i64::from(term.limbs[0].trailing_zeros()))
}

impl FactorCheck<'_> {
    /// Refuses entries that no factor can have, and measures the rows.
    ///
    /// `sum_k l_ik^2 <= a_ii + 2^(2-b) a_ii <= 2 a_ii` bounds every entry of an honest factor by `2^(s_i + 1)`, and
    /// `|a_ij| <= sqrt(2 a_ii) sqrt(2 a_jj) + sqrt(a_ii a_jj)` every entry of its matrix by `2^(s_i + s_j + 2)`.
    /// Entries beyond these bounds are refused here, so that sums stay of a bounded width. Files are read once, and
    /// checked.
    pub fn look_at_rows(&self, ctx: &Context) -> Result<Vec<Row>> {
        let heads = self.a.diagonal_heads()?;
        let diagonal = heads.iter().position(|head| head.is_zero() || head.is_negative());
        if let (Some(i), LowerTriangle::Memory(_)) = (diagonal, self.a) {
            return Err(not_positive(i));
        }
        let scales: Vec<i64> = heads.iter().map(|head| diagonal_exponent(head.exponent())).collect();
        let extents = self.extents(ctx, &scales)?;
        self.compared.map_or(Ok(()), |file| file.check_symmetric(COMPARED_ROWS))?;
        if let Some(i) = diagonal {
            return Err(not_positive(i)); // of a file that is undamaged
        }
        self.check_triangle(&extents)?;
        let planar_bits = self.planar_bits(ctx);
        let rows = extents.iter().zip(heads).zip(scales).enumerate().map(|(i, ((extent, head), scale))| {
            self.check_row(i, extent, scale)?;
            let low = extent.span.map_or(0, |(_, low)| low);
            let row = Row { diagonal: self.a.diagonal_integer(i, head)?, scale, low, planar: false };
            Ok(Row { planar: row.integer_bits() <= planar_bits, ..row })
        });
        rows.collect()
    }

    /// Reads every entry of the factor, and of the matrix below its diagonal.
    fn extents(&self, ctx: &Context, scales: &[i64]) -> Result<Vec<Extent>> {
        let n = scales.len();
        let mut extents = match self.l {
            LowerTriangle::Memory(l) => map_indices(ctx, n, |i| {
                let mut extent = Extent::default();
                (0..n).for_each(|k| extent.add(i, k, l.get(i, k)));
                extent
            }),
            LowerTriangle::File { file, transposed } => {
                let mut extents = vec![Extent::default(); n];
                visit_file(ctx, file, transposed, |i, k, value| extents[i].add(i, k, value))?;
                extents
            }
        };
        match self.a {
            LowerTriangle::Memory(a) => {
                let huge = map_indices(ctx, n, |i| {
                    let mut extent = Extent::default();
                    (0..i).for_each(|j| extent.add_own(scales, i, j, a.get(i, j).head));
                    extent.huge
                });
                extents.iter_mut().zip(huge).for_each(|(extent, huge)| extent.huge = huge);
            }
            LowerTriangle::File { file, transposed } => {
                let mut see = |i: usize, j: usize, value: FloatRef<'_>| {
                    extents[i].add_own(scales, i, j, value.head);
                };
                visit_file(ctx, file, transposed, &mut see)?;
            }
        }
        Ok(extents)
    }

    /// Refuses entries on the wrong side of the diagonal; a factor of the other kind is named as such.
    fn check_triangle(&self, extents: &[Extent]) -> Result<()> {
        let beyond = extents.iter().enumerate().find_map(|(row, extent)| Some(EntryIndex { row, col: extent.beyond? }));
        let Some(place) = beyond else { return Ok(()) };
        let is_other = !extents.iter().any(|extent| extent.is_set_before);
        let (triangle, other) = match self.uplo {
            Uplo::Lower => ("lower", "; it is upper triangular: check it as an upper factor (with --upper)"),
            Uplo::Upper => ("upper", "; it is lower triangular: check it as a lower factor (without --upper)"),
        };
        Err(refusal(|base| {
            let (place, other) = (self.name(place, base), if is_other { other } else { "" });
            format!("the factor is not {triangle} triangular: the entry at {place} is not 0{other}")
        }))
    }

    fn check_row(&self, i: usize, extent: &Extent, scale: i64) -> Result<()> {
        if extent.own.is_none_or(|own| own.is_zero() || own.is_negative()) {
            return Err(refusal(|base| {
                format!("{} of the factor must be positive, and is not", base.one("diagonal entry", i))
            }));
        }
        let top = extent.span.map_or(0, |(top, _)| top);
        if top > scale + 1 {
            let excess = 2 * (top - scale - 1);
            return Err(refusal(|base| {
                let (row, entry) = (base.one("row", i), base.one("diagonal entry", i));
                format!(
                    "{row} of the factor is too large: the sum of its squares must be {entry} of the matrix, but is \
                     over 2^{excess} times as large"
                )
            }));
        }
        if let Some(j) = extent.huge {
            return Err(refusal(|base| {
                let place = self.name(EntryIndex { row: i, col: j }, base);
                format!(
                    "the entry at {place} of the matrix exceeds sqrt(a_ii a_jj): the matrix is not positive definite \
                     and has no factor"
                )
            }));
        }
        Ok(())
    }
}

fn not_positive(i: usize) -> Error {
    refusal(|base| {
        let entry = base.one("diagonal entry", i);
        format!("{entry} of the matrix is not positive: the matrix is not positive definite and has no factor")
    })
}
