//! SDPB's output directory: `out.txt`, `x_j.txt`, `y.txt`, `z.txt`, `X_matrix_i.txt`, `Y_matrix_i.txt`,
//! `c_minus_By/c_minus_By.json`. The names of matrices count even and odd blocks; those of SDPA's programs all blocks.

use super::aside::set_aside;
use super::text::matrix;
use super::{decimal, write_text_among};
use crate::iterate::{Solution, block_numbers};
use crate::problem::{Form, Problem};
use rug::Float;
use std::collections::HashSet;
use std::path::Path;
use sunzi::blas::{GemvOptions, dot, gemv_with};
use sunzi::io::AtomicFiles;
use sunzi::{Context, Error, Matrix, Result};

/// The parts of the solution that are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriteSolution {
    /// `x_j.txt`.
    pub x: bool,
    /// `y.txt`.
    pub y: bool,
    /// `z.txt`, for which the program needs a normalization.
    pub z: bool,
    /// `X_matrix_i.txt`.
    pub primal: bool,
    /// `Y_matrix_i.txt`.
    pub dual: bool,
}

impl WriteSolution {
    /// Parses SDPB's list: x, y, z, X, Y, separated by commas or blanks.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the first invalid word.
    pub fn parse(list: &str) -> Result<WriteSolution> {
        let mut found = WriteSolution::default();
        for word in list.split([',', ' ']).filter(|word| !word.is_empty()) {
            *match word {
                "x" => &mut found.x,
                "y" => &mut found.y,
                "z" => &mut found.z,
                "X" => &mut found.primal,
                "Y" => &mut found.dual,
                _ => {
                    return Err(Error::InvalidArgument(format!(
                        "writeSolution must be a list of x, y, z, X and Y, separated by commas: '{word}' is not one of \
                         them"
                    )));
                }
            } = true;
        }
        Ok(found)
    }
}

/// The text of `out.txt`.
fn out_txt(solution: &Solution) -> String {
    let quality = &solution.quality;
    format!(
        "terminateReason = \"{}\";\nprimalObjective = {};\ndualObjective   = {};\ndualityGap      = {};\n\
         primalError     = {};\ndualError       = {};\nSolver runtime  = {};\n",
        solution.termination,
        decimal(&quality.primal_objective),
        decimal(&quality.dual_objective),
        decimal(&quality.gap),
        decimal(quality.primal_error()),
        decimal(&quality.dual_error),
        solution.seconds as u64,
    )
}

/// z with `n . z = 1` for the normalization `n`: y with an entry put in where `n` is largest.
///
/// # Errors
/// [`Error::InvalidArgument`] where there is no normalization, or one of another length.
fn z_of(problem: &Problem, y: &Matrix) -> Result<Matrix> {
    let Some(n) = &problem.normalization else {
        return Err(Error::InvalidArgument("writeSolution lists z, but the program has no normalization.json".into()));
    };
    if n.rows() != y.rows() + 1 {
        let (found, wanted) = (n.rows(), y.rows() + 1);
        return Err(Error::InvalidArgument(format!("normalization.json has {found} numbers instead of {wanted}")));
    }
    let size = |row: usize| n.float(row, 0).abs();
    let at = (1..n.rows()).fold(0, |best, row| if size(row) > size(best) { row } else { best });
    if n.float(at, 0) == 0 {
        return Err(Error::InvalidArgument("all numbers of normalization.json are 0".into()));
    }
    let bits = y.precision_bits();
    let ctx = Context::builder().threads(1).build()?;
    let place = |row: usize| match row {
        row if row < at => y.float(row, 0),
        row if row > at => y.float(row - 1, 0),
        _ => Float::new(bits),
    };
    let mut z = Matrix::from_fn(n.rows(), 1, bits, |row, _| place(row))?;
    let rest = Float::with_val(bits, 1) - dot(&ctx, n, &z, bits)?;
    z.set_float(at, 0, &(rest / n.float(at, 0)))?;
    Ok(z)
}

