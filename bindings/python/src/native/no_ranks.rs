//! The replacement of ranks where the package is built without MPI: a type without values.

use super::factor::Factor;
use super::verbs::{Failed, PlanOf, RankOptions, RankPart, Verb};

/// The status of a feature that a build lacks.
const UNAVAILABLE: i32 = 14;

/// No communicator.
pub enum Ranks {}

impl Ranks {
    /// Refused.
    ///
    /// # Errors
    /// Always.
    pub fn new(_handle: i32, _options: &RankOptions) -> Result<Ranks, Failed> {
        let message = "this package was built without MPI; build it with the feature mpi".to_string();
        Err(Failed { status: UNAVAILABLE, message, place: [-1, -1] })
    }

    /// Never called.
    pub fn close(self) {
        match self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn call(&self, _verb: Verb<'_>) -> Result<(), Failed> {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn plan(&self, _of: PlanOf, _bits: [i64; 2]) -> Result<[u64; 3], Failed> {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn factor(&self, _uplo: i32, _precision_bits: i64, _a: &RankPart<'_>) -> Result<Factor, Failed> {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn renew(&self, _uplo: i32, _bits: i64, _a: &RankPart<'_>, _factor: &mut Factor) -> Result<(), Failed> {
        match *self {}
    }
}
