//! A product of matrices in files: its shape, its checks, and the numbers found in a pass over its operands.

use super::OperandFile;
use super::scan::scan;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::MatrixFile;
use crate::matrix::Op;
use crate::ops::disk::{ResultCut, progress_of, scanned_by_root};
use crate::ops::product::problem::{Bits, check_precision};
use crate::ops::product::size::ProductSize;
use crate::ops::product::streamed::FileOperand;
use crate::site::Site;
use crate::storage::Identity;
use std::path::Path;
use std::sync::Arc;

/// A product of matrices in files: `X^T Y` of the operands' columns.
pub(super) struct FileProduct {
    pub operation: &'static str,
    pub left: FileOperand,
    /// `None` for SYRK.
    pub right: Option<FileOperand>,
    pub precision_bits: u32,
}

fn open(path: &Path) -> Result<Arc<MatrixFile>> {
    MatrixFile::open(path).map(Arc::new)
}

impl FileProduct {
    pub fn syrk(p: OperandFile<'_>, precision_bits: u32) -> Result<FileProduct> {
        let left = FileOperand::new(open(p.path)?, p.op);
        Ok(FileProduct { operation: "syrk", left, right: None, precision_bits })
    }

    pub fn gemm(a: OperandFile<'_>, b: OperandFile<'_>, precision_bits: u32) -> Result<FileProduct> {
        // The columns of the left operand are the rows of op(A).
        let op = if a.op == Op::Transpose { Op::NoTranspose } else { Op::Transpose };
        let (left, right) = (FileOperand::new(open(a.path)?, op), FileOperand::new(open(b.path)?, b.op));
        Ok(FileProduct { operation: "gemm", left, right: Some(right), precision_bits })
    }

    pub fn right(&self) -> &FileOperand {
        self.right.as_ref().unwrap_or(&self.left)
    }

    pub fn size(&self) -> ProductSize {
        let (rows, cols) = (self.left.cols(), self.right().cols());
        ProductSize { contracted: self.left.rows(), rows, cols, triangle: self.right.is_none() }
    }

    pub fn check(&self, ctx: &Context) -> Result<()> {
        let (left, right) = (&self.left, self.right());
        if left.rows() != right.rows() {
            let shapes = ((left.cols(), left.rows()), (right.rows(), right.cols()));
            return Err(Error::shape_mismatch(self.operation, shapes.0, shapes.1));
        }
        if ctx.freivalds() {
            return Err(Error::InvalidArgument(
                "Freivalds' test is not supported out of core, since it would read the operands once more: use the \
                 self-check"
                    .into(),
            ));
        }
        check_precision(ctx.maximum_modulus_bits(), self.precision_bits, left.rows())?;
        self.size().check(self.precision_bits)
    }

    /// Shifts of the columns that scale them to the working precision, and the checksums of the files, as rank 0 finds
    /// them. Collective.
    pub fn scan(&self, site: Site<'_>, bits: &Bits) -> Result<Scanned> {
        let (mut shifts, checksums) = scanned_by_root(site, || {
            let (mut exponents, left_checksum) = scan(&self.left, progress_of(site.ctx))?;
            let right_checksum = match &self.right {
                Some(right) => {
                    let (of_right, checksum) = scan(right, progress_of(site.ctx))?;
                    exponents.extend(of_right);
                    checksum
                }
                None => left_checksum,
            };
            Ok((exponents, [left_checksum, right_checksum]))
        })?;
        shifts.iter_mut().for_each(|exponent| *exponent = i64::from(bits.working) - *exponent);
        let right_shifts = shifts.split_off(self.left.cols());
        let [left_checksum, right_checksum] = checksums;
        Ok(Scanned { left_shifts: shifts, right_shifts, left_checksum, right_checksum })
    }

    pub fn identity(&self, cut: &ResultCut, scanned: &Scanned) -> Identity {
        let size = self.size();
        let stored = |operand: &FileOperand| {
            format!("{} x {}, {} bits", operand.file.rows(), operand.file.cols(), operand.file.precision_bits())
        };
        Identity::new(self.operation)
            .with("rows", size.rows)
            .with("cols", size.cols)
            .with("contracted", size.contracted)
            .with("precision_bits", self.precision_bits)
            .with("left_matrix", stored(&self.left))
            .with("right_matrix", stored(self.right()))
            .with("left_transposed", self.left.transposed)
            .with("right_transposed", self.right().transposed)
            .with("left_checksum", format!("{:016x}", scanned.left_checksum))
            .with("right_checksum", format!("{:016x}", scanned.right_checksum))
            .with("tile_size", cut.block_rows)
    }
}

/// The properties of its operands' entries that a product needs.
pub(super) struct Scanned {
    /// Scale shifts of the columns.
    pub left_shifts: Vec<i64>,
    /// The same of the right operand; empty for SYRK.
    pub right_shifts: Vec<i64>,
    /// Checksums of the files.
    pub left_checksum: u64,
    pub right_checksum: u64,
}
