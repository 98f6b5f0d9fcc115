//! `sunzi sdp`: files and terminations as a script sees them, bad input, checkpoints across kills and signals.

use super::bad_input::refused;
use super::sandbox::{Sandbox, named_minimum};
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

/// The largest eigenvalue of `[[0, 1], [1, 0]]`.
const PROGRAM: &str = "1\n1\n2\n1\n0 1 1 2 1\n1 1 1 1 1\n1 1 2 2 1\n";

#[test]
fn a_program_is_solved_and_its_files_are_there() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", PROGRAM);
    let text = sandbox.run("sdp -s a.dat-s -o out --precision 200 --report r.json --writeSolution x,y,X,Y --threads 1");
    assert!(text.contains("P-obj") && text.contains("found primal-dual optimal solution"), "{text}");
    let out = sandbox.text("out/out.txt");
    assert!(out.contains("terminateReason = \"found primal-dual optimal solution\";"), "{out}");
    assert!(sandbox.text("out/result.txt").starts_with("phase.value = pdOPT     \n"));
    assert!(
        sandbox.text("out/x_0.txt").starts_with("1 1\n1.00000")
            || sandbox.text("out/x_0.txt").starts_with("1 1\n0.99999")
    );
    assert!(sandbox.text("out/X_matrix_0.txt").starts_with("2 2\n"));
    let report = sandbox.json("r.json");
    assert_eq!(
        (&report["form"], &report["phase"], &report["precision_bits"]),
        (&"sdpa".into(), &"pdOPT".into(), &200.into())
    );
    let errors = report["dimacs_errors"].as_array().unwrap();
    assert!(errors.len() == 6 && errors.iter().all(|error| error.as_f64().unwrap().abs() < 1e-28), "{errors:?}");
    assert!(errors[5].as_f64().unwrap() > 0.0, "{errors:?}");
    let iterations = sandbox.json("out/iterations.json");
    assert_eq!(iterations.as_array().map(Vec::len), report["iterations"].as_u64().map(|count| count as usize));
    let keys = ["mu", "P-obj", "D-obj", "gap", "P-err", "p-err", "D-err", "P-step", "D-step", "beta", "Q_cond_number"];
    for key in keys.iter().chain(&["max_block_cond_number"]) {
        let number = iterations[3][key].as_str().and_then(|text| text.parse::<f64>().ok());
        assert!(number.is_some_and(f64::is_finite), "{key}: {:?}", iterations[3]);
    }
    assert!(iterations[3]["block_name"].as_str().unwrap().contains("_cholesky.block_0"), "{:?}", iterations[3]);
    // The final checkpoint, beside the input, leaves nothing to do, and what an earlier run wrote is kept.
    let again = sandbox.run("sdp -s a.dat-s -o out --precision 200 --writeSolution x,y,X,Y");
    let made = report["iterations"].as_u64().unwrap();
    let first = format!(
        "resumes from the checkpoint in a.dat-s.ck, after {made} iterations; to start afresh, remove a.dat-s.ck, or \
         give -c another directory or ''\n"
    );
    assert!(again.starts_with(&first), "{again}");
    assert_eq!(sandbox.json("out/iterations.json").as_array().map(Vec::len), Some(0));
    assert_eq!(sandbox.json("out/iterations.0.json"), iterations);
    // Without it, on other threads, the files are the same; and with nothing to say the program says nothing.
    let line = "sdp -s a.dat-s -o two -c two/ck --precision 200 --verbosity 0 --threads 2 --noFinalCheckpoint";
    let silent = sandbox.output(&format!("{line} --writeSolution x,X,Y"));
    assert_eq!((silent.code, silent.stdout.as_str(), silent.stderr.as_str()), (0, "", ""));
    for name in ["x_0.txt", "X_matrix_0.txt", "Y_matrix_0.txt"] {
        assert_eq!(sandbox.bytes(&format!("two/{name}")), sandbox.bytes(&format!("out/{name}")), "{name}");
    }
    assert!(!sandbox.path("two/ck").exists());
    // An empty name keeps none either.
    std::fs::remove_dir_all(sandbox.path("a.dat-s.ck")).unwrap();
    let text = sandbox.run("sdp -s a.dat-s -o three --precision 200 --checkpointDir=");
    assert!(text.contains("found primal-dual optimal solution") && !sandbox.path("a.dat-s.ck").exists());
    assert!(text.starts_with("SDPA's form: "), "{text}");
}

