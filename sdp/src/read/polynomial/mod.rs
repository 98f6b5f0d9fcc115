//! Polynomial matrix programs in the files of SDPB's pmp2sdp: JSON, Mathematica's text, and lists of files.
//!
//! Each file holds an objective, a normalization, matrices, or any of them; several that state the same must agree.
//! Matrices count on through the files in their order.
//! Format: SDPB, `docs/json_schema/pmp_schema.json`, `src/pmp_read`.

mod json;
mod mathematica;

use crate::forms::TextForm;
use crate::polynomial::{Polynomial, PolynomialMatrix, PolynomialProgram, working_bits};
use crate::problem::Problem;
use rug::Float;
use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use sunzi::io::NumberParser;
use sunzi::{Error, Result};

/// Lists inside of lists at most.
const DEEPEST_LIST: usize = 16;

/// The contents of one file.
#[derive(Debug, Default)]
struct FileParts {
    objective: Option<Vec<Float>>,
    normalization: Option<Vec<Float>>,
    matrices: Vec<PolynomialMatrix>,
}

/// Whether the name is that of a polynomial program.
pub fn is_named(path: &Path) -> bool {
    matches!(extension(path), Some("json" | "m" | "nsv"))
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|name| name.to_str())
}

/// Reads a program; see [`super::read_problem`].
pub fn read(path: &Path, precision_bits: u32) -> Result<Problem> {
    let mut files = Vec::new();
    expand(path, 0, &mut HashSet::new(), &mut files)?;
    let mut whole = FileParts::default();
    let mut sources = [None, None];
    for file in &files {
        let parts = read_file(file, precision_bits)?;
        let vectors = [(&mut whole.objective, parts.objective), (&mut whole.normalization, parts.normalization)];
        for (which, (known, found)) in vectors.into_iter().enumerate() {
            let Some(found) = found else { continue };
            let name = ["objective", "normalization"][which];
            match (&known, sources[which]) {
                (Some(known), Some(source)) if *known != found => return Err(differ(name, source, file)),
                _ => (*known, sources[which]) = (Some(found), Some(file.as_path())),
            }
        }
        whole.matrices.extend(parts.matrices);
    }
    whole.problem(path, precision_bits)
}

/// Reads a stream that messages call `path`; see [`super::read_problem_from`].
pub fn read_stream(mut reader: impl Read, path: &Path, form: TextForm, precision_bits: u32) -> Result<Problem> {
    let mut text = String::new();
    let read = reader.read_to_string(&mut text);
    read.map_err(|source| Error::Io { path: path.to_path_buf(), action: "read", source })?;
    let (text, mut numbers) = (unmarked(&text), Numbers::new(path, precision_bits));
    let parts = match form {
        TextForm::Mathematica => mathematica::read(text, &mut numbers)?,
        _ => json::read(text, &mut numbers)?,
    };
    parts.problem(path, precision_bits)
}

impl FileParts {
    /// The program of all files, of which messages name one.
    fn problem(self, path: &Path, precision_bits: u32) -> Result<Problem> {
        let FileParts { objective, normalization, matrices } = self;
        let Some(objective) = objective else {
            return Err(Error::Format { path: path.to_path_buf(), message: "there is no objective".into() });
        };
        PolynomialProgram { objective, normalization, matrices }.problem(precision_bits)
    }
}

fn differ(name: &str, first: &Path, second: &Path) -> Error {
    Error::Format {
        path: second.to_path_buf(),
        message: format!("the {name} differs from that in {}", first.display()),
    }
}

