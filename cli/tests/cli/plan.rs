//! `plan`: what it prints is what a run takes, and options that belong to another operation are refused.

use super::sandbox::{Sandbox, named_minimum};
use std::time::{Duration, Instant};
use sunzi::Matrix;
use sunzi::advanced::kernels::{self, EngineSpec};
use sunzi::advanced::math::family::f64_primes;

/// The whole number at `key` of a report.
fn number(report: &serde_json::Value, key: &str) -> u64 {
    report[key].as_u64().unwrap_or_else(|| panic!("{key}: {report}"))
}

#[test]
fn the_plan_of_a_factorisation_is_what_a_run_takes() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 80 --cols 70 --precision 200 --seed 3 -o P.bin");
    sandbox.run("syrk P.bin -o A.mtx --precision 200");
    for choice in ["--threads 1", "--threads 2", "--threads 2 --tile 9", "--threads 1 --kernel f64 --tile 16"] {
        let choice = format!("{choice} --accuracy norm");
        let text = sandbox.run(&format!("plan cholesky --rows 70 --precision 200 {choice} --report p.json"));
        sandbox.run(&format!("cholesky A.mtx -o L.mtx --precision 200 {choice} --report r.json"));
        let (plan, run) = (sandbox.json("p.json"), sandbox.json("r.json"));
        let planned = number(&plan, "planned_bytes");
        assert!(text.contains(&format!("({planned} bytes, operands excluded)")), "{text}");
        for key in ["planned_bytes", "working_bits", "primes", "tile_rows", "tiles", "threads", "order"] {
            assert_eq!(plan[key], run["factorisation"][key], "{key}, {choice}");
        }
        assert_eq!(plan["kernel"], run["factorisation"]["kernel"]);
        assert!(number(&plan, "tile_bytes") + number(&plan, "factor_bytes") < planned);
    }
    let error = sandbox.fail("plan cholesky --rows 1e4 --precision 200 --memory 100M", 4);
    sandbox.run(&format!("plan cholesky --rows 1e4 --precision 200 --memory {}", named_minimum(&error)));
}

#[test]
fn the_plan_of_an_lu_factorisation_is_what_a_run_takes() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 90 --cols 90 --precision 200 --seed 3 -o A.bin");
    for choice in ["--threads 1", "--threads 2 --accuracy norm", "--threads 1 --kernel reference"] {
        sandbox.run(&format!("lu A.bin --upper U.bin {choice} --report r.json"));
        let run = sandbox.json("r.json");
        let range_bits = number(&run["factorisation"], "range_bits");
        let range = if range_bits > 0 { format!("--range-bits {range_bits}") } else { String::new() };
        let line = format!("plan lu --rows 90 --precision 200 {choice} {range} --no-time --report p.json");
        let (text, plan) = (sandbox.run(&line), sandbox.json("p.json"));
        let planned = number(&plan, "planned_bytes");
        assert!(text.contains(&format!("({planned} bytes, operands excluded)")), "{text}");
        for key in ["planned_bytes", "working_bits", "range_bits", "primes", "threads", "order", "kernel"] {
            assert_eq!(plan[key], run["factorisation"][key], "{key}, {choice}");
        }
    }
    for line in [
        "plan solve --rows 90 --cols 3 -p 200 --general --refine-from 100",
        "plan inverse --rows 9 -p 200 --general --tile 3",
    ] {
        assert!(sandbox.fail(line, 2).contains("cannot be used with"), "{line}");
    }
}

