//! `sunzi info FILE...`: the contents of files, without computing with them.

use crate::files::{header, read};
use crate::session::Session;
use serde::Serialize;
use std::path::{Path, PathBuf};
use sunzi::Result;
use sunzi::io::ReadOptions;
use sunzi_session::session::Session as _;
use sunzi_session::units::counted;

/// One file.
#[derive(Serialize)]
struct Described {
    file: String,
    /// `None` for a stream, whose format its bytes show.
    format: Option<&'static str>,
    rows: usize,
    cols: usize,
    /// Whether it is stored as symmetric.
    symmetric: bool,
    stored_entries: u64,
    /// The precision that the file states.
    precision_bits: Option<u32>,
    /// Of the longest number that has to be rounded, where the file has no header.
    longest_digits: Option<u32>,
}

pub fn run(session: &mut Session, files: &[PathBuf]) -> Result<()> {
    let described = files.iter().map(|path| describe(path)).collect::<Result<Vec<_>>>()?;
    session.finish_report(&described)?;
    let lines = described.iter().map(line).collect::<Vec<_>>();
    session.say(&lines.join("\n"))
}

fn describe(path: &Path) -> Result<Described> {
    let file = path.display().to_string();
    if let Some(info) = header(path)? {
        return Ok(Described {
            file,
            format: Some(info.format.name()),
            rows: info.rows,
            cols: info.cols,
            symmetric: info.symmetric,
            stored_entries: info.stored_entries,
            precision_bits: info.precision_bits_comment,
            longest_digits: info.longest_digits,
        });
    }
    // Few bits are enough for a shape.
    let loaded = read(path, &ReadOptions::new(2))?;
    let (rows, cols) = (loaded.matrix.rows(), loaded.matrix.cols());
    let stored_entries = if loaded.symmetric { rows as u64 * (rows as u64 + 1) / 2 } else { rows as u64 * cols as u64 };
    Ok(Described {
        file,
        format: None,
        rows,
        cols,
        symmetric: loaded.symmetric,
        stored_entries,
        precision_bits: loaded.precision_bits_comment,
        longest_digits: None,
    })
}

fn line(found: &Described) -> String {
    let format = found.format.map_or(String::new(), |format| format!("{format}, "));
    let form = if found.symmetric { "symmetric" } else { "general" };
    let precision = match (found.precision_bits, found.longest_digits) {
        (Some(bits), _) => format!("{bits} bits stated"),
        (None, Some(digits)) => format!("no precision stated, numbers of up to {}", counted(digits as usize, "digit")),
        (None, None) => "no precision stated".into(),
    };
    let Described { file, rows, cols, .. } = found;
    format!("{file}: {rows} x {cols}, {format}{form}, {} entries stored, {precision}", found.stored_entries)
}
