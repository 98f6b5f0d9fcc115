//! Checks of the memory that a kernel may touch, before it is launched.
#![forbid(unsafe_code)]

use crate::device::{Argument, Region};

/// The first `elements` elements of a region: all that a kernel will touch of it.
///
/// Panics where the region is shorter, or does not begin at a whole element.
pub(super) fn part(what: &str, region: &Region, element_bytes: usize, elements: usize) -> Region {
    assert!(region.address().is_multiple_of(element_bytes as u64), "{what} begin at a whole element");
    let bytes = elements.checked_mul(element_bytes).filter(|&bytes| bytes <= region.bytes());
    region.region(0..bytes.unwrap_or_else(|| panic!("{what}: {elements} elements in {} bytes", region.bytes())))
}

/// Elements of `planes` planes of `entries` entries, `stride` apart, that begin at `offset` each. Panics where planes
/// overlap.
pub(super) fn extent(planes: usize, stride: usize, offset: usize, entries: usize) -> usize {
    if planes == 0 || entries == 0 {
        return 0;
    }
    assert!(planes == 1 || stride >= entries, "planes of {entries} entries, {stride} apart");
    let last = (planes - 1).checked_mul(stride).and_then(|start| start.checked_add(offset));
    last.and_then(|start| start.checked_add(entries)).expect("the planes can be addressed")
}

/// Panics where a region that is written meets another one.
pub(super) fn apart(writes: &[&Region], reads: &[&Region]) {
    let meet = |one: &Region, other: &Region| {
        one.address() < other.address() + other.bytes() as u64 && other.address() < one.address() + one.bytes() as u64
    };
    for (index, write) in writes.iter().enumerate() {
        let others = writes[index + 1..].iter().chain(reads);
        assert!(others.into_iter().all(|other| !meet(write, other)), "a kernel writes what it also reads");
    }
}

/// An argument that may be missing: a null address then.
pub(super) fn optional(region: Option<Region>) -> Argument {
    region.map_or(Argument::Number(0), Argument::Address)
}

/// A number as an argument.
pub(super) fn number(number: usize) -> Argument {
    Argument::Number(number as u64)
}
