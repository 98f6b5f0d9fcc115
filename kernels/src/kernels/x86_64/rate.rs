//! Whether a core issues one or two multiplications of 52-bit integers a cycle.

use std::arch::asm;
use std::arch::x86_64::*;
use std::time::Instant;

/// A processor as its identification names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Identity {
    vendor: [u8; 12],
    family: u32,
    model: u32,
}

impl Identity {
    /// The identity of the processor that runs this.
    fn here() -> Identity {
        // Newer compilers take these calls for safe.
        #[allow(unused_unsafe)]
        // SAFETY: all x86-64 processors have the instruction and these two leaves.
        let (names, signature) = unsafe { (__cpuid(0), __cpuid(1).eax) };
        let mut vendor = [0; 12];
        for (bytes, register) in vendor.chunks_exact_mut(4).zip([names.ebx, names.edx, names.ecx]) {
            bytes.copy_from_slice(&register.to_le_bytes());
        }
        Identity::signed(vendor, signature)
    }

    /// Family and model of a signature; source: Intel's manual, volume 2, `CPUID`, and AMD's, volume 3, the same.
    fn signed(vendor: [u8; 12], signature: u32) -> Identity {
        let field = |at: u32, bits: u32| signature >> at & ((1 << bits) - 1);
        let family = field(8, 4) + if field(8, 4) == 15 { field(20, 8) } else { 0 };
        let model = field(4, 4) + if matches!(field(8, 4), 6 | 15) { field(16, 4) << 4 } else { 0 };
        Identity { vendor, family, model }
    }

    /// Whether a core of these processors issues one `vpmadd52luq` on 512 bits a cycle and not two, where that is
    /// known: measured on a Zen 4, a Zen 5 and an Emerald Rapids; Zen 5 in portable computers has half the width.
    fn issues_one(&self) -> Option<bool> {
        match (&self.vendor, self.family, self.model) {
            (b"AuthenticAMD", 0x19, _) => Some(true),
            (b"AuthenticAMD", 0x1a, 0x20..=0x2f | 0x60..=0x6f) => Some(true),
            (b"AuthenticAMD", 0x1a, 0x00..=0x1f | 0x40..=0x4f | 0x70..=0x7f) => Some(false),
            (b"GenuineIntel", 6, 0x8f | 0xcf) => Some(false),
            _ => None,
        }
    }
}

/// Whether the processor that runs this is one of Intel's.
pub fn is_of_intel() -> bool {
    &Identity::here().vendor == b"GenuineIntel"
}

/// Whether a core issues one `vpmadd52luq` on 512 bits a cycle and not two: known for some processors, measured on
/// others.
///
/// Kernels of large products, and so their plans, depend on the answer. A measurement is disturbed by other work on the
/// core, above all by the core's other thread, so that plans of two processes could differ.
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn issues_one() -> bool {
    Identity::here().issues_one().unwrap_or_else(|| measure(TRIALS))
}

/// Trials of a measurement, each of a tenth of a millisecond.
const TRIALS: usize = 4;

/// More trials where the first ones say one a cycle: other work on a core can hide the second one and cannot feign it.
const MORE_TRIALS: usize = 12;

/// By the time of one chain of instructions, each of which waits for the one before, over that of many chains at once.
///
/// All processors with the instruction take four cycles for one, so that the quotient is 4 or 8, whatever the clock
/// does.
#[target_feature(enable = "avx512f,avx512ifma")]
fn measure(trials: usize) -> bool {
    let (mut alone, mut together) = (f64::INFINITY, f64::INFINITY);
    for trial in 0..trials + MORE_TRIALS {
        if trial >= trials && alone >= 6.0 * together {
            break;
        }
        let (one, many) = time_chains();
        (alone, together) = (alone.min(one), together.min(many));
    }
    alone < 6.0 * together
}

