//! Bad input: one line on standard error, the right exit code, no output file, an older file left as it was.

use super::sandbox::{Sandbox, named_minimum};

const HEADER: &str = "%%MatrixMarket matrix array real general\n";
const COORDINATE: &str = "%%MatrixMarket matrix coordinate real general\n";

/// Runs `line` twice, with `Q.mtx` absent and present: it must fail with `code`, say `needle`, and not touch the file.
pub fn refused(sandbox: &Sandbox, line: &str, code: i32, needle: &str) {
    let before = sandbox.names();
    assert!(!before.contains(&"Q.mtx".to_string()));
    let error = sandbox.fail(line, code);
    assert!(error.to_lowercase().contains(&needle.to_lowercase()), "sunzi {line}: '{needle}' is not in: {error}");
    assert_eq!(sandbox.names(), before, "sunzi {line}");
    sandbox.write("Q.mtx", "older");
    sandbox.fail(line, code);
    assert_eq!(sandbox.text("Q.mtx"), "older", "sunzi {line}");
    std::fs::remove_file(sandbox.path("Q.mtx")).unwrap();
    assert_eq!(sandbox.names(), before, "sunzi {line}");
}

/// Writes `P.mtx` with this text; a SYRK of it must be refused.
fn refused_file(text: &str, needle: &str) {
    let sandbox = Sandbox::new();
    sandbox.write("P.mtx", text);
    refused(&sandbox, "syrk P.mtx -o Q.mtx --precision 100", 3, needle);
}

#[test]
fn numbers_that_are_none() {
    refused_file(&format!("{HEADER}2 2\n1\n2\nnan\n4\n"), "NaN");
    refused_file(&format!("{HEADER}2 2\n1\n2\nnan\n4\n"), "row 1, column 2");
    refused_file(&format!("{HEADER}2 2\n1\ninf\n3\n4\n"), "row 2, column 1");
    refused_file(&format!("{HEADER}2 2\n1\n2\n3\n-Infinity\n"), "row 2, column 2");
    refused_file(&format!("{HEADER}2 2\n1\ntwo\n3\n4\n"), "two");
    refused_file(&format!("{HEADER}2 2\n1\n2.5.1\n3\n4\n"), "2.5.1");
    refused_file(&format!("{HEADER}2 2\n1\n0x\n3\n4\n"), "0x");
}

#[test]
fn files_that_do_not_follow_their_format() {
    refused_file("", "empty");
    refused_file("hello\n", "MatrixMarket");
    refused_file("%%MatrixMarket matrix array complex general\n1 1\n1\n", "complex");
    refused_file("%%MatrixMarket matrix array real hermitian\n1 1\n1\n", "hermitian");
    refused_file(HEADER, "P.mtx");
    refused_file(&format!("{HEADER}-2 2\n1\n2\n3\n4\n"), "-2");
    refused_file(&format!("{HEADER}two 2\n"), "two");
    refused_file(&format!("{HEADER}2 2\n1\n2\n3\n"), "4");
    refused_file(&format!("{HEADER}2 2\n1\n2\n3\n4\n5\n"), "line 7");
    refused_file(&format!("{HEADER}99999999999999999999 1\n1\n"), "99999999999999999999");
    refused_file(&format!("{HEADER}4000000000 8000000000\n1\n"), "8000000000");
    refused_file(&format!("{COORDINATE}2 2 1\n3 1 1\n"), "3");
    refused_file(&format!("{COORDINATE}2 2 1\n0 1 1\n"), "line 3");
    refused_file(&format!("{COORDINATE}2 2 2\n1 1 1\n"), "2");
    refused_file("%%MatrixMarket matrix array real symmetric\n2 3\n1\n2\n3\n", "symmetric");
}

#[test]
fn damaged_binary_files() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 4 --cols 3 --precision 100 -o P.bin");
    let whole = sandbox.bytes("P.bin");
    for (change, needle) in
        [("cut", "P.bin"), ("flip", "checksum"), ("magic", "magic"), ("longer", "P.bin"), ("empty", "P.bin")]
    {
        let mut bytes = whole.clone();
        match change {
            "cut" => bytes.truncate(whole.len() - 9),
            "flip" => bytes[whole.len() / 2] ^= 4,
            "magic" => bytes[0] ^= 1,
            "longer" => bytes.extend([0; 8]),
            _ => bytes.clear(),
        }
        sandbox.write("P.bin", bytes);
        refused(&sandbox, "syrk P.bin -o Q.mtx --precision 100", 3, needle);
        refused(&sandbox, "convert P.bin Q.mtx", 3, needle);
    }
}

