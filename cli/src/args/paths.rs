//! The files that a command line names: no output replaces an input, or another output.

use clap::ArgMatches;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use sunzi::io::{FileFormat, Location, is_device};
use sunzi::{Error, Result};

/// The placeholder in the name of a file for the number of the rank that reads it.
pub const RANK: &str = "{rank}";

/// Parameters that are written, and how messages call them; all other files are read.
const OUTPUTS: [(&str, &str); 9] = [
    ("path", "the output"),
    ("output", "the output"),
    ("report", "the report"),
    ("trace", "the trace"),
    ("plot", "the plot"),
    ("sweep", "the plot"),
    ("lower_factor", "the factor L"),
    ("upper_factor", "the factor U"),
    ("row_order", "the order of the rows"),
];

/// Whether the parameter of this name is a file that is written.
#[cfg(test)]
pub fn is_output(name: &str) -> bool {
    OUTPUTS.iter().any(|(output, _)| *output == name)
}

/// Files read, and files written with their contents.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    inputs: Vec<PathBuf>,
    outputs: BTreeMap<&'static str, PathBuf>,
}

impl Paths {
    /// The paths of a parsed line.
    pub fn of(matches: &ArgMatches) -> Paths {
        let mut paths = Paths::default();
        paths.collect(matches);
        paths
    }

    /// Adds the output where none was named.
    pub fn write(&mut self, path: PathBuf) {
        self.outputs.insert("the output", path);
    }

    fn collect(&mut self, matches: &ArgMatches) {
        for id in matches.ids() {
            let Ok(Some(values)) = matches.try_get_many::<PathBuf>(id.as_str()) else { continue };
            match OUTPUTS.iter().find(|(name, _)| *name == id.as_str()) {
                // An option that holds for all commands is found with each word of the line.
                Some((_, what)) => self.outputs.extend(values.map(|path| (*what, path.clone()))),
                None => self.inputs.extend(values.cloned()),
            }
        }
        if let Some((_, inner)) = matches.subcommand() {
            self.collect(inner);
        }
    }

    /// Whether an output is standard output under another name.
    pub fn write_to_stdout(&self) -> bool {
        let file = |path: &Path| std::fs::metadata(path).ok().map(|data| (data.dev(), data.ino(), data.rdev()));
        let stdout = file(Path::new("/dev/stdout"));
        let is_stdout = |path: &PathBuf| is_device(path) && stdout.is_some() && file(path) == stdout;
        self.outputs.values().any(|path| path.as_os_str() == "-" || is_stdout(path))
    }

    /// Returns an error for an output whose format neither its name nor `chosen` determines.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub fn check_formats(&self, chosen: Option<FileFormat>) -> Result<()> {
        match self.outputs.get("the output") {
            Some(path) if path.as_os_str() != "-" => {
                let by_name = Location::parse(path).format.is_some();
                if by_name || chosen.is_none() { FileFormat::of(path).map(drop) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Compares the files, and not their names, as seen by the process of `rank`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with both names.
    pub fn check(&self, rank: usize) -> Result<()> {
        let from_stdin = self.inputs.iter().filter(|path| path.as_os_str() == "-");
        if from_stdin.count() > 1 {
            return Err(Error::InvalidArgument("standard input (-) can be read only once, but is given twice".into()));
        }
        let outputs = self.outputs.iter().filter_map(|(what, path)| Some((what, path, identity(path)?)));
        let outputs = outputs.collect::<Vec<_>>();
        for (at, (what, path, one)) in outputs.iter().enumerate() {
            let shown = path.display();
            if let Some((other, ..)) = outputs[..at].iter().find(|(.., other)| one == other) {
                return Err(Error::InvalidArgument(format!("{other} and {what} are the same file, {shown}")));
            }
            for input in &self.inputs {
                let input = of_rank(&Location::parse(input).file, rank);
                if identity(&input).as_ref() == Some(one) {
                    let input = input.display();
                    return Err(Error::InvalidArgument(format!("{what} {shown} would replace the input {input}")));
                }
            }
        }
        Ok(())
    }
}

/// The file of a rank, if the name depends on the rank.
pub fn of_rank(path: &Path, rank: usize) -> PathBuf {
    match path.to_str() {
        Some(name) if name.contains(RANK) => PathBuf::from(name.replace(RANK, &rank.to_string())),
        _ => path.to_path_buf(),
    }
}

/// The identity of a file, the same for all of its names.
#[derive(PartialEq, Eq)]
enum Identity {
    Known {
        device: u64,
        inode: u64,
    },
    /// The file does not exist yet: its name and an existing folder.
    Absent(PathBuf),
}

/// The identity of the file `path`. `None` for standard input or output, a pipe or a device, none of which can be
/// overwritten, and for a file in a folder that does not exist.
fn identity(path: &Path) -> Option<Identity> {
    if is_device(path) || path.as_os_str() == "-" {
        return None;
    }
    if let Ok(data) = std::fs::metadata(path) {
        return Some(Identity::Known { device: data.dev(), inode: data.ino() });
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(Identity::Absent(folder.canonicalize().ok()?.join(path.file_name()?)))
}
