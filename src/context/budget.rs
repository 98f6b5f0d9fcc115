//! `MemoryBudget`: the memory limit of a call, and the bytes held of it outside the current operation.

use crate::error::{Error, Result};

/// A memory limit in bytes, and the bytes of it that are held already.
///
/// An operation that runs another one inside itself passes it a budget that [holds](MemoryBudget::holding) its own
/// matrices, so that the plan of the inner one leaves room for them, and its refusal names a limit for both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryBudget {
    limit_bytes: Option<u64>,
    held_bytes: u64,
}

impl MemoryBudget {
    /// A budget with no bytes held; `None` means that there is no limit.
    pub fn new(limit_bytes: Option<u64>) -> MemoryBudget {
        MemoryBudget { limit_bytes, held_bytes: 0 }
    }

    /// The limit on all together.
    pub fn limit_bytes(self) -> Option<u64> {
        self.limit_bytes
    }

    /// Bytes held.
    pub fn held_bytes(self) -> u64 {
        self.held_bytes
    }

    /// The budget with `bytes` more bytes held.
    pub fn holding(self, bytes: u64) -> MemoryBudget {
        MemoryBudget { held_bytes: self.total(bytes), ..self }
    }

    /// The budget with `bytes` fewer bytes held, for an inner plan that counts these bytes itself.
    pub fn releasing(self, bytes: u64) -> MemoryBudget {
        MemoryBudget { held_bytes: self.held_bytes.saturating_sub(bytes), ..self }
    }

    /// The same bytes held of another limit.
    pub fn within(self, limit_bytes: Option<u64>) -> MemoryBudget {
        MemoryBudget { limit_bytes, ..self }
    }

    /// The part of one of `parts` users that share the budget evenly.
    pub fn divided(self, parts: u64) -> MemoryBudget {
        let held_bytes = self.held_bytes.div_ceil(parts);
        MemoryBudget { limit_bytes: self.limit_bytes.map(|limit_bytes| limit_bytes / parts), held_bytes }
    }

    /// The bytes held plus `bytes`.
    pub fn total(self, bytes: u64) -> u64 {
        self.held_bytes.saturating_add(bytes)
    }

    /// The bytes held plus `bytes`.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] where they are more than the limit.
    pub fn admit(self, bytes: u64) -> Result<u64> {
        self.admit_total(self.total(bytes))
    }

    /// `total_bytes` itself, which include those held.
    ///
    /// # Errors
    /// As [`MemoryBudget::admit`].
    pub fn admit_total(self, total_bytes: u64) -> Result<u64> {
        match self.limit_bytes {
            Some(limit_bytes) if total_bytes > limit_bytes => {
                Err(Error::MemoryLimit { limit_bytes, minimum_bytes: total_bytes })
            }
            _ => Ok(total_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_for_what_is_held_and_what_comes_to_it() {
        let budget = MemoryBudget::new(Some(100)).holding(30).holding(10);
        assert_eq!((budget.held_bytes(), budget.total(60), budget.admit(60).unwrap()), (40, 100, 100));
        for refused in [budget.admit(61), budget.admit_total(101)] {
            assert!(matches!(refused, Err(Error::MemoryLimit { limit_bytes: 100, minimum_bytes: 101 })));
        }
        let part = budget.divided(3);
        assert_eq!((part.limit_bytes(), part.held_bytes()), (Some(33), 14));
        assert_eq!((budget.releasing(15).held_bytes(), budget.releasing(50).held_bytes()), (25, 0));
        assert_eq!(budget.within(Some(101)).admit(61).unwrap(), 101);
        assert_eq!(budget.within(None).holding(u64::MAX).admit(1).unwrap(), u64::MAX);
    }
}
