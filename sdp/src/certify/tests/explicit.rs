//! Programs whose matrices are known entry by entry, and feasible points of theirs that are worked out by elimination
//! in rational numbers: an independent test of the statements of a proof, from the definitions.

use crate::proof::{Fixed, Proof, Witness, packed, power_of_two};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rug::{Float, Integer, Rational};
use std::fmt::Write;
use std::path::Path;

fn number(text: &str) -> Rational {
    let negative = text.starts_with('-');
    let (whole, fraction) = text.trim_start_matches('-').split_once('.').unwrap_or((text.trim_start_matches('-'), ""));
    let over: Integer = format!("{whole}{fraction}").parse().unwrap();
    let value = Rational::from((over, format!("1{}", "0".repeat(fraction.len())).parse::<Integer>().unwrap()));
    if negative { -value } else { value }
}

/// Numbers at the three points 1/4, 1, 4 of a directory in SDPB's form: bases, c and B by row.
pub struct Polynomial {
    dim: usize,
    costs: Vec<String>,
    free: Vec<String>,
}

const EVEN: [[&str; 3]; 2] = [["1", "1", "1"], ["0.25", "1", "4"]];
const ODD: [[&str; 3]; 1] = [["0.5", "1", "2"]];

impl Polynomial {
    /// `x^2 - 4 x + 7 - y >= 0`, so `y <= 3`; or `[[x^2 + 2 - y, x], [x, x^2 + 1]] >= 0`, so `y <= 2`; for `x >= 0`.
    pub fn new(dim: usize) -> Polynomial {
        let values = |f: &dyn Fn(f64) -> f64| [0.25, 1.0, 4.0].iter().map(|&x| f(x).to_string()).collect::<Vec<_>>();
        let (costs, ones) = match dim {
            1 => (values(&|x| x * x - 4.0 * x + 7.0), 3),
            _ => ([values(&|x| x * x + 2.0), values(&|x| x), values(&|x| x * x + 1.0)].concat(), 3),
        };
        let free = (0..costs.len()).map(|at| u32::from(at < ones).to_string()).collect();
        Polynomial { dim, costs, free }
    }

