//! The form of a text with a semidefinite program, if its name does not determine it.
//!
//! Independent of: readers.

use sunzi::io::FileFormat;
use sunzi::{Error, Result};

/// Bytes at the beginning of a file that are examined.
pub const FIRST_BYTES: usize = 1 << 12;

/// A form of programs that are one text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextForm {
    /// SDPA's sparse format.
    Sparse,
    /// A polynomial program in JSON.
    Json,
    /// One in Mathematica's text.
    Mathematica,
}

impl TextForm {
    /// The form of programs in this format.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a format of matrices only.
    pub fn of(format: FileFormat) -> Result<TextForm> {
        match format {
            FileFormat::Sdpa => Ok(TextForm::Sparse),
            FileFormat::Json => Ok(TextForm::Json),
            FileFormat::Mathematica => Ok(TextForm::Mathematica),
            other => Err(Error::InvalidArgument(format!(
                "'{}' is not a format of semidefinite programs: dat-s is SDPA's sparse format, json and m are \
                 polynomial programs",
                other.name()
            ))),
        }
    }

    /// The form that the first bytes of a text show.
    pub fn shown(first: &[u8]) -> Option<TextForm> {
        let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
        match first {
            [b'{', ..] => Some(TextForm::Json),
            [b'(', b'*', ..] | [b'S', b'D', b'P', b'[', ..] => Some(TextForm::Mathematica),
            _ => is_sparse(first).then_some(TextForm::Sparse),
        }
    }
}

/// Whether a text begins as SDPA's files do: comments, and two lines that begin with a count.
fn is_sparse(first: &[u8]) -> bool {
    let lines = first.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
    let counts = lines.skip_while(|line| matches!(line, [b'"' | b'*', ..])).take(2);
    let is_count = |line: &[u8]| {
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && !matches!(line.get(digits), Some(b'.' | b'e' | b'E'))
    };
    counts.filter(|line| is_count(line)).count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_show_a_form() {
        let cases = [
            ("\"a comment\n* another\n 2 = mDIM\n 1 = nBLOCK\n", Some(TextForm::Sparse)),
            ("\u{feff}2\r\n1\r\n3\r\n", Some(TextForm::Sparse)),
            ("  {\"objective\": []}", Some(TextForm::Json)),
            ("(* a program *) SDP[{}]", Some(TextForm::Mathematica)),
            ("SDP[{}]", Some(TextForm::Mathematica)),
            ("1.5 2\n3 4\n", None),
            ("1,2\n", None),
            ("words\n1\n2\n", None),
            ("", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(TextForm::shown(text.as_bytes()), wanted, "{text}");
        }
        assert!(TextForm::of(FileFormat::Csv).unwrap_err().to_string().contains("'csv' is not a format"));
        assert_eq!(TextForm::of(FileFormat::Sdpa).unwrap(), TextForm::Sparse);
    }
}
