//! Polynomial programs as SDPB's pmp2sdp takes them, in files of two forms and lists of them, exactly.
//!
//! `max a . z` over the z with `n . z = 1` and `sum_i z_i P_i(x) >= 0` for all `x >= 0`: the z with the first of the
//! largest `n_l` follows from the others, which are y. Does not know: the solver's reader.

use super::choices::Choices;
use super::limits::{MAXIMUM_FILES, Room, bytes_of};
use super::polynomial::PolynomialMatrix;
use super::program::Program;
use super::read::{Files, refused};
use super::scaled::Scaled;
use super::{polynomial_json, polynomial_text};
use rug::Rational;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use sunzi::{Error, Result};

/// Lists inside of lists at most.
const DEEPEST_LIST: usize = 16;

/// Largest degree.
pub const MAXIMUM_DEGREE: usize = 1 << 14;

/// The key of the matrices in JSON.
pub const MATRICES: &str = "PositiveMatrixWithPrefactorArray";

type Refusal<T> = std::result::Result<T, String>;

/// A symmetric matrix: rows, the polynomials of the entries `(r, s)` with `r <= s`, and how it is sampled.
pub struct Matrix {
    pub dim: usize,
    pub entries: Vec<Vec<Vec<Rational>>>,
    pub choices: Choices,
}

/// Coefficients of the longest polynomial.
fn longest(entries: &[Vec<Vec<Rational>>]) -> usize {
    entries.iter().flatten().map(Vec::len).max().unwrap_or(0)
}

impl Matrix {
    /// Whether each entry has as many polynomials as the objective has numbers.
    fn is_whole(&self, count: usize) -> Refusal<()> {
        let is_whole = |entry: &Vec<Vec<Rational>>| entry.len() == count && entry.iter().all(|p| !p.is_empty());
        match self.entries.iter().all(is_whole) && (1..=MAXIMUM_DEGREE).contains(&longest(&self.entries)) {
            true => Ok(()),
            false => Err(format!("entries should be {count} polynomials of a degree that is possible")),
        }
    }
}

/// What files hold.
#[derive(Default)]
pub struct Parts {
    pub objective: Option<Vec<Rational>>,
    pub normalization: Option<Vec<Rational>>,
    pub matrices: Vec<Matrix>,
}

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
/// Those of [`super::read_exact`].
pub fn read(path: &Path, files: &mut Files) -> Result<Program> {
    let mut parts = Parts::default();
    add_file(path, files, &mut HashSet::new(), 0, &mut parts)?;
    parts.program(&files.room).map_err(|message| refused(path, message))
}

fn add_file(
    path: &Path,
    files: &mut Files,
    seen: &mut HashSet<PathBuf>,
    depth: usize,
    parts: &mut Parts,
) -> Result<()> {
    let refused = |message: String| refused(path, message);
    // Lists that name each other, or one file many times, would multiply what is read.
    let whole = std::fs::canonicalize(path);
    let whole = whole.map_err(|source| Error::Io { path: path.to_path_buf(), action: "open", source })?;
    if !seen.insert(whole) {
        return Err(refused("it is named twice: does a list name itself?".into()));
    }
    if seen.len() > MAXIMUM_FILES {
        return Err(refused(format!("it is one more than {MAXIMUM_FILES} files")));
    }
    let read = match extension(path) {
        Some("json") => polynomial_json::read,
        Some("m") => polynomial_text::read,
        Some("nsv") if depth < DEEPEST_LIST => {
            let text = String::from_utf8(files.read(path)?).map_err(|_| refused("it is no text".into()))?;
            let folder = path.parent().unwrap_or(Path::new(""));
            let names = text.split('\0').map(|name| name.trim_end_matches(['\n', '\r']));
            let mut names = names.filter(|name| !name.is_empty()).peekable();
            if names.peek().is_none() {
                return Err(refused("the list names no files".into()));
            }
            return names.try_for_each(|name| match name.contains(['\n', '\r']) {
                true => Err(refused("a line feed stands between names, and should be a zero byte".into())),
                false => add_file(&folder.join(name), files, seen, depth + 1, parts),
            });
        }
        Some("nsv") => return Err(refused(format!("lists of files lie {DEEPEST_LIST} deep"))),
        _ => return Err(refused("a polynomial program is a file .json or .m, or a list of such files in .nsv".into())),
    };
    let bytes = files.read(path)?;
    read(&bytes, &files.room).and_then(|found| parts.add(found)).map_err(refused)
}

/// Whether two entries are the same polynomials. Zeros behind the last coefficient do not count.
fn are_same(left: &[Vec<Rational>], right: &[Vec<Rational>]) -> bool {
    let end = |list: &Vec<Rational>| list.iter().rposition(|coefficient| *coefficient != 0).map_or(0, |last| last + 1);
    let is_same = |(left, right): (&Vec<Rational>, &Vec<Rational>)| {
        left.is_empty() == right.is_empty() && left[..end(left)] == right[..end(right)]
    };
    left.len() == right.len() && left.iter().zip(right).all(is_same)
}

