//! Correct digits: what is printed is right, few digits are warned of, precisions are found that nobody gave.

use super::sandbox::Sandbox;

/// A sandbox with the README's matrix `Q.mtx`, with fewer rows, and right-hand sides `B.mtx`.
fn bootstrap() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run("gen bootstrap1d --rows 160 --cols 40 --precision 768 --seed 1 -o P.mtx");
    sandbox.run("syrk P.mtx -o Q.mtx");
    sandbox.run("gen random --rows 40 --cols 2 --precision 768 --seed 2 -o B.mtx");
    sandbox
}

/// What stands between two words of a text.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("{before}: {text}")).1;
    rest.split_once(after).unwrap_or_else(|| panic!("{after}: {text}")).0
}

/// Digits by which two decimals with exponents agree from the left.
fn common_digits(left: &str, right: &str) -> usize {
    let agree = left.chars().zip(right.chars()).take_while(|(left, right)| left == right);
    agree.filter(|(letter, _)| letter.is_ascii_digit()).count()
}

/// `-log10` of the error of each column of `name` in the maximum norm, by the program's own comparison with `exact`.
fn digits_of(sandbox: &Sandbox, name: &str, exact: &str) -> f64 {
    let column = |text: &str, col: usize| -> Vec<rug::Float> {
        let numbers = text.lines().filter(|line| !line.starts_with('%')).skip(1);
        let column = numbers.skip(col * 40).take(40);
        column.map(|line| rug::Float::with_val(900, rug::Float::parse(line).unwrap())).collect()
    };
    let most = |values: Vec<rug::Float>| values.into_iter().map(rug::Float::abs).reduce(|a, b| a.max(&b)).unwrap();
    let (got, exact) = (sandbox.text(name), sandbox.text(exact));
    let digits = (0..2).map(|col| {
        let (got, exact) = (column(&got, col), column(&exact, col));
        let errors = got.iter().zip(&exact).map(|(got, exact)| rug::Float::with_val(900, got - exact)).collect();
        -(most(errors) / most(exact)).log10().to_f64()
    });
    digits.fold(f64::INFINITY, f64::min)
}

#[test]
fn no_digit_is_printed_that_means_nothing() {
    let sandbox = bootstrap();
    let exact = sandbox.run("cholesky Q.mtx -o L.mtx --log-det");
    let exact = between(&exact, "log det A = ", " ").to_string();
    let mut least = usize::MAX;
    for bits in [80, 96, 200] {
        let said = sandbox
            .run(&format!("cholesky Q.mtx -o L.mtx -p {bits} --log-det --certified --accuracy norm --report r.json"));
        let (printed, count) = (between(&said, "log det A = ", " "), between(&said, "(about ", " correct"));
        let count: usize = count.parse().unwrap();
        assert_eq!(printed.chars().filter(char::is_ascii_digit).count() - 1, count.min(30), "{said}");
        // The last digit is rounded.
        assert!(common_digits(printed, &exact) + 1 >= count.min(30), "{said} against {exact}");
        let report = sandbox.json("r.json");
        let [stated, proven] = ["log_det_digits", "log_det_certified"].map(|key| report[key].as_f64().unwrap());
        assert!(stated as usize == count && proven <= stated + 2.0 && proven > stated - 12.0, "{report}");
        assert!(report["digits"].is_null() && report["scaled_condition"].is_string());
        least = least.min(count);
    }
    assert!(least < 10, "{least} digits at 80 bits: the matrix is not ill-conditioned");
    let said = sandbox.run("cholesky Q.mtx -o L.mtx -p 80 --log-det --all-digits --accuracy norm");
    assert!(
        between(&said, "log det A = ", "e4 (").contains('[') && said.contains("in brackets may be wrong"),
        "{said}"
    );
    let said = sandbox.run("cholesky Q.mtx -o L.mtx -p 80 --log-det --no-estimate");
    assert!(said.contains("(correct digits not estimated)"), "{said}");
}

