//! The CUDA source of every kernel compiles, which needs NVRTC but no GPU (`docs/TESTING.md`).
//!
//! Skips, saying so, where no NVRTC library is found.

use sunzi::advanced::device::{Defines, Kernel, cuda};
use sunzi::advanced::kernels::device::kernels;
use sunzi::{Error, Result};

/// GPUs of three generations: A100, H100 and H200, B200.
const ARCHITECTURES: &[u32] = &[80, 90, 100];

/// What every source may use: 128-bit products, atomics on 64 bits, doubles, fields by value.
const SAMPLE: &str = r#"
struct Arguments {
    const unsigned long long *words;
    unsigned long long *least;
    double *sums;
    unsigned long long factor;
};

extern "C" __global__ void sample(unsigned long long threads, Arguments arguments) {
    unsigned long long thread = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (thread >= threads) return;
    unsigned long long high = __umul64hi(arguments.words[thread], arguments.factor) % MODULUS;
    arguments.sums[thread] = fma((double)high, 2.0, arguments.sums[thread]);
    atomicMin(arguments.least, high);
}
"#;

/// The number of NVRTC's version, or `None` with a line that says what is missing.
fn compiler() -> Option<(u32, u32)> {
    match cuda::compiler_version() {
        Ok(version) => Some(version),
        Err(error) => {
            println!("skipped: no NVRTC library ({error})");
            None
        }
    }
}

/// Compiles all of them for all GPUs that are tested; the failures as text.
fn failures(kernels: &[&Kernel], defines: Defines<'_>) -> Vec<String> {
    let pairs = kernels.iter().flat_map(|kernel| ARCHITECTURES.iter().map(move |&number| (*kernel, number)));
    let compile = |(kernel, number): (&Kernel, u32)| -> Result<usize> {
        Ok(cuda::compile(kernel.source, kernel.name, defines, number)?.len())
    };
    let text = |number, error| format!("sm_{number}, {defines:?}: {error}");
    pairs.filter_map(|pair| compile(pair).err().map(|error| text(pair.1, error))).collect()
}

/// Constants as launches set them: none, and for both kinds of planes with few and with many digits.
const CONSTANTS: &[Defines<'_>] = &[
    &[],
    &[("SUNZI_BYTES", 0), ("SUNZI_PLANES", 1), ("SUNZI_DIGITS", 3)],
    &[("SUNZI_BYTES", 1), ("SUNZI_PLANES", 0)],
    &[("SUNZI_BYTES", 1), ("SUNZI_PLANES", 1), ("SUNZI_DIGITS", 17)],
];

/// Stands for the host's version, which is not called here.
extern "C" fn never(_first: u64, _end: u64, _arguments: *const u64) {}

#[test]
fn kernels_compile_for_every_generation() {
    let Some((major, minor)) = compiler() else { return };
    println!("NVRTC {major}.{minor}");
    let sample = Kernel { name: "sample", source: SAMPLE, host: never };
    let mut failures = failures(&[&sample], &[("MODULUS", u64::MAX - 58)]);
    for defines in CONSTANTS {
        failures.extend(self::failures(&kernels(), defines));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_known_card_gets_machine_code_and_a_newer_one_ptx() {
    if compiler().is_none() {
        return;
    }
    let code = cuda::compile(SAMPLE, "sample", &[("MODULUS", 97)], 90).unwrap();
    assert_eq!(&code[..4], b"\x7fELF");
    let newer = cuda::compile(SAMPLE, "sample", &[("MODULUS", 97)], 999).unwrap();
    let text = String::from_utf8(newer).unwrap();
    assert!(text.contains(".entry sample") && text.ends_with('\0'), "{text}");
}

#[test]
fn a_source_that_is_wrong_is_an_error_with_the_log() {
    if compiler().is_none() {
        return;
    }
    let broken = SAMPLE.replace("return;", "retrun;");
    let Err(Error::Device(message)) = cuda::compile(&broken, "sample", &[("MODULUS", 97)], 90) else {
        panic!("compiled")
    };
    println!("{message}");
    assert!(message.contains("sample.cu(") && message.contains("retrun") && !message.contains('\n'), "{message}");
    assert!(matches!(cuda::compile(SAMPLE, "sample", &[], 90), Err(Error::Device(_))), "a constant is missing");
    assert!(matches!(cuda::compile(SAMPLE, "sample", &[("MODULUS", 97)], 35), Err(Error::Device(_))), "an old GPU");
}