#[test]
fn arguments_that_make_no_sense() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 4 --cols 3 --precision 100 -o P.mtx");
    let cases = [
        ("frobnicate", "frobnicate"),
        ("syrkk P.mtx -o Q.mtx", "unrecognized subcommand 'syrkk'; a similar subcommand exists: 'syrk'"),
        ("syrk P.mtx -o Q.mtx --precison 99", "a similar argument exists: '--precision'"),
        ("syrk P.mtx", "--output"),
        ("syrk P.mtx -o Q.mtx --frobnicate", "--frobnicate"),
        ("syrk P.mtx -o Q.mtx --precision 0", "precision of 0 bits"),
        ("syrk P.mtx -o Q.mtx --precision 1e6", "supported range"),
        ("syrk P.mtx -o Q.mtx --precision 1", "operations take 2 to 5000 bits with every kernel"),
        ("syrk P.mtx -o Q.mtx --precision 1e30", "too large"),
        ("syrk P.mtx -o Q.mtx --precision -7", "-7"),
        ("syrk P.mtx -o Q.mtx --precision many", "many"),
        ("syrk P.mtx -o Q.mtx --input-precision 0", "precision of 0 bits"),
        ("syrk P.mtx -o Q.mtx --threads 0", "0 threads"),
        ("syrk P.mtx -o Q.mtx --threads two", "two"),
        ("syrk P.mtx -o Q.mtx --memory lots", "lots"),
        ("syrk P.mtx -o Q.mtx --memory -1G", "-1G"),
        ("syrk P.mtx -o Q.mtx --kernel fastest", "unknown kernel 'fastest'"),
        ("syrk P.mtx -o Q.mtx --alpha nan", "nan"),
        ("syrk P.mtx -o Q.mtx --beta 2", "--accumulate"),
        ("syrk P.mtx -o Q.xyz", ".mtx"),
        ("syrk P.mtx -o Q.mtx --window glass", "[possible values: auto, mpi, posix, heap]"),
        ("syrk P.mtx -o Q.mtx --window mpi", "--window mpi needs several ranks"),
        ("gen random --rows 2 --cols 2 -o Q.mtx", "--precision"),
        ("gen random --rows -2 --cols 2 --precision 100 -o Q.mtx", "-2"),
        ("gen random --rows 2.5 --cols 2 --precision 100 -o Q.mtx", "2.5"),
        ("gen random --rows 2 --cols 2 --precision 1e9 -o Q.mtx", "supported range"),
        ("gen odd --rows 2 --cols 2 --precision 100 -o Q.mtx", "odd"),
        ("plan syrk --rows 2 --cols 2 --precision 0", "precision of 0 bits"),
        (
            "plan syrk --rows 2 --cols 2 --precision 99 --accuracy norm --range-bits 8",
            "--range-bits 8 requires --accuracy entrywise",
        ),
        ("plan trsm --rows 2 --cols 2 --precision 99 --range-bits 8", "unexpected argument '--range-bits'"),
        ("plan add --rows 2 --cols 2 --precision 100", "add"),
        ("bench syrk --against nobody", "nobody"),
        ("bench add", "unrecognized subcommand 'add'"),
        ("bench cholesky --against sdpb", "unknown baseline 'sdpb' of cholesky: choose from flint, nfloat, mpfr"),
        ("bench solve --against mpfr,nfloat", "unknown baseline 'nfloat' of solve"),
        ("bench cholesky --rows 9 --cols 8", "unexpected argument '--cols'"),
        ("bench cholesky --self-check", "unexpected argument '--self-check'"),
        ("bench cholesky --tile many", "many"),
        ("bench trsm --tile 8", "unexpected argument '--tile'"),
        ("bench syrk --runs 0", "0 runs"),
        ("bench syrk --memory-fractions 3", "--memory-fractions needs several ranks"),
        ("bench syrk --window posix", "--window needs several ranks"),
        ("verify syrk P.mtx", "<Q>"),
    ];
    for (line, needle) in cases {
        refused(&sandbox, line, 2, needle);
    }
    sandbox.write("N.mtx", format!("{HEADER}1 1\n1.5\n"));
    refused(&sandbox, "syrk N.mtx -o Q.mtx", 2, "does not state its precision");
    refused(&sandbox, "verify syrk N.mtx N.mtx", 2, "does not state its precision");
}