#[test]
fn solutions_and_inverses_say_how_right_they_are() {
    let sandbox = bootstrap();
    sandbox.run("solve Q.mtx B.mtx -o E.mtx");
    for bits in [128, 160] {
        let said = sandbox.run(&format!("solve Q.mtx B.mtx -o X.mtx -p {bits} --certified --report r.json"));
        let truth = digits_of(&sandbox, "X.mtx", "E.mtx");
        let report = sandbox.json("r.json");
        let [stated, proven] = ["digits", "certified"].map(|key| report[key].as_f64().unwrap());
        assert!(stated <= truth && stated > truth - 2.0, "{stated} stated, {truth} right");
        assert!(proven <= truth && proven > truth - 3.0, "{proven} proven, {truth} right");
        let line = format!("solution: about {} correct digits, at least {} proven", stated as u32, proven as u32);
        assert!(said.contains(&line), "{line}: {said}");
    }
    sandbox.run("inverse Q.mtx -o I.mtx -p 160 --certified --report r.json");
    let report = sandbox.json("r.json");
    let [stated, proven] = ["digits", "certified"].map(|key| report[key].as_f64().unwrap());
    assert!(stated > 1.0 && proven > stated - 3.0 && proven < stated + 2.0, "{report}");
}

#[test]
fn few_digits_are_warned_of() {
    let sandbox = Sandbox::new();
    sandbox.run("gen hilbert --rows 24 --cols 24 --precision 400 --hex -o H.mtx");
    sandbox.run("gen random --rows 24 --cols 1 --precision 400 --seed 2 -o B.mtx");
    let mut warned = 0;
    for bits in [76, 78, 80, 82, 84, 86, 200] {
        let output = sandbox.output(&format!("solve H.mtx B.mtx -o X.mtx -p {bits} --report r.json"));
        if output.code != 0 {
            continue;
        }
        let digits = sandbox.json("r.json")["digits"].as_f64().unwrap();
        let warns = output.stderr.contains("warning: about") && output.stderr.contains("digits of the solution");
        assert_eq!(warns, digits < 3.0, "{bits} bits, {digits} digits: {output:?}");
        warned += usize::from(warns);
    }
    assert!(warned > 0 && sandbox.json("r.json")["digits"].as_f64().unwrap() > 10.0);
}

#[test]
fn a_precision_is_found_that_gives_the_digits_asked_for() {
    let sandbox = bootstrap();
    let chosen = |line: &str| -> u32 {
        let said = sandbox.run(&format!("{line} --report r.json"));
        let bits = between(&said, "precision chosen: ", " bits").parse().unwrap();
        assert_eq!(sandbox.json("r.json")["precision_bits"], bits);
        bits
    };
    let digits = |key: &str| sandbox.json("r.json")[key].as_f64().unwrap();
    let bits = chosen("solve Q.mtx B.mtx -o X.mtx --precision auto --digits 50");
    assert!(digits("digits") >= 50.0);
    sandbox.run("solve Q.mtx B.mtx -o E.mtx");
    assert!(digits_of(&sandbox, "X.mtx", "E.mtx") >= 50.0);
    sandbox.run(&format!("solve Q.mtx B.mtx -o X.mtx -p {} --report r.json", bits - 16));
    assert!(digits("digits") < 50.0, "{bits} bits are 16 too many");
    let few = chosen("cholesky Q.mtx -o L.mtx -p auto");
    assert!(digits("log_det_digits") >= 30.0);
    assert!(chosen("cholesky Q.mtx -o L.mtx --digits 100") > few + 150);
    assert!(digits("log_det_digits") >= 100.0);
    chosen("inverse Q.mtx -o I.mtx --digits 20 --certified");
    assert!(digits("certified") >= 20.0);
    let error = sandbox.fail("cholesky Q.mtx -o L.mtx -p 200 --digits 30", 2);
    assert!(error.contains("--digits 30 requires --precision auto"), "{error}");
    let error = sandbox.fail("cholesky Q.mtx -o L.mtx --digits 9000", 2);
    assert!(error.contains("9000 correct digits require at least "), "{error}");
}

