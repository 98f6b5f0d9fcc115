//! SDPA's sparse format as a program of one group.

use crate::block::Shape;
use crate::numbers::{rounded, trimmed};
use crate::problem::{Constraints, Entry, Form, Group, Problem, Sparse, SparseCone};
use rug::Float;
use std::io::Read;
use std::path::Path;
use sunzi::io::{FileFormat, ReadOptions, SdpaProgram, Source, read_sdpa, read_sdpa_stream};
use sunzi::{Error, Matrix, Result};

/// Reads a file; see [`super::read_problem`].
pub fn read(path: &Path, precision_bits: u32) -> Result<Problem> {
    problem(read_sdpa(path, &ReadOptions::new(precision_bits))?, path, precision_bits)
}

/// Reads a stream that messages call `path`; see [`super::read_problem_from`].
pub fn read_stream(reader: impl Read, path: &Path, precision_bits: u32) -> Result<Problem> {
    let source = Source::new(path, FileFormat::Sdpa);
    problem(read_sdpa_stream(reader, &source, &ReadOptions::new(precision_bits))?, path, precision_bits)
}

fn problem(program: SdpaProgram, path: &Path, precision_bits: u32) -> Result<Problem> {
    let refused = |message: String| Error::Format { path: path.to_path_buf(), message };
    if let Some(block) = program.blocks.iter().position(|block| block.order == 0) {
        return Err(refused(format!("block {} has no rows", block + 1)));
    }
    let variables = program.costs.rows();
    if variables == 0 {
        return Err(refused("there are no constraints: there is nothing to optimise".into()));
    }
    let sparse = sparse(&program);
    Ok(Problem {
        form: Form::Sdpa,
        precision_bits,
        constant: Float::new(precision_bits),
        objective: Matrix::zeros(0, 1, precision_bits)?,
        groups: vec![Group {
            costs: rounded(program.costs, precision_bits)?,
            free: Matrix::zeros(variables, 0, precision_bits)?,
            constraints: Constraints::Sparse(sparse),
        }],
        normalization: None,
    })
}

fn sparse(program: &SdpaProgram) -> Sparse {
    let shape = |block: &sunzi::io::SdpaBlock| match (block.diagonal, block.order) {
        (false, order) if order > 1 => Shape::Dense(order),
        (_, order) => Shape::Diagonal(order),
    };
    let entry = |(at, place): (usize, &sunzi::io::SdpaEntry)| {
        let value = program.values.float(at, 0);
        let entry = Entry { row: place.row, col: place.col, value };
        PlacedEntry { variable: place.constraint.checked_sub(1), cone: place.block, entry }
    };
    let shapes = program.blocks.iter().map(shape).collect();
    grouped(program.costs.rows(), shapes, program.entries.iter().enumerate().map(entry).collect())
}

/// An entry, and the matrix that it belongs to.
pub struct PlacedEntry {
    /// The variable; none of C.
    pub variable: Option<usize>,
    /// The block.
    pub cone: usize,
    /// Its place in the block, and the number.
    pub entry: Entry,
}

/// The matrices of entries; zeros are left out.
pub fn grouped(variables: usize, shapes: Vec<Shape>, mut entries: Vec<PlacedEntry>) -> Sparse {
    let cone = |shape| SparseCone { shape, active: Vec::new(), entries: Vec::new(), constant: Vec::new() };
    let mut cones = shapes.into_iter().map(cone).collect::<Vec<_>>();
    entries.retain(|placed| placed.entry.value != 0);
    entries.sort_by_key(|placed| placed.variable);
    for PlacedEntry { variable, cone, entry } in entries {
        let (cone, entry) = (&mut cones[cone], Entry { value: trimmed(entry.value), ..entry });
        let Some(variable) = variable else {
            cone.constant.push(entry);
            continue;
        };
        if cone.active.last() != Some(&variable) {
            cone.active.push(variable);
            cone.entries.push(Vec::new());
        }
        if let Some(entries) = cone.entries.last_mut() {
            entries.push(entry);
        }
    }
    Sparse::new(variables, cones)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Problem> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.dat-s");
        std::fs::write(&path, text).unwrap();
        read(&path, 128)
    }

    #[test]
    fn blocks_comments_zeros_and_forms_of_numbers_are_read() -> Result<()> {
        let text = "\"a comment\n* another\n 2 = mDIM\n 3 =nBLOCK\n (2, -3, 1) = bLOCKsTRUCT\n{+1.5, -2e0}\n\
                    0 1 1 2 0.25\n1 1 1 1 1\n1 2 3 3 +7.0E-1\n2 1 2 1 -3\n2 1 2 2 0\n2 3 1 1 .5\n0 2 1 1 1d2\n";
        let problem = read_text(text)?;
        let Constraints::Sparse(sparse) = &problem.groups[0].constraints else { panic!("sparse") };
        assert_eq!(
            sparse.cones.iter().map(|cone| cone.shape).collect::<Vec<_>>(),
            [Shape::Dense(2), Shape::Diagonal(3), Shape::Diagonal(1)]
        );
        assert_eq!(sparse.cones[0].active, [0, 1]);
        assert_eq!(sparse.cones[0].entries[1].len(), 1);
        assert_eq!((sparse.cones[0].entries[1][0].row, sparse.cones[0].entries[1][0].col), (1, 0));
        assert_eq!(sparse.cones[1].constant[0].value, 100);
        assert!(sparse.cones[0].entries[0][0].value.prec() < 10);
        assert_eq!(problem.groups[0].costs.view().to_f64s(), [1.5, -2.0]);
        Ok(())
    }

    #[test]
    fn bad_files_are_refused_with_their_numbers() {
        let refused = |text: &str| read_text(text).unwrap_err().to_string();
        assert!(refused("1\n1\n2\n1\n1 1 1 3 1\n").contains("column 3 is outside 1 to 2"));
        assert!(refused("1\n1\n-2\n1\n1 1 1 2 1\n").contains("diagonal"));
        assert!(refused("1\n1\n2\n1\n1 1 1 2 1\n1 1 2 1 1\n").contains("second entry"));
        assert!(refused("1\n1\n2\n1\n1 1 1 2 one\n").contains("one"));
        assert!(refused("1\n1\n0\n1\n").contains("no rows"));
        assert!(refused("0\n1\n2\n").contains("no constraints"));
        assert!(refused("2\n1\n2\n1\n").contains("after 1 of 2 costs"));
    }
}
