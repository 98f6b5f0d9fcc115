//! Where the files of `sunzi sdp` lie.

use crate::args::SdpPlaces;
use crate::files::is_standard;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use sunzi::comm::{Reduction, Transport};
use sunzi::{Error, Result};
use sunzi_sdp::{CHECKPOINT_FILE, CheckpointLock};
use sunzi_session::report::check_writable;
use xxhash_rust::xxh3::Xxh3;

/// The directories of the files of a run.
pub struct Folders {
    /// The results.
    pub results: PathBuf,
    /// Where checkpoints are written; nowhere where the name is empty.
    pub checkpoints: Option<PathBuf>,
    /// Where a checkpoint is looked for, and whether one must be there.
    pub first: Option<(PathBuf, bool)>,
}

impl Folders {
    /// The folders that were named, and SDPB's defaults for the others: the input's name with `_out` and with `.ck`
    /// behind it; of standard input there are no checkpoints unless a folder is named for them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where no program is named, or no folder for the results of standard input.
    pub fn new(places: &SdpPlaces) -> Result<Folders> {
        let beside = |end: &str| {
            let input = places.input()?.components().as_path();
            let mut name = OsString::from(input);
            name.push(end);
            Ok::<_, Error>(PathBuf::from(name))
        };
        let is_stream = is_standard(places.input()?);
        let unnamed = || {
            Error::InvalidArgument(
                "a program from standard input has no default directory of results: give --outDir".into(),
            )
        };
        let results = match &places.out_dir {
            None if is_stream => return Err(unnamed()),
            named => named.clone().map_or_else(|| beside("_out"), Ok)?,
        };
        let checkpoints = match &places.checkpoint_dir {
            None if is_stream => PathBuf::new(),
            named => named.clone().map_or_else(|| beside(".ck"), Ok)?,
        };
        let checkpoints = Some(checkpoints).filter(|folder| !folder.as_os_str().is_empty());
        let first = match &places.initial_checkpoint_dir {
            Some(folder) => Some((folder.clone(), true)),
            None => checkpoints.clone().map(|folder| (folder, false)),
        };
        Ok(Folders { results, checkpoints, first })
    }

    /// Refuses ranks to which different folders of checkpoints were named, as may happen where each has its own file of
    /// parameters: all must agree whether checkpoints are written, and where one is looked for. The ranks then compare
    /// the checkpoints that they find, to check that they continue from the same one. Collective.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] on all ranks; [`Error::Transport`].
    pub fn compare(places: &SdpPlaces, world: &dyn Transport) -> Result<()> {
        // XXH3 of both names, each behind its length; of one that is absent the length is none that a name has.
        let mut hash = Xxh3::new();
        for folder in [&places.checkpoint_dir, &places.initial_checkpoint_dir] {
            let name = folder.as_ref().map(|folder| folder.as_os_str().as_encoded_bytes());
            hash.update(&name.map_or(u64::MAX, |name| name.len() as u64).to_le_bytes());
            hash.update(name.unwrap_or_default());
        }
        let own = hash.digest();
        let mut words = [own, !own];
        world.all_reduce(Reduction::Min, &mut words)?;
        match words[0] == !words[1] {
            true => Ok(()),
            false => Err(Error::InvalidArgument(
                "the ranks have different checkpoint directories: --checkpointDir and --initialCheckpointDir must be \
                 the same for all, on the command line and in --paramFile"
                    .into(),
            )),
        }
    }

    /// Makes the folder of the results: a failure to write is reported before any work.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn make(&self, plot: Option<&Path>) -> Result<()> {
        plot.map_or(Ok(()), check_writable)?;
        let results = &self.results;
        std::fs::create_dir_all(results).map_err(|source| Error::Io {
            path: results.clone(),
            action: "create",
            source,
        })?;
        check_writable(&results.join("out.txt"))?;
        self.checkpoints.as_deref().map_or(Ok(()), check_folder).map_err(named)
    }

    /// Takes the folder of checkpoints for this run, where there is one.
    ///
    /// # Errors
    /// [`Error::StorageInUse`] while another run has it; [`Error::Io`].
    pub fn lock(&self) -> Result<Option<CheckpointLock>> {
        self.checkpoints.as_deref().map(CheckpointLock::take).transpose().map_err(named)
    }
}

/// The error with the purpose of the folder.
fn named(error: Error) -> Error {
    match error {
        Error::Io { path, action, source } => {
            let why =
                format!("{source} (the directory is for checkpoints: choose another with -c DIR, or none with -c '')");
            Error::Io { path, action, source: std::io::Error::new(source.kind(), why) }
        }
        other => other,
    }
}

/// Looks whether a file can be written in a folder, which need not be there yet.
fn check_folder(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return check_writable(&folder.join(CHECKPOINT_FILE));
    }
    if folder.symlink_metadata().is_ok() {
        let source = std::io::Error::from(std::io::ErrorKind::NotADirectory);
        return Err(Error::Io { path: folder.to_path_buf(), action: "create", source });
    }
    // The first of its parents that is there has to take it; one without a name is the current one.
    let is_there = |path: &Path| path.symlink_metadata().is_ok() || path.as_os_str().is_empty();
    match folder.parent() {
        Some(parent) if is_there(parent) => check_writable(folder),
        Some(parent) => check_folder(parent),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::comm::local;

    #[test]
    fn ranks_with_other_folders_are_refused_on_all() {
        let said = |named: fn(usize) -> SdpPlaces| local::run(3, |world| Folders::compare(&named(world.rank()), world));
        let same = said(|_| SdpPlaces { checkpoint_dir: Some("ck".into()), ..SdpPlaces::default() });
        assert!(same.iter().all(Result::is_ok));
        let others: [fn(usize) -> SdpPlaces; 4] = [
            |rank| SdpPlaces { initial_checkpoint_dir: (rank == 1).then(|| "i".into()), ..SdpPlaces::default() },
            |rank| SdpPlaces { checkpoint_dir: (rank < 2).then(|| "ck".into()), ..SdpPlaces::default() },
            |rank| SdpPlaces { checkpoint_dir: (rank == 1).then(PathBuf::new), ..SdpPlaces::default() },
            |rank| SdpPlaces { checkpoint_dir: Some(format!("ck{}", rank / 2).into()), ..SdpPlaces::default() },
        ];
        for other in others {
            let said = said(other);
            assert!(said.iter().all(|said| said.as_ref().unwrap_err().to_string().contains("--checkpointDir")));
        }
    }
}
