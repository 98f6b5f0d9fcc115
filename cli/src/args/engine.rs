//! Options of the engine and of precision, which most commands share.

use super::values::{Kernel, device, kernel, precision, threads};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::ops::Deref;
use sunzi::Result;
use sunzi::advanced::device::DeviceName;
use sunzi_session::engine::{Engine, check_reach};
use sunzi_session::units::parse_size;

/// Choices of the engine as typed.
#[derive(Args, Debug)]
#[command(next_help_heading = "Engine")]
struct Typed {
    /// Worker threads [default: all processors].
    #[arg(long, value_name = "T", value_parser = threads)]
    threads: Option<usize>,
    /// Memory limit for the whole process, such as 2G [default: none].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
    /// Kernel of the computation: auto, or a name listed by `sunzi info`.
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = kernel)]
    kernel: Kernel,
    /// Devices for products and factorisations, separated by commas: numbers of CUDA devices, `all` CUDA devices,
    /// `soft` or `soft:SIZE` (a software device in main memory), `host` (the CPU as one more device) [default: none].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = device)]
    device: Vec<DeviceName>,
    /// Memory limit for each device, such as 5000M [default: its whole memory].
    #[arg(long, value_name = "SIZE", requires = "device", value_parser = parse_size)]
    device_memory: Option<u64>,
}

/// The engine that a command line requests. The help of a command on the CPU does not show the options of devices;
/// if they are given, the error names them.
#[derive(Clone, Debug)]
pub struct EngineArgs<const SHOWS_DEVICES: bool = true>(Engine);

/// The engine of a command that runs on the CPU only.
pub type CpuEngineArgs = EngineArgs<false>;

impl<const SHOWS_DEVICES: bool> Deref for EngineArgs<SHOWS_DEVICES> {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0
    }
}

impl<const SHOWS_DEVICES: bool> FromArgMatches for EngineArgs<SHOWS_DEVICES> {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let Typed { threads, memory, kernel, device, device_memory } = Typed::from_arg_matches(matches)?;
        Ok(EngineArgs(Engine {
            threads,
            memory_bytes: memory,
            kernel: kernel.0,
            devices: device,
            device_memory_bytes: device_memory,
        }))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const SHOWS_DEVICES: bool> Args for EngineArgs<SHOWS_DEVICES> {
    fn augment_args(command: Command) -> Command {
        let command = Typed::augment_args(command);
        if SHOWS_DEVICES { command } else { hidden(command, &["device", "device_memory"]) }
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The command with arguments that its help does not show.
pub fn hidden(command: Command, names: &[&'static str]) -> Command {
    names.iter().fold(command, |command, &name| command.mut_arg(name, |arg| arg.hide(true)))
}

/// Advice where a precision is required.
pub const GIVE_BITS: &str = "give --precision";

/// The same where the program can find the precision.
pub const GIVE_BITS_OR_DIGITS: &str = "give --precision, or --digits with the number of correct digits that you need";

/// Precision of a result and of its input.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Precision")]
pub struct Precision {
    /// Bits of every significand, from 2 to the kernel's maximum (at least 5000, shown by `sunzi info`) [default: as
    /// stated in the first input file].
    #[arg(long = "precision", short = 'p', value_name = "B", value_parser = precision)]
    pub bits: Option<u32>,
    /// Bits to which decimal input is rounded [default: the precision].
    #[arg(long = "input-precision", value_name = "B", value_parser = precision)]
    pub input_bits: Option<u32>,
    /// Advice for a user who gives no precision for a file that states none.
    #[arg(skip = GIVE_BITS)]
    pub advice: &'static str,
}

impl Precision {
    /// Returns an error for a precision that the kernel does not support, before any file is read.
    ///
    /// # Errors
    /// [`sunzi::Error::Precision`].
    pub fn check(&self, engine: &Engine) -> Result<()> {
        self.bits.map_or(Ok(()), |bits| check_reach(bits, engine.kernel))
    }
}