#[test]
fn a_kernel_that_cannot_run_here() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 4 --cols 3 --precision 100 -o P.mtx");
    sandbox.run("info --report info.json");
    for kernel in sandbox.json("info.json")["kernels"].as_array().unwrap() {
        let line = format!("syrk P.mtx -o Q.mtx --kernel {}", kernel["name"].as_str().unwrap());
        if kernel["available"].as_bool().unwrap() {
            sandbox.run(&line);
            std::fs::remove_file(sandbox.path("Q.mtx")).unwrap();
        } else {
            refused(&sandbox, &line, 2, "cannot run here");
        }
    }
}

#[test]
fn shapes_and_sizes_that_do_not_fit() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 4 --cols 3 --precision 100 -o A.mtx");
    sandbox.run("gen hilbert --rows 5 --cols 3 --precision 100 -o B.mtx");
    refused(&sandbox, "gemm A.mtx B.mtx -o Q.mtx", 3, "4 x 3 against 5 x 3");
    refused(&sandbox, "gemm A.mtx B.mtx --transpose-a -o Q.mtx", 3, "3 x 4 against 5 x 3");
    refused(&sandbox, "syrk A.mtx --accumulate B.mtx -o Q.mtx", 3, "the matrix is 5 x 3, but must be square");
    refused(&sandbox, "compare A.mtx B.mtx", 3, "shapes do not fit");
    refused(&sandbox, "syrk B.mtx --exact-integers -o Q.mtx", 3, "not an integer");
    refused(&sandbox, "gen random --rows 1e10 --cols 1e10 --precision 100 -o Q.mtx", 3, "too large to address");
    refused(&sandbox, "gen random --rows 1e8 --cols 1e8 --precision 100 -o Q.mtx", 4, "memory");
}

#[test]
fn a_memory_limit_below_the_minimum_names_one_that_works() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 300 --cols 90 --precision 200 -o P.bin");
    for command in ["syrk P.bin", "gemm P.bin P.bin --transpose-a"] {
        let line = format!("{command} -o Q.mtx --precision 200 --threads 2 --memory 100.1K");
        refused(&sandbox, &line, 4, "(102502 bytes) is too small");
        // A refusal may come from a header, and the limit that it names may by chance lie within some pages of what the
        // operation needs: taken by one run, refused by the next. The operation itself names one that lies above.
        let (mut limit, mut refusals, mut runs) = (String::from("100.1K"), 0, 0);
        while runs < 2 {
            let output = sandbox.output(&format!("{command} -o Q.mtx --precision 200 --threads 2 --memory {limit}"));
            if output.code == 0 {
                runs += 1;
                continue;
            }
            (refusals, runs) = (refusals + 1, 0);
            assert!(refusals <= 3, "{}", output.stderr);
            limit = named_minimum(&output.stderr).to_string();
        }
        std::fs::remove_file(sandbox.path("Q.mtx")).unwrap();
    }
}

#[test]
fn files_that_cannot_be_read_or_written() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 4 --cols 3 --precision 100 -o P.mtx");
    std::fs::create_dir(sandbox.path("folder.mtx")).unwrap();
    let cases = [
        ("syrk missing.mtx -o Q.mtx --precision 100", "missing.mtx"),
        ("syrk folder.mtx -o Q.mtx --precision 100", "folder.mtx"),
        ("syrk P.mtx -o none/Q.mtx", "none/Q.mtx: cannot create: No such file"),
        ("syrk P.mtx -o folder.mtx", "directory"),
        ("syrk P.mtx -o P.mtx/Q.mtx", "P.mtx/Q.mtx"),
        ("syrk P.mtx -o Q.mtx --report none/r.json", "none/r.json"),
        ("gen random --rows 2 --cols 2 --precision 100 -o none/Q.mtx", "none/Q.mtx"),
        ("convert P.mtx none/Q.bin", "none/Q.bin"),
        ("gemm P.mtx missing.bin -o Q.mtx", "missing.bin"),
        ("verify syrk P.mtx missing.mtx", "missing.mtx"),
        ("info --report folder.mtx", "directory"),
    ];
    for (line, needle) in cases {
        refused(&sandbox, line, 3, needle);
    }
}

