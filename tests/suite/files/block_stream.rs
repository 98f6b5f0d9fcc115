//! Blocks that are read ahead: those of the matrix, in order, whatever the buffers; errors in their place; early ends.

use crate::common::{Kind, Rng, matrix, seeds};
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sunzi::io::{self, Block, BlockStream, BlockStreamOptions, FileBlock, MatrixFile, Symmetry, WriteOptions};
use sunzi::{Error, Matrix};

/// Writes a random matrix, or a symmetric one as its lower triangle, and opens the file.
fn file(
    path: &Path,
    (rows, cols): (usize, usize),
    bits: u32,
    seed: u64,
    is_symmetric: bool,
) -> (Matrix, Arc<MatrixFile>) {
    let mut a = matrix(Kind::Graded, rows, cols, bits, seed);
    if is_symmetric {
        for (row, col) in (0..rows).flat_map(|row| (0..row).map(move |col| (row, col))) {
            let value = a.float(row, col);
            a.set_float(col, row, &value).unwrap();
        }
    }
    let symmetry = if is_symmetric { Symmetry::SymmetricLower } else { Symmetry::General };
    io::write(path, &a, &WriteOptions::new().symmetry(symmetry)).unwrap();
    (a, Arc::new(MatrixFile::open(path).unwrap()))
}

fn options(buffers: usize, file: &MatrixFile, entries: usize) -> BlockStreamOptions {
    BlockStreamOptions { buffers, buffer_words: entries * (1 + file.limbs()), forget: true }
}

/// The columns of a file, one by one; counts how many were asked for.
fn columns(file: &Arc<MatrixFile>, asked: &Arc<AtomicUsize>) -> impl Iterator<Item = FileBlock> + Send + use<> {
    let (file, asked) = (file.clone(), asked.clone());
    (0..file.cols()).map(move |col| {
        asked.fetch_add(1, Ordering::Relaxed);
        FileBlock { file: file.clone(), block: Block { rows: 0..file.rows(), cols: col..col + 1 } }
    })
}

#[test]
fn blocks_of_several_files_come_in_order() {
    let folder = tempfile::tempdir().unwrap();
    for seed in seeds(12) {
        let mut rng = Rng::new(seed);
        let files = [false, true].map(|is_symmetric| {
            let rows = 1 + rng.below(40);
            let cols = if is_symmetric { rows } else { 1 + rng.below(40) };
            let path = folder.path().join(format!("{is_symmetric}.bin"));
            file(&path, (rows, cols), rng.pick(&[2, 65, 300]), seed, is_symmetric)
        });
        let mut order = Vec::new();
        for _ in 0..30 {
            let which = rng.below(2);
            let mut piece = |count: usize| {
                let start = rng.below(count);
                start..start + 1 + rng.below(count - start)
            };
            let (rows, cols) = (piece(files[which].1.rows()), piece(files[which].1.cols()));
            order.push((which, Block { rows, cols }));
        }
        let blocks =
            order.iter().map(|(which, block)| FileBlock { file: files[*which].1.clone(), block: block.clone() });
        let largest = blocks.clone().map(|place| place.file.block_words(&place.block)).max().unwrap();
        let options = BlockStreamOptions { buffers: 1 + rng.below(3), buffer_words: largest, forget: rng.coin() };
        let stream = BlockStream::new(options, blocks.collect::<Vec<_>>().into_iter()).unwrap();
        for (which, wanted) in &order {
            let block = stream.next_block().unwrap().unwrap();
            assert_eq!(block.place().block, *wanted);
            let (view, (whole, file)) = (block.view().unwrap(), &files[*which]);
            assert_eq!((view.rows(), view.cols()), (wanted.rows.len(), wanted.cols.len()));
            for (row, col) in wanted.rows.clone().flat_map(|row| wanted.cols.clone().map(move |col| (row, col))) {
                let (got, want) = (view.get(row - wanted.rows.start, col - wanted.cols.start), whole.get(row, col));
                assert_eq!((got.head, got.limbs), (want.head, want.limbs), "({row}, {col}) of {:?}", file.path());
            }
        }
        assert!(stream.next_block().is_none() && stream.next_block().is_none());
        let bytes = order.iter().map(|(which, block)| 8 * files[*which].1.block_words(block) as u64).sum::<u64>();
        let statistics = stream.statistics();
        assert_eq!(statistics.read_bytes, bytes);
        assert!(statistics.read_seconds > 0.0);
    }
}

