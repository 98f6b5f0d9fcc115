//! What the machine is: CPU, processors, memory, the libraries linked.

use crate::baselines::openblas_core;
use serde::Serialize;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use sunzi::advanced::math::processor::{Level, level};
use sunzi::advanced::store::available_bytes;

/// Environment variable that overrides OpenBLAS's own choice of kernels, read before `main`.
pub const OPENBLAS_CORE_VARIABLE: &str = "OPENBLAS_CORETYPE";

/// Core types of OpenBLAS that use AVX-512; all others waste a CPU that has it.
const AVX512_CORES: [&str; 4] = ["skylakex", "cooperlake", "sapphirerapids", "zen5"];

/// The machine as seen by this process.
#[derive(Clone, Serialize)]
pub struct Machine {
    /// Model name of the CPU.
    pub cpu: String,
    /// Instruction set architecture.
    pub architecture: &'static str,
    /// Processors that the process may use.
    pub processors: usize,
    /// Those of the CPU's abilities that kernels ask for and `SUNZI_CPU` does not hide.
    pub features: Vec<&'static str>,
    /// Memory that can be taken now.
    pub available_bytes: Option<u64>,
    /// Version of GMP.
    pub gmp: String,
    /// Version of MPFR.
    pub mpfr: String,
    /// Kernel set of OpenBLAS, where it is linked.
    pub openblas_core: Option<String>,
}

impl Machine {
    /// Looks at the machine.
    pub fn look() -> Machine {
        Machine {
            cpu: cpu_name(),
            architecture: std::env::consts::ARCH,
            processors: std::thread::available_parallelism().map_or(1, |count| count.get()),
            features: features(),
            available_bytes: available_bytes(),
            gmp: gmp_version(),
            mpfr: mpfr_version(),
            openblas_core: openblas_core(),
        }
    }

    /// A remark where OpenBLAS runs below the CPU's abilities.
    pub fn openblas_remark(&self) -> Option<String> {
        let core = self.openblas_core.as_deref()?;
        (self.features.contains(&"avx512f") && is_weak_core(core))
            .then(|| format!("{core} does not use this CPU's AVX-512; set {OPENBLAS_CORE_VARIABLE}=SKYLAKEX"))
    }
}

/// Whether a core type of OpenBLAS leaves AVX-512 unused.
pub fn is_weak_core(core: &str) -> bool {
    !AVX512_CORES.contains(&core.to_ascii_lowercase().as_str())
}

/// Whether the CPU has the AVX-512 foundation.
pub fn has_avx512() -> bool {
    features().contains(&"avx512f")
}

/// Whether `SUNZI_CPU` leaves no AVX-512.
fn hides_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return level() < Level::Avx512;
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Starts the program anew where OpenBLAS runs below this CPU's abilities: without `OPENBLAS_CORETYPE` where that is
/// set, else (an OpenBLAS too old to know the CPU) with `SKYLAKEX` in it. Where `SUNZI_CPU` hides AVX-512, with
/// `HASWELL`, so that a baseline has no more than the library.
///
/// OpenBLAS reads the variable when it is loaded, so nothing less helps. Where it cannot be helped `note` says why;
/// else nothing is said, as the benchmark names the kernels that run. Comes back where there is nothing to do, or
/// nothing left to try.
pub fn restart_with_strong_blas(note: impl Fn(&str)) {
    let Some(core) = openblas_core() else { return };
    let value = match std::env::var(OPENBLAS_CORE_VARIABLE) {
        // A measurement of what a lesser CPU would get.
        Ok(value) if hides_avx512() && !is_weak_core(&core) && is_weak_core(&value) => {
            note(&format!("OpenBLAS runs its {core} kernels in spite of {value}"));
            return;
        }
        _ if hides_avx512() && !is_weak_core(&core) => Some("HASWELL"),
        _ if !has_avx512() || !is_weak_core(&core) => return,
        Ok(value) if !is_weak_core(&value) => {
            note(&format!("OpenBLAS runs its {core} kernels, which waste AVX-512, in spite of {value}"));
            return;
        }
        Ok(_) => None,
        Err(_) => Some("SKYLAKEX"),
    };
    #[cfg(unix)]
    if let Ok(program) = std::env::current_exe() {
        let mut again = std::process::Command::new(program);
        again.args(std::env::args_os().skip(1));
        match value {
            Some(value) => again.env(OPENBLAS_CORE_VARIABLE, value),
            None => again.env_remove(OPENBLAS_CORE_VARIABLE),
        };
        let error = std::os::unix::process::CommandExt::exec(&mut again);
        note(&format!("could not start again: {error}; OpenBLAS stays slow"));
    }
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    let all = [
        (Level::Avx2, "avx2", std::arch::is_x86_feature_detected!("avx2")),
        (Level::Avx2, "fma", std::arch::is_x86_feature_detected!("fma")),
        (Level::Avx512, "avx512f", std::arch::is_x86_feature_detected!("avx512f")),
        (Level::Avx512, "avx512bw", std::arch::is_x86_feature_detected!("avx512bw")),
        (Level::Avx512, "avx512dq", std::arch::is_x86_feature_detected!("avx512dq")),
        (Level::Avx512, "avx512vl", std::arch::is_x86_feature_detected!("avx512vl")),
        (Level::Vnni, "avx512vnni", std::arch::is_x86_feature_detected!("avx512vnni")),
        (Level::Native, "avx512vbmi", std::arch::is_x86_feature_detected!("avx512vbmi")),
        (Level::Native, "avx512ifma", std::arch::is_x86_feature_detected!("avx512ifma")),
    ];
    all.into_iter().filter(|(least, _, has)| *has && level() >= *least).map(|(_, name, _)| name).collect()
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<&'static str> {
    let all = [
        (Level::Neon, "neon", std::arch::is_aarch64_feature_detected!("neon")),
        (Level::Native, "i8mm", std::arch::is_aarch64_feature_detected!("i8mm")),
    ];
    all.into_iter().filter(|(least, _, has)| *has && level() >= *least).map(|(_, name, _)| name).collect()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<&'static str> {
    Vec::new()
}

fn cpu_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':')).map_or("unknown CPU".into(), |(_, name)| name.trim().to_string())
}

fn gmp_version() -> String {
    use gmp_mpfr_sys::gmp::{VERSION, VERSION_MINOR, VERSION_PATCHLEVEL};
    format!("{VERSION}.{VERSION_MINOR}.{VERSION_PATCHLEVEL}")
}

fn mpfr_version() -> String {
    use gmp_mpfr_sys::mpfr::{VERSION_MAJOR, VERSION_MINOR, VERSION_PATCHLEVEL};
    format!("{VERSION_MAJOR}.{VERSION_MINOR}.{VERSION_PATCHLEVEL}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_without_avx512_are_weak() {
        assert!(["Haswell", "Zen", "SandyBridge", "Prescott"].into_iter().all(is_weak_core));
        assert!(!["SkylakeX", "Cooperlake", "SAPPHIRERAPIDS"].into_iter().any(is_weak_core));
    }

    #[test]
    fn the_remark_needs_both() {
        let mut machine = Machine::look();
        machine.features = vec!["avx512f"];
        machine.openblas_core = Some("Haswell".into());
        assert!(machine.openblas_remark().is_some_and(|text| text.contains("OPENBLAS_CORETYPE")));
        machine.features.clear();
        assert!(machine.openblas_remark().is_none());
    }
}
