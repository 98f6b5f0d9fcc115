//! The units of this CPU: AMX, AVX-512 with VNNI, AVX-VNNI, AVX2, I8MM of AArch64, or plain Rust.
//!
//! An algorithm is an [`I8Task`], written once over [`Unit`](super::tiles::Unit); [`I8Isa::run`] compiles it once per
//! unit and calls the instance that the holder of the `I8Isa` has proven the CPU to have.
//!
//! The task's code must reach the unit through `#[inline(always)]` functions and plain loops, never through closures:
//! only then is it compiled with the instructions of its instance.

#[cfg(target_arch = "x86_64")]
use super::amx;
#[cfg(target_arch = "aarch64")]
use super::lanes::neon;
#[cfg(target_arch = "x86_64")]
use super::lanes::x86;
use super::lanes::{ByLanes, I8PlainLanes};
use super::tiles::I8Task;
#[cfg(target_arch = "x86_64")]
use crate::kernels::rate;
#[cfg(target_arch = "aarch64")]
use crate::math::processor::processor_has;
#[cfg(target_arch = "x86_64")]
use crate::math::processor::{self, level, processor_has};

/// A unit that this CPU has been seen to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct I8Isa(I8Level);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum I8Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Vnni,
    #[cfg(target_arch = "x86_64")]
    Amx,
    #[cfg(target_arch = "aarch64")]
    I8mm,
    /// The tile registers emulated.
    #[cfg(test)]
    Emulated,
    /// The instructions of AMX, each emulated where this CPU refuses it.
    #[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
    Trapped,
}

impl I8Isa {
    /// Every unit of this CPU, the best first; the portable one is always there.
    pub fn available() -> impl Iterator<Item = I8Isa> {
        #[cfg(target_arch = "x86_64")]
        let levels = {
            let avx2 = processor_has!(Avx2: "avx2");
            let avx_vnni = avx2 && processor_has!(AvxVnni: "avxvnni");
            let avx512 = avx2 && processor_has!(Avx512: "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi");
            let vnni = avx512 && processor_has!(Vnni: "avx512vnni");
            [
                (vnni && level() == processor::Level::Native && amx::is_granted()).then_some(I8Level::Amx),
                vnni.then_some(I8Level::Vnni),
                avx_vnni.then_some(I8Level::AvxVnni),
                avx2.then_some(I8Level::Avx2),
                Some(I8Level::Portable),
            ]
        };
        #[cfg(target_arch = "aarch64")]
        let levels = [processor_has!(Native: "neon", "i8mm").then_some(I8Level::I8mm), Some(I8Level::Portable)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let levels = [Some(I8Level::Portable)];
        levels.into_iter().flatten().map(I8Isa)
    }

    /// Every unit of this CPU, then those that are emulated.
    #[cfg(test)]
    pub fn all() -> impl Iterator<Item = I8Isa> {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        let trapped = !amx::is_granted();
        let emulated = [
            Some(I8Level::Emulated),
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            trapped.then_some(I8Level::Trapped),
        ];
        I8Isa::available().chain(emulated.into_iter().flatten().map(I8Isa))
    }

    /// The best unit of this CPU.
    pub fn detect() -> I8Isa {
        I8Isa::available().next().expect("the portable one is always there")
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            I8Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            I8Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            I8Level::AvxVnni => "avx-vnni",
            #[cfg(target_arch = "x86_64")]
            I8Level::Vnni => "vnni8",
            #[cfg(target_arch = "x86_64")]
            I8Level::Amx => "amx",
            #[cfg(target_arch = "aarch64")]
            I8Level::I8mm => "i8mm",
            #[cfg(test)]
            I8Level::Emulated => "emulated",
            #[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
            I8Level::Trapped => "trapped",
        }
    }

    /// Whether it multiplies tiles in registers of their own.
    pub fn has_tile_registers(self) -> bool {
        self.name() == "amx"
    }

    /// Products of bytes that the calling thread can add to sums in a second, nothing else in the way; the best of
    /// `trials` runs of some milliseconds. `None` where several instructions make one product, and for plain Rust.
    pub fn issue_rate(self, trials: usize) -> Option<f64> {
        let _ = trials;
        match self.0 {
            // SAFETY: only `available` makes this level, after the CPU reported AVX2 and AVX-VNNI.
            #[cfg(target_arch = "x86_64")]
            I8Level::AvxVnni => Some(32.0 * unsafe { rate::bytes_avx_vnni(trials) }),
            // SAFETY: only `available` makes this level, after the CPU reported AVX-512 F and VNNI.
            #[cfg(target_arch = "x86_64")]
            I8Level::Vnni => Some(64.0 * unsafe { rate::bytes_vnni(trials) }),
            // SAFETY: only `available` makes this level, after the system granted the tile registers.
            #[cfg(target_arch = "x86_64")]
            I8Level::Amx => Some(unsafe { amx::issue_rate(trials) }),
            _ => None,
        }
    }

    /// Runs `task` on this unit.
    pub fn run(self, task: impl I8Task) {
        match self.0 {
            I8Level::Portable => task.run::<ByLanes<I8PlainLanes, 2, 1>>(),
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run_avx2` needs.
            #[cfg(target_arch = "x86_64")]
            I8Level::Avx2 => unsafe { x86::run_avx2(task) },
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run_avx_vnni` needs.
            #[cfg(target_arch = "x86_64")]
            I8Level::AvxVnni => unsafe { x86::run_avx_vnni(task) },
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run_vnni` needs.
            #[cfg(target_arch = "x86_64")]
            I8Level::Vnni => unsafe { x86::run_vnni(task) },
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run` needs and the
            // system granted the tile registers.
            #[cfg(target_arch = "x86_64")]
            I8Level::Amx => unsafe { amx::run(task) },
            // SAFETY: only `available` makes this level, after the CPU reported every feature `run` needs.
            #[cfg(target_arch = "aarch64")]
            I8Level::I8mm => unsafe { neon::run(task) },
            #[cfg(test)]
            I8Level::Emulated => task.run::<super::emulation::Emulated>(),
            #[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
            I8Level::Trapped => super::emulation::trap::run(task),
        }
    }
}
