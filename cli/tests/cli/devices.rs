//! Devices on the command line: checks and rates on the software device, products with the bits of the CPU, refusals.

use super::sandbox::{Sandbox, effort};
use serde_json::Value;
use std::sync::OnceLock;

/// Options of a small product that is timed.
const SMALL: &str = "--device soft --threads 2 --rows 70 --cols 20 --precision 128";

/// What `gpu-check` says with all of its options, in one run for the tests of this file: text and report.
fn whole_check() -> &'static (String, Value) {
    static CHECK: OnceLock<(String, Value)> = OnceLock::new();
    CHECK.get_or_init(|| {
        let sandbox = Sandbox::new();
        let text = sandbox.run(&format!("gpu-check {SMALL} --report r.json"));
        (text, sandbox.json("r.json"))
    })
}

fn sum(report: &Value, key: &str) -> u64 {
    report["devices"].as_array().unwrap().iter().map(|device| device[key].as_u64().unwrap()).sum()
}

/// The checks take ten seconds, so that with little effort they are those of the run that measures rates as well.
#[test]
fn a_quick_check_passes_and_reports() {
    let sandbox = Sandbox::new();
    let (text, report, names): (_, _, &[&str]) = if effort() > 1 {
        let text = sandbox.run("gpu-check --device soft,soft:64M --quick --threads 2 --report r.json");
        let report = sandbox.json("r.json");
        assert_eq!(report["rates"], Value::Null, "{text}");
        (text, report, &["soft 0", "soft 1", "all together", "soft 1 and host"])
    } else {
        // Several devices have tests without the command, in `sunzi-lab`.
        let (text, report) = whole_check().clone();
        (text, report, &["soft 0", "soft 0 and host"])
    };
    assert_eq!(report["passed"], true, "{text}");
    let checks = report["checks"].as_array().unwrap();
    assert_eq!(text.lines().filter(|line| line.ends_with(" ok")).count(), checks.len(), "{text}");
    for check in [
        "copies and clears",
        "triangular solves",
        "cholesky of doubles",
        "syrk, shapes",
        "little memory",
        "cholesky",
        "not positive definite",
        "trsm and solve",
        "shares of the moduli",
    ] {
        assert!(checks.iter().any(|entry| entry["check"] == check && entry["failure"].is_null()), "{check}: {text}");
    }
    for family in ["cuda-f64", "cuda-i8"] {
        for &device in names {
            let found = checks.iter().any(|entry| entry["family"] == family && entry["device"] == device);
            assert!(found, "{family}, {device}: {text}");
        }
    }
    let memory = if effort() > 1 { "64.00 MiB" } else { "1.00 GiB" };
    assert!(text.contains("sunzi ") && text.contains(&format!("software device, {memory}")), "{text}");
}

#[test]
fn rates_are_a_table_that_says_what_it_is_worth() {
    let sandbox = Sandbox::new();
    let (text, report) = whole_check();
    assert!(text.contains("not measured on a GPU") && !text.contains("NOT MET"), "{text}");
    let rates = &report["rates"];
    let rows = rates["table"]["rows"].as_array().unwrap();
    let aims = rows.iter().filter(|row| !row["target"].is_null()).collect::<Vec<_>>();
    assert_eq!(aims.len(), 9, "{text}");
    assert!(aims.iter().all(|row| row["met"].is_null()));
    assert!(rows.iter().all(|row| row["measured"].as_f64().unwrap() >= 0.0));
    assert_eq!((&rates["rows"], &rates["cols"], &rates["precision_bits"]), (&70.into(), &20.into(), &128.into()));
    for product in rates["products"].as_array().unwrap() {
        let report = &product["report"];
        // 70 rows are padded to 80, and the triangle to the square of 32 columns.
        let (planes, issued) = (sum(report, "planes"), sum(report, "multiply_adds"));
        assert_eq!(issued, planes * 80 * 32 * 32, "{report}");
        assert_eq!(product["all_seconds"].as_array().unwrap().len(), 3);
    }
    let error = sandbox.fail("gpu-check --device soft --quick --rows 70", 2);
    assert!(error.contains("--quick") && error.contains("--rows"), "{error}");
}

