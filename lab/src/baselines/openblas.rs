//! The OpenBLAS that baselines call: its kernels, whether they fit this processor, its threads.

#[cfg(any(feature = "blas", flint_blas))]
use super::sys;
#[cfg(any(feature = "blas", flint_blas))]
use std::ffi::CStr;
#[cfg(target_arch = "x86_64")]
use sunzi::advanced::math::processor::{Level, level};

/// Environment variable that overrides OpenBLAS's own choice of kernels, read before `main`.
pub const CORE_VARIABLE: &str = "OPENBLAS_CORETYPE";

/// Core types of OpenBLAS that use AVX-512, and those that use AVX2 and nothing wider.
const AVX512_CORES: [&str; 4] = ["skylakex", "cooperlake", "sapphirerapids", "zen5"];
const AVX2_CORES: [&str; 3] = ["haswell", "zen", "excavator"];

/// The widest vectors that a processor shows, or kernels use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Reach {
    Less,
    Avx2,
    Avx512,
}

impl Reach {
    /// The instructions of this processor that `SUNZI_CPU` does not hide.
    #[cfg(target_arch = "x86_64")]
    fn visible() -> Reach {
        let has_avx2 = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
        let has_avx512 = std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl");
        if level() >= Level::Avx512 && has_avx512 {
            Reach::Avx512
        } else if level() >= Level::Avx2 && has_avx2 {
            Reach::Avx2
        } else {
            Reach::Less
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn visible() -> Reach {
        Reach::Less
    }

    /// The instructions that kernels of a core type use.
    fn of_core(core: &str) -> Reach {
        let core = core.to_ascii_lowercase();
        if AVX512_CORES.contains(&&*core) {
            Reach::Avx512
        } else if AVX2_CORES.contains(&&*core) {
            Reach::Avx2
        } else {
            Reach::Less
        }
    }

    /// A core type whose kernels use these instructions.
    fn core(self) -> &'static str {
        match self {
            Reach::Avx512 => "SKYLAKEX",
            Reach::Avx2 => "HASWELL",
            Reach::Less => "PRESCOTT",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Reach::Avx512 => "AVX-512",
            Reach::Avx2 => "AVX2",
            Reach::Less => "SSE",
        }
    }
}

/// OpenBLAS runs kernels that were made for another processor.
#[derive(Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The names of these kernels, and the reason why they do not fit the processor.
    pub what: String,
    /// The value of [`CORE_VARIABLE`] that selects suitable kernels.
    pub core: &'static str,
    /// Whether the kernels use more features of the processor than `SUNZI_CPU` allows.
    is_greater: bool,
}

impl Misfit {
    fn of(core: &str, visible: Reach) -> Option<Misfit> {
        let used = Reach::of_core(core);
        let what = match used.cmp(&visible) {
            std::cmp::Ordering::Less => format!("leave this processor's {} unused", visible.name()),
            std::cmp::Ordering::Equal => return None,
            std::cmp::Ordering::Greater => {
                format!("use {}, which this processor lacks or SUNZI_CPU hides", used.name())
            }
        };
        let what = format!("OpenBLAS runs its {core} kernels, which {what}");
        Some(Misfit { what, core: visible.core(), is_greater: used > visible })
    }
}

/// The kernel set that OpenBLAS selected, such as `SkylakeX`; `None` where OpenBLAS is not linked.
///
/// The choice is made when the library is loaded, before `main`; [`CORE_VARIABLE`] overrides it.
pub fn core() -> Option<String> {
    #[cfg(any(feature = "blas", flint_blas))]
    {
        // SAFETY: the function takes nothing and returns a static string that ends in a zero.
        let name = unsafe { CStr::from_ptr(sys::openblas_get_corename()) };
        Some(name.to_string_lossy().into_owned())
    }
    #[cfg(not(any(feature = "blas", flint_blas)))]
    None
}