/// Seconds of an instruction in one chain, and of one in twelve chains at once.
#[target_feature(enable = "avx512f,avx512ifma")]
fn time_chains() -> (f64, f64) {
    const TURNS: u32 = 20_000;
    const CHAINS: usize = 12;
    let factor = _mm512_set1_epi64(0x9e37_79b9);
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h, mut i, mut j, mut k, mut l] = [factor; CHAINS];
    let start = Instant::now();
    for _ in 0..TURNS {
        // SAFETY: a register instruction without memory or flags, of the features of the function.
        unsafe {
            asm!("vpmadd52luq {0}, {1}, {1}", inout(zmm_reg) a, in(zmm_reg) factor,
                options(pure, nomem, nostack, preserves_flags));
        }
    }
    let middle = Instant::now();
    for _ in 0..TURNS / 2 {
        // One statement names all registers, so that no compiler leaves a sum in memory, which would then be timed.
        // SAFETY: register instructions without memory or flags, of the features of the function.
        unsafe {
            asm!(
                "vpmadd52luq {0}, {x}, {x}", "vpmadd52luq {1}, {x}, {x}", "vpmadd52luq {2}, {x}, {x}",
                "vpmadd52luq {3}, {x}, {x}", "vpmadd52luq {4}, {x}, {x}", "vpmadd52luq {5}, {x}, {x}",
                "vpmadd52luq {6}, {x}, {x}", "vpmadd52luq {7}, {x}, {x}", "vpmadd52luq {8}, {x}, {x}",
                "vpmadd52luq {9}, {x}, {x}", "vpmadd52luq {10}, {x}, {x}", "vpmadd52luq {11}, {x}, {x}",
                inout(zmm_reg) a, inout(zmm_reg) b, inout(zmm_reg) c, inout(zmm_reg) d,
                inout(zmm_reg) e, inout(zmm_reg) f, inout(zmm_reg) g, inout(zmm_reg) h,
                inout(zmm_reg) i, inout(zmm_reg) j, inout(zmm_reg) k, inout(zmm_reg) l,
                x = in(zmm_reg) factor, options(pure, nomem, nostack, preserves_flags));
        }
    }
    let end = Instant::now();
    std::hint::black_box([a, b, c, d, e, f, g, h, i, j, k, l]);
    let many = f64::from(TURNS / 2) * CHAINS as f64;
    ((middle - start).as_secs_f64() / f64::from(TURNS), (end - middle).as_secs_f64() / many)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::x86_64::cpu::has_ifma52;

    #[test]
    fn signatures_are_read_as_the_manuals_say() {
        let amd = *b"AuthenticAMD";
        let intel = *b"GenuineIntel";
        for (vendor, signature, family, model, issues_one) in [
            (amd, 0x00a1_0f11, 0x19, 0x11, Some(true)),
            (amd, 0x00a6_0f12, 0x19, 0x61, Some(true)),
            (amd, 0x00b0_0f21, 0x1a, 0x02, Some(false)),
            (amd, 0x00b4_0f40, 0x1a, 0x44, Some(false)),
            (amd, 0x00b2_0f40, 0x1a, 0x24, Some(true)),
            (amd, 0x00b8_0f00, 0x1a, 0x80, None),
            (intel, 0x000c_06f2, 6, 0xcf, Some(false)),
            (intel, 0x0006_06a6, 6, 0x6a, None),
            (intel, 0x0000_0f41, 15, 0x04, None),
        ] {
            let identity = Identity::signed(vendor, signature);
            assert_eq!(identity, Identity { vendor, family, model }, "{signature:#x}");
            assert_eq!(identity.issues_one(), issues_one, "{signature:#x}");
        }
    }

    /// The measured rate of a known processor is the known one.
    #[test]
    fn a_known_processor_is_measured_as_it_is_known() {
        let Some(known) = Identity::here().issues_one() else { return println!("skipped: an unknown processor") };
        if has_ifma52().is_err() {
            return println!("skipped: no IFMA");
        }
        // SAFETY: the CPU has the instructions. With other tests on the same core, only one a cycle may remain.
        let measured = unsafe { measure(TRIALS) };
        assert!(measured || !known, "the core issues two a cycle");
    }
}
