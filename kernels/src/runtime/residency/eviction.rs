//! The rule that selects the first tile to be evicted from a full memory.
//!
//! Depends on: ids, and when each came and was last used. Independent of: which of them may leave (the cache does).

use crate::error::{Error, Result};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;

/// Rule of eviction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Eviction {
    /// The tile that came first.
    Fifo,
    /// The tile that was not used for longest.
    #[default]
    Lru,
}

impl Eviction {
    /// All rules.
    pub const ALL: [Eviction; 2] = [Eviction::Fifo, Eviction::Lru];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Eviction::Fifo => "fifo",
            Eviction::Lru => "lru",
        }
    }

    /// The rule of that name.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] lists the names.
    pub fn by_name(name: &str) -> Result<Eviction> {
        let names = || Eviction::ALL.map(Eviction::name).join(", ");
        let unknown = || Error::InvalidArgument(format!("unknown eviction rule '{name}': choose one of {}", names()));
        Eviction::ALL.into_iter().find(|eviction| eviction.name() == name).ok_or_else(unknown)
    }
}

/// Tiles in the order in which they would leave.
#[derive(Clone, Debug)]
pub struct EvictionOrder<T> {
    eviction: Eviction,
    clock: u64,
    order: BTreeMap<u64, T>,
    places: FxHashMap<T, u64>,
}

impl<T: Copy + Eq + Hash + Debug> EvictionOrder<T> {
    /// No tiles.
    pub fn new(eviction: Eviction) -> EvictionOrder<T> {
        EvictionOrder { eviction, clock: 0, order: BTreeMap::new(), places: FxHashMap::default() }
    }

    /// Records that `tile` is used: a new tile comes last.
    pub fn used(&mut self, tile: T) {
        match self.places.get(&tile) {
            Some(_) if self.eviction == Eviction::Fifo => return,
            Some(place) => drop(self.order.remove(place)),
            None => {}
        }
        self.clock += 1;
        self.order.insert(self.clock, tile);
        self.places.insert(tile, self.clock);
    }

    /// Records that `tile` is gone.
    pub fn gone(&mut self, tile: T) {
        if let Some(place) = self.places.remove(&tile) {
            self.order.remove(&place);
        }
    }

    /// All tiles, the next to leave first.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.order.values().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_moves_a_tile_back_under_lru_alone() {
        for (eviction, expected) in [(Eviction::Fifo, [1, 2, 4]), (Eviction::Lru, [2, 4, 1])] {
            let mut order = EvictionOrder::new(eviction);
            for tile in [1, 2, 3, 4, 1] {
                order.used(tile);
            }
            order.gone(3);
            order.gone(9);
            assert_eq!(order.iter().collect::<Vec<_>>(), expected, "{eviction:?}");
            order.gone(1);
            order.used(1);
            assert_eq!(order.iter().last(), Some(1));
        }
    }

    #[test]
    fn names_lead_back() {
        for eviction in Eviction::ALL {
            assert_eq!(Eviction::by_name(eviction.name()).unwrap(), eviction);
        }
        assert_eq!(
            Eviction::by_name("mru").unwrap_err().to_string(),
            "unknown eviction rule 'mru': choose one of fifo, lru"
        );
    }
}