#[test]
fn a_polynomial_program_is_solved_as_it_is() {
    let sandbox = Sandbox::new();
    let program = r#"{"objective": ["0", "1"], "normalization": ["1", "0"], "PositiveMatrixWithPrefactorArray":
        [{"polynomials": [[[["7", "-4", "1"], ["-1"]]]]}]}"#;
    sandbox.write("pmp.json", program);
    let text =
        sandbox.run("sdp -s pmp.json -o out --precision 400 --writeSolution y,z --threads 1 --noFinalCheckpoint");
    assert!(text.contains("SDPB's form: 3 variables, 1 free") && text.contains("primal-dual optimal"), "{text}");
    let (y, z) = (sandbox.text("out/y.txt"), sandbox.text("out/z.txt"));
    assert!(y.starts_with("1 1\n3.00000") || y.starts_with("1 1\n2.99999"), "{y}");
    assert!(z.starts_with("2 1\n1\n"), "{z}");
    sandbox.write("bad.json", program.replace("-4", "four"));
    refused(&sandbox, "sdp -s bad.json -o none", 3, "polynomial 0, number 1: 'four'");
    refused(&sandbox, "sdp -s pmp.json -o out --precision 400 -i nowhere", 2, "no checkpoint");
}

#[test]
fn a_run_is_drawn() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", PROGRAM);
    sandbox.run("sdp -s a.dat-s -o out --precision 200 --threads 1 --verbosity 0 --plot run.svg");
    let picture = sandbox.text("run.svg");
    for words in ["<svg", "gap", "mu", "P-err", "D-step", "bits", "iteration", "1e-"] {
        assert!(picture.contains(words), "{words}");
    }
    // A run with nothing left to do has a picture too, of no iterations.
    sandbox.run("sdp -s a.dat-s -o out --precision 200 --threads 1 --verbosity 0 --plot none.svg");
    let lines = |picture: &str| picture.matches("stroke-width=\"2\"").count();
    assert!(lines(&sandbox.text("none.svg")) < lines(&picture));
    refused(&sandbox, "sdp -s a.dat-s -o two -c none --precision 200 --plot missing/run.svg", 3, "missing/run.svg");
    assert!(!sandbox.path("two/out.txt").exists());
}

#[test]
fn a_plan_says_what_a_run_takes() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", PROGRAM);
    let text = sandbox.run("sdp -s a.dat-s -o out --precision 200 --threads 1 --plan --report p.json");
    assert!(text.contains("Schur complement") && text.contains("total"), "{text}");
    assert!(!sandbox.path("out").exists());
    sandbox.run("sdp -s a.dat-s -o out --precision 200 --threads 1 --verbosity 0 --noFinalCheckpoint --report r.json");
    let (plan, report) = (sandbox.json("p.json"), sandbox.json("r.json"));
    assert!(plan["planned_bytes"].as_u64().unwrap() > 10_000);
    assert_eq!(plan["memory"]["precisions"].as_array().unwrap().len(), 2);
    assert_eq!(plan["memory"], report["memory"]);
    let text = sandbox.run("sdp -s a.dat-s -o out --precision 200 --threads 1 --plan --certify --report c.json");
    assert!(text.contains("certificate"), "{text}");
    let both = sandbox.json("c.json");
    assert_eq!(both["memory"], plan["memory"]);
    let proof = both["certificate_bytes"].as_u64().unwrap();
    assert_eq!(both["planned_bytes"].as_u64(), plan["planned_bytes"].as_u64().map(|bytes| bytes.max(proof)));
    // The least limit and the part of the process are those of a refusal.
    for (certify, report) in [("", &plan), ("--certify", &both)] {
        let least = report["least_limit_bytes"].as_u64().unwrap();
        let line = format!("sdp -s a.dat-s -o out --precision 200 --threads 1 --noFinalCheckpoint {certify}");
        let refusal = sandbox.fail(&format!("{line} --memory 1M"), 4);
        assert_eq!(named_minimum(&refusal), least, "{refusal}");
        assert!(refusal.contains("of which 32.50 MiB are for processes"), "{refusal}");
        assert_eq!(report["process_bytes"], (32 << 20) + (512 << 10), "{report}");
    }
}

