//! `solve --general` and `inverse --general`: right answers for matrices that are not symmetric, and every refusal.

use super::sandbox::{Sandbox, named_minimum};
use sunzi::Matrix;
use sunzi::io::ReadOptions;
use sunzi::rug::ops::Pow;
use sunzi::rug::{Float, Integer, Rational};

/// `[0 2 3; 4 5 6; 7 8 10]`, whose first pivot is in another row, and `A [1 -2; 2 1; 3 0]`.
const A: &str = "0,2,3\n4,5,6\n7,8,10\n";
const B: &str = "13,2\n32,-3\n53,-6\n";

fn small() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("A.csv", A);
    sandbox.write("B.csv", B);
    sandbox
}

fn read(sandbox: &Sandbox, name: &str, bits: u32) -> Matrix {
    sunzi::io::read(sandbox.path(name), &ReadOptions::new(bits)).unwrap().matrix
}

fn exact(matrix: &Matrix, row: usize, col: usize) -> Rational {
    matrix.float(row, col).to_rational().unwrap()
}

/// The largest `|b - A x|_i / (|A| |x| + |b|)_i`, from exact sums; `b` is the identity where there is none.
fn largest_backward_error(a: &Matrix, b: Option<&Matrix>, x: &Matrix) -> Float {
    let mut largest = Float::new(64);
    for col in 0..x.cols() {
        for row in 0..a.rows() {
            let right = b.map_or(Rational::from(u32::from(row == col)), |b| exact(b, row, col));
            let (mut residual, mut size) = (right.clone(), right.abs());
            for k in 0..a.cols() {
                let term = exact(a, row, k) * exact(x, k, col);
                residual -= &term;
                size += term.abs();
            }
            largest = largest.max(&Float::with_val(64, residual.abs() / size));
        }
    }
    largest
}

#[test]
fn a_small_system_has_its_exact_solution() {
    let sandbox = small();
    let line = sandbox.run("solve A.csv B.csv -o X.mtx --general --precision 128 --report r.json");
    assert!(line.starts_with("X.mtx: 3 x 2, 128 bits (direct, 1 thread"), "{line}");
    assert!(line.contains("LU with partial pivoting of 3 rows: growth of U at most 2^"), "{line}");
    assert!(line.contains("\nsolution: about 37 correct digits (128 bits)"), "{line}");
    let x = read(&sandbox, "X.mtx", 128);
    for (row, entries) in [[1_i32, -2], [2, 1], [3, 0]].iter().enumerate() {
        for (col, entry) in entries.iter().enumerate() {
            let error = Float::with_val(160, x.float(row, col) - *entry).abs();
            assert!(error < Float::with_val(64, 1e-36), "({row}, {col}): {error}");
        }
    }
    let report = sandbox.json("r.json");
    assert_eq!((&report["operation"], &report["method"]), (&"solve".into(), &"lu".into()));
    assert_eq!((&report["precision_bits"], &report["factorisation"]["order"]), (&128.into(), &3.into()));
    // Without a name the solution is printed, and the summary goes to the other stream.
    let printed = sandbox.output("solve A.csv B.csv --general --precision 128");
    assert!(printed.code == 0 && printed.stdout.starts_with("%%MatrixMarket"), "{printed:?}");
    assert!(printed.stderr.contains("LU with partial pivoting"), "{printed:?}");
}

#[test]
fn random_systems_and_inverses_have_small_exact_residuals_on_any_threads() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 40 --cols 40 --precision 200 --seed 5 -o A.bin");
    sandbox.run("gen random --rows 40 --cols 2 --precision 200 --seed 6 -o B.bin");
    let (a, b) = (read(&sandbox, "A.bin", 200), read(&sandbox, "B.bin", 200));
    // The factors of so small a matrix grow by a few bits only.
    let bound = Float::with_val(64, Float::i_exp(1, 12 - 200));
    for accuracy in ["entrywise", "norm"] {
        let line = format!("--general --accuracy {accuracy} --threads");
        sandbox.run(&format!("solve A.bin B.bin -o X.bin {line} 1"));
        sandbox.run(&format!("solve A.bin B.bin -o Y.bin {line} 2"));
        assert!(sandbox.bytes("X.bin") == sandbox.bytes("Y.bin"), "{accuracy}");
        let error = largest_backward_error(&a, Some(&b), &read(&sandbox, "X.bin", 200));
        assert!(error < bound, "{accuracy}: {error}");
    }
    let line = sandbox.run("inverse A.bin -o I.bin --general");
    assert!(line.starts_with("I.bin: 40 x 40, 200 bits ("), "{line}");
    let error = largest_backward_error(&a, None, &read(&sandbox, "I.bin", 200));
    assert!(error < bound, "{error}");
}

