//! The output of the program: results on standard output, errors and remarks on standard error, each of one line.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use sunzi::{Error, IndexBase, Result};
use sunzi_session::memory::refused_process_words;

/// Whether this process may print: of several ranks only the root.
static SPEAKS: AtomicBool = AtomicBool::new(true);

/// Whether standard output carries the bytes of a matrix or a report.
static DATA_ON_STDOUT: AtomicBool = AtomicBool::new(false);

/// Keeps words for people off standard output, onto which a matrix or a report is written.
pub fn keep_words_off_stdout(keep: bool) {
    DATA_ON_STDOUT.store(keep, Ordering::Relaxed);
}

/// Lets this process print errors and remarks, or forbids it.
pub fn set_speaking(speaks: bool) {
    SPEAKS.store(speaks, Ordering::Relaxed);
}

/// Writes text for people to standard output, or to standard error where data go there. It is not an error if the
/// reader of the output has ended.
///
/// # Errors
/// [`Error::Io`], such as on a full disk.
pub fn print(text: &str) -> Result<()> {
    if DATA_ON_STDOUT.load(Ordering::Relaxed) {
        let _ = write!(std::io::stderr(), "{text}");
        return Ok(());
    }
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output. It is not an error if the reader of the output has ended.
///
/// # Errors
/// [`Error::Io`], such as on a full disk.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::Io { path: "standard output".into(), action: "write", source })
        }
        _ => Ok(()),
    }
}

/// Writes the one line of an error; it is lost where standard error is closed.
pub fn print_error(message: &str) {
    if !SPEAKS.load(Ordering::Relaxed) {
        return;
    }
    let _ = writeln!(std::io::stderr(), "sunzi: error: {}", one_line(message));
}

/// Writes the line of an error of the library, its rows and columns counted from 1 as all that the program prints.
pub fn print_refusal(error: &Error) {
    let text = error.text();
    let text = text.in_base(IndexBase::One);
    let processes = matches!(error, Error::MemoryLimit { .. }).then(refused_process_words).flatten();
    print_error(&processes.map_or(text.to_string(), |words| format!("{text}, {words}")));
}

/// Writes a remark, which is not an error.
pub fn print_note(message: &str) {
    if !SPEAKS.load(Ordering::Relaxed) {
        return;
    }
    let _ = writeln!(std::io::stderr(), "sunzi: {}", one_line(message));
}

/// The lines of a text as one line, in which control characters (for example of the name of a file) are escaped, since
/// a terminal would interpret them.
pub fn one_line(text: &str) -> String {
    let line = text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let mut shown = String::with_capacity(line.len());
    for letter in line.chars() {
        match letter {
            letter if letter.is_control() => shown.extend(letter.escape_default()),
            letter => shown.push(letter),
        }
    }
    shown
}
