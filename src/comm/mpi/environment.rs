//! The lifetime of MPI in this process: from initialising to finalising, where this library does both.

use crate::comm::mpi::{MpiRank, gate, result, window};
use crate::error::{Error, Result};

/// Initialised MPI. It finalises MPI at the end only if [`Environment::start`] initialised it.
pub struct Environment {
    owned: bool,
}

impl Environment {
    /// Initialises MPI, or finds it initialised by the host program. Collective over all processes of the job if it
    /// initialises MPI.
    ///
    /// # Errors
    /// [`Error::Transport`] if MPI has been finalised already (it cannot be initialised twice), or if its
    /// initialisation fails.
    pub fn start() -> Result<Environment> {
        let _alone = gate::shut();
        if result::is_finalised() {
            return Err(Error::Transport("MPI has been finalised already".into()));
        }
        let owned = !result::is_initialised();
        if owned {
            result::initialise()?;
        }
        Ok(Environment { owned })
    }

    /// All processes of the job as a group. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn world(&self) -> Result<MpiRank> {
        MpiRank::world()
    }

    /// Name and version of the MPI library, as one line.
    pub fn library(&self) -> String {
        result::library()
    }

    /// Finalises MPI if [`Environment::start`] initialised it. Collective. Calls on remaining ranks return errors
    /// afterwards.
    ///
    /// A rank that fails while others continue must call [`crate::comm::Transport::abort`] instead, since
    /// this call waits for all ranks.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let _alone = gate::shut();
        let open = window::live();
        if self.owned && open > 0 {
            // The memory of a window would be freed while it is in use.
            return Err(Error::Transport(format!("MPI cannot end while {open} of its windows are in use")));
        }
        if std::mem::take(&mut self.owned) && !result::is_finalised() {
            result::finalise()?;
        }
        Ok(())
    }
}

impl Drop for Environment {
    /// Finalises as [`Environment::finish`] does, but not while the thread panics: the other ranks may wait elsewhere,
    /// and a process that ends without finalising makes the launcher end them.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.end();
        }
    }
}
