//! Kernels compiled at run time by NVRTC, which needs neither a GPU nor a driver.

use super::sys::{Nvrtc, nvrtcProgram};
use crate::device::Defines;
use crate::error::{Error, Result};
use std::ffi::{CStr, CString, c_char, c_int};

/// Lines of the compiler's log that an error quotes.
const LOG_LINES: usize = 6;

/// Compiles the CUDA source of the kernel `name` for GPUs of `architecture` (90 stands for compute capability 9.0).
///
/// The result is machine code if NVRTC supports the architecture. If the GPU is newer than NVRTC supports, it is PTX
/// for the newest supported architecture, which the driver compiles for the GPU. (Machine code comes first, since a
/// driver refuses the PTX of a newer NVRTC.)
///
/// Products and sums are not fused unless the source contains `fma`, so that a kernel computes the same result as the
/// source on the host.
///
/// # Errors
/// [`Error::NoDevice`] without an NVRTC library, [`Error::Device`] with the first lines of the compiler's log.
pub fn compile(source: &str, name: &str, defines: Defines<'_>, architecture: u32) -> Result<Vec<u8>> {
    let nvrtc = Nvrtc::load()?;
    let target = target(architecture, &architectures(nvrtc)?).ok_or_else(|| {
        Error::Device(format!("NVRTC {} does not compile for sm_{architecture}", version_text(nvrtc)))
    })?;
    let program = Program::new(nvrtc, source, name)?;
    program.compile(name, &options(&target, defines))?;
    match target {
        CompileTarget::Machine(_) => program.output(nvrtc.cubin_size, nvrtc.cubin),
        CompileTarget::Ptx(_) => program.output(nvrtc.ptx_size, nvrtc.ptx),
    }
}

/// Version of NVRTC, `(13, 0)` for CUDA 13.0.
///
/// # Errors
/// [`Error::NoDevice`] without an NVRTC library.
pub fn compiler_version() -> Result<(u32, u32)> {
    Ok(version(Nvrtc::load()?))
}

fn version(nvrtc: &Nvrtc) -> (u32, u32) {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are places for one number; the call fails only on null pointers.
    unsafe { (nvrtc.version)(&mut major, &mut minor) };
    (major.unsigned_abs(), minor.unsigned_abs())
}

fn version_text(nvrtc: &Nvrtc) -> String {
    let (major, minor) = version(nvrtc);
    format!("{major}.{minor}")
}

/// The target of a compilation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CompileTarget {
    Machine(u32),
    Ptx(u32),
}

/// The architecture itself where the compiler knows it, or the newest one below it.
fn target(architecture: u32, known: &[u32]) -> Option<CompileTarget> {
    match known.contains(&architecture) {
        true => Some(CompileTarget::Machine(architecture)),
        false => known.iter().copied().filter(|&known| known < architecture).max().map(CompileTarget::Ptx),
    }
}

fn options(target: &CompileTarget, defines: Defines<'_>) -> Vec<String> {
    let architecture = match target {
        CompileTarget::Machine(number) => format!("--gpu-architecture=sm_{number}"),
        CompileTarget::Ptx(number) => format!("--gpu-architecture=compute_{number}"),
    };
    let fixed = [architecture, "--std=c++17".into(), "--fmad=false".into(), "-lineinfo".into()];
    // A decimal constant without a suffix ends where `long long` does.
    let suffix = |value: u64| if i64::try_from(value).is_ok() { "" } else { "ULL" };
    let defines = defines.iter().map(|&(name, value)| format!("-D{name}={value}{}", suffix(value)));
    fixed.into_iter().chain(defines).collect()
}

/// Architectures that the compiler makes machine code for.
fn architectures(nvrtc: &Nvrtc) -> Result<Vec<u32>> {
    let mut count = 0;
    // SAFETY: the place is for one number.
    check(nvrtc, unsafe { (nvrtc.architecture_count)(&mut count) }, "list architectures")?;
    let mut known = vec![0 as c_int; usize::try_from(count).unwrap_or(0)];
    // SAFETY: the places are as many as the call before counted.
    check(nvrtc, unsafe { (nvrtc.architectures)(known.as_mut_ptr()) }, "list architectures")?;
    Ok(known.into_iter().filter_map(|number| u32::try_from(number).ok()).collect())
}

