//! Programs in files, with their numbers exactly: SDPA's sparse format, SDPB's blocks in a directory or an archive, and
//! polynomial programs.
//!
//! A second reader, independent of that of the solver, so that a proof does not rest on it. Independent of: precisions.

use super::archive::{Container, ProofArchive, is_archive};
use super::binary::{self, Table};
use super::files::{Files, refused};
use super::group::{ProofConstraints, ProofGroup};
use super::json::Json;
use super::limits::MAXIMUM_ORDER;
use super::number::as_text;
use super::program::Program;
use super::room::Room;
use super::sampled::ProofSampled;
use super::scaled::Scaled;
use super::shape::ProofShape;
use super::sparse::{Place, ProofSparse};
use super::{polynomial_file, polynomial_json, polynomial_text};
use crate::forms::{FIRST_BYTES, TextForm};
use rug::Rational;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use sunzi::io::FileFormat;
use sunzi::{Error, Result};

/// Reads the program at `path` exactly: SDPB's blocks in a directory or a zip archive of one, a polynomial program in
/// JSON or Mathematica's text or a list of such files, or a file in SDPA's sparse format that is not compressed.
///
/// Decimals are read as rational numbers, numbers of binary blocks as the dyadic numbers of their limbs. Memory: at
/// most 512 bytes for each byte of the files, in addition to 128 MiB; docs/SDP.md has all limits. Cost: a pass over the
/// bytes, and a common denominator for each list of numbers, in big integers. Source:
/// docs/decisions/063-hostile-certificates.md.
///
/// # Errors
/// [`Error::Io`]; [`Error::Format`] with the file and its fault, also for a file of another kind.
pub fn read_exact(path: &Path) -> Result<Program> {
    read_exact_as(path, None)
}

/// As [`read_exact`]; if the name of a file does not determine its form, `format` does, or else its first bytes do.
///
/// # Errors
/// The errors of [`read_exact`]; [`Error::InvalidArgument`] for a format that is not a format of programs.
pub fn read_exact_as(path: &Path, format: Option<FileFormat>) -> Result<Program> {
    let chosen = format.map(TextForm::of).transpose()?;
    let mut files = Files::new();
    let data = std::fs::metadata(path);
    let data = data.map_err(|source| Error::Io { path: path.to_path_buf(), action: "open", source })?;
    let mut program = match data.is_dir() {
        true => blocks(Container::Folder(path.to_path_buf()), &mut files)?,
        false if polynomial_file::is_named(path) => polynomial_file::read(path, &mut files)?,
        false => {
            let bytes = files.read(path)?;
            match is_sparse(path) {
                false if is_archive(&bytes) => blocks(Container::Archive(ProofArchive::new(path, bytes)?), &mut files)?,
                is_sparse => {
                    let named = is_sparse.then_some(TextForm::Sparse);
                    text(path, named.or(chosen), &bytes, &files.room)?
                }
            }
        }
    };
    program.bytes = files.room.files();
    program.digest = files.digest();
    Ok(program)
}

/// A program that is one text file. Where `form` is not given, the first bytes of the file determine it.
fn text(path: &Path, form: Option<TextForm>, bytes: &[u8], room: &Room) -> Result<Program> {
    let is_dense = path.extension().is_some_and(|ending| ending == "dat");
    let shown = || TextForm::shown(&bytes[..bytes.len().min(FIRST_BYTES)]).filter(|_| !is_dense);
    let Some(form) = form.or_else(shown) else {
        let message = "certificates exist only for SDPB's blocks in a directory or a zip archive, for polynomial \
                       programs (.json, .m, .nsv), and for uncompressed files in SDPA's sparse format (.dat-s)";
        return Err(refused(path, message));
    };
    let program = match form {
        TextForm::Sparse if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => {
            Err("certificates exist only for uncompressed files: decompress it".into())
        }
        TextForm::Sparse => sdpa(bytes, room),
        TextForm::Json => polynomial_json::read(bytes, room).and_then(|parts| parts.program(room)),
        TextForm::Mathematica => polynomial_text::read(bytes, room).and_then(|parts| parts.program(room)),
    };
    program.map_err(|message| refused(path, message))
}

/// Whether the name is that of a file in SDPA's format.
fn is_sparse(path: &Path) -> bool {
    path.to_string_lossy().to_lowercase().ends_with(".dat-s")
}

/// A file that holds an object.
struct ProofObject {
    path: PathBuf,
    value: Json,
}