#[test]
fn options_come_from_files_and_from_the_line() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", PROGRAM);
    sandbox.write("p", "precision=150\nmaxIterations=3\n");
    let text = sandbox.run("sdp -s a.dat-s -o out -p p --noFinalCheckpoint --report r.json");
    assert!(!sandbox.path("a.dat-s.ck").exists());
    assert!(text.contains("maxIterations exceeded after 3 iterations"), "{text}");
    assert_eq!(sandbox.json("r.json")["precision_bits"], 150);
    let text = sandbox.run("sdp -s a.dat-s -o out -p p --maxIterations 4 --noFinalCheckpoint");
    assert!(text.contains("exceeded after 4 iterations"), "{text}");
    sandbox.write("p", "precision=150\nmaxIteration=3\n");
    refused(&sandbox, "sdp -s a.dat-s -o out -p p", 3, "--maxIteration");
    // Paths from a file as SDPB takes it; and SDPA's own file, of which it is said what is not used.
    let file = "sdpDir=a.dat-s\noutDir=named\ncheckpointDir=kept\nprecision=150\nnoFinalCheckpoint=0\n\
                detectDualFeasibleJump=no\n";
    sandbox.write("p", file);
    let text = sandbox.run("sdp -p p --maxIterations 5");
    assert!(text.contains("after 5 iterations") && text.ends_with("named\n"), "{text}");
    assert!(sandbox.path("kept/checkpoint.bin").exists() && sandbox.path("named/out.txt").exists());
    sandbox.write("again", "initialCheckpointDir=kept\nverbosity=1\n");
    let text = sandbox.run("sdp -s a.dat-s -p again -o more -c none --maxIterations 1 --precision 150");
    assert!(text.starts_with("resumes from the checkpoint in kept, after 5 iterations\n"), "{text}");
    assert!(text.contains("after 6 iterations"), "{text}");
    let sdpa = "6\tunsigned int maxIteration;\n1.0E-30\tdouble 0.0 < epsilonStar;\n1.0E4   double 0.0 < lambdaStar;\n\
                2.0   \tdouble 1.0 < omegaStar;\n-1.0E5  double lowerBound;\n1.0E5   double upperBound;\n\
                0.1     double 0.0 <= betaStar <  1.0;\n0.3     double 0.0 <= betaBar  <  1.0, betaStar <= betaBar;\n\
                0.9     double 0.0 < gammaStar  <  1.0;\n1.0E-30\tdouble 0.0 < epsilonDash;\n200     precision\n";
    sandbox.write("param.sdpa", sdpa);
    let said = sandbox.output("sdp -s a.dat-s -o sdpa -p param.sdpa --noFinalCheckpoint");
    assert!(
        said.code == 0 && said.stdout.contains("200 bits") && said.stdout.contains("after 6 iterations"),
        "{said:?}"
    );
    assert!(said.stderr.contains("param.sdpa: omegaStar has no counterpart in Sunzi"), "{said:?}");
    refused(&sandbox, "sdp -o out", 2, "--sdpDir");
    sandbox.write("p", "precision=150\n");
    refused(&sandbox, "sdp -o out -p p", 2, "--sdpDir");
}