#[test]
fn files_of_another_kind_are_recognised() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 3 --cols 3 --precision 100 -o A.bin");
    sandbox.write("bin.mtx", sandbox.bytes("A.bin"));
    sandbox.write("mtx.npy", format!("{HEADER}1 1\n1\n"));
    sandbox.write("picture.mtx", b"\x89PNG\r\n\x1a\n0000000000");
    sandbox.write("archive.bin", b"PK\x03\x04000000000000000000000000000000000000000000000000000000000000");
    for (file, words) in [
        ("bin.mtx", "the file is a matrix in the binary format (.bin)"),
        ("mtx.npy", "the file is a Matrix Market file (.mtx)"),
        ("picture.mtx", "the file is a PNG picture"),
        ("archive.bin", "the file is a zip archive"),
    ] {
        for line in ["syrk", "cholesky", "info", "eigenvalue"] {
            let output = if line == "info" || line == "eigenvalue" { "" } else { "-o Q.mtx" };
            let error = sandbox.fail(&format!("{line} {file} {output}"), 3);
            assert!(error.contains(file) && error.contains(words), "{line}: {error}");
        }
    }
}

/// A shape alone does not show which file it is of.
#[test]
fn operands_that_do_not_fit_are_named_by_file() {
    let sandbox = Sandbox::new();
    sandbox.run("gen minij --rows 4 --cols 4 --precision 100 -o A.mtx");
    sandbox.run("gen random --rows 4 --cols 3 --precision 100 -o B.mtx");
    sandbox.run("gen random --rows 5 --cols 2 --precision 100 -o C.mtx");
    std::fs::create_dir(sandbox.path("data")).unwrap();
    let square = "the matrix is 4 x 3, but must be square";
    for (line, needle) in [
        (
            "solve B.mtx A.mtx -o Q.mtx",
            "B.mtx: a symmetric matrix: the matrix is 4 x 3, but must be square (A is B.mtx",
        ),
        ("solve B.mtx A.mtx -o Q.mtx", "A is B.mtx, 4 x 3; B is A.mtx, 4 x 4; are they in the right order?)"),
        ("solve A.mtx C.mtx -o Q.mtx", "(A is A.mtx, 4 x 4; B is C.mtx, 5 x 2; are they in the right order?)"),
        ("gemm C.mtx A.mtx -o Q.mtx", "(A is C.mtx, 5 x 2; B is A.mtx, 4 x 4; are they in the right order?)"),
        ("cholesky B.mtx -o Q.mtx", &format!("B.mtx: a symmetric matrix: {square}\n")),
        ("syrk A.mtx --accumulate B.mtx -o Q.mtx", "(P is A.mtx, 4 x 4; --accumulate is B.mtx, 4 x 3)"),
        ("trsm B.mtx A.mtx -o Q.mtx", "T is B.mtx, 4 x 3; B is A.mtx, 4 x 4; are"),
        ("verify solve A.mtx C.mtx B.mtx", "A is A.mtx, 4 x 4; B is C.mtx, 5 x 2; X is B.mtx, 4 x 3; are"),
        ("compare A.mtx B.mtx", "LEFT is A.mtx, 4 x 4; RIGHT is B.mtx, 4 x 3"),
        ("syrk data -o Q.mtx -p 64", "data: this is a folder, not a file with a matrix"),
        ("solve A.mtx data -o Q.mtx", "data: this is a folder, not a file with a matrix"),
    ] {
        refused(&sandbox, line, 3, needle);
    }
    refused(&sandbox, "solve A.mtx -o Q.mtx", 2, "not provided: <B>; usage: sunzi solve ");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 40 --cols 30 --precision 1000 -o P.mtx");
    std::os::unix::fs::symlink("/dev/full", sandbox.path("full.mtx")).unwrap();
    for line in ["syrk P.mtx -o full.mtx", "convert P.mtx full.mtx --hex", "info --report full.mtx"] {
        refused(&sandbox, line, 4, "No space left");
    }
    assert!(std::fs::metadata("/dev/full").unwrap().permissions().mode() & 0o222 != 0, "the device is still there");
}

#[cfg(target_os = "linux")]
use std::os::unix::fs::PermissionsExt;

