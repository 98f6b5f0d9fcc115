//! Polynomial programs in JSON, as SDPB's pmp2sdp takes them, with their numbers exactly.
//!
//! `max a . z` over the z with `n . z = 1` and `sum_i z_i P_i(x) >= 0` for all `x >= 0`: the z with the first of the
//! largest `n_l` follows from the others, which are y. Choices of sampling and prefactors, which are positive, change
//! nothing of that, and are not read. Does not know: the solver's reader.

use super::json::Json;
use super::limits::{MAXIMUM_FILES, Room, bytes_of};
use super::polynomial::PolynomialMatrix;
use super::program::Program;
use super::read::{Files, list, refused};
use super::scaled::Scaled;
use rug::Rational;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use sunzi::{Error, Result};

/// Lists inside of lists at most.
const DEEPEST_LIST: usize = 16;

/// Largest degree.
const MAXIMUM_DEGREE: usize = 1 << 14;

/// What a matrix says of how it is to be sampled.
const SAMPLING_KEYS: [&str; 11] = [
    "prefactor",
    "DampedRational",
    "reducedPrefactor",
    "maxNumPoles",
    "samplePoints",
    "sampleScalings",
    "reducedSampleScalings",
    "bilinearBasis",
    "bilinearBasis_0",
    "bilinearBasis_1",
    "polynomials",
];

const MATRICES: &str = "PositiveMatrixWithPrefactorArray";

type Refusal<T> = std::result::Result<T, String>;

/// Rows, and the polynomials of the entries `(r, s)` with `r <= s`.
type Entries = (usize, Vec<Vec<Vec<Rational>>>);

/// What files hold.
#[derive(Default)]
struct Parts {
    objective: Option<Vec<Rational>>,
    normalization: Option<Vec<Rational>>,
    matrices: Vec<Entries>,
    /// Files that were read.
    seen: HashSet<PathBuf>,
}

/// Whether the name is that of a polynomial program in JSON, or of a list of files.
pub fn is_named(path: &Path) -> bool {
    matches!(extension(path), Some("json" | "nsv"))
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
    add_file(path, 0, files, &mut parts)?;
    parts.program(&files.room).map_err(|message| refused(path, message))
}

fn add_file(path: &Path, depth: usize, files: &mut Files, parts: &mut Parts) -> Result<()> {
    let refused = |message: String| refused(path, message);
    // Lists that name each other, or one file many times, would multiply what is read.
    let whole = std::fs::canonicalize(path);
    let whole = whole.map_err(|source| Error::Io { path: path.to_path_buf(), action: "open", source })?;
    if !parts.seen.insert(whole) {
        return Err(refused("it is named twice: does a list name itself?".into()));
    }
    if parts.seen.len() > MAXIMUM_FILES {
        return Err(refused(format!("it is one more than {MAXIMUM_FILES} files")));
    }
    match extension(path) {
        Some("json") => {
            let bytes = files.read(path)?;
            parts.add(&bytes, &files.room).map_err(refused)
        }
        Some("nsv") if depth < DEEPEST_LIST => {
            let text = String::from_utf8(files.read(path)?).map_err(|_| refused("it is no text".into()))?;
            let folder = path.parent().unwrap_or(Path::new(""));
            let names =
                text.split('\0').map(|name| name.trim_end_matches(['\n', '\r'])).filter(|name| !name.is_empty());
            let paths = names.map(|name| folder.join(name)).collect::<Vec<PathBuf>>();
            paths.iter().try_for_each(|path| add_file(path, depth + 1, files, parts))
        }
        Some("nsv") => Err(refused(format!("lists of files lie {DEEPEST_LIST} deep"))),
        _ => {
            Err(refused("proofs of polynomial programs are made and checked for files .json, and lists of them".into()))
        }
    }
}

fn items(json: &Json) -> Refusal<&[Json]> {
    match json {
        Json::List(list) => Ok(list),
        _ => Err("a list is expected".into()),
    }
}

