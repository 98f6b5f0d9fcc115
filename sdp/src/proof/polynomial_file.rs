//! Polynomial programs as SDPB's pmp2sdp takes them, in files of two forms and lists of them, exactly.
//!
//! `max a . z` over the z with `n . z = 1` and `sum_i z_i P_i(x) >= 0` for all `x >= 0`: the z with the first of the
//! largest `n_l` follows from the others, which are y. Independent of: the solver's reader.

use super::files::{Files, refused};
use super::limits::MAXIMUM_FILES;
use super::polynomial_parts::ProofParts;
use super::program::Program;
use super::{polynomial_json, polynomial_text};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use sunzi::{Error, Result};

/// Lists inside of lists at most.
const DEEPEST_LIST: usize = 16;

/// Whether the name is that of a polynomial program, or of a list of files.
pub fn is_named(path: &Path) -> bool {
    matches!(extension(path), Some("json" | "m" | "nsv"))
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|name| name.to_str())
}

/// Reads the program at `path`.
///
/// # Errors
/// The errors of [`super::read_exact`].
pub fn read(path: &Path, files: &mut Files) -> Result<Program> {
    let mut parts = ProofParts::default();
    add_file(path, files, &mut HashSet::new(), 0, &mut parts)?;
    parts.program(&files.room).map_err(|message| refused(path, message))
}

fn add_file(
    path: &Path,
    files: &mut Files,
    seen: &mut HashSet<PathBuf>,
    depth: usize,
    parts: &mut ProofParts,
) -> Result<()> {
    let refused = |message: String| refused(path, message);
    // Lists that name each other, or one file many times, would multiply the bytes to read.
    let whole = std::fs::canonicalize(path);
    let whole = whole.map_err(|source| Error::Io { path: path.to_path_buf(), action: "open", source })?;
    if !seen.insert(whole) {
        return Err(refused("the file is named twice, or a list names itself".into()));
    }
    if seen.len() > MAXIMUM_FILES {
        return Err(refused(format!("there are more than {MAXIMUM_FILES} files")));
    }
    let read = match extension(path) {
        Some("json") => polynomial_json::read,
        Some("m") => polynomial_text::read,
        Some("nsv") if depth < DEEPEST_LIST => {
            let text = String::from_utf8(files.read(path)?).map_err(|_| refused("it is not text".into()))?;
            let folder = path.parent().unwrap_or(Path::new(""));
            let names = text.split('\0').map(|name| name.trim_end_matches(['\n', '\r']));
            let mut names = names.filter(|name| !name.is_empty()).peekable();
            if names.peek().is_none() {
                return Err(refused("the list names no files".into()));
            }
            return names.try_for_each(|name| match name.contains(['\n', '\r']) {
                true => Err(refused("names are separated by a line feed instead of a zero byte".into())),
                false => add_file(&folder.join(name), files, seen, depth + 1, parts),
            });
        }
        Some("nsv") => return Err(refused(format!("lists of files are nested more than {DEEPEST_LIST} deep"))),
        _ => return Err(refused("a polynomial program is a file .json or .m, or a list of such files in .nsv".into())),
    };
    let bytes = files.read(path)?;
    read(&bytes, &files.room).and_then(|found| parts.add(found)).map_err(refused)
}