#[test]
fn the_precision_that_a_refusal_names_works() {
    let sandbox = bootstrap();
    for bits in [16, 48, 60] {
        let error = sandbox.fail(&format!("cholesky Q.mtx -o L.mtx -p {bits} --accuracy norm"), 3);
        let enough =
            between(&error, "rounding can explain the pivot: ", " bits of precision give a factor; fewer may suffice");
        sandbox.run(&format!("cholesky Q.mtx -o L.mtx -p {enough} --accuracy norm"));
    }
    sandbox.write("M.mtx", "%%MatrixMarket matrix array real symmetric\n2 2\n1\n1.0000000000000000000000000001\n1\n");
    let error = sandbox.fail("cholesky M.mtx -o L.mtx -p 24", 3);
    assert!(error.contains("rounding cannot explain the pivot"), "{error}");
}

/// `-log10` of the relative error of a column in the maximum norm.
fn digits_beside(sandbox: &Sandbox, name: &str, exact: &[rug::Rational]) -> f64 {
    let text = sandbox.text(name);
    let lines = text.lines().filter(|line| !line.starts_with('%')).skip(1);
    let got: Vec<rug::Rational> =
        lines.map(|line| rug::Float::with_val(4000, rug::Float::parse(line).unwrap()).to_rational().unwrap()).collect();
    assert_eq!(got.len(), exact.len());
    let error = got.iter().zip(exact).map(|(got, exact)| rug::Rational::from(got - exact).abs()).max().unwrap();
    let size = exact.iter().map(|value| value.clone().abs()).max().unwrap();
    if error == 0 { f64::INFINITY } else { -rug::Float::with_val(64, error / size).log10().to_f64() }
}

/// Row sums of the inverse of the Hilbert matrix: `(-1)^(n+i) (n+i-1)! / ((i-1)!^2 (n-i)!)`.
fn hilbert_row_sums(n: u32) -> Vec<rug::Rational> {
    let factorial = |k: u32| rug::Integer::from(rug::Integer::factorial(k));
    let sum = |i: u32| {
        let size = factorial(n + i - 1) / (factorial(i - 1).square() * factorial(n - i));
        rug::Rational::from(if (n + i).is_multiple_of(2) { size } else { -size })
    };
    (1..=n).map(sum).collect()
}

/// Fractions are rounded when they are read, and that is in what is proven; where it is what limits, they are read
/// again.
#[test]
fn fractions_in_a_file_count_as_they_are_written() {
    let n = 40;
    let (sandbox, exact) = (hilbert_in_fractions(n), hilbert_row_sums(n));
    for line in ["--precision auto --digits 40", "-p 300", "-p 220", "-p 300 --input-precision 300"] {
        sandbox.run(&format!("solve H.csv ones.csv -o X.mtx {line} --certified --report r.json"));
        let (report, truth) = (sandbox.json("r.json"), digits_beside(&sandbox, "X.mtx", &exact));
        let [stated, proven] = ["digits", "certified"].map(|key| report[key].as_f64().unwrap());
        // A bound of roundings that point in all directions is some digits above what they do.
        let loose = if line.contains("--input") { 6.0 } else { 3.0 };
        assert!(proven <= truth && proven > truth - loose, "{line}: {proven} proven, {truth} right");
        assert!(stated <= truth + 1.0 && stated > truth - 2.0, "{line}: {stated} stated, {truth} right");
        assert!(stated >= proven, "{report}");
    }
    // With decimals read to the precision, little is left of the condition.
    let few = digits_beside(&sandbox, "X.mtx", &exact);
    sandbox.run("solve H.csv ones.csv -o X.mtx -p 300 --certified");
    assert!(digits_beside(&sandbox, "X.mtx", &exact) > few + 10.0);
}

/// A sandbox with the Hilbert matrix of `n` rows as fractions, `H.csv`, and right-hand sides of ones, `ones.csv`.
fn hilbert_in_fractions(n: u32) -> Sandbox {
    let sandbox = Sandbox::new();
    let row = |i: u32| (1..=n).map(|j| format!("1/{}", i + j - 1)).collect::<Vec<_>>().join(",");
    sandbox.write("H.csv", (1..=n).map(|i| row(i) + "\n").collect::<String>());
    sandbox.write("ones.csv", "1\n".repeat(n as usize));
    sandbox
}

