//! Outputs without what differs from run to run and from machine to machine.

/// Whether `found` is what the page expects. A line `...` of the page stands for any lines, `...` inside a line for any
/// text; times, rates, bytes, seeds and what a run says of kernel and threads count as equal.
pub fn matches(expected: &str, found: &str) -> bool {
    let wanted = expected.lines().map(masked).collect::<Vec<_>>();
    let lines = found.lines().map(masked).collect::<Vec<_>>();
    lines_match(&wanted, &lines)
}

fn lines_match(wanted: &[String], lines: &[String]) -> bool {
    match wanted {
        [] => lines.is_empty(),
        [any, rest @ ..] if any == "..." => (0..=lines.len()).any(|skip| lines_match(rest, &lines[skip..])),
        [first, rest @ ..] => {
            lines.first().is_some_and(|line| line_matches(first, line) && lines_match(rest, &lines[1..]))
        }
    }
}

fn line_matches(wanted: &str, line: &str) -> bool {
    let Some((start, rest)) = wanted.split_once("...") else { return wanted == line };
    let Some(line) = line.strip_prefix(start) else { return false };
    (0..=line.len()).filter(|&at| line.is_char_boundary(at)).any(|at| line_matches(rest, &line[at..]))
}

/// Units of what no two runs share.
const UNITS: [&str; 16] =
    ["bytes", "s", "ms", "us", "ns", "min", "h", "B", "KiB", "MiB", "GiB", "GB/s", "Gop/s", "GHz", "threads", "thread"];

/// Kernels: a parenthesis that begins with one tells how this machine ran.
const KERNELS: [&str; 7] = ["direct", "ifma52", "blas", "f64", "i16", "i8", "reference"];

/// The line with `#` in place of all that may differ, and single blanks.
fn masked(line: &str) -> String {
    let line = without_engine(line);
    let mut words = line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    for index in 0..words.len() {
        let next = words.get(index + 1).map(|word| bare(word).to_string()).unwrap_or_default();
        let is_share = words.get(index + 1).is_some_and(|word| word == "of" || word == "in");
        let follows_seed = index > 0 && bare(&words[index - 1]) == "seed";
        let number = bare(&words[index]).to_string();
        let is_number = number.parse::<f64>().is_ok();
        let is_share = is_share && number.starts_with("0.");
        if is_number && (UNITS.contains(&next.as_str()) || follows_seed || is_share) {
            words[index] = words[index].replace(&number, "#");
        }
        // Units are chosen by size.
        if index > 0 && words[index - 1].ends_with('#') && UNITS.contains(&bare(&words[index])) {
            let unit = bare(&words[index]).to_string();
            words[index] = words[index].replace(&unit, "unit");
        }
    }
    words.join(" ")
}

/// A word without punctuation around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|letter| ['(', ')', ',', ';', ':'].contains(&letter)).trim_end_matches('.')
}

/// Leaves `(#)` of a parenthesis that names the kernel first.
fn without_engine(line: &str) -> String {
    for kernel in KERNELS {
        for after in [", ", ")"] {
            let open = format!("({kernel}{after}");
            if let Some((before, rest)) = line.split_once(&open) {
                let rest = if after == ")" { rest } else { rest.split_once(')').map_or("", |(_, rest)| rest) };
                return format!("{before}(#){rest}");
            }
        }
    }
    line.to_string()
}

#[test]
fn what_differs_from_run_to_run_is_masked_and_nothing_else() {
    let one =
        "Q.mtx: 100 x 100, 768 bits (ifma52, 31 primes, 2 threads, 12.31 MiB planned) in 21.5 ms (files 143 ms)\n";
    let two = "Q.mtx: 100 x 100, 768 bits (f64, 44 primes, 8 threads, 9 MiB planned) in 1.5 s (files 1 s)\n";
    assert!(matches(one, two));
    assert!(!matches(one, &two.replace("768", "769")));
    assert!(matches("largest error 0.426 of the bound; seed 12)\n", "largest error 0.9 of the bound; seed 5)\n"));
    assert!(!matches("error 0.426 at\n", "error 0.9 at\n"));
    assert!(matches("a\n...\nb\n", "a\n1\n2\nb\n") && !matches("a\n...\nb\n", "a\n1\n2\nc\n"));
    assert!(matches("x ... y\n", "x 1 2 y\n") && !matches("x ... y\n", "x 1 2 z\n"));
    assert!(!matches("a\n", "a\nb\n") && !matches("a\nb\n", "a\n"));
}