/// Whether OpenBLAS runs kernels that were made for an older or for a newer processor than this one.
///
/// Three causes are known: the environment names another processor; OpenBLAS is older than the processor (0.3.21 takes
/// `Prescott` on an Emerald Rapids, which costs a factor of five); `SUNZI_CPU` hides vectors that OpenBLAS finds.
pub fn misfit() -> Option<Misfit> {
    Misfit::of(&core()?, Reach::visible())
}

/// Refuses a comparison with kernels that use instructions which `SUNZI_CPU` hides from everything else. Kernels for a
/// lesser processor lead only to a remark: reports name them.
///
/// # Errors
/// A line with the kernels and with the variable to set.
pub(super) fn check_core() -> Result<(), String> {
    match misfit() {
        Some(Misfit { what, core, is_greater: true }) => Err(format!("{what}: set {CORE_VARIABLE}={core}")),
        _ => Ok(()),
    }
}

/// Name, version and kernel set of the OpenBLAS linked, such as `OpenBLAS 0.3.21 SkylakeX`.
#[cfg(all(feature = "flint", any(feature = "blas", flint_blas)))]
pub(super) fn version() -> String {
    // SAFETY: the function takes nothing and returns a static string that ends in a zero.
    let config = unsafe { CStr::from_ptr(sys::openblas_get_config()) }.to_string_lossy();
    let version: Vec<&str> = config.split_whitespace().take(2).collect();
    format!("{} {}", version.join(" "), core().unwrap_or_default())
}

/// Limits each OpenBLAS call to `threads` threads; does nothing where OpenBLAS is not linked.
#[cfg(feature = "flint")]
pub(super) fn set_threads(threads: usize) {
    #[cfg(any(feature = "blas", flint_blas))]
    // SAFETY: the function takes any positive number, and `process_settings` keeps other calls away.
    unsafe {
        sys::openblas_set_num_threads(i32::try_from(threads).unwrap_or(i32::MAX))
    }
    #[cfg(not(any(feature = "blas", flint_blas)))]
    let _ = threads;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_fit_where_they_use_what_is_there() {
        for (core, visible, value) in [
            ("Haswell", Reach::Avx512, Some("SKYLAKEX")),
            ("Zen", Reach::Avx512, Some("SKYLAKEX")),
            ("Prescott", Reach::Avx512, Some("SKYLAKEX")),
            ("Prescott", Reach::Avx2, Some("HASWELL")),
            ("SkylakeX", Reach::Avx2, Some("HASWELL")),
            ("Cooperlake", Reach::Less, Some("PRESCOTT")),
            ("Haswell", Reach::Less, Some("PRESCOTT")),
            ("SkylakeX", Reach::Avx512, None),
            ("SAPPHIRERAPIDS", Reach::Avx512, None),
            ("Zen", Reach::Avx2, None),
            ("NeoverseN1", Reach::Less, None),
        ] {
            let misfit = Misfit::of(core, visible);
            assert_eq!(misfit.as_ref().map(|misfit| misfit.core), value, "{core}, {visible:?}");
            let is_greater = value.is_some_and(|value| Reach::of_core(value) < Reach::of_core(core));
            assert_eq!(misfit.is_some_and(|misfit| misfit.is_greater), is_greater, "{core}, {visible:?}");
        }
        let what = |core, visible| Misfit::of(core, visible).unwrap().what;
        let text = what("Prescott", Reach::Avx2);
        assert_eq!(text, "OpenBLAS runs its Prescott kernels, which leave this processor's AVX2 unused");
        let text = what("SkylakeX", Reach::Avx2);
        assert!(
            text.contains("SkylakeX") && text.contains("AVX-512, which this processor lacks or SUNZI_CPU hides"),
            "{text}"
        );
    }

    #[test]
    fn the_kernels_have_a_name_where_openblas_is_linked() {
        assert!(core().is_none_or(|core| !core.is_empty()));
    }
}
