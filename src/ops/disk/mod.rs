//! Parts common to out-of-core operations: results that are made of stored blocks, ranks with a directory each, and
//! reports of the disk. Independent of: how the blocks are computed.

mod file;
mod place;
mod repair;
mod result;
mod usage;

pub(crate) use file::{StoredBlocks, write_file, write_zeros};
pub(crate) use place::{make_directory, rank_directory, scanned_by_root};
pub(crate) use repair::{Attempt, until_whole};
pub(crate) use result::{ResultCut, ResultPlace, StoredResult};
pub use usage::DiskUse;
pub(crate) use usage::{DiskWatch, disk_progress, progress_of, telling_of_disk};

/// Most rows of a tile in a file: the bytes of a square tile of this order still fit an integer.
pub(crate) const LARGEST_TILE: usize = 1 << 20;