impl ProofObject {
    /// The result of `read` for the value of a key.
    fn get<T>(&self, key: &str, read: impl Fn(&Json) -> std::result::Result<T, String>) -> Result<T> {
        let value = self.value.get(key).map_err(|message| refused(&self.path, message))?;
        read(value).map_err(|message| refused(&self.path, format!("'{key}': {message}")))
    }
}

/// The object in a file of this name.
fn object(container: &mut Container, name: &str, files: &mut Files) -> Result<ProofObject> {
    let (bytes, path) = (container.read(name, files)?, container.path(name));
    let value = Json::parse(&bytes).map_err(|message| refused(&path, message))?;
    Ok(ProofObject { path, value })
}

/// A number of a block, in quotation marks or without: it is never converted to a double.
fn number(json: &Json, room: &Room) -> std::result::Result<Rational, String> {
    match json {
        Json::Text(text) | Json::Word(text) => room.number(text),
        _ => Err("a number is expected".into()),
    }
}

fn count(json: &Json) -> std::result::Result<usize, String> {
    match json {
        Json::Word(word) => word.parse().map_err(|_| format!("'{word}' is not a whole number of at least 0")),
        _ => Err("a whole number of at least 0 is expected".into()),
    }
}

fn list(json: &Json, room: &Room) -> std::result::Result<Vec<Rational>, String> {
    json.each(|json| number(json, room))
}

fn rows(json: &Json, room: &Room) -> std::result::Result<Vec<Vec<Rational>>, String> {
    json.each(|row| list(row, room))
}

fn blocks(mut container: Container, files: &mut Files) -> Result<Program> {
    let control = object(&mut container, "control.json", &mut *files)?;
    let blocks = control.get("num_blocks", count)?;
    let objectives = object(&mut container, "objectives.json", &mut *files)?;
    let objective = objectives.get("b", |json| Scaled::read(&list(json, &files.room)?, &files.room))?;
    let mut groups = Vec::new();
    for block in 0..blocks {
        groups.push(read_group(&mut container, files, block, objective.numerators.len())?);
    }
    if groups.is_empty() {
        return Err(refused(&control.path, "'num_blocks' is 0: there is nothing to prove"));
    }
    let beyond = format!("block_info_{blocks}.json");
    if container.has(&beyond) {
        let beyond = container.path(&beyond);
        let message = format!("'num_blocks' is {blocks}, but there is a file {}", beyond.display());
        return Err(refused(&control.path, message));
    }
    // It is no part of the program, but a file that is read with it.
    let normalization = "normalization.json";
    if container.has(normalization) {
        object(&mut container, normalization, &mut *files)?.get("normalization", |json| list(json, &files.room))?;
    }
    let constant = objectives.get("constant", |json| polynomial_json::number(json, &files.room))?;
    Ok(Program { constant, objective, groups, ..Program::empty() })
}

/// The numbers of a table, row by row.
fn table(rows: Vec<Vec<Rational>>) -> std::result::Result<Table, String> {
    let cols = rows.first().map_or(0, Vec::len);
    if let Some(row) = rows.iter().position(|row| row.len() != cols) {
        return Err(format!("row {row} has {} numbers, but the first row has {cols}", rows[row].len()));
    }
    Ok(Table { rows: rows.len(), cols, values: rows.into_iter().flatten().collect() })
}

fn json_parts(data: &ProofObject, points: usize, free: usize, room: &Room) -> Result<binary::BlockParts> {
    let read = |key: &str| data.get(key, |json| table(rows(json, room)?));
    let empty = || Table { rows: 0, cols: 0, values: Vec::new() };
    let even = read("bilinear_bases_even")?;
    let odd = if points <= 1 { empty() } else { read("bilinear_bases_odd")? };
    let costs = data.get("c", |json| list(json, room))?;
    let free = if free == 0 { Table { rows: costs.len(), ..empty() } } else { read("B")? };
    Ok(binary::BlockParts { free, costs, bases: [even, odd] })
}