#[test]
fn bad_input_is_refused_with_one_line() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", PROGRAM);
    refused(&sandbox, "sdp -s none.dat-s -o out", 3, "none.dat-s");
    refused(&sandbox, "sdp -s . -o out", 3, "control.json");
    refused(&sandbox, "sdp -s a.dat-s -o out --maxIterationen 3", 2, "--maxIterationen");
    refused(&sandbox, "sdp -s a.dat-s -o out --max 3", 2, "--max");
    refused(&sandbox, "sdp -s a.dat-s -o out --verbosity loud", 2, "one of none, regular, debug and trace");
    refused(&sandbox, "sdp -s a.dat-s -o out --dualityGapThreshold small", 2, "small");
    refused(&sandbox, "sdp -s a.dat-s -o out --writeSolution x,w", 2, "'w'");
    refused(&sandbox, "sdp -s a.dat-s -o out --writeSolution z", 2, "normalization");
    refused(&sandbox, "sdp -s a.dat-s -o out --precision 1", 2, "1 bits");
    refused(&sandbox, "sdp -s a.dat-s -o out -i nowhere", 2, "no checkpoint");
    refused(&sandbox, "sdp -s a.dat-s -o out -c out/deep/ck -i nowhere", 2, "no checkpoint");
    assert!(!sandbox.path("out").exists());
    // SDPB's binary checkpoint is named, and what is in its place is not passed over.
    std::fs::create_dir(sandbox.path("ck")).unwrap();
    sandbox.write("ck/checkpoint.json", "{\"current\": 1}");
    refused(
        &sandbox,
        "sdp -s a.dat-s -o out -i ck",
        2,
        "the directory has a binary checkpoint of SDPB, which cannot be read",
    );
    let line = "sdp -s a.dat-s -o out -c ck --maxIterations 1 --noFinalCheckpoint";
    refused(&sandbox, line, 2, "--writeSolution=x,y,X,Y, and name their directory as that of the initial checkpoint");
    assert!(!sandbox.path("out").exists());
    sandbox.write("file", "");
    refused(&sandbox, "sdp -s a.dat-s -o out -c file", 3, "file");
    refused(&sandbox, "sdp -s a.dat-s -o out -c file/deep/er", 3, "file");
    refused(&sandbox, "sdp -s a.dat-s -o out --device soft", 2, "CPU only");
    refused(&sandbox, "sdp -s a.dat-s -o a.dat-s", 3, "a.dat-s");
    sandbox.write("b.dat-s", PROGRAM.replace("1 1 2 2 1", "1 1 2 3 1"));
    refused(&sandbox, "sdp -s b.dat-s -o out", 3, "column 3 is outside 1 to 2");
    sandbox.write("b.csv", "1,2\n");
    refused(&sandbox, "sdp -s b.csv -o out", 2, "SDPA's sparse format");
    sandbox.run("sdp -s a.dat-s -o out --precision 200 --quiet");
    sandbox.write("c.dat-s", "1\n1\n3\n1\n1 1 1 1 1\n1 1 2 2 1\n1 1 3 3 1\n0 1 1 2 1\n");
    let line = "sdp -s c.dat-s -o out -c a.dat-s.ck --precision 200";
    refused(&sandbox, line, 3, "another program with other blocks: it has");
}

