//! Archives and binary blocks.

use super::blocks::{Layout, block};
use super::{digits, file, read_text, shared};
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use sunzi::rug::Float;
use sunzi::{Matrix, Result};
use sunzi_sdp::proof::read_exact;
use sunzi_sdp::{Constraints, Problem, read_problem};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Two blocks of a small program: a polynomial and a matrix of numbers.
fn program(bits: u32) -> Result<Problem> {
    let text = r#"{"objective": ["0.1", "1", "-2"], "normalization": ["1", "0", "0"],
        "PositiveMatrixWithPrefactorArray": [{"polynomials": [[[["7", "-4", "1"], ["-1"], ["0", "0", "1e-7"]]]]},
         {"polynomials": [[[["1"], ["0"], ["-1e30"]], [["0"], ["1"], ["0"]]], [[["0"], ["1"], ["0"]],
          [["3"], ["0"], ["0"]]]]}]}"#;
    read_text("pmp.json", text, bits)
}

fn bases(problem: &Problem, number: usize) -> [Matrix; 2] {
    let Constraints::Sampled(sampled) = &problem.groups[number].constraints else { panic!("SDPB's form") };
    let empty = Matrix::zeros(0, sampled.points(), problem.precision_bits).unwrap();
    let basis = |parity: usize| {
        let cone = sampled.parities().iter().position(|&found| found == parity);
        cone.map_or(empty.clone(), |cone| sampled.basis(cone).clone())
    };
    [basis(0), basis(1)]
}

fn json_list(matrix: &Matrix, row: usize) -> String {
    let number = |col| format!("\"{}\"", matrix.float(row, col).to_string_radix(10, None));
    format!("[{}]", (0..matrix.cols()).map(number).collect::<Vec<_>>().join(", "))
}

fn json(matrix: &Matrix) -> String {
    format!("[{}]", (0..matrix.rows()).map(|row| json_list(matrix, row)).collect::<Vec<_>>().join(",\n"))
}

/// The files of a program: names and contents.
type Files = Vec<(String, Vec<u8>)>;

/// The files with blocks in JSON, or, with a layout, in the binary form.
fn files(problem: &Problem, binary: Option<Layout>) -> Files {
    let mut files = Files::new();
    let mut add = |name: String, bytes: Vec<u8>| files.push((name, bytes));
    let column = |matrix: &Matrix| json_list(&matrix.transposed().to_matrix().unwrap(), 0);
    let count = problem.groups.len();
    add("control.json".into(), format!("{{\"num_blocks\": {count}, \"command\": \"\"}}").into());
    let constant = problem.constant.to_string_radix(10, None);
    let b = column(&problem.objective);
    add("objectives.json".into(), format!("{{\"constant\": \"{constant}\", \"b\": {b}}}").into());
    if let Some(n) = &problem.normalization {
        add("normalization.json".into(), format!("{{\"normalization\": {}}}", column(n)).into());
    }
    for (number, group) in problem.groups.iter().enumerate() {
        let Constraints::Sampled(sampled) = &group.constraints else { panic!("SDPB's form") };
        let (dim, points) = (sampled.dim(), sampled.points());
        let info = format!("{{\"dim\": {dim}, \"num_points\": {points}}}");
        add(format!("block_info_{number}.json"), info.into());
        let [even, odd] = bases(problem, number);
        match binary {
            Some(layout) => {
                let bits = u64::from(problem.precision_bits.max(53)).div_ceil(64) * 64;
                let bytes = block(bits, layout, [&group.free, &group.costs, &even, &odd]);
                add(format!("block_data_{number}.bin"), bytes);
            }
            None => {
                let parts = [json(&even), json(&odd), column(&group.costs), json(&group.free)];
                let [even, odd, c, b] = parts;
                let text = format!(
                    "{{\"bilinear_bases_even\": {even}, \"bilinear_bases_odd\": {odd}, \"c\": {c}, \"B\": {b}}}"
                );
                add(format!("block_data_{number}.json"), text.into());
            }
        }
    }
    files
}

fn folder(files: &Files) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, bytes)| std::fs::write(folder.path().join(name), bytes).unwrap());
    folder
}

