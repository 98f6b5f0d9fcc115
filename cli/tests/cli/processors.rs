//! Processors of other years, by an emulator: the program runs on each of them and gives the same bits.

use super::sandbox::{Output, Sandbox, effort};
use std::process::Command;

/// The emulator of a user's program, from the package `qemu-user`.
const EMULATOR: &str = "qemu-x86_64";

/// Sets of instructions that have names, the smallest first.
const LEVELS: &[&str] = match () {
    () if cfg!(target_arch = "x86_64") => &["portable", "avx2", "avx-vnni", "avx512", "vnni"],
    () if cfg!(target_arch = "aarch64") => &["portable", "neon"],
    () => &["portable"],
};

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

/// The rates of kernels that are there, in the report and in what is printed: those of instructions of the processor's
/// own are above 0, plain Rust has none.
fn check_rates(kernels: &[serde_json::Value], text: &str) {
    // Long lines go on below their second column.
    let text = text.replace(&format!("\n{:13}", ""), " ");
    for kernel in kernels {
        let name = kernel["name"].as_str().unwrap();
        let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{name} "))).unwrap();
        let rate = &kernel["multiply_adds_per_second"];
        assert!(rate.is_null() || rate.as_f64().unwrap() > 0.0, "{kernel}");
        assert_eq!(line.contains("G multiply-adds per second"), rate.is_number(), "{line}");
        let gains = &kernel["gains_from_rows"];
        assert_eq!(gains.is_object(), kernel["available"] == true, "{kernel}");
        let gains = gains.as_object().is_some_and(|gains| gains.values().any(serde_json::Value::is_number));
        assert_eq!(line.contains("faster than the preferred kernel for "), gains, "{line}");
        if name == "i16" {
            assert_eq!(rate.is_null(), kernel["instructions"] == "portable", "{kernel}");
        }
    }
}

#[test]
fn hidden_instructions_change_the_kernels_and_no_bit() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 60 --cols 40 --precision 300 --seed 5 -o P.mtx");
    sandbox.run("syrk P.mtx -o Q.mtx --precision 300");
    sandbox.run("cholesky Q.mtx -o L.mtx --precision 300");
    sandbox.run("gen random --rows 40 --cols 7 --precision 300 --seed 6 -o B.mtx");
    let lines = [
        ("syrk P.mtx", "Q.mtx"),
        ("syrk P.mtx --accuracy entrywise", "E.mtx"),
        ("gemm P.mtx P.mtx --transpose-a", "C.mtx"),
        ("cholesky Q.mtx", "L.mtx"),
        ("trsm L.mtx B.mtx", "T.mtx"),
        ("solve Q.mtx B.mtx", "X.mtx"),
        ("inverse Q.mtx", "I.mtx"),
    ];
    for (line, file) in lines {
        sandbox.run(&format!("{line} -o {file} -p 300"));
    }
    let run = |level: &str, line: &str| {
        let program = env!("CARGO_BIN_EXE_sunzi");
        let words = line.split_whitespace();
        Command::new(program).args(words).current_dir(sandbox.path("")).env("SUNZI_CPU", level).output().unwrap()
    };
    for (turn, &level) in LEVELS.iter().chain(&["native", ""]).enumerate() {
        // With little effort every second line, the others with the next level.
        for (_, (line, file)) in lines.into_iter().enumerate().filter(|(at, _)| effort() > 1 || (at + turn) % 2 == 0) {
            let output = run(level, &format!("--quiet {line} -o R.mtx -p 300"));
            assert!(output.status.success(), "{level}: {line}: {output:?}");
            assert!(sandbox.bytes("R.mtx") == sandbox.bytes(file), "{level}: {line}");
        }
        let info = run(level, "info --report info.json");
        assert!(info.status.success(), "{level}: {info:?}");
        let report: serde_json::Value = serde_json::from_slice(&sandbox.bytes("info.json")).unwrap();
        let kernels = report["kernels"].as_array().unwrap();
        assert!(kernels[0]["preferred"] == true && kernels[0]["available"] == true, "{report}");
        let of = |name: &str| kernels.iter().find(|kernel| kernel["name"] == name);
        if !["native", ""].contains(&level) {
            assert!(of("ifma52").is_none_or(|kernel| kernel["available"] == false), "{level}");
            let place = |name: &serde_json::Value| LEVELS.iter().position(|known| name == known).unwrap();
            let of = |name: &str| of(name).unwrap();
            assert!(place(&of("i16")["instructions"]) <= place(&level.into()), "{level}: {report}");
            assert!(String::from_utf8_lossy(&info.stdout).contains(&format!("SUNZI_CPU={level} hides")));
        }
        check_rates(kernels, &String::from_utf8_lossy(&info.stdout));
        let bench = run(level, "bench syrk --rows 40 --cols 20 -p 128 --runs 1 --against mpfr --report bench.json");
        assert!(bench.status.success(), "{level}: {bench:?}");
        let bench: serde_json::Value = serde_json::from_slice(&sandbox.bytes("bench.json")).unwrap();
        // The limit is that of a kernel whose instructions are there.
        let limit = bench["limit_kernel"].as_str().map(|name| of(name).unwrap());
        let is_measured = |kernel: &serde_json::Value| kernel["multiply_adds_per_second"].is_number();
        assert!(bench["checked"] == true && limit.is_none_or(is_measured), "{level}: {bench}");
        assert_eq!(limit.is_some(), is_measured(of("i16").unwrap()), "{level}: {bench}");
    }
    for line in ["info", "syrk P.mtx -o S.mtx -p 300"] {
        let output = run("avx9", line);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains("SUNZI_CPU=avx9"), "{text}");
        assert!(LEVELS.iter().all(|name| text.contains(name)), "{text}");
    }
    assert!(!sandbox.path("S.mtx").exists());
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
    let lines = [
        ("syrk P.mtx -o R.mtx -p 200", "Q.mtx"),
        ("syrk P.mtx -o R.mtx -p 200 --device soft:100000000", "Q.mtx"),
        ("cholesky Q.mtx -o R.mtx -p 200", "L.mtx"),
    ];
    for (turn, model) in MODELS.into_iter().enumerate() {
        // The emulator takes part of a second to start: with little effort one of the lines, in turns.
        let is_taken = |at: usize| effort() > 1 || at == turn % 3;
        for (_, (line, file)) in lines.into_iter().enumerate().filter(|(at, _)| is_taken(*at)) {
            let line = format!("--quiet {line} --threads 1");
            let output = emulated(&sandbox, model, &line);
            // The emulator itself says which extensions it leaves out.
            let errors = output.stderr.lines().filter(|line| line.starts_with("sunzi"));
            assert_eq!((output.code, errors.collect::<String>().as_str()), (0, ""), "{model}: sunzi {line}");
            assert_eq!(sandbox.bytes("R.mtx"), sandbox.bytes(file), "{model}: sunzi {line}");
        }
    }
}