#[test]
fn errors_come_where_their_block_would() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    let (a, file) = file(&path, (20, 30), 200, 1, false);
    // The limbs of the last five columns go away.
    let kept = 64 + 8 * 20 * 30 + 8 * 20 * 25 * file.limbs() as u64;
    OpenOptions::new().write(true).open(&path).unwrap().set_len(kept).unwrap();
    for buffers in [1, 2, 40] {
        let asked = Arc::new(AtomicUsize::new(0));
        let stream = BlockStream::new(options(buffers, &file, 20), columns(&file, &asked)).unwrap();
        for col in 0..25 {
            let block = stream.next_block().unwrap().unwrap();
            assert_eq!(block.view().unwrap().get(3, 0).limbs, a.get(3, col).limbs);
        }
        let error = stream.next_block().unwrap().err().unwrap();
        assert!(matches!(&error, Error::Format { message, .. } if message.contains("shorter")), "{error}");
        assert!(stream.next_block().is_none());
        assert_eq!(asked.load(Ordering::Relaxed), 26, "nothing is read after an error");
    }
}

#[test]
fn a_block_larger_than_the_buffers_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_, file) = file(&folder.path().join("a.bin"), (2000, 3), 100, 3, false);
    let stream = BlockStream::new(options(2, &file, 100), columns(&file, &Arc::default())).unwrap();
    let error = stream.next_block().unwrap().err().unwrap();
    assert_eq!(error.to_string(), "a block of 6000 words does not fit a buffer of 512");
    assert!(stream.next_block().is_none());
}

#[test]
fn a_dropped_stream_ends_and_blocks_outlive_it() {
    let folder = tempfile::tempdir().unwrap();
    let (a, file) = file(&folder.path().join("a.bin"), (50, 60), 100, 2, false);
    for buffers in [1, 3] {
        let asked = Arc::new(AtomicUsize::new(0));
        let stream = BlockStream::new(options(buffers, &file, 50), columns(&file, &asked)).unwrap();
        let block = stream.next_block().unwrap().unwrap();
        // The thread waits for a buffer now, or will.
        drop(stream);
        assert!(asked.load(Ordering::Relaxed) <= buffers + 1);
        assert_eq!(block.view().unwrap().get(7, 0).head, a.get(7, 0).head);
        assert_eq!(Arc::strong_count(&asked), 1, "the thread has ended");
    }
    let empty = BlockStream::new(options(1, &file, 50), std::iter::empty()).unwrap();
    assert!(empty.next_block().is_none());
}

#[test]
fn a_panic_of_the_order_is_that_of_the_caller() {
    let order = (0..3).map(|_| -> FileBlock { panic!("the order of blocks") });
    let options = BlockStreamOptions { buffers: 1, buffer_words: 1, forget: false };
    let stream = BlockStream::new(options, order).unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stream.next_block().is_none()));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"the order of blocks"));
}

#[test]
fn more_buffers_than_memory_lists_are_refused() {
    let options = BlockStreamOptions { buffers: usize::MAX, buffer_words: 0, forget: false };
    let made = BlockStream::new(options, std::iter::empty());
    assert!(matches!(made.err(), Some(Error::OutOfMemory { .. })));
    let options = BlockStreamOptions { buffer_words: usize::MAX, ..options };
    assert_eq!(BlockStream::memory_bytes(&options, usize::MAX, usize::MAX), u64::MAX);
}