fn archive(files: &Files, method: CompressionMethod, prefix: &str) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file(format!("{prefix}{name}"), options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn read_archive(bytes: &[u8], bits: u32) -> Result<Problem> {
    let (_folder, path) = file("sdp.zip", bytes);
    read_problem(&path, bits)
}

#[test]
fn archives_and_binary_blocks_give_the_program_of_their_blocks() -> Result<()> {
    for bits in [100, 192, 664] {
        let problem = program(bits)?;
        let mut all = vec![("json".to_string(), files(&problem, None))];
        for integer_bytes in [4, 8] {
            for (exponent_first, version, padding) in [(false, 1, 0), (true, 1, 3), (false, 0, 0), (true, 0, 1)] {
                let layout = Layout { integer_bytes, exponent_first, version, padding };
                all.push((format!("{integer_bytes} {exponent_first} {version}"), files(&problem, Some(layout))));
            }
        }
        for (name, files) in &all {
            let same = |found: Problem| assert_eq!(digits(&found, &problem), f64::MAX, "{name}, {bits} bits");
            same(read_problem(folder(files).path(), bits)?);
            for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
                for prefix in ["", "sdp/", "a/b/"] {
                    same(read_archive(&archive(files, method, prefix), bits)?);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn archives_that_miss_or_hide_something_are_refused() -> Result<()> {
    let problem = program(128)?;
    let files = files(&problem, None);
    let stored = |files: &Files| archive(files, CompressionMethod::Stored, "");
    // The solver says what it refuses; the reader of proofs refuses it too.
    let refused = |bytes: &[u8]| {
        let (_folder, path) = file("sdp.zip", bytes);
        assert!(read_exact(&path).is_err());
        read_problem(&path, 128).unwrap_err().to_string()
    };
    let check = |found: String, wanted: &str| assert!(found.contains(wanted), "{found}\nwanted {wanted}");
    let without = |name: &str| files.iter().filter(|(found, _)| found != name).cloned().collect::<Files>();
    let with = |name: &str, bytes: &[u8]| {
        let mut files = without(name);
        files.push((name.into(), bytes.to_vec()));
        files
    };
    for name in ["control.json", "objectives.json", "block_info_1.json", "block_data_0.json"] {
        check(refused(&stored(&without(name))), name);
    }
    read_archive(&stored(&without("normalization.json")), 128)?;
    read_archive(&stored(&with("pmp_info.json", b"[]")), 128)?;
    for name in ["../evil.json", "/evil.json", "a/../evil.json", "C:evil.json", "a\\evil.json", "./evil.json"] {
        let found = refused(&stored(&with(name, b"{}")));
        assert!(found.contains("leads outside"), "{name}: {found}");
    }
    check(refused(&stored(&with("other/control.json", b"{}"))), "in the archive");
    check(refused(&stored(&with("control.json", b"{}"))), "num_blocks");
    check(refused(&stored(&with("control.json", b"{\"num_blocks\": 0}"))), "nothing to solve");
    check(refused(&stored(&with("control.json", b"{\"num_blocks\": 1}"))), "block_info_1.json");
    // Two members of one name: the second one's name changed in both of its places.
    let mut twice = stored(&with("block_info_2.json", b"{}"));
    let places = twice.windows(17).enumerate().filter(|(_, name)| name == b"block_info_2.json");
    let places = places.map(|(at, _)| at + 11).collect::<Vec<_>>();
    assert_eq!(places.len(), 2);
    places.iter().for_each(|&at| twice[at] = b'1');
    check(refused(&twice), "the same name");
    // Many zeros in a few bytes: more than the numbers that the block has.
    let mut zeros = b"{\"c\": [".to_vec();
    zeros.extend(b"0,".repeat(4 << 20));
    let bomb = archive(&with("block_data_0.json", &zeros), CompressionMethod::Deflated, "");
    assert!(bomb.len() < 64 << 10);
    check(refused(&bomb), "8388615 bytes or more");
    // Damage: in a number, in the list of members, at the end.
    let whole = stored(&files);
    let at = whole.windows(6).position(|bytes| bytes == b"\"c\": [").unwrap() + 8;
    let mut changed = whole.clone();
    changed[at] = if changed[at] == b'1' { b'2' } else { b'1' };
    check(refused(&changed), "damaged");
    for length in (0..whole.len()).step_by(97) {
        assert!(read_archive(&whole[..length], 128).is_err(), "{length}");
    }
    for at in (0..whole.len()).step_by(31) {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        // What counts is that nothing panics, and that no other program comes out.
        if let Ok(found) = read_archive(&changed, 128) {
            assert_eq!(digits(&found, &problem), f64::MAX, "{at}");
        }
    }
    Ok(())
}

#[test]
fn damaged_binary_blocks_and_other_precisions_are_refused() -> Result<()> {
    let problem = program(192)?;
    let all = files(&problem, Some(Layout::default()));
    let place = all.iter().position(|(name, _)| name == "block_data_0.bin").unwrap();
    let home = folder(&all);
    let read = |bytes: &[u8], bits: u32| {
        std::fs::write(home.path().join(&all[place].0), bytes).unwrap();
        read_problem(home.path(), bits)
    };
    let refused = |bytes: &[u8]| read(bytes, 192).unwrap_err().to_string();
    let check = |found: String, wanted: &str| {
        assert!(found.contains(wanted) && found.contains("block_data_0.bin"), "{found}\nwanted {wanted}")
    };
    let whole = &all[place].1;
    read(whole, 192)?;
    // Whole limbs count, as with SDPB.
    read(whole, 150)?;
    for bits in [128, 193, 400] {
        check(read(whole, bits).unwrap_err().to_string(), "the numbers of the block have 192 bits");
    }
    for length in 0..whole.len() {
        let found = refused(&whole[..length]);
        assert!(found.contains("ends within"), "{length}: {found}");
    }
    check(refused(&[&whole[..], &[0]].concat()), "data follow");
    check(refused(&[&[1], &whole[1..]].concat()), "does not begin");
    let changed = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    check(refused(&changed(33, 4)), "other sizes");
    check(refused(&changed(30, 5)), "version 5");
    // Behind the head of 48 bytes: the class of matrices, then rows and columns.
    check(refused(&changed(48, 1)), "'B' should begin");
    check(refused(&changed(53, 4)), "'B' is 4 x 2 instead of 3 x 2");
    check(refused(&changed(57, 3)), "'B' is 3 x 3 instead of 3 x 2");
    check(refused(&changed(61, 2)), "leading dimension of 2");
    check(refused(&changed(70, 2)), "does not begin as SDPB");
    check(refused(&changed(71, 99)), "more limbs");
    for (at, byte) in whole.iter().enumerate().skip(48) {
        let _ = read(&changed(at, byte ^ 0x81), 192);
    }
    // The binary block counts where both are there, and one must be.
    let mut both = all.clone();
    both.push(("block_data_0.json".into(), b"{}".to_vec()));
    read_problem(folder(&both).path(), 192)?;
    both.remove(place);
    assert!(read_problem(folder(&both).path(), 192).unwrap_err().to_string().contains("block_data_0.json"));
    Ok(())
}

#[test]
fn stored_blocks_in_the_binary_form_are_the_same_program() -> Result<()> {
    let Some(stored) = shared("SingletScalar_cT_test_nmax6/sdp") else { return Ok(()) };
    let problem = read_problem(&stored, 768)?;
    let files = files(&problem, Some(Layout::default()));
    assert_eq!(digits(&read_problem(folder(&files).path(), 768)?, &problem), f64::MAX);
    let zipped = archive(&files, CompressionMethod::Stored, "");
    assert_eq!(digits(&read_archive(&zipped, 768)?, &problem), f64::MAX);
    Ok(())
}

/// The program that writes blocks with Boost's library, or a note that the library is not installed.
fn boost_writer(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/boost_block.cpp");
    let program = folder.join("boost_block");
    let built = Command::new("c++")
        .args(["-std=c++17", "-o"])
        .args([&program, &source])
        .arg("-lboost_serialization")
        .stderr(Stdio::null())
        .status();
    let found = built.is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: no compiler finds Boost's serialization library");
    }
    found.then_some(program)
}

#[test]
fn archives_that_boost_writes_are_read() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = boost_writer(folder.path()) else { return Ok(()) };
    let halves = |rows: usize, cols: usize, seed: i64| {
        let value = move |row: usize, col: usize| match (row as i64 * 7 + col as i64 * 3 + seed) % 5 {
            0 => 0,
            found => (found - 2) * 1000 + if found < 2 { -2 } else { 2 } + seed,
        };
        (rows, cols, value)
    };
    let parts = [halves(3, 2, 1), halves(3, 1, 2), halves(2, 3, 3), halves(1, 3, 4)];
    let mut text = String::from("256\n");
    let mut matrices = Vec::new();
    for (rows, cols, value) in &parts {
        write!(text, "{rows} {cols} {rows}").unwrap();
        for (col, row) in (0..*cols).flat_map(|col| (0..*rows).map(move |row| (col, row))) {
            write!(text, " {}", value(row, col)).unwrap();
        }
        text.push('\n');
        matrices.push(Matrix::from_fn(*rows, *cols, 256, |row, col| Float::with_val(256, value(row, col)) / 2u32)?);
    }
    let mut child =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the writer starts");
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let written = child.wait_with_output().unwrap();
    assert!(written.status.success());
    let mut files = files(&program_of(&matrices)?, None);
    files.retain(|(name, _)| name != "block_data_0.json");
    files.push(("block_data_0.bin".into(), written.stdout));
    // SDPB keeps them in a directory, or in a zip archive.
    let zipped = read_archive(&archive(&files, CompressionMethod::Deflated, ""), 256)?;
    for found in [read_problem(self::folder(&files).path(), 256)?, zipped] {
        assert_eq!(digits(&found, &program_of(&matrices)?), f64::MAX);
    }
    Ok(())
}

/// The program of one block.
fn program_of(matrices: &[Matrix]) -> Result<Problem> {
    let [free, costs, even, odd] = matrices else { panic!("four matrices") };
    let bits = free.precision_bits();
    let sampled = sunzi_sdp::Sampled::new(1, even.cols(), [even.clone(), odd.clone()])?;
    Ok(Problem {
        form: sunzi_sdp::Form::Sdpb,
        precision_bits: bits,
        constant: Float::new(bits),
        objective: Matrix::zeros(free.cols(), 1, bits)?,
        groups: vec![sunzi_sdp::Group {
            costs: costs.clone(),
            free: free.clone(),
            constraints: Constraints::Sampled(sampled),
        }],
        normalization: None,
    })
}
