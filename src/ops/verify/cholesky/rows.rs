//! The rows of a factor before any product is formed: rows that no factor can have are refused, the others are
//! measured.

use super::source::{LowerTriangle, visit_file};
use super::{FactorCheck, refusal};
use crate::context::Context;
use crate::drive::map_indices;
use crate::error::Result;
use crate::math::float::{FloatRef, Head};
use crate::math::pivot::diagonal_exponent;
use crate::matrix::{EntryIndex, Matrix, Uplo};
use crate::ops::verify::exact::{Dyadic, KEEP_ALL, term};

/// Rows and columns of the blocks in which the triangles of a file are compared.
const COMPARED_ROWS: usize = 128;

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
            Uplo::Lower => ("lower", "; it is upper triangular: name an upper factor (--upper)"),
            Uplo::Upper => ("upper", "; it is lower triangular: name a lower factor (no --upper)"),
        };
        Err(refusal(|base| {
            let (place, other) = (self.name(place, base), if is_other { other } else { "" });
            format!("the factor is not {triangle} triangular: the entry at {place} is not 0{other}")
        }))
    }

    fn check_row(&self, i: usize, extent: &Extent, scale: i64) -> Result<()> {
        if extent.own.is_none_or(|own| own.is_zero() || own.is_negative()) {
            return Err(refusal(|base| format!("{} of the factor is not positive", base.one("diagonal entry", i))));
        }
        let top = extent.span.map_or(0, |(top, _)| top);
        if top > scale + 1 {
            let excess = 2 * (top - scale - 1);
            return Err(refusal(|base| {
                let row = base.one("row", i);
                format!("{row} of the factor is too long: its squares sum to over 2^{excess} a_ii")
            }));
        }
        if let Some(j) = extent.huge {
            return Err(refusal(|base| {
                let place = self.name(EntryIndex { row: i, col: j }, base);
                format!("the entry at {place} of the matrix exceeds sqrt(a_ii a_jj): the matrix has no factor")
            }));
        }
        Ok(())
    }
}

fn not_positive(i: usize) -> crate::error::Error {
    refusal(|base| format!("{} of the matrix is not positive: the matrix has no factor", base.one("diagonal entry", i)))
}
