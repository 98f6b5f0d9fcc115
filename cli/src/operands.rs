//! The files of a command's operands, named in messages about shapes that do not fit: a shape does not show the file
//! that it belongs to, and two files may have been given in the wrong order.

use crate::args::{Command, Eigenvalue, Gemm, Syrk, Verify, VerifyOperation};
use crate::files::header;
use std::path::{Path, PathBuf};
use sunzi::Error;

/// The name of a matrix that is added to a product.
const ADDED: &str = "--accumulate";

/// An operand.
struct NamedOperand {
    /// Its name in the help.
    name: &'static str,
    path: PathBuf,
}

/// The operands of a command, in the order of the command line.
pub struct NamedOperands(Vec<NamedOperand>);

impl NamedOperands {
    /// The operands of `command`; none for a command that reads no matrices, or any number of them.
    pub fn of(command: &Command) -> NamedOperands {
        let mut named = match command {
            Command::Syrk(args) => vec![("P", &args.p)],
            Command::Gemm(args) => vec![("A", &args.a), ("B", &args.b)],
            Command::Cholesky(args) => vec![("A", &args.factor.a)],
            Command::Lu(args) => vec![("A", &args.a)],
            Command::Solve(args) => vec![("A", &args.factor.a), ("B", &args.b)],
            Command::Inverse(args) => vec![("A", &args.factor.a)],
            Command::Trsm(args) => vec![("T", &args.t), ("B", &args.b)],
            Command::Eigenvalue(args) => vec![("A", &args.a)],
            Command::Compare(args) => vec![("LEFT", &args.left), ("RIGHT", &args.right)],
            Command::Verify(args) => verified(args),
            _ => Vec::new(),
        };
        if let Command::Syrk(Syrk { choices, .. }) | Command::Gemm(Gemm { choices, .. }) = command {
            named.extend(choices.accumulate.as_ref().map(|path| (ADDED, path)));
        }
        if let Command::Eigenvalue(Eigenvalue { factor: Some(factor), .. }) = command {
            named.push(("--factor", factor));
        }
        NamedOperands(named.into_iter().map(|(name, path)| NamedOperand { name, path: path.clone() }).collect())
    }

    /// Adds the files to an error about shapes; every other error is returned unchanged.
    pub fn named_in(&self, error: Error) -> Error {
        let Some(wrong) = self.wrong(&error) else { return error };
        let message = match &self.0[..] {
            [_] => error.to_string(),
            several => {
                let places = several.iter().map(NamedOperand::place).collect::<Vec<_>>().join("; ");
                let may_be_swapped = several.iter().filter(|operand| !operand.name.starts_with('-')).count() > 1;
                let question = if may_be_swapped { "; are they in the right order?" } else { "" };
                format!("{error} ({places}{question})")
            }
        };
        Error::Format { path: wrong.path.clone(), message }
    }

    /// The operand that caused an error about shapes: the one that is not square where it must be, otherwise the first.
    fn wrong(&self, error: &Error) -> Option<&NamedOperand> {
        match error {
            Error::NotSquare { rows, cols, .. } => {
                let has_shape = |operand: &&NamedOperand| shape(&operand.path) == Some((*rows, *cols));
                self.0.iter().find(has_shape).or(self.0.first())
            }
            Error::ShapeMismatch { .. } => self.0.first(),
            _ => None,
        }
    }
}

impl NamedOperand {
    /// Its file and its shape, as text.
    fn place(&self) -> String {
        let NamedOperand { name, path } = self;
        let shape = shape(path).map_or(String::new(), |(rows, cols)| format!(", {rows} x {cols}"));
        format!("{name} is {}{shape}", path.display())
    }
}

/// The operands and the result of a check.
fn verified(args: &Verify) -> Vec<(&'static str, &PathBuf)> {
    match &args.operation {
        VerifyOperation::Syrk(args) => vec![("P", &args.p), ("Q", &args.q)],
        VerifyOperation::Gemm(args) => vec![("A", &args.a), ("B", &args.b), ("C", &args.c)],
        VerifyOperation::Cholesky(args) => vec![("A", &args.a), ("L", &args.l)],
        VerifyOperation::Lu(args) => vec![("A", &args.a), ("L", &args.l), ("U", &args.u), ("P", &args.p)],
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
