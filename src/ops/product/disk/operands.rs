//! A product of matrices in files: its shape, its checks, the pass over its operands in which their norms are found,
//! and the pieces of bands that are read ahead, in the order of the schedule.

use super::OperandFile;
use crate::context::{Context, ProgressCallback};
use crate::error::{Error, Result};
use crate::io::{
    Block, BlockStream, BlockStreamOptions, BlockStreamStatistics, FileBlock, HeadVisitor, MatrixFile, StreamedBlock,
};
use crate::math::float::{FloatRef, Head};
use crate::math::scale::{norm_exponent, square_bound};
use crate::matrix::{MatrixView, Op};
use crate::ops::disk::{ResultCut, progress_of, scanned_by_root};
use crate::ops::product::problem::{Bits, ProductSize};
use crate::ops::product::run::{OperandPiece, OperandSource, ProductSchedule, Side};
use crate::plan::{BLOCK, rank_chunk};
use crate::site::Site;
use crate::storage::Identity;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A product of matrices in files: `X^T Y` of the operands' columns.
pub(super) struct FileProduct {
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
        Ok(FileProduct { left, right: None, precision_bits })
    }

    pub fn gemm(a: OperandFile<'_>, b: OperandFile<'_>, precision_bits: u32) -> Result<FileProduct> {
        // The columns of the left operand are the rows of op(A).
        let op = if a.op == Op::Transpose { Op::NoTranspose } else { Op::Transpose };
        let (left, right) = (FileOperand::new(open(a.path)?, op), FileOperand::new(open(b.path)?, b.op));
        Ok(FileProduct { left, right: Some(right), precision_bits })
    }

    pub fn right(&self) -> &FileOperand {
        self.right.as_ref().unwrap_or(&self.left)
    }

    pub fn size(&self) -> ProductSize {
        let (rows, cols) = (self.left.cols(), self.right().cols());
        ProductSize { contracted: self.left.rows(), rows, cols, triangle: self.right.is_none(), half: None }
    }

    pub fn check(&self, ctx: &Context) -> Result<()> {
        let (left, right) = (&self.left, self.right());
        if left.rows() != right.rows() {
            let shapes = ((left.cols(), left.rows()), (right.rows(), right.cols()));
            return Err(Error::shape_mismatch(self.size().operation(), shapes.0, shapes.1));
        }
        if ctx.freivalds() {
            return Err(Error::InvalidArgument(
                "Freivalds' test is not supported out of core, since it would read the operands a second time: use the \
                 self-check"
                    .into(),
            ));
        }
        self.size().check(ctx.maximum_modulus_bits(), self.precision_bits)
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
        shifts.iter_mut().for_each(|exponent| *exponent = bits.shift(*exponent));
        let right_shifts = shifts.split_off(self.left.cols());
        let [left_checksum, right_checksum] = checksums;
        Ok(Scanned { left_shifts: shifts, right_shifts, left_checksum, right_checksum })
    }

    pub fn identity(&self, cut: &ResultCut, scanned: &Scanned) -> Identity {
        let size = self.size();
        let stored = |operand: &FileOperand| {
            format!("{} x {}, {} bits", operand.file.rows(), operand.file.cols(), operand.file.precision_bits())
        };
        Identity::new(size.operation())
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
    /// Scale shifts of the columns of the right operand; empty for SYRK.
    pub right_shifts: Vec<i64>,
    /// Checksums of the files.
    pub left_checksum: u64,
    pub right_checksum: u64,
}

/// Norms of columns under way: first the largest exponents, then the sums of the squares' bounds in the units which
/// these fix.
struct ColumnNorms {
    transposed: bool,
    /// Whether each entry off the diagonal stands for its mirror image too.
    mirrored: bool,
    largest: Vec<i64>,
    sums: Vec<u128>,
}

impl ColumnNorms {
    /// The columns of the operand that contain an entry of the file.
    fn columns(&self, row: usize, col: usize) -> (usize, Option<usize>) {
        let (own, mirror) = if self.transposed { (row, col) } else { (col, row) };
        (own, (self.mirrored && row != col).then_some(mirror))
    }
}

impl HeadVisitor for ColumnNorms {
    fn first(&mut self, row: usize, col: usize, head: Head) -> Result<()> {
        if !head.is_zero() {
            let (own, mirror) = self.columns(row, col);
            for at in [Some(own), mirror].into_iter().flatten() {
                self.largest[at] = self.largest[at].max(head.exponent());
            }
        }
        Ok(())
    }

