//! The program `sunzi`: arguments to configuration to command, and one line for each error.
//!
//! Promise: an error is one line on standard error that starts with `sunzi: error: `, with the exit code of
//! [`Error::exit_code`]; a result file is complete or absent. Even a bug ends that way, with code 70.
//! Independent of: how anything is computed.

mod args;
mod commands;
mod files;
mod input;
mod number;
mod operands;
mod output;
mod progress;
mod rank_memory;
mod ranks;
mod session;
mod signals;
mod triangles;

/// The page `docs/OPTIONS.md` of the book.
pub use commands::options_page;

use args::{Arguments, Command, Global};
use clap::error::ErrorKind;
use files::FileChoices;
use output::{one_line, print_error, print_note, print_refusal};
use ranks::Ranks;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use sunzi::comm::agreed;
use sunzi::{Error, Result};
use sunzi_lab::machine;

/// Exit code of a bug in the program itself (`EX_SOFTWARE`).
const BUG: u8 = 70;

/// Runs the program on `arguments` (the first is its name) and returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    std::panic::set_hook(Box::new(|info| {
        output::set_speaking(true); // a bug of any rank is worth a line
        let place = info.location().map_or(String::new(), |at| format!(" at {}:{}", at.file(), at.line()));
        match refusal(info.payload()) {
            Some(error) => print_refusal(error),
            None => print_error(&format!("bug in sunzi, please report it: {}{place}", panic_text(info.payload()))),
        }
    }));
    let arguments = arguments.into_iter().collect::<Vec<_>>();
    catch_unwind(AssertUnwindSafe(|| run_command(arguments))).unwrap_or_else(|panic| panic_code(&*panic))
}

/// Checks a command line without carrying it out: for tests and fuzzing. The text of a refusal is one line.
///
/// # Errors
/// The refusal that [`run`] would print, where there is one; a request for help counts as accepted.
pub fn check_arguments(arguments: impl IntoIterator<Item = OsString>) -> std::result::Result<(), String> {
    match args::parse(arguments) {
        Ok(arguments) => arguments.check().map_err(|error| one_line(&error.to_string())),
        Err(error) if is_help(&error) => Ok(()),
        Err(error) => Err(usage_text(&error)),
    }
}

fn run_command(arguments: Vec<OsString>) -> u8 {
    let typed = arguments.get(1..).unwrap_or_default().to_vec();
    let arguments = args::parse(arguments);
    if arguments.as_ref().is_ok_and(|arguments| matches!(arguments.command, Command::Bench(_))) {
        machine::restart_with_right_blas(print_note); // before MPI, which survives no restart
    }
    let ranks = match Ranks::find() {
        Ok(ranks) => ranks,
        Err(error) => {
            print_refusal(&error);
            return error.exit_code();
        }
    };
    output::set_speaking(ranks.is_root());
    let outcome = ranks.compare(&typed).and_then(|()| match arguments {
        Ok(arguments) => {
            signals::install();
            if ranks.several().is_some() {
                signals::work_together();
            }
            let check = |rank| arguments.check().and_then(|()| arguments.paths.check(rank));
            let checked = match ranks.several() {
                Some(world) => agreed(world, check(world.rank())),
                None => check(0),
            };
            output::keep_words_off_stdout(arguments.paths.write_to_stdout());
            if checked.is_ok() {
                arguments.warning().into_iter().for_each(|warning| print_note(&warning));
            }
            let Arguments { command, global, memory_bytes, .. } = arguments;
            let (input, output, header) = (global.input_format, global.output_format, global.table_header());
            files::choose(FileChoices { input, output, header, memory_bytes });
            checked.and_then(|()| run_checked(global, command, &ranks))
        }
        Err(error) if is_help(&error) => {
            if ranks.is_root() {
                // A closed pipe (`sunzi --help | head -1`) is no error.
                let _ = error.print();
            }
            // Without a command, help is shown, but nothing was done.
            Ok(error.exit_code() as u8)
        }
        Err(error) => Err(Error::InvalidArgument(usage_text(&error))),
    });
    ranks.finish(outcome, |error| {
        print_refusal(error);
        // The launcher may send signals as soon as another rank has left.
        output::set_speaking(false);
    })
}

/// Runs a command; a bug on one of several ranks ends them all.
fn run_checked(global: Global, command: Command, ranks: &Ranks) -> Result<u8> {
    let Some(world) = ranks.several() else { return commands::run(global, command, ranks) };
    catch_unwind(AssertUnwindSafe(|| commands::run(global, command, ranks)))
        .unwrap_or_else(|panic| world.abort(panic_code(&*panic)))
}

fn is_help(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// The first paragraph of a message, and its suggestion of a word that may have been meant, or the usage where words
/// are missing.
fn usage_text(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let paragraph = text.lines().take_while(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n");
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: ")).filter(|tip| tip.contains("similar"));
    let said = one_line(paragraph.strip_prefix("error: ").unwrap_or(&paragraph));
    let is_missing = error.kind() == ErrorKind::MissingRequiredArgument;
    let usage = text.lines().find_map(|line| line.strip_prefix("Usage: ")).filter(|_| is_missing);
    match (tip, usage) {
        (Some(tip), _) => format!("{said}; {}", one_line(tip)),
        (None, Some(usage)) => format!("{said}; usage: {}", one_line(usage)),
        (None, None) => said,
    }
}

/// The exit code after a panic.
fn panic_code(payload: &dyn std::any::Any) -> u8 {
    refusal(payload).map_or(BUG, Error::exit_code)
}

/// The refusal, where code that cannot return errors panicked because of it: the library marks it by the type of the
/// panic's payload. A text is no refusal, whatever its words are.
fn refusal(payload: &dyn std::any::Any) -> Option<&Error> {
    payload.downcast_ref()
}

fn panic_text(payload: &dyn std::any::Any) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown reason")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_refusal_by_its_type_and_not_by_its_words() {
        let code = |panic: fn()| panic_code(&*catch_unwind(panic).unwrap_err());
        let error = Error::OutOfMemory { bytes: 5 };
        assert_eq!(code(|| std::panic::panic_any(Error::OutOfMemory { bytes: 5 })), error.exit_code());
        assert_eq!(code(|| panic!("a matrix: OutOfMemory {{ bytes: 5 }}")), BUG);
        assert_eq!(code(|| panic!("failed to spawn thread: no room")), BUG);
        assert_eq!(code(|| std::panic::panic_any(5)), BUG);
    }
}
