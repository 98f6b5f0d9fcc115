//! The program `sunzi`: arguments to configuration to command, and one line for whatever goes wrong.
//!
//! Promise: an error is one line on standard error that starts with `sunzi: error: `, with the exit code of
//! [`Error::exit_code`]; a result file is complete or absent. Even a bug ends that way, with code 70.
//! Does not know: how anything is computed.

mod args;
mod commands;
mod config;
mod devices;
mod machine;
mod memory;
mod number;
mod progress;
mod ranks;
mod report;
mod signals;
mod units;

use crate::comm::agreed;
use crate::error::{Error, Result};
use args::Arguments;
use clap::Parser;
use clap::error::ErrorKind;
use ranks::Ranks;
use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a bug in the program itself (`EX_SOFTWARE`).
const BUG: u8 = 70;

/// Whether this process may print: of several ranks only the root.
static SPEAKS: AtomicBool = AtomicBool::new(true);

/// Runs the program on `arguments` (the first is its name) and returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    std::panic::set_hook(Box::new(|info| {
        SPEAKS.store(true, Ordering::Relaxed); // a bug of any rank is worth a line
        let place = info.location().map_or(String::new(), |at| format!(" at {}:{}", at.file(), at.line()));
        print_error(&format!("bug in sunzi, please report it: {}{place}", panic_text(info.payload())));
    }));
    let arguments = arguments.into_iter().collect::<Vec<_>>();
    catch_unwind(AssertUnwindSafe(|| run_command(arguments))).unwrap_or(BUG)
}

/// Checks a command line without carrying it out: for tests and fuzzing. The text of a refusal is one line.
///
/// # Errors
/// The refusal that [`run`] would print, where there is one; a request for help counts as accepted.
pub fn check_arguments(arguments: impl IntoIterator<Item = OsString>) -> std::result::Result<(), String> {
    match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments.resolve().map(drop).map_err(|error| one_line(&error.to_string())),
        Err(error) if is_help(&error) => Ok(()),
        Err(error) => Err(usage_text(&error)),
    }
}

fn run_command(arguments: Vec<OsString>) -> u8 {
    let typed = format!("{:?}", arguments.get(1..));
    let arguments = Arguments::try_parse_from(arguments);
    if arguments.as_ref().is_ok_and(Arguments::is_bench) {
        machine::restart_with_strong_blas(); // before MPI, which survives no restart
    }
    let ranks = match Ranks::find() {
        Ok(ranks) => ranks,
        Err(error) => {
            print_error(&error.to_string());
            return error.exit_code();
        }
    };
    SPEAKS.store(ranks.is_root(), Ordering::Relaxed);
    let outcome = ranks.compare(&typed).and_then(|()| match arguments {
        Ok(arguments) => {
            signals::install();
            let resolved = match ranks.several() {
                Some(world) => agreed(world, arguments.resolve()),
                None => arguments.resolve(),
            };
            resolved.and_then(|(global, command)| run_resolved(global, command, &ranks))
        }
        Err(error) if is_help(&error) => {
            if ranks.is_root() {
                // A closed pipe (`sunzi --help | head -1`) is no error.
                let _ = error.print();
            }
            Ok(0)
        }
        Err(error) => Err(Error::InvalidArgument(usage_text(&error))),
    });
    ranks.finish(outcome, |error| {
        print_error(&error.to_string());
        // The launcher may send signals as soon as another rank has left.
        SPEAKS.store(false, Ordering::Relaxed);
    })
}

/// Runs a command; a bug on one of several ranks ends them all.
fn run_resolved(global: config::Global, command: config::Command, ranks: &Ranks) -> Result<u8> {
    let Some(world) = ranks.several() else { return commands::run(global, command, ranks) };
    catch_unwind(AssertUnwindSafe(|| commands::run(global, command, ranks))).unwrap_or_else(|_| world.abort(BUG))
}

/// Writes text to standard output. A reader that went away is no error.
///
/// # Errors
/// [`Error::Io`], such as on a full disk.
fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::Io { path: "standard output".into(), action: "write", source })
        }
        _ => Ok(()),
    }
}

/// Writes the one line of an error; where standard error is closed there is nobody to tell.
fn print_error(message: &str) {
    if !SPEAKS.load(Ordering::Relaxed) {
        return;
    }
    let _ = writeln!(std::io::stderr(), "sunzi: error: {}", one_line(message));
}

/// Writes a remark that is no error.
fn print_note(message: &str) {
    if !SPEAKS.load(Ordering::Relaxed) {
        return;
    }
    let _ = writeln!(std::io::stderr(), "sunzi: {}", one_line(message));
}

fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn is_help(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// The first paragraph of a message that goes on with usage and hints.
fn usage_text(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let paragraph = text.lines().take_while(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n");
    one_line(paragraph.strip_prefix("error: ").unwrap_or(&paragraph))
}

fn panic_text(payload: &dyn std::any::Any) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown reason")
}