/// However often decimals are read, what the last reading gives is judged and proven.
#[test]
fn every_answer_is_judged_and_proven() {
    for n in [6, 11, 17, 24] {
        let sandbox = hilbert_in_fractions(n);
        let exact = hilbert_row_sums(n);
        for bits in (10 * n..14 * n).step_by(n as usize).chain([400]) {
            let lines =
                [format!("solve H.csv ones.csv -o X.mtx -p {bits}"), format!("inverse H.csv -o I.mtx -p {bits}")];
            for (at, line) in lines.iter().enumerate() {
                let output = sandbox.output(&format!("{line} --certified --report r.json"));
                assert_eq!(output.code, 0, "{line}: {output:?}");
                let report = sandbox.json("r.json");
                let [stated, proven] = ["digits", "certified"].map(|key| report[key].as_f64());
                let (Some(stated), Some(proven)) = (stated, proven) else { panic!("{n} rows, {line}: {report}") };
                assert!(stated >= proven, "{n} rows, {line}: {report}");
                if at == 0 {
                    let truth = digits_beside(&sandbox, "X.mtx", &exact);
                    // The decimals of the result are rounded as well.
                    assert!(proven <= truth + 0.01, "{n} rows, {line}: {proven} proven, {truth} right");
                }
            }
        }
    }
}

/// Where the limit has no room for decimals of more bits, the answer is that of the ones that were read, and proven.
#[test]
fn decimals_stay_as_they_were_read_where_a_limit_has_no_room_for_more_bits() {
    let sandbox = hilbert_in_fractions(40);
    let line = "solve H.csv ones.csv -o X.mtx -p 320 --threads 1 --certified --report r.json";
    let run = |choices: String| {
        sandbox.run(&format!("{line} {choices}"));
        (sandbox.bytes("X.mtx"), sandbox.json("r.json")["certified"].as_f64().unwrap())
    };
    // What a second reading gains is little, so that it is told from the first one by the least bits of a proof.
    let (more, first) = (run(String::new()), run("--input-precision 384".into()));
    assert!(more.1 > first.1, "{} proven by two readings, {} by one", more.1, first.1);
    let refusal = sandbox.fail(&format!("{line} --memory 1M"), 4);
    let least: u64 = between(&refusal, "at least ", " bytes)").split('(').next_back().unwrap().parse().unwrap();
    sandbox.fail(&format!("{line} --memory {}", least - 1), 4);
    assert!(run(format!("--memory {least}")) == first);
    assert!(run(format!("--memory {}", least + (1 << 20))) == more);
}

/// A factor of few bits exists by luck, and its solution looks right to it.
#[test]
fn a_precision_that_is_found_is_enough_for_a_matrix_that_is_nearly_singular() {
    let sandbox = Sandbox::new();
    let (g, solution) = ([[5i64, 4, 2], [6, 1, 1]], [-9, 8, -9]);
    let entry = |row: usize, col: usize| {
        let sum: i64 = g.iter().map(|g| g[row] * g[col]).sum();
        (rug::Integer::from(sum) << 200u32) + i32::from(row == col)
    };
    let line = |row: usize| (0..3).map(|col| entry(row, col).to_string()).collect::<Vec<_>>().join(",") + "\n";
    sandbox.write("A.csv", (0..3).map(line).collect::<String>());
    let right = |row: usize| (0..3).map(|col| entry(row, col) * solution[col]).sum::<rug::Integer>();
    sandbox.write("B.csv", (0..3).map(|row| format!("{}\n", right(row))).collect::<String>());
    sandbox.run("solve A.csv B.csv -o X.mtx --precision auto --digits 10 --report r.json");
    let exact = solution.map(rug::Rational::from);
    assert!(digits_beside(&sandbox, "X.mtx", &exact) >= 10.0, "{}", sandbox.text("X.mtx"));
    assert!(sandbox.json("r.json")["precision_bits"].as_u64().unwrap() > 200);
}