/// The files that `path` stands for, in their order: itself, or those of a list. None may be named twice.
fn expand(path: &Path, depth: usize, seen: &mut HashSet<PathBuf>, files: &mut Vec<PathBuf>) -> Result<()> {
    let whole = std::fs::canonicalize(path);
    let whole = whole.map_err(|source| Error::Io { path: path.to_path_buf(), action: "open", source })?;
    if !seen.insert(whole) {
        let message = "the file is named twice, or a list names itself".into();
        return Err(Error::Format { path: path.to_path_buf(), message });
    }
    if extension(path) != Some("nsv") {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let refused = |message: String| Error::Format { path: path.to_path_buf(), message };
    if depth == DEEPEST_LIST {
        return Err(refused(format!("lists of files are nested more than {DEEPEST_LIST} deep")));
    }
    let text = read_text(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut names = text.split('\0').map(|name| name.trim_end_matches(['\n', '\r'])).filter(|name| !name.is_empty());
    let mut found = false;
    names.try_for_each(|name| {
        found = true;
        if let Some((first, second)) = name.split_once(['\n', '\r']) {
            let second = second.trim_start().lines().next().unwrap_or("");
            return Err(refused(format!(
                "a line feed separates '{first}' and '{second}': in such a list a zero byte must follow each name"
            )));
        }
        expand(&folder.join(name), depth + 1, seen, files)
    })?;
    if found { Ok(()) } else { Err(refused("the list names no files".into())) }
}

fn read_text(path: &Path) -> Result<String> {
    let read = std::fs::read_to_string(path);
    let text = read.map_err(|source| Error::Io { path: path.to_path_buf(), action: "read", source })?;
    Ok(unmarked(&text).into())
}

/// The text behind a byte order mark, as some editors write it.
fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn read_file(path: &Path, precision_bits: u32) -> Result<FileParts> {
    let mut numbers = Numbers::new(path, precision_bits);
    match extension(path) {
        Some("json") => json::read(&read_text(path)?, &mut numbers),
        Some("m") => mathematica::read(&read_text(path)?, &mut numbers),
        _ => Err(numbers.refused("a polynomial program is a file .json or .m, or a list of such files in .nsv")),
    }
}

/// The numbers of a file.
struct Numbers<'a> {
    path: &'a Path,
    parser: NumberParser,
    bits: u32,
}

impl Numbers<'_> {
    fn new(path: &Path, precision_bits: u32) -> Numbers<'_> {
        let bits = working_bits(precision_bits);
        Numbers { path, parser: NumberParser::new(bits), bits }
    }

    fn refused(&self, message: impl Into<String>) -> Error {
        Error::Format { path: self.path.to_path_buf(), message: message.into() }
    }

    /// The number in `text`, which stands at `place`.
    fn number(&mut self, text: &str, place: &dyn Fn() -> String) -> Result<Float> {
        match self.parser.parse(text) {
            Ok(number) => Ok(Float::with_val(self.bits, number.value)),
            Err(error) => {
                let shown = text.chars().take(60).collect::<String>();
                Err(self.refused(format!("{}: '{shown}' {error} (counted from 0)", place())))
            }
        }
    }

    /// The numbers of a list.
    fn list<T: AsRef<str>>(&mut self, texts: &[T], place: &dyn Fn() -> String) -> Result<Vec<Float>> {
        let number = |(at, text): (usize, &T)| self.number(text.as_ref(), &|| format!("{}, number {at}", place()));
        texts.iter().enumerate().map(number).collect()
    }
}

/// Whether two entries are the same polynomials. Zeros behind the last coefficient do not count.
fn are_same(left: &[Polynomial], right: &[Polynomial]) -> bool {
    let end =
        |list: &Polynomial| list.iter().rposition(|coefficient| !coefficient.is_zero()).map_or(0, |last| last + 1);
    let is_same = |(left, right): (&Polynomial, &Polynomial)| {
        left.is_empty() == right.is_empty() && left[..end(left)] == right[..end(right)]
    };
    left.len() == right.len() && left.iter().zip(right).all(is_same)
}

/// Entries with `r <= s` of a whole matrix, which must be square and symmetric: the error is the place of the first
/// entry that is not.
/// Of a polynomial that is written twice the longer form counts, as degrees are those of polynomials as written.
fn upper(mut rows: Vec<Vec<Vec<Polynomial>>>) -> std::result::Result<(usize, Vec<Vec<Polynomial>>), String> {
    let dim = rows.len();
    if let Some(row) = rows.iter().position(|row| row.len() != dim) {
        let cols = rows[row].len();
        return Err(format!("row {row}, counted from 0, has {cols} entries, but there are {dim} rows"));
    }
    let mut entries = Vec::with_capacity(dim * (dim + 1) / 2);
    for (s, r) in (0..dim).flat_map(|s| (0..=s).map(move |r| (s, r))) {
        let mut entry = std::mem::take(&mut rows[r][s]);
        if r < s {
            let other = std::mem::take(&mut rows[s][r]);
            if !are_same(&entry, &other) {
                return Err(format!(
                    "entries ({r}, {s}) and ({s}, {r}), counted from 0, differ: the matrix is not symmetric"
                ));
            }
            for (kept, other) in entry.iter_mut().zip(other).filter(|(kept, other)| other.len() > kept.len()) {
                *kept = other;
            }
        }
        entries.push(entry);
    }
    Ok((dim, entries))
}