/// A launcher's variables without a launcher that works with this build.
#[test]
fn one_of_several_ranks_does_not_run_alone_by_mistake() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 4 --cols 3 --precision 100 -o P.bin");
    let run = |alone: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_sunzi"));
        command.args(["syrk", "P.bin", "-o", "Q.bin"]).current_dir(sandbox.path("."));
        command.env("PMI_SIZE", "3").env("PMI_RANK", "0").env("SUNZI_ALONE", alone).output().unwrap()
    };
    if cfg!(not(feature = "mpi")) {
        let refused = run("");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("started as one of 3 ranks, but this build has no MPI"), "{said}");
        assert!(!sandbox.path("Q.bin").exists());
    }
    assert!(run("1").status.success() && sandbox.path("Q.bin").exists());
}

/// Files are compared, not their names: nothing that a command reads, and nothing it writes beside, is replaced.
#[test]
fn outputs_that_would_destroy_a_file() {
    let sandbox = Sandbox::new();
    sandbox.write("P.mtx", format!("{HEADER}2 2\n1\n2\n3\n4\n"));
    sandbox.write("A.mtx", "%%MatrixMarket matrix array real symmetric\n2 2\n2\n1\n2\n");
    std::os::unix::fs::symlink("P.mtx", sandbox.path("link.mtx")).unwrap();
    std::fs::hard_link(sandbox.path("P.mtx"), sandbox.path("twin.mtx")).unwrap();
    let (text, whole) = (sandbox.text("P.mtx"), sandbox.path("P.mtx").display().to_string());
    for (line, needle) in [
        ("syrk P.mtx -o P.mtx -p 99", "the output P.mtx would replace the input P.mtx"),
        ("syrk P.mtx -o ./P.mtx -p 99", "the output ./P.mtx would replace the input P.mtx"),
        ("syrk P.mtx -o link.mtx -p 99", "the output link.mtx would replace the input P.mtx"),
        ("syrk twin.mtx -o P.mtx -p 99", "the output P.mtx would replace the input twin.mtx"),
        (&format!("syrk P.mtx -o {whole} -p 99"), "would replace the input P.mtx"),
        ("syrk P.mtx -o R.mtx -p 99 --report P.mtx", "the report P.mtx would replace the input P.mtx"),
        ("syrk P.mtx -o R.mtx -p 99 --trace P.mtx", "the trace P.mtx would replace the input P.mtx"),
        ("syrk P.mtx -o q.bin -p 99 --report q.bin", "the output and the report are the same file, q.bin"),
        ("--report ./q.bin syrk P.mtx -o q.bin -p 99", "the output and the report are the same file"),
        ("syrk P.mtx -o A.mtx -p 99 --accumulate A.mtx --beta 1", "would replace the input A.mtx"),
        ("cholesky A.mtx -p 99 --report t.json --trace t.json -o L.mtx", "the report and the trace are the same file"),
        ("solve A.mtx P.mtx -o P.mtx -p 99", "the output P.mtx would replace the input P.mtx"),
        ("verify syrk P.mtx A.mtx --report P.mtx", "the report P.mtx would replace the input P.mtx"),
        ("compare P.mtx A.mtx --report A.mtx", "the report A.mtx would replace the input A.mtx"),
        ("convert P.mtx ./P.mtx", "the output ./P.mtx would replace the input P.mtx"),
    ] {
        let error = sandbox.fail(line, 2);
        assert!(error.contains(needle), "sunzi {line}: '{needle}' is not in: {error}");
        assert_eq!(sandbox.text("P.mtx"), text, "sunzi {line}");
        assert_eq!(sandbox.names(), ["A.mtx", "P.mtx", "link.mtx", "twin.mtx"], "sunzi {line}");
    }
    sandbox.run("--quiet syrk P.mtx -o /dev/null -p 99 --report /dev/null");
}

/// A terminal obeys none of the characters in the name of a file.
#[test]
fn control_characters_are_written_out() {
    let error = Sandbox::new().fail("info --report no\u{1b}[31m/r\u{7}.json", 3);
    assert!(error.contains("no\\u{1b}[31m/r\\u{7}.json") && !error.contains('\u{1b}'), "{error:?}");
}

