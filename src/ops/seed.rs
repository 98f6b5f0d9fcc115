//! Seeds of random choices.

use std::hash::{BuildHasher, Hasher};

/// A random seed: the standard library keys its hash maps from the system's randomness.
pub(crate) fn fresh_seed() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
