//! The formats there are: their names, the endings of file names that mean them, and how their first bytes look.
//!
//! Promise: the one list of formats, for the library, the program and Python. Independent of: how any is read.

use crate::error::{Error, Result};
use crate::io::atomic::is_device;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A format of matrices in files; docs/FORMATS.md describes each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FileFormat {
    /// Matrix Market text, `.mtx`.
    MatrixMarket,
    /// The binary format, `.bin`.
    Binary,
    /// Lines of numbers with commas between them, `.csv`. When read, semicolons, tabs and blanks are also accepted as
    /// separators.
    Csv,
    /// As [`FileFormat::Csv`], but written with tabs, `.tsv`.
    Tsv,
    /// As [`FileFormat::Csv`], but written with blanks, `.txt` and `.dat`.
    Text,
    /// An array of NumPy, `.npy`.
    Npy,
    /// Nested lists in JSON, `.json`; one value of an object is selected after a colon, `block.json:B`.
    Json,
    /// Nested lists of Mathematica, `.m` and `.wl`.
    Mathematica,
    /// A semidefinite program in SDPA's sparse format, `.dat-s`, which can be read but not written; a matrix in it is
    /// selected after a colon, `theta1.dat-s:3/1` for block 1 of constraint 3.
    Sdpa,
}

/// The compression of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// gzip, `.gz`.
    Gzip,
    /// Zstandard, `.zst`.
    Zstd,
}

/// One format of the list.
struct FormatEntry {
    format: FileFormat,
    /// As `--input-format` has it.
    name: &'static str,
    endings: &'static [&'static str],
}

const FORMATS: [FormatEntry; 9] = [
    FormatEntry { format: FileFormat::MatrixMarket, name: "mtx", endings: &[".mtx"] },
    FormatEntry { format: FileFormat::Binary, name: "bin", endings: &[".bin"] },
    FormatEntry { format: FileFormat::Csv, name: "csv", endings: &[".csv"] },
    FormatEntry { format: FileFormat::Tsv, name: "tsv", endings: &[".tsv", ".tab"] },
    FormatEntry { format: FileFormat::Text, name: "txt", endings: &[".txt", ".dat"] },
    FormatEntry { format: FileFormat::Npy, name: "npy", endings: &[".npy"] },
    FormatEntry { format: FileFormat::Json, name: "json", endings: &[".json"] },
    FormatEntry { format: FileFormat::Mathematica, name: "m", endings: &[".m", ".wl"] },
    FormatEntry { format: FileFormat::Sdpa, name: "dat-s", endings: &[".dat-s"] },
];

const COMPRESSIONS: [(Compression, &str); 2] = [(Compression::Gzip, ".gz"), (Compression::Zstd, ".zst")];

impl FileFormat {
    /// All of them.
    pub const ALL: [FileFormat; 9] = {
        let mut all = [FileFormat::Binary; 9];
        let mut at = 0;
        while at < all.len() {
            all[at] = FORMATS[at].format;
            at += 1;
        }
        all
    };

    /// The short name, which is the ending without the dot: `mtx`, `csv`.
    pub fn name(self) -> &'static str {
        FORMATS.iter().find(|entry| entry.format == self).map_or("", |entry| entry.name)
    }

    /// The format with this short name.
    pub fn by_name(name: &str) -> Option<FileFormat> {
        FORMATS.iter().find(|entry| entry.name == name).map(|entry| entry.format)
    }

    /// Whether matrices can be written in this format.
    pub fn is_written(self) -> bool {
        self != FileFormat::Sdpa
    }

    /// Whether a file of this format may contain several matrices, so that one must be selected.
    pub fn has_members(self) -> bool {
        matches!(self, FileFormat::Json | FileFormat::Sdpa)
    }

    /// The format in which a file of this name is written: it follows from the ending, without `.gz` or `.zst`; Matrix
    /// Market for a device or pipe without a known ending.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the known endings; also for a format that can only be read.
    pub fn of(path: &Path) -> Result<FileFormat> {
        let (format, _) = by_ending(path.as_os_str().as_bytes());
        match format {
            Some(format) if format.is_written() => Ok(format),
            Some(_) => {
                let path = path.display();
                Err(Error::InvalidArgument(format!("{path}: this format can be read, but not written")))
            }
            None if is_device(path) => Ok(FileFormat::MatrixMarket),
            None => Err(FileFormat::unknown(path)),
        }
    }

    /// The error for a name that determines no format.
    pub(super) fn unknown(path: &Path) -> Error {
        let endings = FORMATS.iter().flat_map(|entry| entry.endings).copied().collect::<Vec<_>>().join(", ");
        Error::InvalidArgument(format!(
            "{}: the name does not determine the format: it must end in one of {endings}, optionally followed by .gz \
             or .zst",
            path.display()
        ))
    }

    /// The format to which the first bytes of a file belong; a table of numbers if they belong to no other format.
    pub(super) fn by_content(bytes: &[u8]) -> FileFormat {
        let text = bytes.trim_ascii_start();
        match text {
            _ if bytes.starts_with(b"\x89SNZ") => FileFormat::Binary,
            _ if bytes.starts_with(b"\x93NUMPY") => FileFormat::Npy,
            [b'%', b'%', ..] => FileFormat::MatrixMarket,
            [b'[', ..] => FileFormat::Json,
            [b'{', rest @ ..] if matches!(rest.trim_ascii_start(), [b'"', ..] | [b'}', ..]) => FileFormat::Json,
            [b'{', ..] | [b'(', b'*', ..] => FileFormat::Mathematica,
            _ => FileFormat::Csv,
        }
    }
}

