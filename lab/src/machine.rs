//! A description of the machine: CPU, processors, memory, the libraries linked.

use crate::baselines::openblas::{self, CORE_VARIABLE};
use serde::Serialize;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use sunzi::advanced::math::processor::Level;
use sunzi::advanced::math::processor::level;
use sunzi::advanced::store::available_bytes;

/// The machine as seen by this process.
#[derive(Clone, Serialize)]
pub struct Machine {
    /// Model name of the CPU.
    pub cpu: String,
    /// Instruction set architecture.
    pub architecture: &'static str,
    /// Processors that the process may use.
    pub processors: usize,
    /// The CPU's features that kernels use and `SUNZI_CPU` does not hide.
    pub features: Vec<&'static str>,
    /// The part of the CPU's features that `SUNZI_CPU` shows; `native` where it hides nothing.
    pub shown: &'static str,
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
    /// Reads the properties of the machine.
    pub fn look() -> Machine {
        Machine {
            cpu: cpu_name(),
            architecture: std::env::consts::ARCH,
            processors: std::thread::available_parallelism().map_or(1, |count| count.get()),
            features: features(),
            shown: level().name(),
            available_bytes: available_bytes(),
            gmp: gmp_version(),
            mpfr: mpfr_version(),
            openblas_core: openblas::core(),
        }
    }
}

/// Restarts the program where OpenBLAS runs kernels for an older processor than this one, or for a newer one than
/// `SUNZI_CPU` allows: first without `OPENBLAS_CORETYPE` where that is set to a wrong value, then with the right one.
///
/// OpenBLAS reads the variable when it is loaded, so a restart is necessary. `note` receives a remark where no restart
/// is possible; otherwise there is no remark, as the benchmark names the kernels that run.
pub fn restart_with_right_blas(note: impl Fn(&str)) {
    let Some(misfit) = openblas::misfit() else { return };
    let value = match std::env::var(CORE_VARIABLE) {
        Ok(value) if value == misfit.core => {
            return note(&format!("{} although {CORE_VARIABLE}={value} is set", misfit.what));
        }
        Ok(_) => None,
        Err(_) => Some(misfit.core),
    };
    #[cfg(unix)]
    if let Ok(program) = std::env::current_exe() {
        let mut again = std::process::Command::new(program);
        again.args(std::env::args_os().skip(1));
        match value {
            Some(value) => again.env(CORE_VARIABLE, value),
            None => again.env_remove(CORE_VARIABLE),
        };
        let error = std::os::unix::process::CommandExt::exec(&mut again);
        note(&format!("could not restart the program: {error}"));
    }
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    let all = [
        (Level::Avx2, "avx2", std::arch::is_x86_feature_detected!("avx2")),
        (Level::Avx2, "fma", std::arch::is_x86_feature_detected!("fma")),
        (Level::AvxVnni, "avxvnni", std::arch::is_x86_feature_detected!("avxvnni")),
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