#[test]
fn devices_that_are_not_there_are_one_line() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 20 --cols 7 --precision 100 -o P.bin");
    for line in ["gpu-check --device 7", "syrk P.bin -o Q.bin --device 7", "bench syrk --rows 9 --cols 9 --device 7"] {
        let error = sandbox.fail(line, 2);
        assert!(error.contains('7') || !cfg!(feature = "cuda"), "{error}");
        assert!(cfg!(feature = "cuda") || error.contains("CUDA device 7: this build has no CUDA"), "{error}");
    }
    for line in ["gpu-check --device nonsense", "syrk P.bin -o Q.bin --device nonsense"] {
        let error = sandbox.fail(line, 2);
        assert!(error.contains("invalid value 'nonsense' for '--device <LIST>': none of"), "{error}");
    }
    let error = sandbox.fail("gpu-check --device host,host", 2);
    assert!(error.contains("named twice"), "{error}");
    if !cfg!(feature = "cuda") {
        for line in ["gpu-check", "gpu-check --quick --device 0", "syrk P.bin -o Q.bin --kernel cuda-i8"] {
            assert!(sandbox.fail(line, 2).contains("this build has no CUDA"));
        }
    }
    assert_eq!(sandbox.names(), ["P.bin"]);
}

#[test]
fn a_product_on_devices_is_the_file_of_the_cpu() {
    let sandbox = Sandbox::new();
    sandbox.run("gen graded --rows 90 --cols 21 --precision 200 --seed 3 -o P.bin");
    sandbox.run("syrk P.bin -o Q.bin --precision 200");
    sandbox.run("gemm P.bin P.bin --transpose-a -o C.bin --precision 200");
    for choice in [
        "--kernel cuda-f64",
        "--kernel cuda-i8 --self-check --freivalds",
        "--kernel cuda-f64 --device-memory 1M --threads 1",
    ] {
        for list in ["soft", "soft,soft:32M,host"] {
            sandbox.run(&format!("syrk P.bin -o D.bin --precision 200 --device {list} {choice} --report r.json"));
            assert_eq!(sandbox.bytes("Q.bin"), sandbox.bytes("D.bin"), "{list} {choice}");
            let report = sandbox.json("r.json");
            // The CPU may be too slow, by the clocks of the others, to have a share.
            let shares = report["devices"].as_array().unwrap().len();
            let soft = list.matches("soft").count();
            assert!((soft..=list.split(',').count()).contains(&shares), "{list}: {shares}");
            assert_eq!(sum(&report, "moduli"), report["primes"].as_u64().unwrap());
            for device in report["devices"].as_array().unwrap() {
                let traffic = &device["traffic"];
                assert!(traffic["h2d_bytes"].as_u64() > Some(0) && traffic["d2h_bytes"].is_u64(), "{report}");
            }
            sandbox.run(&format!("gemm P.bin P.bin --transpose-a -o D.bin --precision 200 --device {list} {choice}"));
            assert_eq!(sandbox.bytes("C.bin"), sandbox.bytes("D.bin"), "{list} {choice}");
        }
    }
}

#[test]
fn too_little_device_memory_names_the_least() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 300 --cols 40 --precision 200 -o P.bin");
    for line in ["syrk P.bin -o Q.bin --precision 200", "plan syrk --rows 300 --cols 40 --precision 200"] {
        let devices = format!("{line} --device soft --kernel cuda-i8");
        let error = sandbox.fail(&format!("{devices} --device-memory 1K"), 4);
        let least = error.split("at least ").nth(1).unwrap().split(' ').next().unwrap();
        sandbox.run(&format!("{devices} --device-memory {least}"));
        sandbox.fail(&format!("{devices} --device-memory {}", least.parse::<u64>().unwrap() - 1), 4);
    }
    assert!(sandbox.fail("syrk P.bin -o Q.bin --device-memory 1K", 2).contains("--device"));
}

