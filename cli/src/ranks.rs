//! The ranks that the program runs on: one process, or all processes that an MPI launcher started.
//!
//! Of several ranks only the first, the root, prints, reads files that are not per rank, and writes. An error that ends
//! one of them ends all, with the same error and exit code.

use std::ffi::OsString;
use sunzi::comm::{Reduction, Transport, agree, barrier, launched};
use sunzi::{Error, Result};
use sunzi_lab::bench::BenchRanks;
use sunzi_session::session::ROOT;
use xxhash_rust::xxh3::Xxh3;

/// Set in the environment, it makes a process run by itself that a launcher, or a program under one, has started.
const ALONE: &str = "SUNZI_ALONE";

/// The ranks of this run.
pub struct Ranks {
    world: Option<Box<dyn Transport>>,
    #[cfg(feature = "mpi")]
    environment: Option<sunzi::comm::mpi::Environment>,
}

impl Ranks {
    /// Only this process.
    fn alone() -> Ranks {
        Ranks {
            world: None,
            #[cfg(feature = "mpi")]
            environment: None,
        }
    }

    /// Looks whether a launcher started several processes; only then MPI is initialised.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there are several but this build has no MPI; [`Error::Transport`].
    pub fn find() -> Result<Ranks> {
        let asked = std::env::var_os(ALONE).is_some_and(|value| !value.is_empty());
        match launched() {
            Some(count) if count > 1 && !asked => Ranks::start(count),
            _ => Ok(Ranks::alone()),
        }
    }

    #[cfg(feature = "mpi")]
    fn start(count: usize) -> Result<Ranks> {
        let environment = sunzi::comm::mpi::Environment::start()?;
        let world = environment.world()?;
        if world.size() == 1 {
            // Each process would do the whole work, and write the same file.
            let message = format!(
                "started as one of {count} ranks, but {} finds only one: use the launcher of that library, or set \
                 {ALONE}=1 to run as one process",
                environment.library()
            );
            return Err(Error::InvalidArgument(message));
        }
        Ok(Ranks { world: Some(Box::new(world)), environment: Some(environment) })
    }

    #[cfg(not(feature = "mpi"))]
    fn start(count: usize) -> Result<Ranks> {
        let message = format!(
            "started as one of {count} ranks, but this build has no MPI: build with the feature mpi, or set \
             {ALONE}=1 to run as one process"
        );
        Err(Error::InvalidArgument(message))
    }

    /// All ranks, where there are several.
    pub fn several(&self) -> Option<&dyn Transport> {
        self.world.as_deref()
    }

    /// The data on `ranks` that a benchmark needs.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn world<'a>(&self, ranks: &'a dyn Transport) -> Result<BenchRanks<'a>> {
        Ok(BenchRanks {
            ranks,
            #[cfg(feature = "scalapack")]
            mpi: self.environment.as_ref().map(|environment| environment.world()).transpose()?,
        })
    }

    /// Whether this rank prints.
    pub fn is_root(&self) -> bool {
        self.world.as_ref().is_none_or(|world| world.rank() == ROOT)
    }

    /// Refuses ranks that were started with different arguments: they would not make the same calls. Collective.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] on all ranks.
    pub fn compare(&self, arguments: &[OsString]) -> Result<()> {
        let Some(world) = &self.world else { return Ok(()) };
        // Each behind its length, so that no two lists run together.
        let mut hash = Xxh3::new();
        for argument in arguments.iter().map(|argument| argument.as_encoded_bytes()) {
            hash.update(&(argument.len() as u64).to_le_bytes());
            hash.update(argument);
        }
        let hash = hash.digest();
        let mut extremes = [hash, !hash];
        world.all_reduce(Reduction::Max, &mut extremes)?;
        if extremes[0] == !extremes[1] {
            return Ok(());
        }
        Err(Error::InvalidArgument(
            "the ranks were started with different arguments: all ranks of a run need the same arguments".into(),
        ))
    }

    /// Agrees on how all ranks end: with the exit code of the root, or with the first error, which `say` prints.
    ///
    /// No rank leaves before the root has printed: a launcher ends all ranks as soon as one of them fails.
    pub fn finish(self, outcome: Result<u8>, say: impl FnOnce(&Error)) -> u8 {
        let Some(world) = &self.world else { return code(&outcome, say) };
        let (own, outcome) = match outcome {
            Ok(code) => (code, Ok(())),
            Err(error) => (0, Err(error)),
        };
        let mut codes = [u64::from(own)];
        let ended = agree(&**world, outcome).and_then(|()| world.broadcast(ROOT, &mut codes));
        let broken = matches!(ended, Err(Error::Transport(_)));
        let code = code(&ended.map(|()| codes[0] as u8), say);
        if broken || barrier(&**world).is_err() {
            world.abort(code.max(1)); // nothing that takes all ranks would end
        }
        #[cfg(feature = "mpi")]
        if let Some(environment) = self.environment {
            drop(self.world);
            let _ = environment.finish(); // the work is done, and nobody could do anything about it
        }
        code
    }
}

fn code(outcome: &Result<u8>, say: impl FnOnce(&Error)) -> u8 {
    match outcome {
        Ok(code) => *code,
        Err(error) => {
            say(error);
            error.exit_code()
        }
    }
}