#[test]
fn matrices_without_an_answer_are_refused_and_nothing_is_written() {
    let sandbox = small();
    sandbox.write("S.csv", "1,2,3\n2,4,6\n1,1,1\n");
    sandbox.write("W.csv", "6,2,3\n4,5,6\n");
    sandbox.write("b.csv", "1\n2\n");
    let before = sandbox.names();
    for (line, code, text) in [
        ("solve S.csv B.csv -o X.csv --general -p 64", 3, "in column 3 all candidates for the pivot are 0"),
        ("inverse S.csv -o X.csv --general -p 64", 3, "all candidates for the pivot are 0"),
        ("solve W.csv b.csv -o X.csv --general -p 64", 3, "W.csv: solve: the matrix is 2 x 3, but must be square"),
        ("inverse W.csv -o X.csv --general -p 64", 3, "W.csv: inverse: the matrix is 2 x 3, but must be square"),
        ("solve A.csv b.csv -o X.csv --general -p 64", 3, "A.csv: solve: shapes do not fit"),
        ("solve A.csv B.csv -o X.csv --general", 2, "give --precision"),
    ] {
        let error = sandbox.fail(line, code);
        assert!(error.contains(text) && !error.contains("--digits"), "{line}: {error}");
        assert_eq!(sandbox.names(), before, "{line}");
    }
}

/// Hilbert's matrix with its rows in another order, as fractions: the digits that are printed are those of the system
/// in the file.
#[test]
fn digits_of_general_systems_are_estimated_and_proven() {
    let sandbox = Sandbox::new();
    let n = 12;
    let row = |i: usize| (0..n).map(|j| format!("1/{}", (i * 5) % n + j + 1)).collect::<Vec<_>>().join(",");
    sandbox.write("A.csv", (0..n).map(|i| row(i) + "\n").collect::<String>());
    sandbox.write("b.csv", "1\n".repeat(n));
    let exact = |i: usize| {
        // The rows of the inverse of Hilbert's matrix sum to these integers.
        let binomial = |n: u32, k: u32| Integer::from(n).binomial(k);
        let (n, i) = (n as u32, i as u32);
        let size = Integer::from(n) * binomial(n + i, n) * binomial(n - 1, i);
        if (n - 1 - i).is_multiple_of(2) { size } else { -size }
    };
    for (bits, read_bits) in [(80, None), (200, None), (200, Some(600))] {
        let more = read_bits.map_or(String::new(), |bits| format!(" --input-precision {bits}"));
        let line =
            format!("solve A.csv b.csv -o X.mtx --general -p {bits}{more} --certified --condition --report r.json");
        let text = sandbox.run(&line);
        assert!(text.contains("\ncondition of A in the 1-norm: about "), "{text}");
        let report = sandbox.json("r.json");
        let [stated, proven] = ["digits", "certified"].map(|name| report[name].as_f64().unwrap());
        let x = read(&sandbox, "X.mtx", bits);
        let (mut error, mut size) = (Float::new(64), Float::new(64));
        for i in 0..n {
            let value = Float::with_val(1000, &exact(i));
            error.max_mut(&Float::with_val(64, Float::with_val(1000, x.float(i, 0) - &value).abs()));
            size.max_mut(&Float::with_val(64, value.abs()));
        }
        let truth = -(error / size).log10().to_f64();
        assert!(proven <= truth + 1e-9 && stated <= truth + 1.0 && proven >= truth - 3.0, "{text}: {truth}");
        assert!(text.contains(&format!("at least {} proven ({bits} bits)", proven as usize)), "{text}");
    }
    let inverse = sandbox.run("inverse A.csv -o I.mtx --general -p 200 --certified");
    assert!(inverse.contains("\ninverse: about ") && inverse.contains(" proven (200 bits)"), "{inverse}");
    let silent = sandbox.run("inverse A.csv -o I.mtx --general -p 200 --no-estimate");
    assert!(!silent.contains("correct digit"), "{silent}");
    let few = sandbox.output("solve A.csv b.csv -o X.mtx --general -p 40");
    assert!(few.code == 0 && few.stderr.contains("digits of the solution are correct: give more bits"), "{few:?}");
}

#[test]
fn options_of_symmetric_matrices_are_refused() {
    let sandbox = small();
    let shared = [
        "--lower",
        "--upper",
        "--tile 8",
        "--log-det",
        "--digits 20",
        "--precision auto",
        "--all-digits",
        "--plot p.svg",
        "--device soft",
    ];
    let of_solve = [
        "--refine-from 60",
        "--grid 1x1",
        "--broadcast cs_list",
        "--policy fifo",
        "--termination lists",
        "--remote-tiles 3",
        "--storage tiles",
    ];
    let lines = of_solve.iter().chain(&shared).map(|option| ("solve A.csv B.csv", option));
    for (command, option) in lines.chain(shared.iter().map(|option| ("inverse A.csv", option))) {
        let error = sandbox.fail(&format!("{command} -o X.csv --general {option}"), 2);
        let name = option.split(' ').next().unwrap();
        assert!(error.contains("--general") && error.contains(name), "{option}: {error}");
    }
}

