//! SDPB's blocks: `control.json`, `objectives.json`, `block_info_i.json`, and `block_data_i.json` or
//! `block_data_i.bin`, in a directory or an archive.
//!
//! Format: the page "SDPB Input Format" of SDPB, and its JSON schemas.

use super::binary::{self, BlockData, Shapes};
use super::store::Store;
use crate::numbers::rounded;
use crate::problem::{Constraints, Form, Group, Problem, Sampled};
use rug::Float;
use serde_json::Value;
use std::io::Read;
use std::path::PathBuf;
use sunzi::io::{FileFormat, ReadOptions, Source, parse_number, read_stream};
use sunzi::{Error, Matrix, Result};

/// Bytes at most of a member of an archive with a few numbers: the command in control.json names many files.
const SMALL_BYTES: u64 = 16 << 20;

/// Bytes at most of one with a number for each free variable.
const VECTOR_BYTES: u64 = 64 << 20;

/// Bytes at most of a number of a block, in addition to its digits.
const NUMBER_BYTES: u64 = 4096;

/// Reads a directory or an archive; see [`super::read_problem`].
pub fn read(store: &Store, precision_bits: u32) -> Result<Problem> {
    let control = ObjectFile::read(store, "control.json", SMALL_BYTES)?;
    let count = control.count("num_blocks")?;
    if count == 0 {
        return Err(control.error("'num_blocks' is 0: there is nothing to solve"));
    }
    let objectives = ObjectFile::read(store, "objectives.json", VECTOR_BYTES)?;
    let constant = objectives.number("constant", precision_bits)?;
    let objective = match objectives.is_empty_list("b") {
        true => Matrix::zeros(0, 1, precision_bits)?,
        false => JsonFile { store, name: "objectives.json", bits: precision_bits, most: VECTOR_BYTES }.column("b")?,
    };
    let groups = (0..count).map(|block| read_group(store, block, precision_bits, objective.rows()));
    let groups = groups.collect::<Result<Vec<_>>>()?;
    let beyond = format!("block_info_{count}.json");
    if store.has(&beyond) {
        let beyond = store.path(&beyond);
        return Err(control.error(&format!(
            "'num_blocks' is {count}, but there is a file {}: correct the number, or remove files of another program",
            beyond.display()
        )));
    }
    let name = "normalization.json";
    let normalization = match store.has(name) {
        true => Some(JsonFile { store, name, bits: precision_bits, most: VECTOR_BYTES }.column("normalization")?),
        false => None,
    };
    Ok(Problem { form: Form::Sdpb, precision_bits, constant, objective, groups, normalization })
}

fn read_group(store: &Store, block: usize, bits: u32, free: usize) -> Result<Group> {
    let info = ObjectFile::read(store, &format!("block_info_{block}.json"), SMALL_BYTES)?;
    let (dim, points) = (info.count("dim")?, info.count("num_points")?);
    let Some(variables) = dim.checked_add(1).and_then(|next| dim.checked_mul(next)?.checked_mul(points)) else {
        return Err(
            info.error(&format!("a block of dim {dim} at {points} points has more variables than can be counted"))
        );
    };
    let shapes = Shapes { variables: variables / 2, points, free };
    let [text, binary] = ["json", "bin"].map(|ending| format!("block_data_{block}.{ending}"));
    // Where both exist, SDPB takes the binary one.
    let (name, data) = match store.has(&binary) {
        true => {
            let path = store.path(&binary);
            let read = |file: &mut dyn Read| binary::read(file, &path, &shapes, bits);
            let data = store.with(&binary, shapes.most_bytes(bits), read)?;
            (binary, data)
        }
        false => {
            let data = JsonFile { store, name: &text, bits, most: shapes.most_bytes(bits) }.block(&shapes)?;
            (text, data)
        }
    };
    let refused = |message: String| Error::Format { path: store.path(&name), message };
    let named = |error| match error {
        Error::InvalidArgument(message) => refused(message),
        other => other,
    };
    let BlockData { free: b, costs, bases } = data;
    let sampled = Sampled::new(dim, points, bases).map_err(named)?;
    for (name, found, wanted) in
        [("c", (costs.rows(), 1), (shapes.variables, 1)), ("B", (b.rows(), b.cols()), (shapes.variables, free))]
    {
        if found != wanted {
            return Err(refused(format!(
                "'{name}' is {} x {} instead of {} x {} for dim {dim}, {points} points and {free} free variables",
                found.0, found.1, wanted.0, wanted.1
            )));
        }
    }
    Ok(Group { costs, free: b, constraints: Constraints::Sampled(sampled) })
}

impl Shapes {
    /// Bytes at most of a file with the numbers of such a block.
    fn most_bytes(&self, bits: u32) -> u64 {
        let variables = (self.variables as u64).saturating_mul(self.free as u64 + 1);
        let numbers = variables.saturating_add((self.points as u64).saturating_mul(self.points as u64));
        numbers.saturating_add(1).saturating_mul(NUMBER_BYTES + 2 * u64::from(bits))
    }
}

/// A JSON file with matrices, read by the library's reader.
struct JsonFile<'a> {
    store: &'a Store,
    name: &'a str,
    bits: u32,
    most: u64,
}