/// Names and options as users of SDPB and SDPA have them.
#[cfg(unix)]
#[test]
fn short_options_names_of_verbosity_and_names_of_files_are_taken() {
    let sandbox = Sandbox::new();
    for name in ["a.dat-s", "a.dat-s.txt", "a.dat-s.1"] {
        sandbox.write(name, PROGRAM);
        let line =
            format!("sdp --sdp {name} --out out --checkpointD= --prec 200 --maxIt 300 --dualityGap 1e-30 --certify");
        let text = sandbox.run(&line);
        assert!(text.contains("found primal-dual optimal solution") && text.contains("200 bits"), "{text}");
        let proven = sandbox.run(&format!("verify sdp {name} out/certificate"));
        assert!(proven.contains("optimum <= 1.0"), "{proven}");
    }
    // What neither name nor content shows is said by an option; so is the form of standard input.
    sandbox.write("a.dat", PROGRAM);
    refused(&sandbox, "sdp -s a.dat -o none", 2, "neither SDPB's blocks");
    sandbox.run("sdp -s a.dat -o out -c= --precision 200 --input-format dat-s --certify");
    sandbox.run("verify sdp a.dat out/certificate --input-format dat-s");
    refused(&sandbox, "sdp -s a.dat -o none --input-format csv", 2, "'csv' is not a format of semidefinite programs");
    let parabola = r#"{"objective": ["0", "1"], "PositiveMatrixWithPrefactorArray": [
        {"polynomials": [[[["7", "-4", "1"], ["-1"]]]]}]}"#;
    for (program, format) in [(PROGRAM, "--input-format dat-s"), (PROGRAM, ""), (parabola, "--input-format json")] {
        sandbox.write("program", program);
        let line = format!("sdp -s - -o streamed --precision 300 {format}");
        let output = sandbox.finish(sandbox.start_within("exec < program", &line));
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        assert!(sandbox.text("streamed/out.txt").contains("found primal-dual optimal solution"));
        assert!(!sandbox.path("-.ck").exists());
    }
    refused(&sandbox, "sdp -s - --input-format dat-s", 2, "give --outDir");
    for (name, level) in [("none", 0), ("regular", 1), ("debug", 2), ("Trace", 3)] {
        let said = sandbox.output(&format!("sdp -s a.dat-s -o out -c= --precision 200 --verbosity {name}"));
        assert_eq!((said.code, said.stdout.is_empty()), (0, level == 0), "{name}: {said:?}");
        let same = sandbox.output(&format!("sdp -s a.dat-s -o out -c= --precision 200 --verb {level}"));
        assert_eq!(same.stdout.is_empty(), level == 0, "{level}");
    }
    // What is refused says what was found.
    sandbox.write("whole.dat-s", format!("{PROGRAM}*INTEGER\n*1\n"));
    refused(&sandbox, "sdp -s whole.dat-s -o none", 3, "line 8: the section '*INTEGER' after the entries");
    sandbox.write("list.nsv", "a.json\nb.json\n");
    refused(&sandbox, "sdp -s list.nsv -o none", 3, "a line feed separates 'a.json' and 'b.json'");
}

/// The least trace of a diagonal matrix that is above one with numbers beside its diagonal.
pub fn path_program(order: usize) -> String {
    let mut text = format!("{order}\n1\n{order}\n{}\n", "1 ".repeat(order));
    for at in 1..=order {
        text.push_str(&format!("{at} 1 {at} {at} 1\n"));
        if at > 1 {
            text.push_str(&format!("0 1 {} {at} {at}\n", at - 1));
        }
    }
    text
}

