//! The files of a command's operands, named where their shapes do not fit: a shape alone does not show which file it is
//! of, and two files may have been given in the wrong order.

use crate::args::{Command, Gemm, Syrk, Verify, VerifyOperation};
use crate::files::header;
use std::path::{Path, PathBuf};
use sunzi::Error;

/// The name of a matrix that is added to a product.
const ADDED: &str = "--accumulate";

/// An operand, by its name in the help.
type Named<'a> = (&'static str, &'a PathBuf);

/// The operands of a command, in the order of the command line.
pub struct Operands(Vec<(&'static str, PathBuf)>);

impl Operands {
    /// Those of `command`; none of one that reads no matrices, or any number of them.
    pub fn of(command: &Command) -> Operands {
        let mut named: Vec<Named<'_>> = match command {
            Command::Syrk(args) => vec![("P", &args.p)],
            Command::Gemm(args) => vec![("A", &args.a), ("B", &args.b)],
            Command::Cholesky(args) => vec![("A", &args.factor.a)],
            Command::Solve(args) => vec![("A", &args.factor.a), ("B", &args.b)],
            Command::Inverse(args) => vec![("A", &args.factor.a)],
            Command::Trsm(args) => vec![("T", &args.t), ("B", &args.b)],
            Command::Compare(args) => vec![("LEFT", &args.left), ("RIGHT", &args.right)],
            Command::Verify(args) => verified(args),
            _ => Vec::new(),
        };
        if let Command::Syrk(Syrk { choices, .. }) | Command::Gemm(Gemm { choices, .. }) = command {
            named.extend(choices.accumulate.as_ref().map(|path| (ADDED, path)));
        }
        Operands(named.into_iter().map(|(name, path)| (name, path.clone())).collect())
    }

    /// A refusal of shapes with the files that have them; every other error as it is.
    pub fn named_in(&self, error: Error) -> Error {
        let Some((_, path)) = self.wrong(&error) else { return error };
        let place = |(name, path): &(&str, PathBuf)| match shape(path) {
            Some((rows, cols)) => format!("{name} is {}, {rows} x {cols}", path.display()),
            None => format!("{name} is {}", path.display()),
        };
        let message = match &self.0[..] {
            [_] => error.to_string(),
            several => {
                let places = several.iter().map(place).collect::<Vec<_>>().join("; ");
                let may_be_swapped = several.iter().filter(|(name, _)| *name != ADDED).count() > 1;
                let question = if may_be_swapped { "; are they in the right order?" } else { "" };
                format!("{error} ({places}{question})")
            }
        };
        Error::Format { path: path.clone(), message }
    }

    /// The operand that a refusal of shapes is about: the one that is not square where it has to be, else the first.
    fn wrong(&self, error: &Error) -> Option<&(&'static str, PathBuf)> {
        match error {
            Error::NotSquare { rows, cols, .. } => {
                let has_shape = |(_, path): &&(&'static str, PathBuf)| shape(path) == Some((*rows, *cols));
                self.0.iter().find(has_shape).or(self.0.first())
            }
            Error::ShapeMismatch { .. } => self.0.first(),
            _ => None,
        }
    }
}

/// The operands and the result of a check.
fn verified(args: &Verify) -> Vec<Named<'_>> {
    match &args.operation {
        VerifyOperation::Syrk(args) => vec![("P", &args.p), ("Q", &args.q)],
        VerifyOperation::Gemm(args) => vec![("A", &args.a), ("B", &args.b), ("C", &args.c)],
        VerifyOperation::Cholesky(args) => vec![("A", &args.a), ("L", &args.l)],
        VerifyOperation::Solve(args) => vec![("A", &args.a), ("B", &args.b), ("X", &args.x)],
        VerifyOperation::Trsm(args) => vec![("T", &args.t), ("B", &args.b), ("X", &args.x)],
        VerifyOperation::Inverse(args) => vec![("A", &args.a), ("X", &args.x)],
        VerifyOperation::Sdp(_) => Vec::new(),
    }
}

/// The shape in the header of a file; `None` for a stream, which cannot be read again.
fn shape(path: &Path) -> Option<(usize, usize)> {
    header(path).ok().flatten().map(|info| (info.rows, info.cols))
}
