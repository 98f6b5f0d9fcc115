//! Whether a higher precision can help where a factorisation found a pivot that is not positive.
//!
//! Independent of: how that was found out.

use serde::{Deserialize, Serialize};

/// Whether a factorisation that failed might succeed with more bits of precision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MoreBits {
    /// Rounding can explain the pivot. At least this number of additional bits is needed to decide whether the pivot is
    /// positive; later rows may need more.
    AtLeast(u32),
    /// Proven: no precision helps, since a vector `v != 0` with `v^T A v <= 0` is known for the matrix `A` as given.
    Never,
    /// Proven: no precision helps, since the matrix as given is singular. If it has a factor at some precision, the
    /// factor exists only because of rounding.
    Singular,
    /// Proven: the matrix, with its numbers as they were read from a file, is singular. Reading may have rounded them,
    /// so the matrix in the file may be nonsingular.
    SingularAsRead {
        /// Bits of the numbers.
        bits: u32,
    },
    /// Unknown: the matrix was not examined as a whole.
    Unknown,
}

impl MoreBits {
    /// Whether a higher precision might help; false if it is proven that no precision helps.
    pub fn might_help(self) -> bool {
        !matches!(self, MoreBits::Never | MoreBits::Singular)
    }

    /// The hint at the end of [`super::Error::NotPositiveDefinite`]; `enough_bits` where a precision was looked for.
    pub(super) fn hint(self, enough_bits: Option<u32>) -> String {
        if let Some(bits) = enough_bits {
            return format!(
                "rounding can explain the pivot: {bits} bits of precision give a factor; fewer may suffice"
            );
        }
        let solution = "as an exact solution of A x = 0 proves";
        match self {
            MoreBits::AtLeast(_) => "rounding can explain the pivot: more bits of precision might help".into(),
            MoreBits::Never => "rounding cannot explain the pivot: more bits will not help".into(),
            MoreBits::Singular => format!("the matrix is singular, {solution}: more bits will not help"),
            MoreBits::SingularAsRead { bits } => {
                format!(
                    "the matrix as read, with numbers rounded to {bits} bits where necessary, is singular, {solution}"
                )
            }
            MoreBits::Unknown => "it is not known whether more bits would help: this requires the whole matrix, which \
                                  was not in memory"
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_hint() {
        let says = |state: MoreBits, words: &str| assert!(state.hint(None).contains(words), "{}", state.hint(None));
        says(MoreBits::AtLeast(9), "more bits of precision might help");
        says(MoreBits::Never, "rounding cannot explain the pivot: more bits will not help");
        says(MoreBits::Singular, "is singular, as an exact solution of A x = 0 proves: more bits will not help");
        says(MoreBits::SingularAsRead { bits: 264 }, "rounded to 264 bits where necessary, is singular, as an exact");
        says(MoreBits::Unknown, "is not known");
        for state in [MoreBits::Unknown, MoreBits::SingularAsRead { bits: 9 }, MoreBits::AtLeast(1)] {
            assert!(state.might_help() && !state.hint(None).contains("will not help"), "{}", state.hint(None));
        }
        assert!(!MoreBits::Never.might_help() && !MoreBits::Singular.might_help());
        let found = MoreBits::AtLeast(9).hint(Some(304));
        assert_eq!(found, "rounding can explain the pivot: 304 bits of precision give a factor; fewer may suffice");
    }
}
