//! Parts common to out-of-core operations: results that are made of stored blocks, ranks with a directory each, and
//! reports of the disk. Independent of: how the blocks are computed.

mod result;
mod usage;

pub(crate) use result::{
    Attempt, ResultCut, ResultPlace, StoredBlocks, StoredResult, until_whole, write_file, write_zeros,
};
pub use usage::DiskUse;
pub(crate) use usage::{DiskWatch, disk_progress, progress_of, telling_of_disk};

use crate::error::{Error, Result};
use crate::site::Site;
use crate::storage::is_storage;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The largest number of rows of a tile in a file: the bytes of a square tile of this order still fit an integer.
pub(crate) const LARGEST_TILE: usize = 1 << 20;

/// The exponents and the checksums that the root finds in files, on all ranks. Collective.
///
/// # Errors
/// The errors of `scan`; [`Error::Transport`].
pub(crate) fn scanned_by_root(
    site: Site<'_>,
    scan: impl FnOnce() -> Result<(Vec<i64>, [u64; 2])>,
) -> Result<(Vec<i64>, [u64; 2])> {
    let words = site.root_finds(|| {
        let (exponents, checksums) = scan()?;
        Ok(checksums.into_iter().chain(exponents.into_iter().map(|exponent| exponent as u64)).collect())
    })?;
    let (checksums, exponents) = words.split_at(2);
    Ok((exponents.iter().map(|&word| word as i64).collect(), [checksums[0], checksums[1]]))
}

/// The storage directory of a rank: `storage` itself in one process, else one of its own below it. Rank 0 continues a
/// run begun by one process, and the other way round.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn rank_directory(site: Site<'_>, storage: &Path) -> Result<PathBuf> {
    let own = storage.join(format!("rank-{}", site.team.rank()));
    let one_process = site.team.size() == 1;
    if site.is_root() && !own.exists() && (one_process || is_storage(storage)) {
        return Ok(storage.to_path_buf());
    }
    make_directory(storage)?;
    Ok(own)
}

/// Makes a directory in a folder that exists, unless it is there.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn make_directory(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(Error::Io { path: path.to_path_buf(), action: "create", source: error })
        }
        _ => Ok(()),
    }
}