/// The logarithm of a determinant of 1 is 0: of a number near it the error is told, not digits.
#[test]
fn the_logarithm_of_a_determinant_of_one_has_an_error() {
    let sandbox = Sandbox::new();
    sandbox.write("A.csv", "2,3,1\n3,5,2\n1,2,2\n");
    let said = sandbox.run("cholesky A.csv -o L.mtx -p 100 --log-det");
    assert!(said.contains("log det A = ") && said.contains("error at most about"), "{said}");
    assert!(!said.contains("no digit is known"), "{said}");
    let said = sandbox.run("cholesky A.csv -o L.mtx --precision auto --digits 40");
    assert!(said.contains("error at most about"), "{said}");
    // Proven to as many decimal places: the logarithm is 0.
    let said = sandbox.run("cholesky A.csv -o L.mtx --precision auto --digits 40 --certified --report r.json");
    let number = |text: &str| text.parse::<f64>().unwrap();
    let value = number(between(&said, "log det A = ", ", error at most"));
    let error = number(between(&said, "error at most ", " (proven): none of its digits"));
    assert!(value.abs() <= error && error <= 1e-40, "{said}");
    assert_eq!(number(sandbox.json("r.json")["log_det_certified_error"].as_str().unwrap()), error);
}

/// A singular matrix that is positive semidefinite has factors at some precisions, all of which rounding makes: none is
/// offered as a remedy, and those that were asked for come with a warning.
#[test]
fn singular_matrices_are_told_from_ill_conditioned_ones() {
    let sandbox = Sandbox::new();
    sandbox.write("thirds.csv", "1/3,1/3\n1/3,1/3\n");
    sandbox.write("rank2.csv", "21,15,32\n15,30,25\n32,25,49\n");
    sandbox.write("regular.csv", "21,15,32\n15,30,25\n32,25,50\n");
    sandbox.write("tenths.csv", "0.1,0.3\n0.3,0.9\n");
    let (mut refused, mut warned) = (0, 0);
    for (name, bits) in
        ["thirds", "rank2", "tenths"].into_iter().flat_map(|name| (20..180).step_by(8).map(move |bits| (name, bits)))
    {
        let output = sandbox.output(&format!("cholesky {name}.csv -o L.mtx -p {bits}"));
        assert!(!output.stderr.contains("give a factor"), "{name}, {bits} bits: {output:?}");
        assert!(!output.stderr.contains("as read"), "{name}, {bits} bits: {output:?}");
        match output.code {
            0 => {
                let warning =
                    "is singular, as an exact solution of A x = 0 proves: its factor exists only because of rounding";
                assert!(output.stderr.contains(warning), "{name}, {bits} bits: {output:?}");
                warned += 1;
            }
            code => {
                let is_said = output.stderr.contains("is singular, as an exact solution of A x = 0 proves");
                // Or by a vector with v^T A v <= 0, which is a proof as well.
                let is_never = output.stderr.contains("more bits will not help");
                assert!(code == 3 && (is_said || is_never), "{name}, {bits} bits: {output:?}");
                refused += usize::from(is_said);
            }
        }
    }
    assert!(refused > 3 && warned > 3, "{refused} refused, {warned} warned");
    for name in ["thirds", "rank2", "tenths"] {
        let output = sandbox.output(&format!("cholesky {name}.csv -o L.mtx --precision auto --digits 20"));
        let is_said = output.stderr.contains("the matrix is singular, as an exact solution of A x = 0 proves: ");
        assert!(output.code != 0 && is_said, "{name}: {output:?}");
    }
    // Two triangles: the one that is named counts.
    sandbox.write("two.csv", "1/3,1/3\n1/7,1/3\n");
    let code = |triangle: &str| {
        let output = sandbox.output(&format!("cholesky two.csv -o L.mtx -p 150 --{triangle} --ignore-other-triangle"));
        (output.code, output.stderr.contains("singular"))
    };
    assert_eq!((code("lower"), code("upper").1), ((0, false), true));
    // Nothing is known of numbers that are kept as read alone.
    sandbox.write("far.csv", "1e-20001,1e-20001\n1e-20001,1e-20001\n");
    let output = sandbox.output("cholesky far.csv -o L.mtx -p 100");
    assert!(output.stderr.contains("the matrix as read") && output.stderr.contains("is singular"), "{output:?}");
    for bits in [40, 200] {
        let output = sandbox.output(&format!("cholesky regular.csv -o L.mtx -p {bits}"));
        assert!(output.code == 0 && !output.stderr.contains("singular"), "{output:?}");
    }
    // Singular as read at few bits alone: the search goes on, and finds the factor.
    sandbox.write("near.csv", "1,1\n1,1.0000000000000000000000000000000000000000000000000001\n");
    let error = sandbox.fail("cholesky near.csv -o L.mtx -p 60", 3);
    let enough =
        between(&error, "rounding can explain the pivot: ", " bits of precision give a factor; fewer may suffice");
    let output = sandbox.output(&format!("cholesky near.csv -o L.mtx -p {enough}"));
    assert!(output.code == 0 && !output.stderr.contains("singular"), "{output:?}");
}