#[test]
fn the_plan_of_a_solve_is_near_what_a_run_reports_and_names_the_least_limit() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 80 --cols 70 --precision 200 --seed 3 -o P.bin");
    sandbox.run("gen random --rows 70 --cols 12 --precision 200 --seed 5 -o B.bin");
    sandbox.run("syrk P.bin -o A.bin");
    sandbox.run("cholesky A.bin -o L.bin");
    for (operation, matrix) in [("trsm", "L"), ("solve", "A")] {
        for (choice, path) in [("--cols 12", "tiles in fixed point"), ("--cols 2", "")] {
            let line = format!("plan {operation} --rows 70 {choice} --precision 200 --threads 1");
            let text = sandbox.run(&format!("{line} --report p.json"));
            let plan = sandbox.json("p.json");
            let planned = number(&plan, "planned_bytes");
            assert!(text.contains(&format!("({planned} bytes, operands excluded)")) && text.contains(path), "{text}");
            assert!(number(&plan, "least_bytes") <= planned && number(&plan, "operand_bytes") > 0);
            let factors = number(&plan, "factorisation_bytes") > 0;
            assert_eq!((factors, text.contains("factorisation")), (operation == "solve", operation == "solve"));
            let least = named_minimum(&sandbox.fail(&format!("{line} --memory 1K"), 4));
            sandbox.run(&format!("{line} --memory {least} --report p.json"));
            assert!(number(&sandbox.json("p.json"), "planned_bytes") < least);
        }
        let run = format!("{operation} {matrix}.bin B.bin -o X.bin --threads 1 --report r.json");
        let said = sandbox.run(&run);
        sandbox.run(&format!("plan {operation} --rows 70 --cols 12 -p 200 --threads 1 --report p.json"));
        let (plan, run) = (sandbox.json("p.json"), sandbox.json("r.json"));
        // A call knows its pivots, which a plan can only expect.
        let (planned, taken) = (number(&plan, "planned_bytes"), number(&run, "planned_bytes"));
        assert!(taken.abs_diff(planned) <= planned / 50, "{operation}: {taken} bytes, {planned} planned");
        assert!(said.contains(" planned) in "), "{said}");
    }
    let error = sandbox.fail("plan solve --rows 1e4 --cols 100 --precision 200 --memory 100M", 4);
    sandbox.run(&format!("plan solve --rows 1e4 --cols 100 --precision 200 --memory {}", named_minimum(&error)));
}

#[test]
fn options_of_other_operations_are_refused() {
    let sandbox = Sandbox::new();
    let cases = [
        ("cholesky --rows 10 -p 64 --cols 10", "unexpected argument '--cols'"),
        ("cholesky --rows 10 -p 64 --result-rows 10", "unexpected argument '--result-rows'"),
        ("cholesky --rows 10 -p 64 --self-check", "unexpected argument '--self-check'"),
        ("cholesky --rows 10 -p 64 --tile 0", "choose 1 or more"),
        ("cholesky --rows 10 -p 64 --nodes 0", "'0' for '--nodes <N>': choose 1 or more"),
        ("cholesky --rows 10 -p 64 --nodes 1e7", "10000000 nodes"),
        ("cholesky --rows 10 -p 64 --storage", "--storage requires --accuracy norm"),
        ("solve --rows 10 --cols 9 -p 64 --storage", "--storage requires --accuracy norm"),
        ("solve --rows 10 --cols 9 -p 64 --nodes 2 --refine-from 50", "cannot be used with"),
        ("inverse --rows 10 -p 64 --nodes 2", "unexpected argument '--nodes'"),
        ("trsm --rows 10 --cols 9 -p 64 --range-bits 4", "unexpected argument '--range-bits'"),
        ("cholesky --rows 10 -p 1e6", "precision"),
        ("gemm --rows 10 --cols 10 -p 64 --ranks-per-node 2", "unexpected argument '--ranks-per-node'"),
        ("gemm --rows 10 --cols 10 -p 64 --tile 8", "unexpected argument '--tile'"),
        ("gemm --rows 10 -p 64", "--cols"),
        ("--rows 10 -p 64", "--cols"),
        ("--rows 10 --cols 10 -p 64 --tile 8", "unexpected argument '--tile'"),
        ("--rows 10 --cols 10 -p 64 --result-rows 9", "unexpected argument '--result-rows'"),
        ("--nodes 2 --rows 10 --cols 10 -p 64 --result-rows 9", "unexpected argument '--result-rows'"),
        ("--nodes 2 --rows 10 --cols 10 -p 64 --tile 8", "unexpected argument '--tile'"),
        ("--nodes 0 --rows 10 --cols 10 -p 64", "'0' for '--nodes <N>': choose 1 or more"),
        ("--ranks-per-node 0 --rows 10 --cols 10 -p 64", "'0' for '--ranks-per-node <R>': choose 1 or more"),
        ("--nodes 1e7 --rows 10 --cols 10 -p 64", "10000000 nodes"),
        ("--nodes 1e19 --ranks-per-node 1e19 --rows 10 --cols 10 -p 64", "nodes"),
        ("--nodes two --rows 10 --cols 10 -p 64", "'two'"),
        ("trsm --rows 10 -p 64", "--cols"),
        ("trsm --nodes 2 --rows 10 --cols 10 -p 64", "unexpected argument '--nodes'"),
        ("solve --rows 10 --cols 10 -p 64 --tile 8", "unexpected argument '--tile'"),
        ("inverse --rows 10 -p 64 --cols 10", "unexpected argument '--cols'"),
    ];
    for (line, needle) in cases {
        let error = sandbox.fail(&format!("plan {line}"), 2);
        assert!(error.contains(needle), "plan {line}: {error}");
    }
}

