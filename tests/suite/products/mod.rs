//! Products on the processors of one machine: SYRK and GEMM, their checks, and the bits of their results.

mod blocks;
mod entrywise;
mod faults;
mod oracle;
mod pipeline;
mod properties;
mod same_bits;
mod structured;
mod weighted;