/// `{"c_minus_By": [[...], ...]}`.
fn c_minus_by(problem: &Problem, y: &Matrix) -> Result<String> {
    let (ctx, bits) = (Context::builder().threads(1).build()?, problem.precision_bits);
    let minus = Float::with_val(2, -1);
    let list = problem.groups.iter().map(|group| {
        let rest = match y.rows() {
            0 => group.costs.clone(),
            _ => {
                let options = GemvOptions::new().alpha(&minus).accumulate(group.costs.view());
                gemv_with(&ctx, &group.free, y, bits, &options)?.result
            }
        };
        let numbers = (0..rest.rows()).map(|row| format!("\"{}\"", decimal(&rest.float(row, 0))));
        Ok(format!("[{}]", numbers.collect::<Vec<_>>().join(",")))
    });
    Ok(format!("{{\"c_minus_By\":[{}]}}\n", list.collect::<Result<Vec<_>>>()?.join(",")))
}

/// A part of a solution that has a file.
#[derive(Clone, Copy)]
enum SolutionPart {
    Free,
    Whole,
    Variables(usize),
    Primal(usize),
    Dual(usize),
}

/// The files of these parts of a solution, in the order in which they are written.
fn files_of(problem: &Problem, parts: WriteSolution) -> Vec<(String, SolutionPart)> {
    let single = [(parts.y, "y.txt", SolutionPart::Free), (parts.z, "z.txt", SolutionPart::Whole)];
    let single = single.into_iter().filter(|(is_written, ..)| *is_written).map(|(_, name, part)| (name.into(), part));
    let variables = (0..problem.groups.len()).filter(|_| parts.x);
    let variables = variables.map(|group| (format!("x_{group}.txt"), SolutionPart::Variables(group)));
    let blocks = block_numbers(problem).into_iter().enumerate().flat_map(|(at, number)| {
        let primal = parts.primal.then(|| (format!("X_matrix_{number}.txt"), SolutionPart::Primal(at)));
        let dual = parts.dual.then(|| (format!("Y_matrix_{number}.txt"), SolutionPart::Dual(at)));
        primal.into_iter().chain(dual)
    });
    single.chain(variables).chain(blocks).collect()
}

/// The names of all files that are written with these parts.
fn names_of(problem: &Problem, parts: WriteSolution) -> HashSet<String> {
    let names = files_of(problem, parts).into_iter().map(|(name, _)| name);
    names.chain((problem.form == Form::Sdpa).then(|| "result.txt".into())).collect()
}

/// Writes a solution into `folder`, which is created if it is missing, among `files`; `out.txt` appears last, when all
/// other files are complete. Files of earlier runs that are not written anew are moved to a separate folder.
///
/// # Errors
/// [`Error::Io`]; [`Error::InvalidArgument`] if z is requested but there is no normalization.
pub fn write_solution(
    files: &mut AtomicFiles,
    folder: &Path,
    (problem, solution): (&Problem, &Solution),
    parts: WriteSolution,
) -> Result<()> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| Error::Io { path, action: "create", source }
    };
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    set_aside(folder, &names_of(problem, parts))?;
    let point = &solution.point;
    for (name, part) in files_of(problem, parts) {
        let text = match part {
            SolutionPart::Free => matrix(&point.y),
            SolutionPart::Whole => matrix(&z_of(problem, &point.y)?),
            SolutionPart::Variables(group) => matrix(&point.x[group]),
            SolutionPart::Primal(at) => matrix(point.primal[at].stored()),
            SolutionPart::Dual(at) => matrix(point.dual[at].stored()),
        };
        write_text_among(files, &folder.join(name), &text)?;
    }
    if problem.form == Form::Sdpb {
        let inner = folder.join("c_minus_By");
        std::fs::create_dir_all(&inner).map_err(io(&inner))?;
        write_text_among(files, &inner.join("c_minus_By.json"), &c_minus_by(problem, &point.y)?)?;
    }
    // Where it exists, all other files of this run exist, and none of an earlier one, even after a crash of the
    // machine.
    files.sync()?;
    write_text_among(files, &folder.join("out.txt"), &out_txt(solution))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_parts_are_read() {
        let parse = |text: &str| WriteSolution::parse(text);
        assert_eq!(parse("x,y").unwrap(), WriteSolution { x: true, y: true, ..WriteSolution::default() });
        assert_eq!(parse("").unwrap(), WriteSolution::default());
        let all = WriteSolution { x: true, y: true, z: true, primal: true, dual: true };
        assert_eq!(parse("z X, Y,x,y").unwrap(), all);
        assert!(parse("x,w").unwrap_err().to_string().contains("'w'"));
    }
}
