//! What the program says of the digits of its answers, against exact solutions of the system in the files.

use crate::oracle::rational::{self, FAMILIES, Family, Rows};
use crate::oracle::tally::Tally;
use crate::oracle::{Rng, claims};
use crate::sandbox::Sandbox;
use rug::{Float, Integer, Rational};
use sunzi::Matrix;
use sunzi::io::{self, ReadOptions};

/// How numbers stand in a file.
#[derive(Clone, Copy, Debug)]
enum Form {
    Fractions,
    /// Rounded to so many digits behind the point.
    Decimals(u32),
    /// Rounded to doubles, as hexadecimal floats.
    Doubles,
}

/// What a file holds of a number, and its text.
fn written(form: Form, number: &Rational) -> (Rational, String) {
    match form {
        Form::Fractions => (number.clone(), format!("{}/{}", number.numer(), number.denom())),
        Form::Decimals(digits) => {
            let scale = Integer::from(Integer::u_pow_u(10, digits));
            let scaled = Rational::from(number * &scale).round().into_numer_denom().0;
            let text = format!("{scaled}e-{digits}");
            (Rational::from((scaled, scale)), text)
        }
        Form::Doubles => {
            let (integer, exponent) = Float::with_val(53, number).to_integer_exp().unwrap();
            let text = format!("{}0x{:x}p{exponent}", if integer < 0 { "-" } else { "" }, integer.clone().abs());
            (Rational::from(integer) << exponent, text)
        }
    }
}

/// Writes a table; what it holds.
fn write(sandbox: &Sandbox, name: &str, (form, rows): (Form, &Rows)) -> Rows {
    let pairs = rows.iter().map(|row| row.iter().map(|number| written(form, number)).unzip());
    let (held, texts): (Rows, Vec<Vec<String>>) = pairs.unzip();
    sandbox.write(name, texts.iter().map(|row| row.join(",") + "\n").collect::<String>());
    held
}

/// The numbers that the program wrote.
fn result(sandbox: &Sandbox, name: &str) -> Matrix {
    io::read(sandbox.path(name), &ReadOptions::new(None)).unwrap().matrix
}

/// A system in files, and what they hold.
struct Case {
    label: String,
    a: Rows,
    b: Rows,
}

fn case(sandbox: &Sandbox, family: Family, rng: &mut Rng) -> Case {
    let n = 2 + rng.below(8);
    let form = rng.pick(&[Form::Fractions, Form::Fractions, Form::Decimals(40), Form::Decimals(150), Form::Doubles]);
    let a = write(sandbox, "A.csv", (form, &rational::definite(family, n, rng)));
    let b = write(sandbox, "B.csv", (form, &rational::right_sides(n, rng)));
    let cols = b[0].len();
    Case { label: format!("{family:?}, {form:?}, {n} rows, {cols} columns"), a, b }
}

#[test]
fn digits_that_are_printed_are_those_of_the_system_in_the_files() {
    let mut tallies: [Tally; 2] = Default::default();
    for (seed, family) in claims(12).flat_map(|seed| FAMILIES.map(|family| (seed, family))) {
        let (sandbox, mut rng) = (Sandbox::new(), Rng::new(71_000 + 6 * seed + family as u64));
        let Case { label, a, b } = case(&sandbox, family, &mut rng);
        let bits = 30 + rng.below(420) as u32;
        let accuracy = rng.pick(&["norm", "entrywise"]);
        let reading = match rng.below(3) {
            0 => format!("--input-precision {}", bits + rng.pick(&[0, 20, 300])),
            _ => String::new(),
        };
        let is_solve = rng.below(3) > 0;
        let task = if is_solve { "solve A.csv B.csv" } else { "inverse A.csv" };
        let line = format!("{task} -o X.mtx -p {bits} {reading} --accuracy {accuracy} --certified --threads 1");
        let output = sandbox.output(&format!("{line} --report r.json"));
        match output.code {
            0 => {}
            3 => continue, // no factor
            _ => panic!("seed {seed}, {label}, {line}: {output:?}"),
        }
        let right = if is_solve { b } else { rational::identity(a.len()) };
        // Of a singular matrix that rounding gave a factor nothing is right.
        let judged = |exact| rational::digits_of(&result(&sandbox, "X.mtx"), &exact, is_solve);
        let truth = rational::solve(&a, &right).map_or(0.0, judged);
        let report = sandbox.json("r.json");
        let [stated, proven] = ["digits", "certified"].map(|key| report[key].as_f64().unwrap_or(0.0));
        tallies[usize::from(is_solve)].note((&format!("seed {seed}, {label}, {line}"), bits), [stated, proven, truth]);
    }
    println!("inverses: {:?}, solutions: {:?}", tallies[0], tallies[1]);
    tallies.iter().for_each(Tally::check);
}

#[test]
fn a_precision_that_is_chosen_gives_the_digits_asked_for() {
    let (mut solved, mut refused) = (0, 0);
    for (seed, family) in claims(7).flat_map(|seed| FAMILIES.map(|family| (seed, family))) {
        let (sandbox, mut rng) = (Sandbox::new(), Rng::new(83_000 + 6 * seed + family as u64));
        let Case { label, a, b } = case(&sandbox, family, &mut rng);
        let (digits, certified) = (1 + rng.below(80), rng.pick(&["", "--certified"]));
        let line = format!("solve A.csv B.csv -o X.mtx --precision auto --digits {digits} {certified} --threads 1");
        let output = sandbox.output(&line);
        let exact = rational::solve(&a, &b);
        let is_definite = exact.is_some() && (1..=a.len()).all(|k| leading_minor(&a, k) > 0);
        match output.code {
            0 => {
                let truth = rational::digits_of(&result(&sandbox, "X.mtx"), &exact.unwrap(), true);
                assert!(
                    is_definite && truth >= digits as f64,
                    "seed {seed}, {label}, {line}: {truth} right, {output:?}"
                );
                solved += 1;
            }
            // Rounding to decimals or doubles has made it indefinite or singular.
            _ => {
                assert!(!is_definite, "seed {seed}, {label}, {line}: {output:?}");
                refused += 1;
            }
        }
    }
    println!("{solved} solved, {refused} refused");
    assert!(solved > 3 * refused, "{solved} solved, {refused} refused");
}

fn leading_minor(a: &Rows, order: usize) -> Rational {
    rational::determinant(&a[..order].iter().map(|row| row[..order].to_vec()).collect())
}