impl JsonFile<'_> {
    fn matrix(&self, member: &str) -> Result<Matrix> {
        let path = self.store.path(self.name);
        let source = Source::new(&path, FileFormat::Json).member(member);
        let options = ReadOptions::new(self.bits);
        let read = |file: &mut dyn Read| read_stream(file, &source, &options);
        rounded(self.store.with(self.name, self.most, read)?.matrix, self.bits)
    }

    fn column(&self, member: &str) -> Result<Matrix> {
        let matrix = self.matrix(member)?;
        match matrix.cols() {
            1 => Ok(matrix),
            cols => {
                let message = format!("'{member}' is {} x {cols} instead of a list of numbers", matrix.rows());
                Err(Error::Format { path: self.store.path(self.name), message })
            }
        }
    }

    fn block(&self, shapes: &Shapes) -> Result<BlockData> {
        let even = self.matrix("bilinear_bases_even")?;
        let odd = match shapes.points {
            0 | 1 => Matrix::zeros(0, shapes.points, self.bits)?,
            _ => self.matrix("bilinear_bases_odd")?,
        };
        let free = match shapes.free {
            0 => Matrix::zeros(shapes.variables, 0, self.bits)?,
            _ => self.matrix("B")?,
        };
        Ok(BlockData { free, costs: self.column("c")?, bases: [even, odd] })
    }
}

/// A small file that holds an object.
struct ObjectFile {
    path: PathBuf,
    value: Value,
}

impl ObjectFile {
    fn read(store: &Store, name: &str, most_bytes: u64) -> Result<ObjectFile> {
        let path = store.path(name);
        let text = store.with(name, most_bytes, |file| {
            let mut text = Vec::new();
            let read = file.read_to_end(&mut text);
            read.map_err(|source| Error::Io { path: path.clone(), action: "read", source })?;
            Ok(text)
        })?;
        // Behind a byte order mark, as some editors write it.
        match serde_json::from_slice(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text)) {
            Ok(value @ Value::Object(_)) => Ok(ObjectFile { path, value }),
            Ok(_) => Err(Error::Format { path, message: "the file must be one object of JSON, {...}".into() }),
            Err(error) => Err(Error::Format { path, message: error.to_string() }),
        }
    }

    fn error(&self, message: &str) -> Error {
        Error::Format { path: self.path.clone(), message: message.into() }
    }

    fn get(&self, key: &str) -> Result<&Value> {
        self.value.get(key).ok_or_else(|| self.error(&format!("there is no '{key}'")))
    }

    fn count(&self, key: &str) -> Result<usize> {
        let found = self.get(key)?;
        let count = found.as_u64().and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| self.error(&format!("'{key}' is {found}, but must be a whole number of at least 0")))
    }

    fn is_empty_list(&self, key: &str) -> bool {
        self.value.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty)
    }

    fn number(&self, key: &str, bits: u32) -> Result<Float> {
        let text = match self.get(key)? {
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_f64() => {
                return Err(self.error(&format!(
                    "'{key}' must be in quotation marks: without them a fraction is read as a double, here as {number}"
                )));
            }
            other => other.to_string(),
        };
        match parse_number(&text, bits) {
            Ok(number) => Ok(Float::with_val(bits, number.value)),
            Err(error) => Err(self.error(&format!("'{key}' is '{text}': {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const DATA: &str = r#"{"bilinear_bases_even": [["1", "1"]], "bilinear_bases_odd": [["0.5", "2"]],
                           "c": ["1", "2"], "B": [["1", "0"], ["3", "4"]]}"#;

    fn read(folder: &Path, bits: u32) -> Result<Problem> {
        super::read(&Store::open(folder)?, bits)
    }

    fn folder(data: &str, objectives: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("control.json", r#"{"num_blocks": 1, "command": "none"}"#);
        write("objectives.json", objectives);
        write("block_info_0.json", r#"{"dim": 1, "num_points": 2}"#);
        write("block_data_0.json", data);
        folder
    }

    #[test]
    fn a_directory_is_read_and_what_does_not_fit_is_refused() -> Result<()> {
        let objectives = r#"{"constant": "1.5", "b": ["1", "-2"]}"#;
        let problem = read(folder(DATA, objectives).path(), 100)?;
        assert_eq!((problem.constant.to_f64(), problem.objective.view().to_f64s()), (1.5, vec![1.0, -2.0]));
        assert_eq!((problem.variables(), problem.total_rows(), problem.groups[0].free.cols()), (2, 2, 2));
        let refused =
            |data: &str, objectives: &str| read(folder(data, objectives).path(), 100).unwrap_err().to_string();
        assert!(refused(DATA, r#"{"constant": "x", "b": ["1", "-2"]}"#).contains("'constant' is 'x'"));
        assert!(refused(DATA, r#"{"constant": "1", "b": ["1"]}"#).contains("'B' is 2 x 2 instead of 2 x 1"));
        assert!(refused(DATA, r#"{"b": ["1", "2"]}"#).contains("no 'constant'"));
        let marked = |text: &str| format!("\u{feff}{text}");
        let problem = read(folder(&marked(DATA), &marked(objectives)).path(), 100)?;
        assert_eq!((problem.constant.to_f64(), problem.groups[0].free.cols()), (1.5, 2));
        assert!(refused(&DATA.replace(r#"["1", "2"], "B""#, r#"["1"], "B""#), objectives).contains("'c' is 1 x 1"));
        assert!(refused(&DATA.replace("0.5", "many"), objectives).contains("many"));
        assert!(refused(&DATA.replace(r#""c""#, r#""d""#), objectives).contains("no key 'c'"));
        let one = folder(DATA, objectives);
        std::fs::remove_file(one.path().join("block_data_0.json")).unwrap();
        assert!(read(one.path(), 100).unwrap_err().to_string().contains("block_data_0.json"));
        std::fs::write(one.path().join("control.json"), r#"{"num_blocks": -1}"#).unwrap();
        assert!(read(one.path(), 100).unwrap_err().to_string().contains("'num_blocks' is -1"));
        Ok(())
    }
}