impl Compression {
    /// The compression in which a file of this name is written.
    pub fn of(path: &Path) -> Compression {
        by_ending(path.as_os_str().as_bytes()).1
    }
}

/// The format and the compression from the ending of a name.
fn by_ending(name: &[u8]) -> (Option<FileFormat>, Compression) {
    let lower = name.to_ascii_lowercase();
    let packed = COMPRESSIONS.iter().find(|(_, ending)| lower.ends_with(ending.as_bytes()));
    let compression = packed.map_or(Compression::None, |(compression, _)| *compression);
    let plain = &lower[..lower.len() - packed.map_or(0, |(_, ending)| ending.len())];
    let means = |entry: &&FormatEntry| entry.endings.iter().any(|ending| plain.ends_with(ending.as_bytes()));
    (FORMATS.iter().find(means).map(|entry| entry.format), compression)
}

/// The location of a matrix: a file and, if the file contains several matrices, the name of one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Location {
    /// The file.
    pub file: PathBuf,
    /// The format that its name determines.
    pub format: Option<FileFormat>,
    /// The selected matrix in the file: `B` in `block_data_0.json:B`.
    pub member: Option<String>,
}

impl Location {
    /// Splits a name at the colon after `.json` or `.dat-s` (and `.gz` or `.zst`). No file is opened.
    pub fn parse(path: &Path) -> Location {
        let bytes = path.as_os_str().as_bytes();
        let (format, _) = by_ending(bytes);
        let whole = Location { file: path.to_path_buf(), format, member: None };
        if format.is_some() {
            return whole;
        }
        let colons = bytes.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at);
        for at in colons {
            let (format, _) = by_ending(&bytes[..at]);
            if let (true, Ok(member)) =
                (format.is_some_and(FileFormat::has_members), std::str::from_utf8(&bytes[at + 1..]))
            {
                let file = PathBuf::from(OsStr::from_bytes(&bytes[..at]));
                return Location { file, format, member: Some(member.to_string()) };
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings() {
        for (name, format, compression) in [
            ("a.csv", Some(FileFormat::Csv), Compression::None),
            ("A.MTX.GZ", Some(FileFormat::MatrixMarket), Compression::Gzip),
            ("x/b.json.zst", Some(FileFormat::Json), Compression::Zstd),
            ("theta1.dat-s", Some(FileFormat::Sdpa), Compression::None),
            ("theta1.dat", Some(FileFormat::Text), Compression::None),
            ("a.gz", None, Compression::Gzip),
            ("a.xyz", None, Compression::None),
        ] {
            assert_eq!(by_ending(name.as_bytes()), (format, compression), "{name}");
        }
        let error = FileFormat::of(Path::new("a.xyz")).unwrap_err().to_string();
        assert!(
            error.starts_with("a.xyz: the name does not determine the format: it must end in one of .mtx, .bin,"),
            "{error}"
        );
        assert!(FileFormat::of(Path::new("a.dat-s")).unwrap_err().to_string().ends_with("read, but not written"));
    }

    #[test]
    fn locations() {
        for (name, file, member) in [
            ("a.json", "a.json", None),
            ("a.json:B", "a.json", Some("B")),
            ("C:/x.json.gz:0/B:c", "C:/x.json.gz", Some("0/B:c")),
            ("t.dat-s:3/1", "t.dat-s", Some("3/1")),
            ("a.json:b.mtx", "a.json:b.mtx", None),
            ("a.csv:b", "a.csv:b", None),
        ] {
            let found = Location::parse(Path::new(name));
            assert_eq!((found.file.to_str(), found.member.as_deref()), (Some(file), member), "{name}");
        }
    }

    #[test]
    fn first_bytes() {
        for (bytes, format) in [
            (&b"%%MatrixMarket"[..], FileFormat::MatrixMarket),
            (b"\x89SNZ\r\n\x1a\n", FileFormat::Binary),
            (b"\x93NUMPY\x01\x00", FileFormat::Npy),
            (b" \n[[1", FileFormat::Json),
            (b"{ \"B\":", FileFormat::Json),
            (b"{{1,", FileFormat::Mathematica),
            (b"(* m *)", FileFormat::Mathematica),
            (b"1,2", FileFormat::Csv),
            (b"", FileFormat::Csv),
        ] {
            assert_eq!(FileFormat::by_content(bytes), format);
        }
        assert!(FileFormat::ALL.iter().all(|format| FileFormat::by_name(format.name()) == Some(*format)));
    }
}