fn read_group(container: &mut Container, files: &mut Files, block: usize, free: usize) -> Result<ProofGroup> {
    let info = object(container, &format!("block_info_{block}.json"), files)?;
    let (dim, points) = (info.get("dim", count)?, info.get("num_points", count)?);
    let variables = ProofSampled::count(dim, points).map_err(|message| refused(&info.path, message))?;
    let [binary, text] = ["bin", "json"].map(|ending| format!("block_data_{block}.{ending}"));
    // Where both exist, SDPB takes the binary one.
    let name = if container.has(&binary) { &binary } else { &text };
    let path = container.path(name);
    let refused = |message: String| refused(&path, message);
    let parts = match name == &binary {
        true => binary::read(&container.read(name, files)?, variables, free, &files.room).map_err(refused)?,
        false => json_parts(&object(container, name, files)?, points, free, &files.room)?,
    };
    let room = &files.room;
    let binary::BlockParts { free: b, costs, bases } = parts;
    Scaled::fits(bases.iter().flat_map(|basis| &basis.values), room).map_err(refused)?;
    if costs.len() != variables {
        return Err(refused(format!("'c' has {} numbers instead of {variables}", costs.len())));
    }
    if bases.iter().any(|basis| basis.rows > 0 && basis.cols != points) {
        return Err(refused(format!("a row of a basis does not have one number for each of {points} points")));
    }
    if (b.rows, b.cols) != (variables, free) {
        let (rows, cols) = (b.rows, b.cols);
        return Err(refused(format!("'B' is {rows} x {cols} instead of {variables} x {free}")));
    }
    let sampled = ProofSampled::new(dim, points, &bases.map(|basis| basis.values)).map_err(refused)?;
    let [costs, free] = [&costs, &b.values].map(|values| Scaled::read(values, room));
    let (costs, free) = (costs.map_err(refused)?, free.map_err(refused)?);
    Ok(ProofGroup { costs, free, constraints: ProofConstraints::Sampled(sampled) })
}

/// Whether a letter separates words of an SDPA file.
fn separates(letter: char) -> bool {
    letter.is_ascii_whitespace() || matches!(letter, ',' | '(' | ')' | '{' | '}')
}

/// The lines of an SDPA file.
struct SdpaLines<'a> {
    rest: &'a str,
}

impl<'a> SdpaLines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(line)
    }

    /// The number at the start of the next line that is no comment; the rest of that line is one.
    fn count(&mut self, name: &str) -> std::result::Result<usize, String> {
        while let Some(line) = self.next() {
            let text = line.trim();
            if !text.is_empty() && !text.starts_with(['"', '*']) {
                let word = text.split(|letter| separates(letter) || letter == '=').find(|word| !word.is_empty());
                let word = word.unwrap_or(text);
                return word.parse().map_err(|_| format!("the {name} is '{word}', but must be a whole number"));
            }
        }
        Err(format!("the file ends before the {name}"))
    }

    /// The orders of blocks, on as many lines as they take.
    fn shapes(&mut self, count: usize) -> std::result::Result<Vec<ProofShape>, String> {
        let mut shapes = Vec::new();
        while shapes.len() < count {
            let line = self.next().ok_or_else(|| format!("the file ends after {} of {count} blocks", shapes.len()))?;
            let words = line.split(separates).filter(|word| !word.is_empty());
            for word in words.take(count - shapes.len()) {
                let size = word.strip_prefix('-').unwrap_or(word);
                let size = size.strip_prefix('+').unwrap_or(size);
                let order = size.parse::<usize>().ok().filter(|order| (1..=MAXIMUM_ORDER).contains(order));
                let order = order.ok_or_else(|| {
                    format!(
                        "block {} has the order '{word}', but must have 1 to {MAXIMUM_ORDER} rows",
                        shapes.len() + 1
                    )
                })?;
                shapes.push(ProofShape { order, diagonal: word.starts_with('-') || order == 1 });
            }
        }
        Ok(shapes)
    }
}

fn sdpa(bytes: &[u8], room: &Room) -> std::result::Result<Program, String> {
    let mut lines = SdpaLines { rest: as_text(bytes)? };
    let variables = lines.count("number of constraints")?;
    let blocks = lines.count("number of blocks")?;
    let shapes = lines.shapes(blocks)?;
    let mut words = lines.rest.split(separates).filter(|word| !word.is_empty());
    let mut costs = Vec::new();
    for at in 0..variables {
        let word = words.next().ok_or_else(|| format!("the file ends after {at} of {variables} costs"))?;
        costs.push(room.number(word)?);
    }
    if costs.is_empty() || shapes.is_empty() {
        return Err("there are no constraints or no blocks: there is nothing to prove".into());
    }
    let (places, values) = entries(words, variables, &shapes, room)?;
    let sparse = ProofSparse { shapes, places, values: Scaled::read(&values, room)? };
    let constraints = ProofConstraints::Sparse(sparse);
    let group = ProofGroup { costs: Scaled::read(&costs, room)?, free: Scaled::new(&[]), constraints };
    Ok(Program { groups: vec![group], ..Program::empty() })
}