/// A program that takes some seconds, killed again and again, ends with the files of one run.
#[cfg(unix)]
#[test]
fn a_killed_run_goes_on() {
    let sandbox = Sandbox::new();
    let order = 30;
    sandbox.write("a.dat-s", path_program(order));
    let line = "sdp -s a.dat-s --precision 600 --checkpointInterval 0 --threads 1 --writeSolution x,X,Y --verbosity 0";
    sandbox.run(&format!("{line} -o whole -c whole/ck"));
    let mut kills = 0;
    for (round, pause) in [50, 150, 250].into_iter().enumerate() {
        let mut child = sandbox.start(&format!("{line} -o parts"));
        // A list of iterations has begun, and that of the run before is aside.
        let last =
            round.checked_sub(1).map_or("parts/iterations.json".into(), |at| format!("parts/iterations.{at}.json"));
        while !sandbox.path(&last).exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(pause));
        kills += u32::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        let _ = child.wait();
    }
    assert!(kills > 0, "every run ended before it was killed");
    sandbox.run(&format!("{line} -o parts"));
    for name in ["x_0.txt", "X_matrix_0.txt", "Y_matrix_0.txt"] {
        assert_eq!(sandbox.bytes(&format!("parts/{name}")), sandbox.bytes(&format!("whole/{name}")), "{name}");
    }
    // Every iteration is in one of the lists, which are whole, in order, and have the numbers of one run.
    let list = |name: &str| sandbox.json(name).as_array().cloned().unwrap();
    let begun = (0..5).map(|at| format!("parts/iterations.{at}.json")).filter(|name| sandbox.path(name).exists());
    let parts = begun.chain(["parts/iterations.json".into()]).map(|name| list(&name)).collect::<Vec<_>>();
    assert!(parts.len() > 1 && parts[..parts.len() - 1].iter().any(|part| !part.is_empty()));
    for (at, iteration) in list("whole/iterations.json").iter().enumerate() {
        let number = at as u64 + 1;
        let found = parts.iter().flatten().filter(|other| other["iteration"] == number).collect::<Vec<_>>();
        assert!(!found.is_empty(), "iteration {number} is in no list");
        for key in ["gap", "mu", "P-step", "max_block_cond_number", "block_name"] {
            assert!(found.iter().all(|other| other[key] == iteration[key]), "{key} of iteration {number}");
        }
    }
}

/// A file that may grow no further stands for a disk that is full: the list stays one that can be read.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_a_list_of_iterations_that_is_whole() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", path_program(2));
    let line = "sdp -s a.dat-s -o out --checkpointDir= --precision 140 --threads 1 --writeSolution y";
    // Blocks of 512 bytes, or of 1024 in some shells; what goes beyond is an error where its signal is passed over.
    let output = sandbox.finish(sandbox.start_within("trap '' XFSZ; ulimit -f 12", line));
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stderr.contains("iterations.json"), "{}", output.stderr);
    let found = sandbox.json("out/iterations.json").as_array().unwrap().len();
    sandbox.run(&line.replace("out", "whole"));
    let all = sandbox.json("whole/iterations.json").as_array().unwrap().len();
    assert!((2..all).contains(&found), "{found} of {all}");
    for key in ["R-err", "D-err", "mu"] {
        assert_eq!(sandbox.json("out/iterations.json")[1][key], sandbox.json("whole/iterations.json")[1][key]);
    }
}

/// A disk without room for a byte: the list of iterations is absent, not empty.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_no_empty_list() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", path_program(2));
    let output = sandbox.finish(sandbox.start_within("trap '' XFSZ; ulimit -f 0", "sdp -s a.dat-s -o out -c none"));
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stderr.contains("out") && !sandbox.path("out/iterations.json").exists(), "{output:?}");
}

/// Files of an earlier run that this one does not write anew lie beside the others, in a folder of their own.
#[test]
fn files_of_an_earlier_program_are_moved_away() {
    let sandbox = Sandbox::new();
    let parabola = r#"{"polynomials": [[[["7", "-4", "1"], ["-1"]]]]}"#;
    let two = format!(
        "{{\"objective\": [0, 1], \"normalization\": [1, 0], \
                       \"PositiveMatrixWithPrefactorArray\": [{parabola}, {parabola}]}}"
    );
    sandbox.write("two.json", two);
    sandbox.write("a.dat-s", PROGRAM);
    sandbox.run("sdp -s two.json -o out --checkpointDir= --precision 200 --writeSolution x,y,z,X,Y --certify");
    let names = ["z.txt", "x_1.txt", "X_matrix_3.txt", "Y_matrix_2.txt", "certificate"];
    assert!(names.iter().all(|name| sandbox.path(&format!("out/{name}")).exists()));
    sandbox.write("out/notes.txt", "mine");
    sandbox.run("sdp -s a.dat-s -o out --checkpointDir= --precision 200 --noFinalCheckpoint --writeSolution x,X");
    for name in names.iter().chain(&["y.txt", "out.txt"]) {
        assert!(sandbox.path(&format!("out/earlier_results/{name}")).exists(), "{name}");
    }
    let mut left = std::fs::read_dir(sandbox.path("out")).unwrap().map(|entry| entry.unwrap().file_name());
    let left = left.by_ref().map(|name| name.into_string().unwrap()).collect::<std::collections::BTreeSet<_>>();
    let wanted = [
        "X_matrix_0.txt",
        "c_minus_By.0",
        "earlier_results",
        "iterations.0.json",
        "iterations.json",
        "notes.txt",
        "out.txt",
        "result.txt",
        "x_0.txt",
    ];
    assert_eq!(left.iter().map(String::as_str).collect::<Vec<_>>(), wanted);
    // The next one puts its own leftovers there, and no mixture.
    sandbox.run("sdp -s a.dat-s -o out --checkpointDir= --precision 200 --noFinalCheckpoint --writeSolution x");
    assert!(sandbox.path("out/earlier_results/X_matrix_0.txt").exists());
    assert!(!sandbox.path("out/earlier_results/z.txt").exists());
}

