//! What `sunzi bench cholesky --element double` is to time.

use super::{Command, optional, size};
use crate::args::{RawBench, RawDouble};
use sunzi::error::{Error, Result};
use sunzi::runtime::{Eviction, Policy};
use sunzi_lab::bench::BenchDouble;
use sunzi_lab::devices::DeviceChoice;
use sunzi_lab::engine::Engine;

impl RawDouble {
    /// Whether doubles are meant.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for other kinds, and for options that big floats do not have.
    pub(super) fn is_chosen(&self, operation: &str) -> Result<bool> {
        let refused = |message: String| Err(Error::InvalidArgument(message));
        match self.element.as_str() {
            "double" if operation == "cholesky" => Ok(true),
            "double" => refused(format!("--element double belongs to cholesky, not to {operation}")),
            "big" => {
                let options = [("--policy", &self.policy), ("--victim", &self.victim)];
                match options.iter().find(|(_, value)| value.is_some()) {
                    Some((name, _)) => refused(format!("{name} belongs to cholesky with --element double")),
                    None => Ok(false),
                }
            }
            other => refused(format!("unknown element '{other}': choose big or double")),
        }
    }
}

impl RawBench {
    pub(super) fn resolve_double(self, tile_rows: Option<usize>, runs: usize, mut engine: Engine) -> Result<Command> {
        self.refuse_extras("--element double")?;
        if self.cols.is_some() {
            return Err(Error::InvalidArgument("--cols does not belong to --element double".into()));
        }
        let RawDouble { policy, victim, .. } = self.double;
        let devices_given = !engine.devices.is_empty();
        if !devices_given {
            engine.devices = DeviceChoice::list("soft")?;
        }
        if let Some(kernel) = engine.kernel {
            let message = format!("--kernel {kernel}: products of residues have kernels, --element double has none");
            return Err(Error::InvalidArgument(message));
        }
        if tile_rows == Some(0) {
            return Err(Error::InvalidArgument("--tile: 0 rows: choose 1 or more".into()));
        }
        Ok(Command::BenchDouble(BenchDouble {
            rows: optional(self.rows, |text| size("--rows", text))?.unwrap_or(2000),
            tile_rows,
            policy: optional(policy, Policy::by_name)?,
            devices_given,
            victim: optional(victim, Eviction::by_name)?,
            runs,
            engine,
        }))
    }
}
