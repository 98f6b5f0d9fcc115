//! `sunzi completions` and `sunzi man`: files for shells and manual readers, made from the definition of the arguments.

use crate::args::definition;
use crate::output::print_bytes;
use clap_complete::Shell;
use sunzi::{Error, Result};

/// Prints the script that completes words for `shell`.
///
/// # Errors
/// [`Error::Io`].
pub fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "sunzi", &mut script);
    print_bytes(&script)
}

/// Prints the page of the command that `words` name, or of the program.
///
/// # Errors
/// [`Error::InvalidArgument`] for a command that there is not, [`Error::Io`].
pub fn page(words: &[String]) -> Result<()> {
    let mut command = &definition();
    for word in words {
        let unknown = || Error::InvalidArgument(format!("there is no command '{word}'"));
        command = command.find_subcommand(word).ok_or_else(unknown)?;
    }
    let mut page = Vec::new();
    let fail = |source| Error::Io { path: "standard output".into(), action: "write", source };
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(fail)?;
    print_bytes(&page)
}