fn known<'a>(json: &'a Json, keys: &[&str]) -> Refusal<&'a [(String, Json)]> {
    let Json::Object(pairs) = json else { return Err("an object is expected".into()) };
    match pairs.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
        Some((key, _)) => Err(format!("the key '{key}' is unknown")),
        None => Ok(pairs),
    }
}

/// The entries of a symmetric matrix.
fn entries(json: &Json, room: &Room) -> Refusal<Entries> {
    let mut rows = Vec::new();
    for row in items(json)? {
        let entry = |entry: &Json| items(entry)?.iter().map(|json| list(json, room)).collect::<Refusal<Vec<_>>>();
        rows.push(items(row)?.iter().map(entry).collect::<Refusal<Vec<_>>>()?);
    }
    let dim = rows.len();
    if dim == 0 || rows.iter().any(|row| row.len() != dim) {
        return Err(format!("the matrix has {dim} rows, and should be square"));
    }
    let mut found = Vec::new();
    for (r, s) in (0..dim).flat_map(|s| (0..=s).map(move |r| (r, s))) {
        if rows[r][s] != rows[s][r] {
            return Err(format!("entries ({r}, {s}) and ({s}, {r}) differ"));
        }
        found.push(rows[r][s].clone());
    }
    Ok((dim, found))
}

/// What two files state must be the same.
fn state(known: &mut Option<Vec<Rational>>, found: Vec<Rational>, name: &str) -> Refusal<()> {
    match known {
        Some(known) if *known != found => Err(format!("the {name} is another one than in a file before")),
        _ => {
            *known = Some(found);
            Ok(())
        }
    }
}

impl Parts {
    fn add(&mut self, bytes: &[u8], room: &Room) -> Refusal<()> {
        let json = Json::parse(bytes)?;
        for (key, value) in known(&json, &["objective", "normalization", MATRICES])? {
            match key.as_str() {
                "objective" => state(&mut self.objective, list(value, room)?, key)?,
                "normalization" => state(&mut self.normalization, list(value, room)?, key)?,
                _ => {
                    for matrix in items(value)? {
                        known(matrix, &SAMPLING_KEYS)?;
                        let number = self.matrices.len();
                        let found = matrix.get("polynomials").and_then(|json| entries(json, room));
                        self.matrices.push(found.map_err(|message| format!("matrix {number}: {message}"))?);
                    }
                }
            }
        }
        Ok(())
    }

    /// z without the entry that the normalization determines.
    fn program(self, room: &Room) -> Refusal<Program> {
        let a = self.objective.ok_or("there is no objective")?;
        let count = a.len();
        let first = || (0..count).map(|at| Rational::from(u32::from(at == 0))).collect();
        let n = self.normalization.unwrap_or_else(first);
        if n.len() != count || n.iter().all(|entry| *entry == 0) || self.matrices.is_empty() {
            return Err("the normalization is 0 or not as long as the objective, or there are no matrices".into());
        }
        let largest = (1..count).fold(0, |best, at| if n[at].cmp_abs(&n[best]).is_gt() { at } else { best });
        let others = (0..count).filter(|&at| at != largest).collect::<Vec<_>>();
        let constant = Rational::from(&a[largest] / &n[largest]);
        let objective = others.iter().map(|&at| a[at].clone() - Rational::from(&n[at] * &constant)).collect::<Vec<_>>();
        let mut polynomials = Vec::new();
        for (number, (dim, entries)) in self.matrices.into_iter().enumerate() {
            let longest = entries.iter().flatten().map(Vec::len).max().unwrap_or(0);
            let is_whole = |entry: &Vec<Vec<Rational>>| entry.len() == count && entry.iter().all(|p| !p.is_empty());
            if !entries.iter().all(is_whole) || !(1..=MAXIMUM_DEGREE).contains(&longest) {
                return Err(format!(
                    "matrix {number}: entries should be {count} polynomials of a degree that is possible"
                ));
            }
            let entry = |entry: &Vec<Vec<Rational>>| -> Refusal<Vec<Scaled>> {
                let first = entry[largest].iter().map(|c| Rational::from(c / &n[largest])).collect::<Vec<_>>();
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
