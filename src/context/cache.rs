//! Values that are made at the first call that needs them, and kept for later ones.

use crate::error::Result;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values that a context keeps of each kind.
pub(crate) const KEPT_ENGINES: usize = 8;

/// A value of a cache.
struct KeptValue<K, V> {
    key: K,
    value: V,
}

/// The values used last, `CAPACITY` of them, by their keys; the one used longest ago is dropped first.
pub(super) struct KeyedCache<K, V, const CAPACITY: usize = KEPT_ENGINES> {
    /// The last place is the most recent use.
    entries: Mutex<Vec<KeptValue<K, V>>>,
}

impl<K, V, const CAPACITY: usize> Default for KeyedCache<K, V, CAPACITY> {
    fn default() -> Self {
        KeyedCache { entries: Mutex::new(Vec::new()) }
    }
}

impl<K: PartialEq, V: Clone, const CAPACITY: usize> KeyedCache<K, V, CAPACITY> {
    /// The value of `key`, made where it is missing; other callers wait meanwhile, so that no value is made twice.
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn get_or_make(&self, key: K, make: impl FnOnce() -> Result<V>) -> Result<V> {
        self.fetch(key, make)
    }

    /// [`KeyedCache::get_or_make`] where making cannot fail.
    pub fn get_or_create(&self, key: K, make: impl FnOnce() -> V) -> V {
        let Ok(value) = self.fetch::<Infallible>(key, || Ok(make()));
        value
    }

    fn fetch<E>(&self, key: K, make: impl FnOnce() -> std::result::Result<V, E>) -> std::result::Result<V, E> {
        let mut entries = self.lock();
        if let Some(known) = use_again(&mut entries, &key) {
            return Ok(known);
        }
        let made = make()?;
        Self::keep(&mut entries, key, made.clone());
        Ok(made)
    }

    /// The bytes of all values.
    pub fn bytes(&self, of: impl Fn(&V) -> u64) -> u64 {
        self.lock().iter().map(|kept| of(&kept.value)).sum()
    }

    /// [`KeyedCache::get_or_make`] where a new value takes the place of all others, which are given back before it is
    /// made.
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn get_or_replace(&self, key: K, make: impl FnOnce() -> Result<V>) -> Result<V> {
        let mut entries = self.lock();
        if let Some(known) = use_again(&mut entries, &key) {
            return Ok(known);
        }
        entries.clear();
        let made = make()?;
        Self::keep(&mut entries, key, made.clone());
        Ok(made)
    }

    /// [`KeyedCache::get_or_make`] that serves others while a value is made: for values whose construction waits for
    /// threads that may need a value themselves.
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn get_or_make_unlocked(&self, key: K, make: impl FnOnce() -> Result<V>) -> Result<V> {
        if let Some(known) = use_again(&mut self.lock(), &key) {
            return Ok(known);
        }
        let made = make()?;
        Self::keep(&mut self.lock(), key, made.clone());
        Ok(made)
    }

    fn keep(entries: &mut Vec<KeptValue<K, V>>, key: K, value: V) {
        if entries.len() == CAPACITY {
            entries.remove(0);
        }
        entries.push(KeptValue { key, value });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<KeptValue<K, V>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn use_again<K: PartialEq, V: Clone>(entries: &mut Vec<KeptValue<K, V>>, key: &K) -> Option<V> {
    let at = entries.iter().position(|kept| kept.key == *key)?;
    let kept = entries.remove(at);
    let value = kept.value.clone();
    entries.push(kept);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn the_value_used_longest_ago_goes_first() {
        const CAPACITY: usize = 5;
        let cache = KeyedCache::<usize, usize, CAPACITY>::default();
        let made = |key: usize| cache.get_or_make(key, || Ok(10 * key)).unwrap();
        let is_known = |key: usize| cache.get_or_make(key, || Err(Error::Cancelled)).is_ok();
        for key in 0..CAPACITY {
            assert_eq!(made(key), 10 * key);
        }
        assert!(is_known(0), "used again, so 1 goes first");
        made(CAPACITY);
        assert!(!is_known(1) && is_known(0) && is_known(CAPACITY));
        assert_eq!(cache.get_or_make_unlocked(2, || Err(Error::Cancelled)).unwrap(), 20);
        assert_eq!(cache.get_or_replace(99, || Ok(5)).unwrap(), 5);
        assert!(is_known(99) && !is_known(0));
    }
}