#[test]
fn the_plan_of_a_product_on_devices_is_what_a_run_takes() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 300 --cols 40 --precision 200 -o P.bin");
    let devices = "--precision 200 --accuracy norm --device soft:64M,soft --kernel cuda-f64";
    let text = sandbox.run(&format!("plan syrk --rows 300 --cols 40 {devices} --report p.json"));
    sandbox.run(&format!("syrk P.bin -o Q.bin {devices} --report r.json"));
    let (plan, run) = (sandbox.json("p.json"), sandbox.json("r.json"));
    for key in ["planned_bytes", "primes", "kernel"] {
        assert_eq!(plan[key], run[key], "{key}: {text}");
    }
    let pairs = plan["devices"].as_array().unwrap().iter().zip(run["devices"].as_array().unwrap());
    for (planned, taken) in pairs {
        assert_eq!((&planned["cut"], &planned["moduli"]), (&taken["cut"], &taken["moduli"]));
        let bytes = |entry: &Value, key: &str| entry[key].as_u64().unwrap();
        assert!(bytes(taken, "device_bytes") <= bytes(planned, "planned_bytes"), "{planned} {taken}");
    }
    for words in ["soft 0", "soft 1", "software device", "on the device", "operand planes of a batch", "copies"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains(" of 0 primes"), "{text}");
}

#[test]
fn bench_runs_on_devices_and_claims_no_limit_of_the_cpu() {
    let sandbox = Sandbox::new();
    for (operation, kernel) in [("syrk", "cuda-i8"), ("gemm", "cuda-f64")] {
        let size = "--rows 60 --cols 20 --precision 128 --runs 2";
        let line = format!("bench {operation} {size} --device soft --kernel {kernel} --against mpfr --report r.json");
        let text = sandbox.run(&line);
        let report = sandbox.json("r.json");
        assert_eq!((&report["kernel"], &report["checked"]), (&kernel.into(), &true.into()), "{text}");
        assert!(report["limit_seconds"].is_null() && report["limit_ratio"].is_null(), "{report}");
        assert!(report["devices"][0]["traffic"]["h2d_bytes"].as_u64() > Some(0), "{report}");
        assert!(text.contains("limit      not known on devices") && text.contains("soft 0"), "{text}");
    }
}

#[test]
fn triangular_solves_on_devices_are_the_file_of_the_cpu() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 9 --cols 9 --precision 64 -o B.bin");
    sandbox.run("trsm B.bin B.bin -o X.bin");
    for choice in ["--kernel cuda-f64", "--kernel cuda-i8 --device-memory 64M", "--threads 1"] {
        sandbox.run(&format!("trsm B.bin B.bin -o D.bin --device soft {choice}"));
        assert_eq!(sandbox.bytes("X.bin"), sandbox.bytes("D.bin"), "{choice}");
    }
    for operation in ["trsm", "solve"] {
        let line = format!("bench {operation} --rows 150 --precision 128 --runs 1 --device soft --report r.json");
        let text = sandbox.run(&line);
        let report = sandbox.json("r.json");
        assert!(report["checked"] == true && report["limit_seconds"].is_null(), "{report}");
        assert!(text.contains("limit      not known on devices"), "{text}");
    }
}

#[test]
fn the_plan_of_a_factorisation_names_its_device() {
    let sandbox = Sandbox::new();
    let line = "plan cholesky --rows 300 --precision 200 --tile 64 --report p.json";
    assert!(!sandbox.run(line).contains("updates by"));
    assert!(sandbox.json("p.json")["devices"].is_null());
    for kernel in ["cuda-f64", "cuda-i8"] {
        let text = sandbox.run(&format!("{line} --device soft --kernel {kernel}"));
        let plan = sandbox.json("p.json");
        assert!(text.contains(&format!("updates by {kernel}, {} moduli", plan["primes"])), "{text}");
        assert!(plan["devices"][0]["tile_bytes"].as_u64() > Some(64 * 64), "{plan}");
    }
}

#[test]
fn commands_without_work_for_devices_refuse_them() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 9 --cols 9 --precision 64 -o P.bin");
    for (option, value) in [("--device", "soft"), ("--kernel", "cuda-f64")] {
        let error = sandbox.fail(&format!("bench kernel --rows 9 --cols 9 {option} {value}"), 2);
        assert!(error.contains(option) && error.contains("on the CPU only"), "{error}");
    }
    assert_eq!(sandbox.names(), ["P.bin"]);
}