/// What a singular matrix is said to be, once: with exit code 3 where digits are required, and with a warning where a
/// precision is given at which rounding makes a factor.
#[test]
fn a_singular_matrix_has_one_clear_sentence() {
    let sandbox = Sandbox::new();
    // Rank 3 with small integers: every factor of it is made by rounding.
    let vectors = [[-5i64, 9, 7, -1], [-6, 7, -9, 3], [4, 6, -9, 2]];
    let entry = |i: usize, j: usize| vectors.iter().map(|v| v[i] * v[j]).sum::<i64>().to_string();
    let row = |i: usize| (0..4).map(|j| entry(i, j)).collect::<Vec<_>>().join(",") + "\n";
    sandbox.write("A.csv", (0..4).map(row).collect::<String>());
    sandbox.write("b.csv", "1\n1\n1\n1\n");
    let proof = "the matrix is singular, as an exact solution of A x = 0 proves";
    for (line, answer) in [
        ("solve A.csv b.csv -o X.mtx", "A X = B has no solution, or more than one"),
        ("inverse A.csv -o X.mtx", "it has no inverse"),
        ("cholesky A.csv -o X.mtx --log-det", "its determinant is 0"),
    ] {
        for digits in ["--digits 30", "--precision auto", "--digits 5 --certified"] {
            let error = sandbox.fail(&format!("{line} {digits}"), 3);
            let pivot = error.contains("not positive definite: index ");
            assert!(error.contains(proof) && (pivot || error.contains(answer)), "{line} {digits}: {error}");
            assert!(!error.contains("verification failed"), "{error}");
        }
        let mut warned = 0;
        for bits in (40..400).step_by(24) {
            let output = sandbox.output(&format!("{line} -p {bits} --certified --report r.json"));
            assert_eq!(output.stderr.lines().count(), 1, "{line}, {bits} bits: {output:?}");
            assert!(output.stderr.contains(proof), "{line}, {bits} bits: {output:?}");
            if output.code == 0 {
                let report = sandbox.json("r.json");
                assert!(output.stderr.contains(&format!("because of rounding; {answer}")), "{output:?}");
                let stated = ["digits", "certified", "log_det_digits", "log_det_certified"];
                assert!(stated.iter().all(|key| report[key].as_f64().is_none_or(|digits| digits < 1.0)), "{report}");
                assert_eq!(report["singular"], true, "{report}");
                warned += 1;
            }
        }
        assert!(warned > 0, "{line}: no factor at any precision");
    }
    sandbox.write("regular.csv", "2,1\n1,2\n");
    sandbox.run("cholesky regular.csv -o L.mtx -p 100 --report r.json");
    assert_eq!(sandbox.json("r.json")["singular"], false);
}

/// More rows than are examined exactly: what is known is said in one line, and nothing else.
#[test]
fn a_large_singular_matrix_is_refused_in_one_line() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 20 --cols 310 --precision 30 -o P.bin");
    sandbox.run("syrk P.bin -o A.bin --precision 200");
    sandbox.run("gen random --rows 310 --cols 1 --precision 30 -o B.bin");
    let error = sandbox.fail("solve A.bin B.bin -o X.bin --digits 20", 3);
    assert!(error.contains("gives a correct digit: the matrix is singular, or too ill-conditioned for "), "{error}");
    let error = sandbox.fail("solve A.bin B.bin -o X.bin --precision 100", 3);
    assert!(error.contains("nor at any other precision tried") && !error.contains("might help"), "{error}");
}