/// Sizes that no machine could address, wherever a plan is asked for.
#[test]
fn sizes_beyond_all_addresses() {
    let sandbox = Sandbox::new();
    let most = u64::MAX;
    for (line, shape) in [
        (format!("plan syrk --rows {most} --cols 3 -p 99"), format!("{most} x 3")),
        (format!("plan syrk --rows 3 --cols {most} -p 99"), format!("{most} x {most}")),
        (format!("plan syrk --nodes 2 --rows {most} --cols {most} -p 99"), format!("{most} x {most}")),
        (format!("plan gemm --rows {most} --cols 3 -p 99"), format!("{most} x 3")),
        (format!("plan cholesky --rows {most} -p 99"), format!("{most} x {most}")),
        (format!("plan solve --rows {most} --cols 1 -p 99"), format!("{most} x {most}")),
        (format!("plan solve --rows 5 --cols {most} -p 99"), format!("5 x {most}")),
        (format!("plan trsm --rows {most} --cols 1 -p 99"), format!("{most} x {most}")),
        (format!("plan trsm --rows 10 --cols {most} -p 99"), format!("10 x {most}")),
    ] {
        let error = sandbox.fail(&line, 3);
        assert!(error.contains(&format!("a {shape} matrix of 99 bits is too large to address")), "{line}: {error}");
    }
}

/// What is told goes elsewhere where standard output takes the matrix.
#[test]
fn a_matrix_on_standard_output_is_all_that_is_there() {
    let sandbox = Sandbox::new();
    sandbox.write("P.mtx", format!("{HEADER}2 2\n1\n2\n3\n4\n"));
    sandbox.run("syrk P.mtx -o Q.mtx -p 99");
    let output = sandbox.output("syrk P.mtx -o /dev/stdout -p 99");
    assert_eq!((output.code, output.stdout), (0, sandbox.text("Q.mtx")));
    assert!(output.stderr.starts_with("/dev/stdout: 2 x 2, 99 bits"), "{}", output.stderr);
    let output = sandbox.output("syrk P.mtx -o R.mtx -p 99 --report /dev/stdout");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&output.stdout).unwrap()["operation"], "syrk");
}

/// The stack of the process may be small: all work has one of its own.
#[test]
fn a_small_stack_is_enough() {
    let sandbox = Sandbox::new();
    sandbox.write("P.mtx", format!("{HEADER}2 2\n1\n2\n3\n5\n"));
    let program = env!("CARGO_BIN_EXE_sunzi");
    let script =
        format!("ulimit -s 64; {program} syrk P.mtx -o Q.mtx -p 99 && {program} cholesky Q.mtx -o L.mtx -p 99");
    let run = std::process::Command::new("sh").args(["-c", &script]).current_dir(sandbox.path("")).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

/// More threads than processors only wait for each other: far more are warned of, and taken.
#[test]
fn far_more_threads_than_processors_are_warned_of() {
    let sandbox = Sandbox::new();
    sandbox.write("P.mtx", format!("{HEADER}2 2\n1\n2\n3\n5\n"));
    let processors = std::thread::available_parallelism().unwrap().get();
    let (many, too_many) = (8 * processors, 8 * processors + 8);
    sandbox.run(&format!("syrk P.mtx -o Q.mtx -p 99 --threads {many}"));
    sandbox.run(&format!("plan syrk --rows 9 --cols 9 -p 99 --no-time --threads {too_many}"));
    for line in ["syrk P.mtx -o R.mtx -p 99", "verify syrk P.mtx Q.mtx"] {
        let output = sandbox.output(&format!("{line} --threads {too_many}"));
        let warning = format!("sunzi: warning: --threads {too_many} is far more than the {processors} processor");
        assert!(output.code == 0 && output.stderr.starts_with(&warning), "{output:?}");
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
        sandbox.run(&format!("{line} --threads {too_many} --quiet"));
    }
    assert_eq!(sandbox.text("Q.mtx"), sandbox.text("R.mtx"));
}

/// A system that has no room for so many threads.
#[test]
fn threads_that_the_system_refuses() {
    let sandbox = Sandbox::new();
    sandbox.write("P.mtx", format!("{HEADER}2 2\n1\n2\n3\n5\n"));
    let program = env!("CARGO_BIN_EXE_sunzi");
    let script = format!("ulimit -v 400000; exec {program} syrk P.mtx -o Q.mtx -p 99 --threads 900 -q");
    let run = std::process::Command::new("sh").args(["-c", &script]).current_dir(sandbox.path("")).output().unwrap();
    let error = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(4), "{error}");
    assert!(error.starts_with("sunzi: error: cannot start 900 threads: ") && error.lines().count() == 1, "{error}");
    assert_eq!(sandbox.names(), ["P.mtx"]);
}