/// The entries behind the costs, block by block; zeros are left out.
fn entries<'a>(
    mut words: impl Iterator<Item = &'a str>,
    variables: usize,
    shapes: &[ProofShape],
    room: &Room,
) -> std::result::Result<(Vec<Place>, Vec<Rational>), String> {
    let (mut entries, mut seen) = (Vec::new(), HashSet::new());
    let mut used = vec![false; variables];
    let mut number = 0;
    while let Some(first) = words.next() {
        number += 1;
        let named = |message: String| format!("entry {number}: {message}");
        let index = |word: &str, least: usize, most: usize| match word.parse::<usize>() {
            Ok(value) if (least..=most).contains(&value) => Ok(value),
            _ => Err(named(format!("'{word}' is not a whole number from {least} to {most}"))),
        };
        let mut next = || words.next().ok_or_else(|| named("the file ends within it".into()));
        if first.starts_with('*') {
            return Err(format!("the section '{first}' after the entries cannot be read"));
        }
        let constraint = index(first, 0, variables)?;
        let cone = index(next()?, 1, shapes.len())? - 1;
        let ProofShape { order, diagonal } = shapes[cone];
        let (left, right) = (index(next()?, 1, order)? - 1, index(next()?, 1, order)? - 1);
        let value = room.number(next()?).map_err(named)?;
        if diagonal && left != right {
            return Err(named(format!("it is off the diagonal of block {}, which is diagonal", cone + 1)));
        }
        let place = Place { variable: constraint.checked_sub(1), cone, row: left.max(right), col: left.min(right) };
        if !seen.insert((constraint, cone, place.row, place.col)) {
            return Err(named("its place has an entry already".into()));
        }
        if value != 0 {
            if let Some(variable) = place.variable {
                used[variable] = true;
            }
            entries.push((place, value));
        }
    }
    match used.iter().position(|used| !used) {
        Some(variable) => Err(format!("the matrix of constraint {} is 0", variable + 1)),
        None => {
            entries.sort_by_key(|(place, _)| place.cone);
            Ok(entries.into_iter().unzip())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: impl AsRef<[u8]>) -> Result<Program> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.dat-s");
        std::fs::write(&path, text).unwrap();
        read_exact(&path)
    }

    #[test]
    fn numbers_stand_as_they_are_written() -> Result<()> {
        let text = "\"a comment 1\n* another\n 2 = mDIM\n 3 =nBLOCK\n (2, -3, 1) = bLOCKsTRUCT\n{+1.5, -2e0}\n\
                    0 1 1 2 0.1\n1 1 1 1 1\n1 2 3 3 +7.0E-1\n2 1 2 1 -3\n2 1 2 2 0\n2 3 1 1 .5\n0 2 1 1 1d2\n";
        let program = read_text(text)?;
        let group = &program.groups[0];
        let ProofConstraints::Sparse(sparse) = &group.constraints else { panic!("sparse") };
        assert_eq!(
            sparse.shapes.iter().map(|shape| (shape.order, shape.diagonal)).collect::<Vec<_>>(),
            [(2, false), (3, true), (1, true)]
        );
        assert_eq!((group.costs.get(0), group.costs.get(1)), (Rational::from((3, 2)), Rational::from(-2)));
        assert_eq!(sparse.places.len(), 6);
        assert_eq!(sparse.values.get(0), Rational::from((1, 10)));
        // Block by block.
        assert_eq!(sparse.values.get(3), Rational::from((7, 10)));
        // Any other byte is another program.
        assert_ne!(read_text(text.replace("comment 1", "comment 2"))?.digest, program.digest);
        assert_eq!(read_text(text)?, program);
        Ok(())
    }

    #[test]
    fn bad_files_are_refused_with_their_numbers() {
        let refused = |text: &str| read_text(text).unwrap_err().to_string();
        assert!(refused("1\n1\n2\n1\n1 1 1 3 1\n").contains("'3' is not a whole number from 1 to 2"));
        assert!(refused("1\n1\n-2\n1\n1 1 1 2 1\n").contains("diagonal"));
        assert!(refused("1\n1\n2\n1\n1 1 1 2 1\n1 1 2 1 1\n").contains("its place has an entry already"));
        assert!(refused("1\n1\n2\n1\n1 1 1 2 one\n").contains("'one' is not a number"));
        assert!(refused("2\n1\n2\n1 1\n1 1 1 2 1\n").contains("constraint 2 is 0"));
        assert!(refused("1\n1\n0\n1\n").contains("order '0'"));
        assert!(refused("0\n1\n2\n").contains("nothing to prove"));
        assert!(refused("2\n1\n2\n1\n").contains("after 1 of 2 costs"));
        assert!(refused("x\n").contains("number of constraints is 'x'"));
        for compressed in [&[0x1f, 0x8b][..], &[0x28, 0xb5, 0x2f, 0xfd]] {
            assert!(read_text(compressed).unwrap_err().to_string().contains("uncompressed"));
        }
    }
}
