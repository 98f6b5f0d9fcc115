//! The tile registers of AMX: whether the CPU has them and the system grants them, and the unit that they make.
//!
//! Written in assembly, since the compiler has no names for the instructions yet. Sums of 16 x 16 lie in tmm0 to tmm3,
//! two tiles of rows in tmm4 and tmm5, two of columns in tmm6 and tmm7; `emulation` runs the very same instructions on
//! CPUs without them.

use super::tiles::{Extent, I8Task, SIDE, STEP_GROUPS, TileColumns, TileRows, TileSums, Unit};
use super::vectors::{PlainVector, Vector, x86::I8Avx512};
use std::arch::asm;
use std::arch::x86_64::{__cpuid_count, CpuidResult};
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::time::Instant;

/// The operand of LDTILECFG: the palette, and for each of eight tiles the bytes of a row and the number of rows.
#[repr(C, align(64))]
struct Configuration([u8; 64]);

/// Palette 1, and eight tiles of 16 rows of 64 bytes.
static CONFIGURATION: Configuration = {
    let mut bytes = [0; 64];
    bytes[0] = 1;
    let mut tile = 0;
    while tile < 8 {
        bytes[16 + 2 * tile] = 64;
        bytes[48 + tile] = 16;
        tile += 1;
    }
    Configuration(bytes)
};

/// Whether this process may use tile registers: the CPU has them with products of bytes, and the system grants them.
///
/// The system is queried once.
pub fn is_granted() -> bool {
    static GRANTED: OnceLock<bool> = OnceLock::new();
    *GRANTED.get_or_init(|| has_tiles() && has_palette() && is_enabled() && ask_system())
}

/// The features that the CPU reports.
#[allow(unused_unsafe)] // a safe function for the compilers of today, not for the oldest that we promise
fn cpuid(leaf: u32, part: u32) -> CpuidResult {
    // SAFETY: every CPU of this architecture has the instruction.
    unsafe { __cpuid_count(leaf, part) }
}

/// AMX-TILE and AMX-INT8.
fn has_tiles() -> bool {
    const TILE: u32 = 1 << 24;
    const INT8: u32 = 1 << 25;
    cpuid(0, 0).eax >= 0x1d && cpuid(7, 0).edx & (TILE | INT8) == TILE | INT8
}

/// Whether palette 1 has eight tiles of 16 rows of 64 bytes.
fn has_palette() -> bool {
    let palette = cpuid(0x1d, 1);
    let (row_bytes, tiles, rows) = (palette.ebx & 0xffff, palette.ebx >> 16, palette.ecx & 0xffff);
    tiles >= 8 && row_bytes >= 64 && rows >= 16
}

/// Whether the system saves the configuration and the data of tiles.
fn is_enabled() -> bool {
    const OSXSAVE: u32 = 1 << 27;
    const TILE_STATE: u32 = 1 << 17 | 1 << 18;
    if cpuid(1, 0).ecx & OSXSAVE == 0 {
        return false;
    }
    let low: u32;
    // SAFETY: the system has enabled XGETBV, which reads the register that ECX names into EDX:EAX and nothing else.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") _, options(nomem, nostack, preserves_flags));
    }
    low & TILE_STATE == TILE_STATE
}

/// Requests the data of tiles, for all threads of this process.
#[cfg(target_os = "linux")]
fn ask_system() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call takes two numbers and changes which registers the process may use, nothing in memory.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

/// Other systems grant them without a request, or not at all; untested.
#[cfg(not(target_os = "linux"))]
fn ask_system() -> bool {
    false
}

/// # Safety
/// The CPU has AVX2, AVX-512 F, BW, DQ, VL, VBMI and VNNI, and [`is_granted`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,avx2")]
pub unsafe fn run<T: I8Task>(task: T) {
    // SAFETY: the caller's promise.
    unsafe { run_configured::<I8Avx512, T>(task) }
}

/// Products of bytes per second that the unit adds to sums, with operands in registers; the best of `trials` runs of
/// some milliseconds.
///
/// # Safety
/// [`is_granted`].
pub unsafe fn issue_rate(trials: usize) -> f64 {
    const TURNS: u32 = 100_000;
    let mut best = 0.0f64;
    for _ in 0..trials.max(1) {
        let start = Instant::now();
        // SAFETY: the caller's promise; no vectors are used.
        unsafe { run_configured::<PlainVector, _>(Chains::new(TURNS)) };
        best = best.max(f64::from(TURNS) * PRODUCTS_OF_TURN / start.elapsed().as_secs_f64());
    }
    best
}

/// Four products of tiles, of 16 x 16 sums of 64 terms.
const PRODUCTS_OF_TURN: f64 = (4 * 16 * 16 * 64) as f64;

/// Four sums in tile registers that products are added to in turn, so that none waits for its own.
pub(super) struct Chains {
    /// The number of times, at least one.
    turns: u32,
}

impl Chains {
    /// A task of `turns` turns, at least one.
    ///
    /// # Safety
    /// Only [`run_configured`] runs it.
    pub unsafe fn new(turns: u32) -> Chains {
        assert!(turns > 0);
        Chains { turns }
    }
}