fn check(nvrtc: &Nvrtc, status: c_int, what: &str) -> Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(Error::Device(format!("NVRTC cannot {what}: {}", reason(nvrtc, status)))),
    }
}

fn reason(nvrtc: &Nvrtc, status: c_int) -> String {
    // SAFETY: the call takes any number, and answers a text that is never freed, or null.
    let text = unsafe { (nvrtc.error_string)(status) };
    if text.is_null() {
        return format!("status {status}");
    }
    // SAFETY: not null, and ended by a zero as all texts of C.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A text for C. A text with a zero byte inside is refused: it can be neither a source nor a name.
fn text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::Device("a kernel's source holds a zero byte".into()))
}

/// A program of the compiler, freed when dropped.
struct Program<'a> {
    nvrtc: &'a Nvrtc,
    raw: nvrtcProgram,
}

impl<'a> Program<'a> {
    fn new(nvrtc: &'a Nvrtc, source: &str, name: &str) -> Result<Program<'a>> {
        let (source, file) = (text(source)?, text(&format!("{name}.cu"))?);
        let mut raw = std::ptr::null_mut();
        // SAFETY: both texts end with a zero and are copied; there are no headers.
        let status =
            unsafe { (nvrtc.create)(&mut raw, source.as_ptr(), file.as_ptr(), 0, std::ptr::null(), std::ptr::null()) };
        check(nvrtc, status, "read a kernel's source")?;
        Ok(Program { nvrtc, raw })
    }

    fn compile(&self, name: &str, options: &[String]) -> Result<()> {
        let owned = options.iter().map(|option| text(option)).collect::<Result<Vec<_>>>()?;
        let pointers = owned.iter().map(|option| option.as_ptr()).collect::<Vec<_>>();
        // SAFETY: the program lives, and there are `pointers.len()` options, each ended by a zero.
        let status = unsafe { (self.nvrtc.compile)(self.raw, pointers.len() as c_int, pointers.as_ptr()) };
        match status {
            0 => Ok(()),
            _ => Err(Error::Device(format!(
                "kernel '{name}' does not compile ({}): {}",
                reason(self.nvrtc, status),
                self.log()
            ))),
        }
    }

    /// The beginning of the compiler's log, as one line.
    fn log(&self) -> String {
        let bytes = self.output(self.nvrtc.log_size, self.nvrtc.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.trim_end_matches('\0').lines().map(str::trim).filter(|line| !line.is_empty());
        lines.take(LOG_LINES).collect::<Vec<_>>().join(" | ")
    }

    /// One of the program's outputs.
    fn output(
        &self,
        size: unsafe extern "C" fn(nvrtcProgram, *mut usize) -> c_int,
        take: unsafe extern "C" fn(nvrtcProgram, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the program lives, and the place is for one size.
        check(self.nvrtc, unsafe { size(self.raw, &mut bytes) }, "return its output")?;
        let mut output = vec![0; bytes];
        // SAFETY: the places are as many as the call before returned.
        check(self.nvrtc, unsafe { take(self.raw, output.as_mut_ptr().cast()) }, "return its output")?;
        Ok(output)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: made in `new`, freed once.
        unsafe { (self.nvrtc.destroy)(&mut self.raw) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_newer_than_the_compiler_gets_ptx() {
        let known = [75, 80, 90];
        assert_eq!(target(90, &known), Some(CompileTarget::Machine(90)));
        assert_eq!(target(100, &known), Some(CompileTarget::Ptx(90)));
        assert_eq!(target(86, &known), Some(CompileTarget::Ptx(80)));
        assert_eq!(target(70, &known), None);
        assert_eq!(target(70, &[]), None);
    }

    #[test]
    fn options_name_the_card_and_the_constants() {
        let found = options(&CompileTarget::Machine(90), &[("ROWS", 7), ("MODULUS", u64::MAX)]);
        assert_eq!(found[0], "--gpu-architecture=sm_90");
        assert_eq!(found[found.len() - 2..], ["-DROWS=7", "-DMODULUS=18446744073709551615ULL"]);
        assert_eq!(options(&CompileTarget::Ptx(80), &[])[0], "--gpu-architecture=compute_80");
    }

    #[test]
    fn a_source_with_a_zero_byte_is_an_error() {
        assert!(matches!(text("a\0b"), Err(Error::Device(_))));
    }
}