/// What is said of a file is said once, however often it is read.
#[test]
fn a_file_that_is_read_again_is_remarked_on_once() {
    let sandbox = Sandbox::new();
    sandbox.write("A.csv", "x,y\n1/3,1/7\n1/7,1/3\n");
    for options in ["-p 100", "--precision auto --digits 50"] {
        let output = sandbox.output(&format!("cholesky A.csv -o L.csv {options}"));
        assert_eq!((output.code, output.stderr.matches("headings").count()), (0, 1), "{output:?}");
    }
}

#[test]
fn a_sweep_draws_time_and_digits_against_bits_and_rows() {
    let sandbox = Sandbox::new();
    sandbox.run("gen hilbert --rows 16 --cols 16 --precision 320 -o A.mtx");
    sandbox.run("gen random --rows 16 --cols 2 --precision 320 -o B.mtx");
    let text = sandbox.run("solve A.mtx B.mtx --sweep s.svg --report r.json");
    let picture = sandbox.text("s.svg");
    for words in ["correct digits against precision", "seconds against size", "bits", "digits"] {
        assert!(picture.contains(words), "{words}");
    }
    let report = sandbox.json("r.json");
    let numbers = |list: &str, key: &str| -> Vec<f64> {
        report[list].as_array().unwrap().iter().map(|point| point[key].as_f64().unwrap_or(-1.0)).collect()
    };
    assert_eq!(numbers("by_bits", "precision_bits"), [40.0, 80.0, 120.0, 160.0, 200.0, 240.0, 280.0, 320.0]);
    assert_eq!(numbers("by_rows", "rows"), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0]);
    // More bits give more digits; more rows of this matrix leave fewer of them.
    let [by_bits, by_rows] = ["by_bits", "by_rows"].map(|list| numbers(list, "digits"));
    assert!(by_bits.is_sorted() && by_bits[7] > by_bits[1] + 50.0, "{by_bits:?}");
    assert!(by_rows[0] > by_rows[7] + 10.0 && (by_rows[7] - by_bits[7]).abs() < 1e-9, "{by_rows:?}");
    assert!(text.lines().count() == 18 && text.lines().all(|line| line.len() <= 80), "{text}");
    // A matrix without a factor at few bits is a point without a time and without digits.
    sandbox.write("C.mtx", format!("%%MatrixMarket matrix array real symmetric\n2 2\n1\n1\n1.{}1\n", "0".repeat(49)));
    sandbox.write("D.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n2\n");
    let sweep = "solve C.mtx D.mtx -p 200 --input-precision 300 --sweep s.svg --report r.json";
    for options in ["", "--certified"] {
        let text = sandbox.run(&format!("{sweep} {options}"));
        assert!(text.lines().nth(1).unwrap().ends_with("no factor"), "{text}");
        let points = sandbox.json("r.json")["by_bits"].as_array().unwrap().clone();
        assert!(points[0]["digits"].is_null() && points[0]["seconds"].is_null(), "{points:?}");
        assert!(points[7]["digits"].as_f64().unwrap() > 30.0, "{points:?}");
    }
    for (line, code, needle) in [
        ("solve A.mtx B.mtx --sweep t.svg -o X.mtx", 2, "cannot be used with"),
        ("solve A.mtx B.mtx --sweep t.svg --precision auto", 2, "not --precision auto"),
        ("solve A.mtx - --sweep t.svg", 2, "a stream can be read only once"),
        ("solve A.mtx B.mtx --sweep none/t.svg", 3, "none/t.svg"),
        ("solve A.mtx B.mtx --sweep B.mtx", 2, "would replace the input B.mtx"),
    ] {
        let error = sandbox.fail(line, code);
        assert!(error.contains(needle), "{line}: {error}");
    }
}