impl I8Task for Chains {
    #[inline(always)]
    fn run<U: Unit>(self) {
        // SAFETY: the maker of the task promised that only `run_configured` runs it, so the instructions exist, and all
        // tiles, which are 0 at first, have 16 rows of 64 bytes. No memory is touched; the tile registers are named as
        // changed.
        unsafe {
            asm!(
                "2:",
                "tdpbsud tmm0, tmm4, tmm6",
                "tdpbsud tmm1, tmm4, tmm7",
                "tdpbsud tmm2, tmm5, tmm6",
                "tdpbsud tmm3, tmm5, tmm7",
                "dec {turns:e}",
                "jnz 2b",
                turns = inout(reg) self.turns => _,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nomem, nostack),
            );
        }
    }
}

/// Runs a task with the tiles of this thread configured, and releases them.
///
/// # Safety
/// The instructions of AMX can be executed, and those of the vectors `V`.
#[inline(always)]
pub unsafe fn run_configured<V: Vector, T: I8Task>(task: T) {
    /// Gives the tiles back, also where the task panics.
    struct Release;
    impl Drop for Release {
        fn drop(&mut self) {
            // SAFETY: the caller of `run_configured` promises that the instruction exists; nobody uses the tiles.
            unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) }
        }
    }
    // SAFETY: the caller promises that the instruction exists; it reads the 64 bytes of a valid configuration.
    unsafe {
        let at = CONFIGURATION.0.as_ptr();
        asm!("ldtilecfg [{at}]", at = in(reg) at, options(readonly, nostack, preserves_flags));
    }
    let _release = Release;
    task.run::<Amx<V>>();
}

/// The unit, together with vectors `V`; it only runs inside of [`run_configured`].
pub struct Amx<V>(PhantomData<V>);

/// Sums of all products of some steps by the instruction `$product`, columns loaded by `$load`.
macro_rules! multiply_tiles {
    ($product:literal, $load:literal, $rows:ident, $columns:ident, $steps:ident, $sums:ident) => {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            "tileloadd tmm4, [{rows} + 1*{stride}]",
            concat!($load, " tmm6, [{columns} + 1*{stride}]"),
            concat!($product, " tmm0, tmm4, tmm6"),
            concat!($load, " tmm7, [{columns} + 1*{stride} + 1024]"),
            concat!($product, " tmm1, tmm4, tmm7"),
            "tileloadd tmm5, [{rows} + 1*{stride} + 1024]",
            concat!($product, " tmm2, tmm5, tmm6"),
            concat!($product, " tmm3, tmm5, tmm7"),
            "add {rows}, 2048",
            "add {columns}, 2048",
            "dec {steps}",
            "jnz 2b",
            "tilestored [{sums} + 1*{sums_stride}], tmm0",
            "tilestored [{sums} + 1*{sums_stride} + 64], tmm1",
            "tilestored [{sums} + 1*{sums_stride} + 2048], tmm2",
            "tilestored [{sums} + 1*{sums_stride} + 2112], tmm3",
            rows = inout(reg) $rows.as_ptr() => _,
            columns = inout(reg) $columns.as_ptr() => _,
            steps = inout(reg) $steps => _,
            stride = in(reg) 64usize,
            sums = in(reg) $sums.as_mut_ptr(),
            sums_stride = in(reg) 128usize,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        )
    };
}

impl<V: Vector> Unit for Amx<V> {
    type Vectors = V;

    #[inline(always)]
    fn multiply<const SIGNED: bool>(rows: &[TileRows], columns: &[TileColumns], extent: Extent, sums: &mut TileSums) {
        let steps = extent.groups.div_ceil(STEP_GROUPS);
        if steps == 0 {
            *sums = [[0; SIDE]; SIDE];
            return;
        }
        let (rows, columns) = (&rows[..steps], &columns[..steps]);
        // Each step has 32 rows of 64 bytes, and 2 times 16 groups of 64 bytes; a row of sums has 128 bytes.
        const {
            assert!(
                size_of::<TileRows>() == 2048 && size_of::<TileColumns>() == 2048 && size_of::<TileSums>() == 32 * 128
            )
        };
        // SAFETY: only `run_configured` names this unit, so the instructions exist, and all tiles have 16 rows of 64
        // bytes. Loads read `steps` times 2048 bytes of both slices, stores write the 4096 bytes of the sums; the tile
        // registers are named as changed.
        unsafe {
            match SIGNED {
                // Columns of residues come from the second-level cache and leave the first one to the rows.
                true => multiply_tiles!("tdpbssd", "tileloaddt1", rows, columns, steps, sums),
                false => multiply_tiles!("tdpbsud", "tileloadd", rows, columns, steps, sums),
            }
        }
    }
}

#[cfg(test)]
pub use configuration_bytes::configuration;

#[cfg(test)]
mod configuration_bytes {
    /// The operand that LDTILECFG is given.
    pub fn configuration() -> &'static [u8; 64] {
        &super::CONFIGURATION.0
    }
}