/// While a run writes checkpoints into a folder, no other one does.
#[cfg(unix)]
#[test]
fn a_folder_of_checkpoints_belongs_to_one_run() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", path_program(30));
    let line = "sdp -s a.dat-s --precision 2000 --no-ramp --threads 1 --checkpointInterval 0";
    let child = sandbox.start(&format!("{line} -o out"));
    let start = Instant::now();
    while !sandbox.path("a.dat-s.ck/checkpoint.bin").exists() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    let works = format!("a.dat-s.ck: process {} is using this directory", child.id());
    refused(&sandbox, &format!("{line} -o two"), 3, &works);
    assert!(!sandbox.path("two").exists());
    sandbox.signal(&child, "TERM");
    assert_eq!(sandbox.finish(child).code, 130);
    assert!(!sandbox.path("a.dat-s.ck/checkpoint.lock").exists());
    let again = sandbox.run(&format!("{line} -o two --maxIterations 1"));
    assert!(again.contains("resumes from the checkpoint"), "{again}");
}

/// An edited program does not go on from the checkpoint of the one before, unless that is asked for.
#[test]
fn an_edited_program_begins_anew() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", path_program(3));
    sandbox.run("sdp -s a.dat-s -o out --precision 200 --maxIterations 5");
    sandbox.write("a.dat-s", path_program(3).replace("0 1 1 2 2", "0 1 1 2 2.5"));
    refused(&sandbox, "sdp -s a.dat-s -o out --precision 200", 3, "another program");
    refused(
        &sandbox,
        "sdp -s a.dat-s -o out --precision 200",
        3,
        "(option -i, in Python initial_checkpoint=); to start afresh, remove the file",
    );
    refused(&sandbox, "sdp -s a.dat-s -o out --precision 200", 3, "or none (-c '')");
    let text = sandbox.run("sdp -s a.dat-s -o out --precision 200 -i a.dat-s.ck");
    assert!(text.contains("starts from the point of the checkpoint in a.dat-s.ck"), "{text}");
    let again = sandbox.run("sdp -s a.dat-s -o out --precision 200");
    assert!(again.contains("resumes from the checkpoint in a.dat-s.ck"), "{again}");
}

/// The word of the last line is that of the signal that came; SDPB knows SIGTERM alone.
#[cfg(unix)]
#[test]
fn a_run_that_is_asked_to_stop_leaves_its_state_and_results() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", path_program(30));
    let line = "sdp -s a.dat-s -o out --precision 2000 --no-ramp --threads 1 --checkpointInterval 0";
    let state = sandbox.path("a.dat-s.ck/checkpoint.bin");
    for signal in ["INT", "TERM"] {
        let child = sandbox.start(line);
        let start = Instant::now();
        while !state.exists() {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        // What goes on below does so from what the signal leaves.
        std::fs::remove_file(&state).unwrap();
        sandbox.signal(&child, signal);
        let output = sandbox.finish(child);
        assert_eq!(output.code, 130, "{}", output.stderr);
        let word = format!("\"SIG{signal} signal received\"");
        assert!(sandbox.text("out/out.txt").contains(&word), "{word}");
        let again = sandbox.run(&format!("{line} --maxIterations 1"));
        assert!(again.contains("resumes from the checkpoint"), "{again}");
        std::fs::remove_file(&state).unwrap();
    }
}