#[test]
fn refusals_of_other_matrices_name_the_option_where_it_helps() {
    let sandbox = small();
    sandbox.write("I.csv", "1,2\n2,1\n");
    sandbox.write("b.csv", "1\n1\n");
    let hint = "without --general, solve and inverse accept only symmetric positive definite matrices";
    for line in ["solve A.csv B.csv -o X.csv -p 64", "inverse A.csv -o X.csv -p 64"] {
        assert!(sandbox.fail(line, 3).contains(hint), "{line}");
        assert!(!sandbox.fail(&format!("{line} --log-det"), 3).contains("--general"), "{line}");
    }
    for line in ["solve I.csv b.csv -o X.csv -p 64", "inverse I.csv -o X.csv -p 64"] {
        let error = sandbox.fail(line, 3);
        assert!(error.contains("I.csv: the matrix is not positive definite: index 2"), "{error}");
        assert!(error.ends_with("; --general accepts any square matrix\n"), "{error}");
        assert!(!sandbox.fail(&format!("{line} --log-det"), 3).contains("--general"), "{line}");
        sandbox.run(&format!("{line} --general"));
    }
    assert!(!sandbox.fail("cholesky I.csv -o L.csv -p 64", 3).contains("--general"));
}

#[test]
fn a_limit_that_is_too_small_names_one_that_works() {
    let sandbox = small();
    sandbox.run("gen random --rows 70 --cols 70 --precision 300 --seed 5 -o A.bin");
    let line = "inverse A.bin -o X.bin --general --threads 2";
    let least = named_minimum(&sandbox.fail(&format!("{line} --memory 1M"), 4));
    assert_eq!(named_minimum(&sandbox.fail(&format!("{line} --memory {}", least - 1), 4)), least);
    assert!(!sandbox.path("X.bin").exists());
    sandbox.run(&format!("{line} --memory {least}"));
    let limited = sandbox.bytes("X.bin");
    sandbox.run(line);
    assert!(limited == sandbox.bytes("X.bin"));
}

/// The factors of a small matrix, by hand, and those of larger ones by exact products; both are verified.
#[test]
fn factors_are_written_with_the_order_of_their_rows() {
    let sandbox = small();
    let outputs = "--lower L.csv --upper U.csv --row-order P.csv";
    let text = sandbox.run(&format!("lu A.csv {outputs} -p 128 --det --condition --report r.json"));
    assert!(text.starts_with("L.csv, U.csv, P.csv: 3 x 3 at 128 bits (direct, 1 thread"), "{text}");
    // The determinant is that of [0 2 3; 4 5 6; 7 8 10].
    assert!(text.contains("\ndeterminant of A: -5.0000000000") && text.contains(" digits proven)\n"), "{text}");
    assert!(text.contains("\ncondition of A in the 1-norm: about "), "{text}");
    assert_eq!(sandbox.text("P.csv").split_whitespace().collect::<Vec<_>>(), ["3", "1", "2"]);
    let (a, l, u) = (read(&sandbox, "A.csv", 128), read(&sandbox, "L.csv", 128), read(&sandbox, "U.csv", 128));
    for (row, of_a) in [2, 0, 1].into_iter().enumerate() {
        for col in 0..3 {
            let product = (0..3).fold(Rational::new(), |sum, k| sum + exact(&l, row, k) * exact(&u, k, col));
            let error = (exact(&a, of_a, col) - product).abs();
            assert!(error < Rational::from((1, Integer::from(1) << 120)), "({row}, {col})");
            assert!((row >= col || l.float(row, col).is_zero()) && (row <= col || u.float(row, col).is_zero()));
        }
        assert_eq!(l.float(row, row), 1);
    }
    let report = sandbox.json("r.json");
    assert_eq!((&report["operation"], &report["order"]), (&"lu".into(), &3.into()));
    assert!(report["determinant_certified"].as_f64().unwrap() > 30.0, "{report}");
    let verified = sandbox.run("verify lu A.csv L.csv U.csv P.csv -p 128");
    assert!(verified.starts_with("L.csv: P A = L U to 128 bits (4 random vectors, 9 entries; "), "{verified}");
    sandbox.run("gen random --rows 40 --cols 40 --precision 200 --seed 5 -o R.bin");
    for accuracy in ["entrywise", "norm"] {
        for threads in [1, 2] {
            let names = format!("--lower L{threads}.bin --upper U{threads}.bin --row-order P{threads}.csv");
            sandbox.run(&format!("lu R.bin {names} --accuracy {accuracy} --threads {threads}"));
        }
        for name in ["L", "U"] {
            assert!(sandbox.bytes(&format!("{name}1.bin")) == sandbox.bytes(&format!("{name}2.bin")), "{accuracy}");
        }
    }
    sandbox.run("lu R.bin --lower L.bin --upper U.bin --row-order P.csv");
    sandbox.run("verify lu R.bin L.bin U.bin P.csv");
    // Numbers only: nothing is written.
    let before = sandbox.names();
    assert!(sandbox.run("lu R.bin --det").contains("determinant of A: "));
    assert_eq!(sandbox.names(), before);
}

