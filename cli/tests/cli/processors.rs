//! Processors of other years, by an emulator: the program runs on each of them and gives the same bits.

use super::sandbox::{Output, Sandbox};
use std::process::Command;

/// The emulator of a user's program, from the package `qemu-user`.
const EMULATOR: &str = "qemu-x86_64";

/// Some of the emulator's models: no AVX, AVX without FMA, FMA without AVX2, all of them, vector extensions one by one.
const MODELS: [&str; 9] = [
    "core2duo",
    "Nehalem",
    "SandyBridge",
    "Opteron_G5",
    "Haswell,-avx2",
    "Haswell,-fma",
    "Haswell,-bmi2",
    "EPYC",
    "max",
];

fn emulated(sandbox: &Sandbox, model: &str, line: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_sunzi");
    let words = line.split_whitespace();
    let mut command = Command::new(EMULATOR);
    command.args(["-cpu", model, program]).args(words).current_dir(sandbox.path(""));
    // OpenBLAS goes by the name of the processor, of which the emulator lacks some extensions.
    let output = command.env("OPENBLAS_CORETYPE", "Core2").output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn every_processor_gives_the_same_bits() {
    if Command::new(EMULATOR).arg("--version").output().is_err() {
        println!("skipped: other processors: the emulator {EMULATOR} is not there (package qemu-user)");
        return;
    }
    if !cfg!(target_arch = "x86_64") {
        println!("skipped: other processors: this one is no x86-64");
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 40 --cols 24 --precision 200 --seed 4 -o P.mtx");
    sandbox.run("syrk P.mtx -o Q.mtx --precision 200 --threads 1");
    sandbox.run("cholesky Q.mtx -o L.mtx --precision 200 --threads 1");
    for model in MODELS {
        for (line, file) in [
            ("syrk P.mtx -o R.mtx -p 200", "Q.mtx"),
            ("syrk P.mtx -o R.mtx -p 200 --device soft:100000000", "Q.mtx"),
            ("cholesky Q.mtx -o R.mtx -p 200", "L.mtx"),
        ] {
            let line = format!("--quiet {line} --threads 1");
            let output = emulated(&sandbox, model, &line);
            // The emulator itself says which extensions it leaves out.
            let errors = output.stderr.lines().filter(|line| line.starts_with("sunzi"));
            assert_eq!((output.code, errors.collect::<String>().as_str()), (0, ""), "{model}: sunzi {line}");
            assert_eq!(sandbox.bytes("R.mtx"), sandbox.bytes(file), "{model}: sunzi {line}");
        }
    }
}
