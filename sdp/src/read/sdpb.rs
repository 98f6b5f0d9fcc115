//! SDPB's directory: `control.json`, `objectives.json`, `block_info_i.json`, `block_data_i.json`.
//!
//! Format: the page "SDPB Input Format" of SDPB, and its JSON schemas.

use crate::numbers::rounded;
use crate::problem::{Constraints, Form, Group, Problem, Sampled};
use rug::Float;
use serde_json::Value;
use std::path::{Path, PathBuf};
use sunzi::io::{self, ReadOptions, parse_number};
use sunzi::{Error, Matrix, Result};

/// Reads a directory; see [`super::read_problem`].
pub fn read(folder: &Path, precision_bits: u32) -> Result<Problem> {
    let control = Object::read(folder.join("control.json"))?;
    let count = control.count("num_blocks")?;
    if count == 0 {
        return Err(control.error("'num_blocks' is 0: there is nothing to solve"));
    }
    let objectives = Object::read(folder.join("objectives.json"))?;
    let constant = objectives.number("constant", precision_bits)?;
    let objective = match objectives.is_empty_list("b") {
        true => Matrix::zeros(0, 1, precision_bits)?,
        false => column(matrix(&objectives.path, "b", precision_bits)?, &objectives.path, "b")?,
    };
    let groups = (0..count).map(|block| read_group(folder, block, precision_bits, objective.rows()));
    let groups = groups.collect::<Result<Vec<_>>>()?;
    let beyond = folder.join(format!("block_info_{count}.json"));
    if beyond.exists() {
        let beyond = beyond.display();
        return Err(control.error(&format!("'num_blocks' is {count}, and there is a file {beyond}")));
    }
    let path = folder.join("normalization.json");
    let normalization = match path.exists() {
        true => Some(column(matrix(&path, "normalization", precision_bits)?, &path, "normalization")?),
        false => None,
    };
    Ok(Problem { form: Form::Sdpb, precision_bits, constant, objective, groups, normalization })
}

fn read_group(folder: &Path, block: usize, bits: u32, free: usize) -> Result<Group> {
    let info = Object::read(folder.join(format!("block_info_{block}.json")))?;
    let (dim, points) = (info.count("dim")?, info.count("num_points")?);
    let data = folder.join(format!("block_data_{block}.json"));
    if !data.exists() && data.with_extension("bin").exists() {
        return Err(Error::Format {
            path: data.with_extension("bin"),
            message: "blocks in SDPB's binary form are not read: write them with pmp2sdp --outputFormat=json".into(),
        });
    }
    let even = matrix(&data, "bilinear_bases_even", bits)?;
    let odd = match points {
        0 | 1 => Matrix::zeros(0, points, bits)?,
        _ => matrix(&data, "bilinear_bases_odd", bits)?,
    };
    let named = |error| match error {
        Error::InvalidArgument(message) => Error::Format { path: data.clone(), message },
        other => other,
    };
    let sampled = Sampled::new(dim, points, [even, odd]).map_err(named)?;
    let costs = column(matrix(&data, "c", bits)?, &data, "c")?;
    let variables = sampled.variables();
    let b = match free {
        0 => Matrix::zeros(variables, 0, bits)?,
        _ => matrix(&data, "B", bits)?,
    };
    for (name, found, wanted) in
        [("c", (costs.rows(), 1), (variables, 1)), ("B", (b.rows(), b.cols()), (variables, free))]
    {
        if found != wanted {
            let message = format!(
                "'{name}' is {} x {}, and {} x {} is wanted for dim {dim}, {points} points and {free} free variables",
                found.0, found.1, wanted.0, wanted.1
            );
            return Err(Error::Format { path: data, message });
        }
    }
    Ok(Group { costs, free: b, constraints: Constraints::Sampled(sampled) })
}

/// A matrix of a JSON file, by the library's reader.
fn matrix(path: &Path, member: &str, bits: u32) -> Result<Matrix> {
    let name = format!("{}:{member}", path.display());
    rounded(io::read(name, &ReadOptions::new(bits))?.matrix, bits)
}

fn column(matrix: Matrix, path: &Path, member: &str) -> Result<Matrix> {
    match matrix.cols() {
        1 => Ok(matrix),
        cols => {
            let message = format!("'{member}' is {} x {cols}, and should be a list of numbers", matrix.rows());
            Err(Error::Format { path: path.to_path_buf(), message })
        }
    }
}

/// A small file that holds an object.
struct Object {
    path: PathBuf,
    value: Value,
}

impl Object {
    fn read(path: PathBuf) -> Result<Object> {
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|source| Error::Io { path: path.clone(), action: "read", source })?;
        match serde_json::from_str(&text) {
            Ok(value @ Value::Object(_)) => Ok(Object { path, value }),
            Ok(_) => Err(Error::Format { path, message: "an object is expected".into() }),
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
        count.ok_or_else(|| self.error(&format!("'{key}' is {found}, and should be a number of at least 0")))
    }

    fn is_empty_list(&self, key: &str) -> bool {
        self.value.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty)
    }

    fn number(&self, key: &str, bits: u32) -> Result<Float> {
        let text = match self.get(key)? {
            Value::String(text) => text.clone(),
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

    const DATA: &str = r#"{"bilinear_bases_even": [["1", "1"]], "bilinear_bases_odd": [["0.5", "2"]],
                           "c": ["1", "2"], "B": [["1", "0"], ["3", "4"]]}"#;

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
        assert!(refused(DATA, r#"{"constant": "1", "b": ["1"]}"#).contains("'B' is 2 x 2, and 2 x 1 is wanted"));
        assert!(refused(DATA, r#"{"b": ["1", "2"]}"#).contains("no 'constant'"));
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