    pub fn write(&self, folder: &Path) {
        let quoted = |list: &[String]| list.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(",");
        let rows = |rows: &[[&str; 3]]| {
            rows.iter().map(|row| format!("[{}]", quoted(&row.map(String::from)))).collect::<Vec<_>>().join(",")
        };
        let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
        write("control.json", r#"{"num_blocks": 1, "command": ""}"#.into());
        write("objectives.json", r#"{"constant": "0", "b": ["1"]}"#.into());
        write("block_info_0.json", format!(r#"{{"dim": {}, "num_points": 3}}"#, self.dim));
        let free = self.free.iter().map(|n| format!("[\"{n}\"]")).collect::<Vec<_>>().join(",");
        let data = format!(
            "{{\"bilinear_bases_even\": [{}], \"bilinear_bases_odd\": [{}], \"c\": [{}], \"B\": [{free}]}}",
            rows(&EVEN),
            rows(&ODD),
            quoted(&self.costs)
        );
        write("block_data_0.json", data);
    }

    /// The matrices by their definition.
    pub fn explicit(&self) -> Explicit {
        let dim = self.dim;
        let order = 3 * dim;
        let mut matrices = Vec::new();
        for s in 0..dim {
            for r in 0..=s {
                for k in 0..3 {
                    let mut matrix = zeros(order);
                    for (first, basis) in [(0, &EVEN[..]), (2 * dim, &ODD[..])] {
                        let rows = basis.len();
                        for (i, left) in basis.iter().enumerate() {
                            for (j, right) in basis.iter().enumerate() {
                                let half = number(left[k]) * number(right[k]) / 2u32;
                                matrix[first + r * rows + i][first + s * rows + j] += &half;
                                matrix[first + s * rows + i][first + r * rows + j] += &half;
                            }
                        }
                    }
                    matrices.push(matrix);
                }
            }
        }
        let numbers = |list: &[String]| list.iter().map(|text| number(text)).collect::<Vec<_>>();
        Explicit {
            matrices,
            constant: zeros(order),
            costs: numbers(&self.costs),
            free: Some(numbers(&self.free)),
            blocks: vec![(2 * dim, false), (dim, false)],
        }
    }
}

/// A square matrix of rational numbers.
type Dense = Vec<Vec<Rational>>;

fn zeros(order: usize) -> Dense {
    vec![vec![Rational::new(); order]; order]
}

fn inner(a: &Dense, b: &Dense) -> Rational {
    let rows = a.iter().flatten().zip(b.iter().flatten());
    rows.fold(Rational::new(), |sum, (a, b)| sum + Rational::from(a * b))
}

/// `row -= factor other`.
fn subtract(row: &mut [Rational], factor: &Rational, other: &[Rational]) {
    row.iter_mut().zip(other).for_each(|(entry, other)| *entry -= Rational::from(factor * other));
}

/// The solution of a system, by elimination.
fn solved(mut a: Dense, mut b: Vec<Rational>) -> Vec<Rational> {
    let order = b.len();
    for col in 0..order {
        let pivot = (col..order).find(|&row| a[row][col] != 0).unwrap();
        a.swap(col, pivot);
        b.swap(col, pivot);
        for row in (0..order).filter(|&row| row != col) {
            let factor = Rational::from(&a[row][col] / &a[col][col]);
            let other = a[col].clone();
            subtract(&mut a[row], &factor, &other);
            let product = Rational::from(&factor * &b[col]);
            b[row] -= product;
        }
    }
    (0..order).map(|at| Rational::from(&b[at] / &a[at][at])).collect()
}

/// Whether all pivots of a symmetric matrix are positive.
fn is_positive(a: &Dense) -> bool {
    let mut a = a.clone();
    for at in 0..a.len() {
        if a[at][at] <= 0 {
            return false;
        }
        for row in at + 1..a.len() {
            let factor = Rational::from(&a[row][at] / &a[at][at]);
            let other = a[at].clone();
            subtract(&mut a[row], &factor, &other);
        }
    }
    true
}

fn value(numbers: &Fixed, at: usize) -> Rational {
    Rational::from(&numbers.values[at]) * power_of_two(-i64::from(numbers.bits))
}

/// `L L^T + tau I` from its definition, or the diagonal.
fn block_of(witness: &Witness, order: usize, diagonal: bool) -> Dense {
    let mut block = zeros(order);
    for (row, line) in block.iter_mut().enumerate() {
        if diagonal {
            line[row] = value(&witness.factor, row);
            continue;
        }
        for (col, entry) in line.iter_mut().enumerate() {
            for at in 0..=row.min(col) {
                *entry += value(&witness.factor, packed(row, at)) * value(&witness.factor, packed(col, at));
            }
        }
        line[row] += power_of_two(witness.exponent);
    }
    block
}

/// All matrices of a program as one block each, from their definitions.
pub struct Explicit {
    matrices: Vec<Dense>,
    constant: Dense,
    costs: Vec<Rational>,
    /// The column of B, where there is one; `b` is 1.
    free: Option<Vec<Rational>>,
    /// Orders of the blocks, and which are diagonal.
    blocks: Vec<(usize, bool)>,
}

impl Explicit {
    fn order(&self) -> usize {
        self.blocks.iter().map(|(order, _)| order).sum()
    }

    /// Works out the points near those of a proof, and checks by elimination that they are feasible and as good as the
    /// proof states.
    pub fn confirms(&self, proof: &Proof) {
        let (lower, upper) = (proof.lower.as_ref().unwrap(), proof.upper.as_ref().unwrap());
        let mut dual = zeros(self.order());
        let mut first = 0;
        for (witness, &(order, diagonal)) in lower.groups[0].blocks.iter().zip(&self.blocks) {
            let block = block_of(witness, order, diagonal);
            (0..order * order)
                .for_each(|at| dual[first + at / order][first + at % order] = block[at / order][at % order].clone());
            first += order;
        }
        let y = if self.free.is_some() { value(&lower.y, 0) } else { Rational::new() };
        let right = |p: usize| {
            self.free.as_ref().map_or(self.costs[p].clone(), |free| &self.costs[p] - Rational::from(&free[p] * &y))
        };
        let rest = (0..self.costs.len()).map(|p| right(p) - inner(&self.matrices[p], &dual)).collect::<Vec<_>>();
        let gram = self.matrices.iter().map(|a| self.matrices.iter().map(|b| inner(a, b)).collect()).collect();
        for (weight, matrix) in solved(gram, rest).iter().zip(&self.matrices) {
            for (to, by) in dual.iter_mut().flatten().zip(matrix.iter().flatten()) {
                *to += Rational::from(weight * by);
            }
        }
        assert!((0..self.costs.len()).all(|p| inner(&self.matrices[p], &dual) == right(p)));
        assert!(is_positive(&dual));
        let objective = inner(&self.constant, &dual) + &y;
        assert!(objective >= lower.claim, "{objective} is below {}", lower.claim);
        let mut x = (0..self.costs.len()).map(|p| value(&upper.x[0], p)).collect::<Vec<_>>();
        if let Some(free) = &self.free {
            let dot = |a: &[Rational], b: &[Rational]| {
                a.iter().zip(b).fold(Rational::new(), |s, (a, b)| s + Rational::from(a * b))
            };
            let step = (Rational::from(1) - dot(free, &x)) / dot(free, free);
            x.iter_mut().zip(free).for_each(|(x, free)| *x += Rational::from(&step * free));
            assert_eq!(dot(free, &x), 1);
        }
        let mut primal = zeros(self.order());
        for (at, entry) in primal.iter_mut().flatten().enumerate() {
            let (row, col) = (at / self.order(), at % self.order());
            *entry -= &self.constant[row][col];
            self.matrices.iter().zip(&x).for_each(|(matrix, x)| *entry += Rational::from(x * &matrix[row][col]));
        }
        assert!(is_positive(&primal));
        let objective = self.costs.iter().zip(&x).fold(Rational::new(), |sum, (c, x)| sum + Rational::from(c * x));
        assert!(objective <= upper.claim);
        assert!(lower.claim <= upper.claim);
    }
}

/// A program with an interior on both sides: `c = A^*(I)`, and `C = A(x) - S` with `S` definite. All numbers are
/// decimals.
pub fn random_program(random: &mut ChaCha8Rng) -> (String, Explicit) {
    let (blocks, count) = ([(3usize, false), (2, true), (1, true)], 4);
    let order = 6;
    let mut places = Vec::new();
    for (number, first, (size, diagonal)) in [(1, 0, blocks[0]), (2, 3, blocks[1]), (3, 5, blocks[2])] {
        for row in 0..size {
            let cols = if diagonal { row..row + 1 } else { 0..row + 1 };
            places.extend(cols.map(|col| (number, first, row, col)));
        }
    }
    let mut explicit = Explicit {
        matrices: vec![zeros(order); count],
        constant: zeros(order),
        costs: vec![Rational::new(); count],
        free: None,
        blocks: blocks.to_vec(),
    };
    let mut text = String::new();
    let tenths = |value: &Rational| Float::with_val(80, value).to_f64();
    let weights = (0..count).map(|_| Rational::from((random.random_range(-30i32..30), 10))).collect::<Vec<_>>();
    for &(number, first, row, col) in &places {
        let (i, j) = (first + row, first + col);
        let mut constant = Rational::from(if i == j { -7 } else { 1 });
        for (p, weight) in weights.iter().enumerate() {
            let entry = Rational::from((random.random_range(-20i32..20), 10));
            writeln!(text, "{} {number} {} {} {}", p + 1, col + 1, row + 1, tenths(&entry)).unwrap();
            constant += Rational::from(weight * &entry);
            if i == j {
                explicit.costs[p] += &entry;
            }
            explicit.matrices[p][j][i] = entry.clone();
            explicit.matrices[p][i][j] = entry;
        }
        writeln!(text, "0 {number} {} {} {:.2}", row + 1, col + 1, tenths(&constant)).unwrap();
        explicit.constant[i][j] = constant.clone();
        explicit.constant[j][i] = constant;
    }
    let costs = explicit.costs.iter().map(|cost| format!("{:.1}", tenths(cost))).collect::<Vec<_>>().join(" ");
    (format!("{count}\n3\n3 -2 1\n{costs}\n{text}"), explicit)
}