#[test]
fn a_cluster_is_planned_on_any_machine() {
    let sandbox = Sandbox::new();
    let line = "--nodes 8 --ranks-per-node 128 --rows 1e5 --cols 1e4 --precision 1024 --memory 200G --accuracy norm";
    let text = sandbox.run(&format!("plan syrk {line} --report p.json"));
    for words in [
        "memory          200.00 GiB for each node",
        "8 nodes of 128 ranks of 1 thread: 1024 ranks, 1024 workers",
        "32 x 32 ranks own the result",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    for word in [
        "rows",
        "tiles",
        "primes",
        "batches",
        "bands",
        "chunks",
        "jobs",
        "balance",
        "operands",
        "result",
        "to_residues",
        "product",
        "scratch",
        "reconstruct",
        "tables",
        "lists",
        "sent",
        "planned",
    ] {
        assert!(text.lines().any(|line| line.split(' ').next() == Some(word)), "{word}: {text}");
    }
    let report = sandbox.json("p.json");
    let counts = ["nodes", "ranks", "ranks_per_node", "threads_per_rank"].map(|key| number(&report, key));
    assert_eq!(counts, [8, 1024, 128, 1]);
    assert!(number(&report, "planned_bytes") + number(&report, "operand_bytes") <= 200 << 30);
    // Each node keeps an eighth of the residues, more or less, and sends the rest in the bits of their moduli.
    let spec = EngineSpec { operand_bits: 1024, modulus_bits: 2100, redundant: false };
    let engine = kernels::by_name(report["kernel"].as_str().unwrap()).unwrap().prepare(&spec).unwrap();
    let moduli = &engine.moduli()[..number(&report, "primes") as usize];
    let bits = moduli.iter().map(|modulus| u64::from(64 - (modulus - 1).leading_zeros())).sum::<u64>();
    let planes = 1250 * 1251 / 2 * 64 / 8 * bits;
    assert!((planes * 8 / 10..planes).contains(&number(&report, "sent_bytes")), "{planes}: {report}");
    let nodes = report["per_node"].as_array().unwrap();
    assert_eq!(nodes.iter().map(|node| number(node, "count")).sum::<u64>(), 8);
    assert_eq!(nodes.iter().map(|node| number(node, "count") * number(node, "rows")).sum::<u64>(), 100_000);
    // The operation is syrk unless said otherwise, and one of the two counts is enough.
    assert_eq!(sandbox.run(&format!("plan {line} --kernel auto")), text);
    let of = |line: &str| {
        sandbox.run(&format!("plan {line} --rows 1e3 --cols 100 -p 100 --report p.json --quiet"));
        let report = sandbox.json("p.json");
        ["nodes", "ranks_per_node", "threads_per_rank"].map(|key| number(&report, key))
    };
    assert_eq!(of("--nodes 3"), [3, 1, 1]);
    assert_eq!(of("--ranks-per-node 3 --threads 5"), [1, 3, 5]);
}

#[test]
fn the_limit_of_a_node_counts_its_operands_and_its_processes() {
    let sandbox = Sandbox::new();
    let line = "plan --nodes 3 --ranks-per-node 2 --threads 2 --rows 4e3 --cols 200 --precision 300";
    let least = named_minimum(&sandbox.fail(&format!("{line} --memory 1"), 4));
    sandbox.run(&format!("{line} --memory {least} --report p.json"));
    let report = sandbox.json("p.json");
    let parts = ["planned_bytes", "operand_bytes", "process_bytes"].map(|key| number(&report, key));
    assert_eq!((parts.iter().sum::<u64>(), parts[2]), (least, 2 * (49 << 20)), "{report}");
    assert_eq!(named_minimum(&sandbox.fail(&format!("{line} --memory {}", least - 1), 4)), least);
}

/// Factors and solves on a cluster, in memory and out of core: the least limit that is named suffices, and the numbers
/// of ranks and nodes add up.
#[test]
fn factors_and_solves_are_planned_on_a_cluster() {
    let sandbox = Sandbox::new();
    for (line, in_memory) in [
        ("cholesky --rows 3000 -p 300", true),
        ("solve --rows 3000 --cols 40 -p 300", true),
        ("cholesky --rows 3000 -p 300 --accuracy norm --storage", false),
        ("solve --rows 3000 --cols 40 -p 300 --accuracy norm --storage", false),
    ] {
        let line = format!("plan {line} --nodes 3 --ranks-per-node 4 --threads 2");
        let text = sandbox.run(&format!("{line} --report p.json"));
        assert!(text.contains("3 nodes of 4 ranks of 2 threads: 12 ranks"), "{text}");
        let report = sandbox.json("p.json");
        let [rank, node, process, planned, least] =
            ["rank_bytes", "node_bytes", "process_bytes", "planned_bytes", "least_limit_bytes"]
                .map(|key| number(&report, key));
        assert_eq!(process, 4 * (49 << 20), "48 MiB and two threads for each process");
        assert!(rank >= planned && node >= process + 4 * rank && node >= least, "{report}");
        assert!(text.contains(&format!("({node} bytes) all of this, on the first node")), "{text}");
        // The whole factor or solution is gathered in memory, unless it is a file.
        let whole = Matrix::bytes_for(3000, if line.contains("solve") { 40 } else { 3000 }, 300);
        assert_eq!(in_memory, node >= process + 4 * rank + whole, "{report}");
        let refusal = sandbox.fail(&format!("{line} --memory 1M"), 4);
        assert_eq!(named_minimum(&refusal), least, "{line}");
        assert!(refusal.contains("of which 196.00 MiB are for processes"), "{refusal}");
        sandbox.run(&format!("{line} --memory {least} --report p.json"));
        assert!(number(&sandbox.json("p.json"), "node_bytes") <= least, "{line}");
        sandbox.fail(&format!("{line} --memory {}", least - 1), 4);
    }
    // More ranks have less each.
    let of = |shape: &str| {
        sandbox.run(&format!("plan cholesky --rows 3000 -p 300 --report p.json {shape}"));
        number(&sandbox.json("p.json"), "rank_bytes")
    };
    assert!(of("--nodes 64") * 4 < of("--nodes 2"));
    let start = Instant::now();
    of("--nodes 8 --ranks-per-node 128 --memory 100G");
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

/// The plan of a run out of core in one process is that of the run.
#[test]
fn a_plan_out_of_core_is_what_a_run_takes() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 500 --cols 400 --precision 200 --seed 3 -o P.bin");
    sandbox.run("syrk P.bin -o A.bin");
    sandbox.run("gen random --rows 400 --cols 9 --precision 200 --seed 5 -o B.bin");
    let common = "--accuracy norm --threads 1 --memory 60M";
    sandbox.run(&format!("plan cholesky --rows 400 -p 200 --storage {common} --report p.json"));
    sandbox.run(&format!("cholesky A.bin -o L.bin --storage tiles {common} --report r.json"));
    let (plan, run) = (sandbox.json("p.json"), sandbox.json("r.json"));
    for key in ["tile_rows", "tiles", "room_tiles", "block_tiles", "traffic", "planned_bytes"] {
        assert!(plan[key] == run["plan"][key] && !plan[key].is_null(), "{key}: {plan} {run}");
    }
    sandbox.run(&format!("plan solve --rows 400 --cols 9 -p 200 --storage {common} --report p.json"));
    sandbox.run(&format!("solve A.bin B.bin -o X.bin --storage work {common} --report r.json"));
    let (plan, run) = (sandbox.json("p.json"), sandbox.json("r.json"));
    assert_eq!(number(&plan, "band_columns"), number(&run, "band_columns"));
    // A run knows its pivots.
    let [planned, taken] = [number(&plan, "solve_bytes"), number(&run, "planned_bytes")];
    assert!(taken.abs_diff(planned) <= planned / 20, "{taken} bytes, {planned} planned");
}

/// Memory of the process beside matrices and plan is named by the plan and by a refusal, and they add up.
#[test]
fn a_plan_and_a_refusal_name_what_the_process_takes() {
    let sandbox = Sandbox::new();
    for line in [
        "syrk --rows 90 --cols 60",
        "cholesky --rows 60",
        "solve --rows 60 --cols 9",
        "eigenvalue --rows 60",
        "lu --rows 60",
        "solve --rows 60 --cols 9 --general",
        "inverse --rows 60 --general",
    ] {
        let line = format!("plan {line} --precision 300 --threads 2");
        let text = sandbox.run(&format!("{line} --report p.json"));
        let report = sandbox.json("p.json");
        let [process, least, operands] =
            ["process_bytes", "least_limit_bytes", "operand_bytes"].map(|key| number(&report, key));
        assert_eq!(process, 33 << 20, "32 MiB and two threads");
        assert!(text.contains("\nprocess           33.00 MiB  the program itself"), "{text}");
        assert!(
            text.contains(&format!("({least} bytes), the least --memory for a run")) && least > process + operands,
            "{text}"
        );
        let refusal = sandbox.fail(&format!("{line} --memory 1M"), 4);
        assert_eq!(named_minimum(&refusal), least, "{refusal}");
        assert!(refusal.contains(", of which 33.00 MiB are for processes: code, libraries and threads"), "{refusal}");
    }
}

/// Two ranks a node with a device each send what they send within the node too.
#[test]
fn a_cluster_with_devices_is_planned_for_each_rank() {
    let sandbox = Sandbox::new();
    let line = "plan --nodes 2 --ranks-per-node 2 --rows 600 --cols 8000 -p 200 --device soft --kernel cuda-f64";
    let text = sandbox.run(&format!("{line} --report p.json"));
    for line in ["2 nodes of 2 ranks of 1 thread: 4 ranks, 4 workers", "300 on a node", "2 x 2 ranks own the result"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let report = sandbox.json("p.json");
    assert_eq!(report["devices"].as_array().unwrap().len(), 1);
    // Each rank sends its neighbour the residues of two ranks' tiles, and one sum to the other node.
    let bits = f64_primes()[..number(&report, "primes") as usize].iter().map(|prime| u64::from(prime.ilog2()) + 1);
    let planes = 8000 * 8001 / 2 * bits.sum::<u64>() / 8;
    assert!((planes * 14 / 10..planes * 16 / 10).contains(&number(&report, "sent_bytes")), "{planes}: {report}");
    let node = number(&report, "planned_bytes");
    assert!(node < Matrix::bytes_for(8000, 8000, 200), "{node} bytes: no rank has room for the whole result");
    let error = sandbox.fail(&format!("{line} --memory 3M"), 4);
    let others = number(&report, "operand_bytes") + number(&report, "process_bytes");
    assert!(named_minimum(&error) <= node + others, "{error}");
}

#[test]
fn operands_that_exceed_the_machine_are_warned_of() {
    let sandbox = Sandbox::new();
    // 40 TB, and 400 kB.
    let text = sandbox.run("plan cholesky --rows 1e6 -p 256 --no-time --report p.json");
    assert!(text.contains("\nwarning         the operands exceed the "), "{text}");
    let report = sandbox.json("p.json");
    assert!(number(&report, "operand_bytes") > number(&report, "machine_bytes"), "{report}");
    assert!(!sandbox.run("plan cholesky --rows 100 -p 256 --no-time").contains("warning"));
    // A cluster need not be this machine.
    let text = sandbox.run("plan --nodes 2 --rows 1e6 --cols 1e6 -p 256 --report p.json");
    assert!(!text.contains("warning") && sandbox.json("p.json")["machine_bytes"].is_null(), "{text}");
}

#[test]
fn a_thousand_nodes_are_planned_at_once() {
    let sandbox = Sandbox::new();
    for memory in ["", "--memory 100G", "--memory 22G"] {
        let start = Instant::now();
        sandbox.run(&format!("plan --nodes 1e3 --ranks-per-node 128 --rows 1e6 --cols 1e4 -p 1024 {memory}"));
        // A tenth of a second on a quiet machine; a search of all cuts would take minutes.
        assert!(start.elapsed() < Duration::from_secs(10), "{memory}: {:?}", start.elapsed());
    }
}

/// About as long as a run takes: within a factor of 8 here, where other tests run beside it.
#[test]
fn a_plan_says_how_long_it_will_take() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 700 --cols 300 --precision 256 --seed 3 -o P.bin");
    sandbox.run("syrk P.bin -o A.bin");
    for (plan, run) in [
        ("syrk --rows 700 --cols 300", "syrk P.bin -o X.bin"),
        ("gemm --rows 300 --cols 300", "gemm A.bin A.bin -o X.bin"),
        ("cholesky --rows 300", "cholesky A.bin -o X.bin"),
        ("trsm --rows 300 --cols 300", "trsm A.bin A.bin -o X.bin"),
        ("solve --rows 300 --cols 300", "solve A.bin A.bin -o X.bin --no-estimate"),
        ("inverse --rows 300", "inverse A.bin -o X.bin --no-estimate"),
        ("lu --rows 300", "lu A.bin --lower X.bin"),
        ("solve --rows 300 --cols 300 --general", "solve A.bin A.bin -o X.bin --no-estimate --general"),
        ("inverse --rows 300 --general", "inverse A.bin -o X.bin --no-estimate --general"),
    ] {
        let text = sandbox.run(&format!("plan {plan} -p 256 --threads 1 --report p.json"));
        let line = text.lines().find(|line| line.starts_with("time ")).unwrap_or_else(|| panic!("{text}"));
        assert!(
            line.starts_with("time            about ") && line.contains(" on 1 thread (from measured rates"),
            "{line}"
        );
        sandbox.run(&format!("{run} --threads 1 --report r.json"));
        let seconds = |file: &str, key: &str| sandbox.json(file)[key].as_f64().unwrap();
        let ratio = seconds("p.json", "expected_seconds") / seconds("r.json", "seconds");
        assert!((0.125..8.0).contains(&ratio), "{plan}: {ratio}");
    }
    let text = sandbox.run("plan cholesky --rows 1e5 -p 256 --no-time --report p.json");
    assert!(!text.contains("time ") && sandbox.json("p.json")["expected_seconds"].is_null(), "{text}");
    assert!(!sandbox.run("plan --nodes 2 --rows 1000 --cols 100 -p 200").contains("rates measured"));
}
