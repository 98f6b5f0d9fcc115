//! Operations above a disk give the files of those in memory, byte for byte, whatever the limit, and however often they
//! were ended.

mod cholesky;
mod products;
mod ranks;
mod solve;
mod verify;