    fn second(&mut self, row: usize, col: usize, FloatRef { head, .. }: FloatRef<'_>) -> Result<()> {
        if !head.is_zero() {
            let (own, mirror) = self.columns(row, col);
            for at in [Some(own), mirror].into_iter().flatten() {
                self.sums[at] += u128::from(square_bound(head, self.largest[at]));
            }
        }
        Ok(())
    }
}

/// The norm exponents of an operand's columns, and the checksum of its file.
///
/// # Errors
/// The errors of [`crate::io::MatrixFile::check`].
pub(super) fn scan(operand: &FileOperand, progress: Option<Arc<ProgressCallback>>) -> Result<(Vec<i64>, u64)> {
    let cols = operand.cols();
    let mut norms = ColumnNorms {
        transposed: operand.transposed,
        mirrored: operand.file.is_symmetric(),
        largest: vec![i64::MIN; cols],
        sums: vec![0; cols],
    };
    let checksum = operand.file.check_heads(progress, &mut norms)?;
    let both = norms.sums.iter().zip(&norms.largest);
    Ok((both.map(|(&sum, &largest)| norm_exponent(sum, largest)).collect(), checksum))
}

/// An operand in a file: its columns are contracted with those of the other.
#[derive(Clone, Debug)]
pub(crate) struct FileOperand {
    pub file: Arc<MatrixFile>,
    /// Whether the operand is the transpose of the file's matrix.
    pub transposed: bool,
}

impl FileOperand {
    /// `op` of the matrix in a file.
    pub fn new(file: Arc<MatrixFile>, op: Op) -> FileOperand {
        FileOperand { file, transposed: op == Op::Transpose }
    }

    /// Rows contracted.
    pub fn rows(&self) -> usize {
        if self.transposed { self.file.cols() } else { self.file.rows() }
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        if self.transposed { self.file.rows() } else { self.file.cols() }
    }

    /// The part of the file that holds some rows of some panels.
    fn piece(&self, panels: &Range<usize>, rows: Range<usize>) -> FileBlock {
        let cols = panels.start * BLOCK..(panels.end * BLOCK).min(self.cols());
        let (rows, cols) = if self.transposed { (cols, rows) } else { (rows, cols) };
        FileBlock { file: self.file.clone(), block: Block { rows, cols } }
    }
}

/// Both operands, of which the right one may be the left one.
pub(crate) struct StreamedOperands {
    stream: BlockStream,
    /// Whether each is the transpose of its file.
    transposed: [bool; 2],
}

/// A piece of an operand.
struct FilePiece {
    block: StreamedBlock,
    transposed: bool,
}

impl OperandPiece for FilePiece {
    fn view(&self) -> Result<MatrixView<'_>> {
        let view = self.block.view()?;
        Ok(if self.transposed { view.transposed() } else { view })
    }
}

impl OperandSource for StreamedOperands {
    fn next(&self, side: Side) -> Result<Box<dyn OperandPiece>> {
        let block = self.stream.next_block().expect("a piece for each band that is converted")?;
        Ok(Box::new(FilePiece { block, transposed: self.transposed[side as usize] }))
    }
}

impl StreamedOperands {
    /// Begins to read the pieces that `schedule` converts, with the rows in `chunks` chunks, and adds up the bytes
    /// read.
    ///
    /// # Errors
    /// The errors of [`BlockStream::new`].
    pub fn new(
        left: &FileOperand,
        right: &FileOperand,
        schedule: &ProductSchedule,
        chunks: usize,
        options: BlockStreamOptions,
        read_bytes: &Arc<AtomicU64>,
    ) -> Result<StreamedOperands> {
        let transposed = [left.transposed, right.transposed];
        let operands = [left.clone(), right.clone()];
        let order = schedule.loads().map(move |load| {
            let operand = &operands[load.side as usize];
            operand.piece(&load.panels, rank_chunk(operand.rows(), chunks, load.step.chunk))
        });
        Ok(StreamedOperands { stream: BlockStream::counting(options, order, read_bytes.clone())?, transposed })
    }

    /// The statistics of the reads so far.
    pub fn statistics(&self) -> BlockStreamStatistics {
        self.stream.statistics()
    }
}
