//! The layers behind the verbs, for users who measure, prove or extend the library: kernels, plans, task graphs.
//!
//! Each module has the name of its folder in the source. None of them is needed to call a verb, and all of them may
//! change from one version to the next.

/// Verbs over ranks on matrices in the caller's own layout, for bindings to other languages.
pub mod calls {
    pub use crate::ops::calls::*;
}

/// The choices of a context, and the memory kept between calls.
pub mod context {
    pub use crate::context::*;
}

/// Buffers, streams, events and products of a device, CUDA's or a simulated one.
pub mod device {
    #[doc(inline)]
    pub use crate::device::*;
}

/// Lists of work on threads, on devices and on ranks.
pub mod drive {
    pub use crate::drive::*;
}

/// Products of residues: one trait, one table of implementations.
pub mod kernels {
    #[doc(inline)]
    pub use crate::kernels::*;
}

/// Bounds, primes, floats on limbs.
pub mod math {
    #[doc(inline)]
    pub use crate::math::*;
}

/// The division of work into blocks and jobs, as pure functions of sizes.
pub mod plan {
    #[doc(inline)]
    pub use crate::plan::*;
}

/// The task graph, and the state machine that decides the next step of each rank.
pub mod runtime {
    #[doc(inline)]
    pub use crate::runtime::*;
}

/// Named immutable objects in a directory on disk.
pub mod storage {
    pub use crate::storage::*;
}

/// Blocks of words, and the memory of the machine.
pub mod store {
    #[doc(inline)]
    pub use crate::store::*;
}

/// Helpers shared by the tests of several packages.
#[doc(hidden)]
pub mod testing {
    pub use crate::testing::*;
}

/// Indices of tiles and their owners.
pub mod tile {
    #[doc(inline)]
    pub use crate::tile::*;
}

pub use crate::ops::cholesky::cholesky_reference;
pub use crate::ops::optional_estimate;
pub use crate::ops::product_of_pivots;
pub use crate::ops::{FaultHook, Hooks};
pub use crate::ops::{PrecisionSearch, PrecisionTry};
