//! Files of earlier runs in the folder of results: files that a run does not write anew are moved away, and of numbered
//! copies only the last ones stay.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use sunzi::{Error, Result};

/// The folder, next to the results, of files that the last run did not write anew.
const EARLIER: &str = "earlier_results";

/// Copies of a file of earlier runs that are kept.
pub(super) const KEPT_COPIES: u64 = 10;

/// Files with one name; `out.txt` goes along with others.
const SINGLE: [&str; 5] = ["y.txt", "z.txt", "result.txt", "certificate", "out.txt"];

/// Files with a number in their names.
const NUMBERED: [(&str, &str); 3] = [("x_", ".txt"), ("X_matrix_", ".txt"), ("Y_matrix_", ".txt")];

pub(super) fn failed<T>(path: &Path, action: &'static str, done: std::io::Result<T>) -> Result<T> {
    done.map_err(|source| Error::Io { path: path.to_path_buf(), action, source })
}

/// The number between `front` and `behind`.
pub(super) fn number_of(name: &str, front: &str, behind: &str) -> Option<u64> {
    let digits = name.strip_prefix(front)?.strip_suffix(behind)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// The names in a folder, in order; none where there is no folder.
pub(super) fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => failed(folder, "list", entries)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        // A name that is no text is none of ours.
        found.extend(failed(folder, "list", entry)?.file_name().into_string());
    }
    found.sort_unstable();
    Ok(found)
}

fn is_result(name: &str) -> bool {
    SINGLE.contains(&name) || NUMBERED.iter().any(|(front, behind)| number_of(name, front, behind).is_some())
}

/// Moves the files of earlier runs that are not among those `written` anew into a folder next to them, in place of
/// those that an earlier run has put there: a reader finds only the results of one program.
///
/// # Errors
/// [`Error::Io`].
pub fn set_aside(folder: &Path, written: &HashSet<String>) -> Result<()> {
    let left = |name: &String| is_result(name) && !written.contains(name) && folder.join(name).is_file();
    let found = names(folder)?.into_iter().filter(left).collect::<Vec<_>>();
    if found.iter().all(|name| name == "out.txt") {
        return Ok(());
    }
    let earlier = folder.join(EARLIER);
    failed(&earlier, "create", fs::create_dir_all(&earlier))?;
    for name in names(&earlier)?.into_iter().filter(|name| is_result(name)) {
        let path = earlier.join(name);
        failed(&path, "remove", fs::remove_file(&path))?;
    }
    found.iter().try_for_each(|name| {
        let path = folder.join(name);
        failed(&path, "rename", fs::rename(&path, earlier.join(name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_results_are_known_and_others_are_not() {
        for name in ["y.txt", "x_0.txt", "X_matrix_12.txt", "Y_matrix_3.txt", "certificate"] {
            assert!(is_result(name), "{name}");
        }
        for name in ["x_.txt", "x_a.txt", "x_1.txt.bak", "x_+1.txt", "Z_matrix_1.txt", "notes.txt", "iterations.json"] {
            assert!(!is_result(name), "{name}");
        }
        assert_eq!(number_of("iterations.17.json", "iterations.", ".json"), Some(17));
        assert_eq!(number_of("iterations.json", "iterations.", ".json"), None);
    }
}
