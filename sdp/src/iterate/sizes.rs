//! The largest numbers of a program, relative to which errors count.

use crate::iterate::site::Site;
use crate::numbers::largest;
use crate::problem::{Constraints, Problem};
use rug::Float;
use sunzi::Result;

/// The largest magnitude of an entry of C.
pub fn largest_constant(problem: &Problem, bits: u32) -> Float {
    let mut most = Float::new(bits);
    for group in &problem.groups {
        if let Constraints::Sparse(sparse) = &group.constraints {
            let entries = sparse.cones.iter().flat_map(|cone| &cone.constant);
            most = entries.fold(most, |most, entry| most.max(&Float::with_val(bits, entry.value.abs_ref())));
        }
    }
    most
}

/// The largest magnitude of an entry of c. Collective.
///
/// # Errors
/// [`sunzi::Error::Transport`].
pub fn largest_costs(site: &Site<'_>) -> Result<Float> {
    let costs = site.problem.groups.iter().map(|group| largest(&group.costs));
    let costs = costs.fold(Float::new(site.bits), |most, size| most.max(&size));
    let [most] = site.share.ranks.largest(site.bits, Ok([costs]))?;
    Ok(most)
}
