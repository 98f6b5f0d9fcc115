//! Names of objects and of the groups that they are published in.
//!
//! Independent of: what is named.

use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// The largest number of bytes of a name of an object.
const OBJECT_NAME_BYTES: usize = 1024;

/// The largest number of bytes of a name of a group: with its ending it is the name of a file.
const GROUP_NAME_BYTES: usize = 200;

/// The name of an object: any text, at most 1,024 bytes. Clones share it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectName(Arc<str>);

/// The name of a group: letters, digits, `-`, `_` and `.` of ASCII, at most 200, not `.` first. Clones share it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupName(Arc<str>);

impl ObjectName {
    /// The name `text`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is empty or too long.
    pub fn new(text: &str) -> Result<ObjectName> {
        match text.len() {
            1..=OBJECT_NAME_BYTES => Ok(ObjectName(text.into())),
            bytes => Err(Error::InvalidArgument(format!(
                "the name of a stored object must have 1 to {OBJECT_NAME_BYTES} bytes: this one has {bytes}"
            ))),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl GroupName {
    /// The name `text`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it cannot be part of a file's name on every system.
    pub fn new(text: &str) -> Result<GroupName> {
        let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let has_fine_length = (1..=GROUP_NAME_BYTES).contains(&text.len());
        if !has_fine_length || text.starts_with('.') || !text.chars().all(is_fine) {
            return Err(Error::InvalidArgument(format!(
                "'{text}' cannot name a group of stored objects: use 1 to {GROUP_NAME_BYTES} of the letters, the \
                 digits, '-', '_' and '.'"
            )));
        }
        Ok(GroupName(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_not_be_files_are_refused() {
        for text in ["a", "L-3-4", "x_1.part"] {
            assert_eq!(GroupName::new(text).unwrap().as_str(), text);
        }
        for text in ["", ".hidden", "a/b", "a b", "\u{e4}", &"a".repeat(201)] {
            assert!(GroupName::new(text).is_err(), "{text}");
        }
        assert_eq!(ObjectName::new("L (3, 4) \u{e4}/b").unwrap().to_string(), "L (3, 4) \u{e4}/b");
        assert!(ObjectName::new("").is_err() && ObjectName::new(&"a".repeat(1025)).is_err());
    }
}