/// A singular matrix within the rounding of its fractions has no proven digit.
#[test]
fn a_determinant_has_no_more_digits_than_its_matrix() {
    let sandbox = Sandbox::new();
    sandbox.write("A.csv", "1/3,2/3\n1/7,2/7\n");
    let output = sandbox.output("lu A.csv --det -p 100");
    let text = format!("{}{}", output.stdout, output.stderr);
    assert!(text.contains("no digit is proven") || text.contains("all candidates for the pivot are 0"), "{text}");
    // Hilbert's matrix of order 8 has the determinant 1 / 365356847125734485878112256000000.
    let row = |i: usize| (0..8).map(|j| format!("1/{}", i + j + 1)).collect::<Vec<_>>().join(",");
    sandbox.write("H.csv", (0..8).map(|i| row(i) + "\n").collect::<String>());
    let text = sandbox.run("lu H.csv --det -p 120 --report r.json");
    let words = text.split("determinant of A: ").nth(1).unwrap().split_whitespace().collect::<Vec<_>>();
    let (value, digits) = (words[0], words[1].trim_start_matches('(').parse::<i32>().unwrap());
    let exact = Integer::from_str_radix("365356847125734485878112256000000", 10).unwrap();
    let stated = Float::with_val(400, Float::parse(value).unwrap());
    let error = (stated * &exact - 1u32).abs();
    let bound = Float::with_val(400, 10).pow(-digits) * 2u32;
    assert!(digits > 20 && error <= bound, "{text}: {error}");
}

#[test]
fn lines_of_lu_that_cannot_be_carried_out_are_refused() {
    let sandbox = small();
    sandbox.write("S.csv", "1,2,3\n2,4,6\n1,1,1\n");
    sandbox.write("W.csv", "6,2,3\n4,5,6\n");
    sandbox.run("lu A.csv --lower L.csv --upper U.csv --row-order P.csv -p 128");
    sandbox.write("Q.csv", "1\n1\n2\n");
    sandbox.write("N.csv", "1\n2.5\n3\n");
    sandbox.write("M.csv", "1,2\n3,4\n");
    sandbox.write("I.csv", "1\n2\n3\n");
    let before = sandbox.names();
    for (line, code, text) in [
        ("lu A.csv -p 64", 2, "nothing is requested: give --lower, --upper or --row-order"),
        ("lu A.csv --det", 2, "give --precision"),
        ("lu S.csv --lower X.csv -p 64", 3, "in column 3 all candidates for the pivot are 0"),
        ("lu W.csv --lower X.csv -p 64", 3, "W.csv: lu: the matrix is 2 x 3, but must be square"),
        ("lu A.csv --lower X.csv --upper X.csv -p 64", 2, "are the same file"),
        ("lu A.csv --lower A.csv -p 64", 2, "the factor L A.csv would replace the input A.csv"),
        ("lu A.csv --lower X -p 64", 2, "X: the name does not determine the format"),
        ("verify lu A.csv L.csv U.csv I.csv -p 128", 5, "verify lu: the residual at row 1"),
        ("verify lu A.csv L.csv U.csv Q.csv -p 128", 2, "does not have row 0 exactly once"),
        ("verify lu A.csv L.csv U.csv N.csv -p 128", 2, "entry 2 of the order of 3 rows is 2.5"),
        ("verify lu A.csv L.csv U.csv M.csv -p 128", 2, "must be one row or one column, but it is 2 x 2"),
        ("verify lu A.csv U.csv L.csv P.csv -p 128", 5, "is not that of a unit lower triangular matrix"),
        ("verify lu A.csv L.csv L.csv P.csv -p 128", 5, "is not that of an upper triangular matrix"),
        ("verify lu S.csv L.csv U.csv P.csv -p 128", 5, "the residual"),
    ] {
        let error = sandbox.fail(line, code);
        assert!(error.contains(text), "{line}: {error}");
        assert_eq!(sandbox.names(), before, "{line}");
    }
    sandbox.run("gen random --rows 200 --cols 200 --precision 200 -o R.bin");
    let error = sandbox.fail("lu R.bin --det --memory 34M --threads 1", 4);
    sandbox.run(&format!("lu R.bin --lower X.bin --memory {} --threads 1", named_minimum(&error)));
}
