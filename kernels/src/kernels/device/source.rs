//! The kernels as devices take them: name, source text, and the function compiled for the host.

use crate::device::Kernel;

/// A kernel from the file of its name.
macro_rules! kernel {
    ($constant:ident, $name:ident, $file:literal) => {
        #[doc = concat!("`cu/", $file, "`.")]
        pub(super) const $constant: Kernel = Kernel {
            name: stringify!($name),
            source: concat!(include_str!("cu/common.h"), include_str!(concat!("cu/", $file))),
            host: $name,
        };
    };
}

// SAFETY: the C functions that the build script compiles from `cu/` have these signatures; the demands of a call are
// stated at `device::HostKernel`.
unsafe extern "C" {
    fn sunzi_convert(first: u64, end: u64, arguments: *const u64);
    fn sunzi_fill(first: u64, end: u64, arguments: *const u64);
    fn sunzi_pack(first: u64, end: u64, arguments: *const u64);
    fn sunzi_reconstruct(first: u64, end: u64, arguments: *const u64);
    fn sunzi_reduce(first: u64, end: u64, arguments: *const u64);
    fn sunzi_round(first: u64, end: u64, arguments: *const u64);
    fn sunzi_scale(first: u64, end: u64, arguments: *const u64);
    fn sunzi_select(first: u64, end: u64, arguments: *const u64);
    fn sunzi_unpack(first: u64, end: u64, arguments: *const u64);
}

kernel!(CONVERT, sunzi_convert, "convert.cu");
kernel!(FILL, sunzi_fill, "fill.cu");
kernel!(PACK, sunzi_pack, "pack.cu");
kernel!(RECONSTRUCT, sunzi_reconstruct, "reconstruct.cu");
kernel!(REDUCE, sunzi_reduce, "reduce.cu");
kernel!(ROUND, sunzi_round, "round.cu");
kernel!(SCALE, sunzi_scale, "scale.cu");
kernel!(SELECT, sunzi_select, "select.cu");
kernel!(UNPACK, sunzi_unpack, "unpack.cu");

/// All kernels, for tests of a device's compiler.
pub fn kernels() -> [&'static Kernel; 9] {
    [&CONVERT, &FILL, &PACK, &RECONSTRUCT, &REDUCE, &ROUND, &SCALE, &SELECT, &UNPACK]
}