/// Ends that precision brings about have an exit code; the last lines name what they say, and fit a terminal.
#[test]
fn a_precision_that_is_too_low_has_its_exit_code() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", path_program(12));
    let line = "sdp -s a.dat-s -o out -c none --threads 1 --precision 300 --noFinalCheckpoint";
    for thresholds in ["--dualityGapThreshold 1e-400", "--dualityGapThreshold=1e-400 --no-ramp --certify"] {
        let said = sandbox.output(&format!("{line} {thresholds} --report r.json"));
        assert_eq!((said.code, said.stderr.as_str()), (8, ""), "{said:?}");
        assert!(said.stdout.contains("\nprecision too low ("), "{said:?}");
        assert!(said.stdout.contains(", primal error ") && said.stdout.contains(", dual error "), "{said:?}");
        let table = said.stdout.lines().skip(1).take_while(|line| !line.starts_with("precision too low"));
        assert!(table.clone().count() > 20 && table.clone().all(|line| line.len() <= 80), "{said:?}");
        assert!(sandbox.text("out/out.txt").contains("terminateReason = \"precision too low\""));
        assert!(sandbox.json("r.json")["advised_precision_bits"].as_u64().unwrap() > 2000);
    }
    // Here both objectives have the same bits in the end.
    sandbox.write("b.dat-s", "1\n1\n3\n1\n0 1 1 2 1\n0 1 2 3 1\n1 1 1 1 1\n1 1 2 2 1\n1 1 3 3 1\n");
    let said = sandbox.output(&format!("{} --dualityGapThreshold 1e-400", line.replace("a.dat-s", "b.dat-s")));
    assert_eq!(said.code, 8, "{said:?}");
    assert!(said.stdout.contains("precision too low (gaps below 2.0e-87 are not resolved at 300 bits; "), "{said:?}");
    for option in ["dualityGapThreshold", "primalErrorThreshold", "dualErrorThreshold"] {
        for value in ["0", "-1e-30"] {
            let line = format!("sdp -s a.dat-s -o none --{option}={value}");
            refused(&sandbox, &line, 2, &format!("'--{option} <X>': no gap or error can be below it"));
            sandbox.write("p", format!("{option}={value}\n"));
            refused(&sandbox, "sdp -s a.dat-s -o none -p p", 3, "no gap or error can be below it");
        }
    }
    refused(&sandbox, "sdp -s a.dat-s -o none --infeasibilityThreshold=-1", 2, "or 0 for never");
}

/// The last iteration has few bits, and its point is looked at with all of them; nobody asks for a stop meanwhile.
#[cfg(unix)]
#[test]
fn a_signal_behind_the_last_iteration_loses_only_the_proof() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", path_program(40));
    let line = "sdp -s a.dat-s -o out --precision 5000 --maxIterations 1 --threads 1 --noFinalCheckpoint --certify";
    let mut child = sandbox.start(line);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.split_whitespace().next() == Some("1")));
    sandbox.signal(&child, "INT");
    let output = sandbox.finish(child);
    assert_eq!(output.code, 130, "{}", output.stderr);
    let text = sandbox.text("out/out.txt");
    assert!(text.contains("maxIterations exceeded") || text.contains("SIGINT signal received"), "{text}");
    assert!(sandbox.path("a.dat-s.ck/checkpoint.bin").exists() && sandbox.path("out/iterations.json").exists());
    assert!(!sandbox.path("out/certificate").exists());
}
