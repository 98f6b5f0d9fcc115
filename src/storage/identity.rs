//! The identity of a storage directory's contents, as a small text file in it.
//!
//! Independent of: files; what the values mean.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// The version of the layout of a directory and of its files.
pub const LAYOUT_VERSION: u32 = 1;

/// The identity of the objects of a directory: an operation, and all values on which their bytes depend.
///
/// ```
/// use sunzi::advanced::storage::Identity;
/// let identity = Identity::new("cholesky").with("order", 4000).with("precision_bits", 768);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    operation: String,
    entries: Vec<(String, String)>,
}

/// The identity as it stands in the file.
#[derive(Serialize, Deserialize)]
struct Stored {
    sunzi_storage: u32,
    operation: String,
    of: BTreeMap<String, String>,
}

impl Identity {
    /// An operation without values yet.
    pub fn new(operation: impl Into<String>) -> Identity {
        Identity { operation: operation.into(), entries: Vec::new() }
    }

    /// The same identity with one more value on which the objects depend, or with a new value of a key.
    pub fn with(mut self, key: impl Into<String>, value: impl ToString) -> Identity {
        let key = key.into();
        self.entries.retain(|(known, _)| *known != key);
        self.entries.push((key, value.to_string()));
        self
    }

    /// The text of the file.
    pub(super) fn to_text(&self) -> String {
        let of = self.entries.iter().cloned().collect();
        let stored = Stored { sunzi_storage: LAYOUT_VERSION, operation: self.operation.clone(), of };
        // Numbers and texts under text keys always have a form in JSON.
        serde_json::to_string_pretty(&stored).unwrap_or_default() + "\n"
    }

    /// A number that other identities do not share, to be stored with each group.
    pub(super) fn checksum(&self) -> u64 {
        xxh3_64(self.to_text().as_bytes())
    }

    /// Checks whether `text`, the content of the file `path`, is the same identity.
    ///
    /// # Errors
    /// [`Error::StorageMismatch`] with the first key of the two that differs; [`Error::Format`].
    pub(super) fn compare(&self, text: &[u8], path: &Path) -> Result<()> {
        let stored: Stored = serde_json::from_slice(text).map_err(|wrong| Error::Format {
            path: path.to_path_buf(),
            message: format!(
                "the identity file of the storage directory is damaged ({wrong}), so that no run can resume from the \
                 directory: remove it, or choose another"
            ),
        })?;
        let mut pairs = vec![
            ("version of the layout", Some(stored.sunzi_storage.to_string()), Some(LAYOUT_VERSION.to_string())),
            ("operation", Some(stored.operation), Some(self.operation.clone())),
        ];
        let mut of = stored.of;
        pairs.extend(self.entries.iter().map(|(key, value)| (key.as_str(), of.remove(key), Some(value.clone()))));
        let pairs = pairs.into_iter().map(|(key, found, wanted)| (key.to_string(), found, wanted));
        let further = of.into_iter().map(|(key, found)| (key, Some(found), None));
        for (key, found, wanted) in pairs.chain(further) {
            if found != wanted {
                let text = |value: Option<String>| value.map_or("absent".to_string(), |value| format!("'{value}'"));
                let (found, wanted) = (text(found), text(wanted));
                let path = path.parent().unwrap_or(path).to_path_buf();
                return Err(Error::StorageMismatch { path, key, found, wanted });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity::new("cholesky").with("order", 3).with("order", 40).with("name", "two\nlines \"quoted\"")
    }

    #[test]
    fn the_key_that_differs_is_named_with_both_values() {
        let (path, text) = (Path::new("/there/identity.json"), identity().to_text());
        identity().compare(text.as_bytes(), path).unwrap();
        for (other, told) in [
            (identity().with("order", 41), "order is '40' there and '41' in this run"),
            (identity().with("bits", 5), "bits is absent there and '5' in this run"),
            (
                Identity::new("cholesky").with("order", 40),
                "name is 'two\nlines \"quoted\"' there and absent in this run",
            ),
            (Identity::new("syrk"), "operation is 'cholesky' there and 'syrk' in this run"),
        ] {
            let refused = other.compare(text.as_bytes(), path).unwrap_err().to_string();
            assert!(refused.contains(told) && refused.starts_with("/there: "), "{refused}");
            assert_ne!(other.checksum(), identity().checksum());
        }
        let newer = text.replace("\"sunzi_storage\": 1", "\"sunzi_storage\": 2");
        let refused = identity().compare(newer.as_bytes(), path).unwrap_err().to_string();
        assert!(refused.contains("version of the layout is '2' there and '1' in this run"), "{refused}");
        for damaged in [&b"{"[..], b"", &text.as_bytes()[..text.len() / 2], b"\0\0\0\0"] {
            let refused = identity().compare(damaged, path).unwrap_err();
            assert!(matches!(refused, Error::Format { .. }), "{refused}");
            assert!(refused.to_string().ends_with("remove it, or choose another"), "{refused}");
        }
    }
}
