//! SDPB's `iterations.json`, line by line during a run.

use super::aside::{KEPT_COPIES, failed, names, number_of};
use super::decimal;
use crate::iterate::Iteration;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use sunzi::{Error, Result};

/// The name of the file in its folder.
const FILE: &str = "iterations.json";

/// The end of the list, which the next line overwrites.
const END: &str = "\n]\n";

/// The list of all iterations with SDPB's keys, and `precision`.
///
/// The file is a complete list after every iteration, since each iteration replaces the end of the file by one write: a
/// killed process loses nothing. A new run renames the list of an earlier run, as SDPB does.
///
/// Cost: a write of some hundred bytes and the digits of twelve numbers for each iteration, for any number of
/// iterations; lines that could not be written yet stay in memory. Source: SDPB,
/// `src/sdp_solve/SDP_Solver/run/print_iteration.cxx`; docs/decisions/079-ends-as-users-know-them.md.
pub struct IterationsFile {
    path: PathBuf,
    file: File,
    /// Bytes of the list without the closing bracket.
    length: u64,
    /// Lines that could not be written yet.
    waiting: String,
    count: u64,
}

impl IterationsFile {
    /// Creates the list in `folder`. An existing file is renamed to `iterations.0.json`, or to the next free number,
    /// and `c_minus_By` to `c_minus_By.0`, in the same folder; the last ten are kept.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn begin(folder: &Path) -> Result<IterationsFile> {
        let path = folder.join(FILE);
        let inner = folder.join("c_minus_By");
        if path.exists() || inner.exists() {
            let copies = copies(folder)?;
            let number = copies.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
            let pairs = [(&inner, format!("c_minus_By.{number}")), (&path, format!("iterations.{number}.json"))];
            for (from, name) in pairs.into_iter().filter(|(from, _)| from.exists()) {
                failed(from, "rename", std::fs::rename(from, folder.join(name)))?;
            }
            for (_, name) in copies.into_iter().filter(|(copy, _)| copy + KEPT_COPIES <= number) {
                let old = folder.join(name);
                let removed = if old.is_dir() { std::fs::remove_dir_all(&old) } else { std::fs::remove_file(&old) };
                failed(&old, "remove", removed)?;
            }
        }
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
        let mut file = failed(&path, "create", file)?;
        let begun = failed(&path, "write", file.write_all(format!("[{END}").as_bytes()));
        // Where a disk is full, no list is better than half of one.
        begun.inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        Ok(IterationsFile { path, file, length: 1, waiting: String::new(), count: 0 })
    }

    /// Adds an iteration. A line that could not be written because the disk was full is written with the next line.
    pub fn push(&mut self, iteration: &Iteration) {
        let comma = if self.count == 0 { "" } else { "," };
        self.waiting.push_str(&format!("{comma}\n{}", line(iteration)));
        self.count += 1;
        let _ = self.write();
    }

    fn write(&mut self) -> std::io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let length = self.waiting.len();
        self.waiting.push_str(END);
        let written = self.file.write_all_at(self.waiting.as_bytes(), self.length);
        self.waiting.truncate(length);
        if written.is_err() {
            // The list of before, whole again, where its end still finds room: it takes the place of the old end.
            self.file.set_len(self.length)?;
            self.file.write_all_at(END.as_bytes(), self.length)?;
        }
        written?;
        self.length += length as u64;
        self.waiting.clear();
        Ok(())
    }

    /// Ends the list.
    ///
    /// # Errors
    /// [`Error::Io`] if a file could not be written.
    pub fn finish(mut self) -> Result<()> {
        let written = self.write().and_then(|()| self.file.sync_all());
        written.map_err(|source| Error::Io { path: self.path, action: "write", source })
    }
}

/// The numbered files of earlier runs.
fn copies(folder: &Path) -> Result<Vec<(u64, String)>> {
    let number = |name: &str| number_of(name, "iterations.", ".json").or_else(|| number_of(name, "c_minus_By.", ""));
    Ok(names(folder)?.into_iter().filter_map(|name| Some((number(&name)?, name))).collect())
}

fn line(iteration: &Iteration) -> String {
    let Iteration { number, seconds, mu, off_centre, quality, primal_step, dual_step, beta, .. } = iteration;
    let Iteration { precision_bits, conditions, .. } = iteration;
    let numbers = [
        Some(("mu", mu)),
        Some(("P-obj", &quality.primal_objective)),
        Some(("D-obj", &quality.dual_objective)),
        Some(("gap", &quality.gap)),
        Some(("P-err", &quality.primal_matrix_error)),
        Some(("p-err", &quality.primal_free_error)),
        Some(("D-err", &quality.dual_error)),
        off_centre.as_ref().map(|size| ("R-err", size)),
        Some(("P-step", primal_step)),
        Some(("D-step", dual_step)),
        Some(("beta", beta)),
        Some(("Q_cond_number", &conditions.free)),
        Some(("max_block_cond_number", &conditions.block)),
    ];
    let numbers = numbers.into_iter().flatten();
    let numbers =
        numbers.map(|(key, value)| format!("\"{key}\": \"{}\"", decimal(value))).collect::<Vec<_>>().join(", ");
    let (total, own) = seconds;
    format!(
        "{{ \"iteration\": {number}, \"total_time\": {total:.3}, \"iter_time\": {own:.3}, \"precision\": \
         {precision_bits}, {numbers}, \"block_name\": \"{}\" }}",
        conditions.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_run_left_moves_to_the_next_free_number() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let text = |name: &str| std::fs::read_to_string(at(name)).unwrap();
        // A run that was killed between the two moves has left one of them.
        std::fs::create_dir(at("c_minus_By")).unwrap();
        IterationsFile::begin(folder.path()).unwrap().finish().unwrap();
        assert!(at("c_minus_By.0").is_dir() && !at("c_minus_By").exists() && !at("iterations.0.json").exists());
        assert_eq!(text("iterations.json"), "[\n]\n");
        std::fs::create_dir(at("c_minus_By")).unwrap();
        std::fs::write(at("iterations.json"), "earlier").unwrap();
        IterationsFile::begin(folder.path()).unwrap();
        assert!(at("c_minus_By.1").is_dir() && !at("c_minus_By").exists());
        assert_eq!((text("iterations.1.json"), text("iterations.json")), ("earlier".into(), "[\n]\n".into()));
    }

    #[test]
    fn the_last_ten_runs_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..14 {
            IterationsFile::begin(folder.path()).unwrap().finish().unwrap();
            std::fs::create_dir(folder.path().join("c_minus_By")).unwrap();
        }
        std::fs::write(folder.path().join("iterations.old.json"), "").unwrap();
        let numbers = copies(folder.path()).unwrap();
        let wanted = (3..13).flat_map(|number| [number, number]).collect::<Vec<u64>>();
        let mut found = numbers.iter().map(|(number, _)| *number).collect::<Vec<_>>();
        found.sort_unstable();
        assert_eq!(found, wanted);
        // In addition to them the list, the file next to it, and one that is no copy.
        assert_eq!(names(folder.path()).unwrap().len(), 20 + 3);
    }
}
