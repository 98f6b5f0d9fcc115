//! The contents of files of polynomial programs, and the program that they make.
//!
//! Independent of: the syntax of the files.

use super::choices::Choices;
use super::limits::bytes_of;
use super::polynomial::ProofPolynomialMatrix;
use super::program::Program;
use super::room::Room;
use super::scaled::Scaled;
use rug::Rational;

/// Largest degree.
pub const MAXIMUM_DEGREE: usize = 1 << 14;

type Refusal<T> = Result<T, String>;

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
            false => Err(format!("each entry must be {count} polynomials of an admissible degree")),
        }
    }
}

/// The contents of files.
#[derive(Default)]
pub struct ProofParts {
    pub objective: Option<Vec<Rational>>,
    pub normalization: Option<Vec<Rational>>,
    pub matrices: Vec<Matrix>,
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
        return Err(format!("the matrix has {dim} rows, but is not square"));
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

/// A statement that is in two files must be the same in both.
fn state(known: &mut Option<Vec<Rational>>, found: Option<Vec<Rational>>, name: &str) -> Refusal<()> {
    match (&known, found) {
        (_, None) => {}
        (Some(known), Some(found)) if *known != found => {
            return Err(format!("the {name} differs from that in an earlier file"));
        }
        (_, found) => *known = found,
    }
    Ok(())
}

impl ProofParts {
    /// Adds the contents of another file.
    pub fn add(&mut self, found: ProofParts) -> Refusal<()> {
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
            polynomials.push(ProofPolynomialMatrix { dim, degree: longest - 1, entries });
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