/// The entries with `r <= s` of a whole matrix, each polynomial in the longer of both forms in which it is written.
///
/// # Errors
/// A text where it is not square or not symmetric.
pub fn symmetric(mut rows: Vec<Vec<Vec<Vec<Rational>>>>) -> Refusal<(usize, Vec<Vec<Vec<Rational>>>)> {
    let dim = rows.len();
    if dim == 0 || rows.iter().any(|row| row.len() != dim) {
        return Err(format!("the matrix has {dim} rows, and should be square"));
    }
    let mut found = Vec::new();
    for (r, s) in (0..dim).flat_map(|s| (0..=s).map(move |r| (r, s))) {
        let mut entry = std::mem::take(&mut rows[r][s]);
        if r < s {
            let other = std::mem::take(&mut rows[s][r]);
            if !are_same(&entry, &other) {
                return Err(format!("entries ({r}, {s}) and ({s}, {r}) differ"));
            }
            for (kept, other) in entry.iter_mut().zip(other).filter(|(kept, other)| other.len() > kept.len()) {
                *kept = other;
            }
        }
        found.push(entry);
    }
    Ok((dim, found))
}

/// What two files state must be the same.
fn state(known: &mut Option<Vec<Rational>>, found: Option<Vec<Rational>>, name: &str) -> Refusal<()> {
    match (&known, found) {
        (_, None) => {}
        (Some(known), Some(found)) if *known != found => {
            return Err(format!("the {name} is another one than in a file before"));
        }
        (_, found) => *known = found,
    }
    Ok(())
}

impl Parts {
    fn add(&mut self, found: Parts) -> Refusal<()> {
        state(&mut self.objective, found.objective, "objective")?;
        state(&mut self.normalization, found.normalization, "normalization")?;
        self.matrices.extend(found.matrices);
        Ok(())
    }

    /// z without the entry that the normalization determines.
    pub fn program(self, room: &Room) -> Refusal<Program> {
        let a = self.objective.ok_or("there is no objective")?;
        let count = a.len();
        let first = || (0..count).map(|at| Rational::from(u32::from(at == 0))).collect();
        let n = self.normalization.unwrap_or_else(first);
        if n.len() != count || n.iter().all(|entry| *entry == 0) || self.matrices.is_empty() {
            return Err("the normalization is 0 or not as long as the objective, or there are no matrices".into());
        }
        for (number, matrix) in self.matrices.iter().enumerate() {
            matrix.is_whole(count).map_err(|message| format!("matrix {number}: {message}"))?;
        }
        // A quotient has the digits of both numbers, so two short words make a long one.
        let made = |value: Rational| room.take(bytes_of(&value)).map(|()| value);
        let largest = (1..count).fold(0, |best, at| if n[at].cmp_abs(&n[best]).is_gt() { at } else { best });
        let others = (0..count).filter(|&at| at != largest).collect::<Vec<_>>();
        let constant = made(Rational::from(&a[largest] / &n[largest]))?;
        let rest = |&at: &usize| made(a[at].clone() - Rational::from(&n[at] * &constant));
        let objective = others.iter().map(rest).collect::<Refusal<Vec<_>>>()?;
        let mut polynomials = Vec::new();
        for (number, Matrix { dim, entries, choices }) in self.matrices.into_iter().enumerate() {
            let longest = longest(&entries);
            choices.check(longest - 1).map_err(|message| format!("matrix {number}: {message}"))?;
            let entry = |entry: &Vec<Vec<Rational>>| -> Refusal<Vec<Scaled>> {
                let first = entry[largest].iter().map(|c| made(Rational::from(c / &n[largest])));
                let first = first.collect::<Refusal<Vec<_>>>()?;
                let mut found = vec![Scaled::read(&first, room)?];
                for &at in &others {
                    found.push(Scaled::read(&difference(&n[at], &first, &entry[at], room)?, room)?);
                }
                Ok(found)
            };
            let entries = entries.iter().map(entry).collect::<Refusal<_>>()?;
            polynomials.push(PolynomialMatrix { dim, degree: longest - 1, entries });
        }
        let objective = Scaled::read(&objective, room)?;
        Ok(Program { constant, objective, polynomials, ..Program::empty() })
    }
}

/// `factor left - right`.
fn difference(factor: &Rational, left: &[Rational], right: &[Rational], room: &Room) -> Refusal<Vec<Rational>> {
    let zero = Rational::new();
    let at = |list: &[Rational], at: usize| list.get(at).unwrap_or(&zero).clone();
    let one = |power| {
        let found = at(left, power) * factor - at(right, power);
        room.take(bytes_of(&found)).map(|()| found)
    };
    (0..left.len().max(right.len())).map(one).collect()
}
