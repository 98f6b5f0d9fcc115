//! Which tile leaves a full memory first.
//!
//! Knows: ids, and when each came and was last used. Does not know: which of them may leave (the cache does).

use crate::error::{Error, Result};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;

/// Rule of eviction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Victim {
    /// The tile that came first.
    Fifo,
    /// The tile that was not used for longest.
    #[default]
    Lru,
}

impl Victim {
    /// All rules.
    pub const ALL: [Victim; 2] = [Victim::Fifo, Victim::Lru];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Victim::Fifo => "fifo",
            Victim::Lru => "lru",
        }
    }

    /// The rule of that name.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] lists the names.
    pub fn by_name(name: &str) -> Result<Victim> {
        let names = || Victim::ALL.map(Victim::name).join(", ");
        let unknown = || Error::InvalidArgument(format!("unknown victim '{name}': choose one of {}", names()));
        Victim::ALL.into_iter().find(|victim| victim.name() == name).ok_or_else(unknown)
    }
}

/// Tiles in the order in which they would leave.
#[derive(Clone, Debug)]
pub struct EvictionOrder<T> {
    victim: Victim,
    clock: u64,
    order: BTreeMap<u64, T>,
    places: FxHashMap<T, u64>,
}

impl<T: Copy + Eq + Hash + Debug> EvictionOrder<T> {
    /// No tiles.
    pub fn new(victim: Victim) -> EvictionOrder<T> {
        EvictionOrder { victim, clock: 0, order: BTreeMap::new(), places: FxHashMap::default() }
    }

    /// Takes in that `tile` is used: a new tile comes last.
    pub fn used(&mut self, tile: T) {
        match self.places.get(&tile) {
            Some(_) if self.victim == Victim::Fifo => return,
            Some(place) => drop(self.order.remove(place)),
            None => {}
        }
        self.clock += 1;
        self.order.insert(self.clock, tile);
        self.places.insert(tile, self.clock);
    }

    /// Takes in that `tile` is gone.
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
        for (victim, expected) in [(Victim::Fifo, [1, 2, 4]), (Victim::Lru, [2, 4, 1])] {
            let mut order = EvictionOrder::new(victim);
            for tile in [1, 2, 3, 4, 1] {
                order.used(tile);
            }
            order.gone(3);
            order.gone(9);
            assert_eq!(order.iter().collect::<Vec<_>>(), expected, "{victim:?}");
            order.gone(1);
            order.used(1);
            assert_eq!(order.iter().last(), Some(1));
        }
    }

    #[test]
    fn names_lead_back() {
        for victim in Victim::ALL {
            assert_eq!(Victim::by_name(victim.name()).unwrap(), victim);
        }
        assert_eq!(Victim::by_name("mru").unwrap_err().to_string(), "unknown victim 'mru': choose one of fifo, lru");
    }
}
