//! `simulate`: tables, reports, traces, pictures, machines from files, and refusals that name their numbers.

use super::sandbox::Sandbox;

const SMALL: &str = "simulate cholesky --processes 6 --tiles 12";

#[test]
fn a_factorisation_is_simulated_in_full_and_in_a_table() {
    let sandbox = Sandbox::new();
    let text = sandbox.run(&format!("{SMALL} --report r.json --trace t.json --plot p.svg"));
    assert!(text.contains("2 x 3 processes of tsubame2.5") && text.contains("at least "), "{text}");
    let report = sandbox.json("r.json");
    let simulation = &report["simulations"][0];
    assert_eq!(simulation["tasks"].as_u64(), Some(364));
    assert!(simulation["makespan_seconds"].as_f64() >= simulation["critical_path_seconds"].as_f64());
    assert_eq!(report["machine"]["tiles"]["rows"].as_u64(), Some(2048));
    let spans = sandbox.json("t.json")["traceEvents"].as_array().unwrap().len();
    assert!(spans > 364, "{spans}");
    assert!(sandbox.text("p.svg").contains("slots in use"));

    let table = sandbox.run(&format!("{SMALL} --broadcast cs_list,synchronous --termination lists,all_to_all"));
    assert_eq!(table.lines().count(), 6, "{table}");
    assert!(table.lines().last().unwrap().starts_with("synchronous     all_to_all"), "{table}");
}

#[test]
fn machines_come_from_files_and_seeds_repeat() {
    let sandbox = Sandbox::new();
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/machines/tsubame2.5.toml")).unwrap();
    sandbox.write("m.toml", text.replace("gemm = 1.05e12", "gemm = 0.5e12"));
    sandbox.write("bad.toml", text.replace("latency = 3e-6", "latency = -3.0"));
    sandbox.write("unknown.toml", text.replace("[rates]", "[rates]\nlu = 1.0"));
    let seconds = |options: &str| {
        sandbox.run(&format!("{SMALL} {options} --report r.json"));
        sandbox.json("r.json")["simulations"][0]["makespan_seconds"].as_f64().unwrap()
    };
    assert!(seconds("--machine m.toml") > seconds(""));
    assert_eq!(seconds("--seed 3 --jitter 0.5 --slow 3:10"), seconds("--seed 3 --jitter 0.5 --slow 3:10"));
    assert!(sandbox.fail(&format!("{SMALL} --machine bad.toml"), 2).contains("network.latency = -3"));
    assert!(sandbox.fail(&format!("{SMALL} --machine unknown.toml"), 2).contains("lu"));
    assert!(sandbox.fail(&format!("{SMALL} --machine cray"), 2).contains("tsubame2.5"));
    assert!(sandbox.run("simulate soak --seeds 5 --first 90").starts_with("5 seeds: "));
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let sandbox = Sandbox::new();
    let cases = [
        ("--remote-tiles 1", "needs at least"),
        ("--host-memory 200M", "needs at least"),
        ("--grid 2x2", "has 4 processes, not 6"),
        ("--grid 23", "--grid"),
        ("--broadcast telegraph", "[possible values: point_to_point, cs_list,"),
        ("--policy lottery", "unknown policy 'lottery'"),
        ("--eviction all", "[possible values: fifo, lru]"),
        ("--termination never", "[possible values: lists, all_to_all]"),
        ("--slow 6:2", "--slow: process 6 does not exist: there are 6 processes"),
        ("--slow 6", "'6' for '--slow <LIST>': not PROCESS:FACTOR"),
        ("--jitter -1", "'-1' for '--jitter <J>'"),
        ("--workers 0", "'0' for '--workers <W>'"),
        ("--eviction fifo,lru --plot p.svg", "the options give 2"),
    ];
    for (options, expected) in cases {
        let error = sandbox.fail(&format!("{SMALL} {options}"), 2);
        assert!(error.contains(expected), "{options}: {error}");
    }
    assert!(sandbox.fail("simulate cholesky --processes 4", 2).contains("--order <N>"));
    assert!(sandbox.fail("simulate cholesky --tiles 4", 2).contains("--processes <P>"));
    assert!(sandbox.fail("simulate cholesky --processes 4 --problem QAP99", 2).contains("QAP10"));
    assert!(sandbox.fail("simulate cholesky --processes 4 --order 1e9", 2).contains("tile rows"));
}

#[test]
fn processes_are_simulated_above_disks() {
    let sandbox = Sandbox::new();
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/machines/two-cores.toml")).unwrap();
    sandbox.write("disk.toml", &text);
    sandbox.write(
        "both.toml",
        format!(
            "{text}\n[device]\ncount = 1\nmemory_bytes = 500000000\nlaunch_seconds = 0.0\n\
        up_bandwidth = 1e9\ndown_bandwidth = 1e9\nlatency = 0.0\n"
        ),
    );
    let small = "simulate cholesky --machine disk.toml --processes 2 --order 2500 --host-memory 100M";
    let text = sandbox.run(&format!("{small} --report r.json --trace t.json --plot p.svg"));
    assert!(text.contains("policy blocks:3x3") && text.contains("read for tasks"), "{text}");
    let report = sandbox.json("r.json");
    let disk = &report["simulations"][0]["disk"];
    assert!(disk["read_bytes"].as_f64() >= disk["least_read_bytes"].as_f64().map(|least| 0.8 * least), "{disk}");
    assert!(disk["peak_tiles"].as_u64() <= disk["room_tiles"].as_u64(), "{disk}");
    assert!(sandbox.text("t.json").contains("disk read") && sandbox.text("p.svg").contains("tiles in the memory"));
    let table = sandbox.run(&format!("{small} --policy blocks:2x2,blocks:2x1"));
    assert!(table.lines().nth(1).unwrap().ends_with("disk reads disk writes"), "{table}");
    assert_eq!(table.lines().count(), 4, "{table}");
    let cases = [
        ("--machine disk.toml --policy fifo", "policy fifo cannot run out of core"),
        ("--machine disk.toml --policy blocks:90x90 --order 20000", "blocks of 90 x 90 tiles need memory for"),
        ("--machine disk.toml --broadcast synchronous", "the synchronous algorithm cannot run out of core"),
        ("--machine disk.toml --host-memory 11M", "a task needs 3 tiles of 4063232 bytes"),
        ("--machine disk.toml --remote-tiles 9", "9 slots"),
        ("--machine both.toml", "device and disk"),
    ];
    for (options, expected) in cases {
        let size = if options.contains("--order") { "" } else { "--order 2500" };
        let error = sandbox.fail(&format!("simulate cholesky --processes 2 {size} {options}"), 2);
        assert!(error.contains(expected), "{options}: {error}");
    }
}
