//! Room for steps whose entries need more memory than planned: up to the limit of the call, where it has one.

use crate::context::{Context, MemoryBudget};
use crate::error::{Error, Result};

/// The memory that steps may take.
pub(crate) struct Room<'a> {
    /// With the bytes of a plan as its limit.
    pub ctx: &'a Context,
    /// The limit of the call, up to which products may exceed the plan.
    pub limit_bytes: Option<u64>,
}

impl Room<'_> {
    /// The result of `work` within the plan, or within the larger memory that it requires. It may run more than once.
    ///
    /// # Errors
    /// The errors of `work`.
    pub fn within<T>(&self, mut work: impl FnMut(&Context) -> Result<T>) -> Result<T> {
        let memory = self.ctx.memory();
        let with = |bytes| self.ctx.with_memory(memory.within(bytes));
        within_reach(memory.limit_bytes(), self.limit_bytes, |bytes| work(&with(bytes)))
    }
}

/// The result of `work` within the bytes of a plan, `None` for no limit; or within more, where entries need more than
/// planned and the limit of the call has room for that. A refusal names the limit of the call.
///
/// # Errors
/// The errors of `work`.
pub(crate) fn within_reach<T>(
    mut planned_bytes: Option<u64>,
    limit_bytes: Option<u64>,
    mut work: impl FnMut(Option<u64>) -> Result<T>,
) -> Result<T> {
    loop {
        match (work(planned_bytes), planned_bytes) {
            (Err(Error::MemoryLimit { minimum_bytes, .. }), Some(tried)) if minimum_bytes > tried => {
                MemoryBudget::new(limit_bytes).admit_total(minimum_bytes)?;
                planned_bytes = Some(minimum_bytes);
            }
            (done, _) => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_outgrows_its_plan_gets_what_the_limit_of_the_call_has() {
        let needs = |steps: [u64; 2]| {
            let mut steps = steps.into_iter();
            let mut needed = steps.next().unwrap();
            move |bytes: Option<u64>| {
                let tried = MemoryBudget::new(bytes).admit_total(needed);
                needed = steps.next().unwrap_or(needed);
                tried
            }
        };
        for (planned, limit, steps, most) in [
            (Some(5), None, [9, 9], Some(9)),
            (Some(5), Some(20), [9, 20], Some(20)),
            (Some(9), Some(9), [9, 9], Some(9)),
            (None, None, [u64::MAX, 1], Some(u64::MAX)),
            (Some(5), Some(19), [9, 20], None),
            (Some(5), Some(8), [9, 9], None),
        ] {
            match (within_reach(planned, limit, needs(steps)), most) {
                (Ok(bytes), most) => assert_eq!(Some(bytes), most),
                (Err(Error::MemoryLimit { limit_bytes, minimum_bytes }), None) => {
                    assert!(Some(limit_bytes) == limit && minimum_bytes > limit_bytes);
                }
                (Err(error), _) => panic!("{error}"),
            }
        }
    }
}
