//! Semidefinite programs in the sparse SDPA format, and Schur complements as an interior-point method meets them.

use super::Rng;
use rug::Float;
use std::path::PathBuf;
use sunzi::Matrix;

/// Nonzero entries `(row, col, value)` of one block of one constraint, both triangles.
type Block = Vec<(usize, usize, Float)>;

/// The constraint matrices of a program.
pub struct Program {
    /// Rows of each block.
    pub blocks: Vec<usize>,
    /// Entries by constraint, then block.
    pub constraints: Vec<Vec<Block>>,
}

/// Reads the file `name`; `None` where the data does not lie beside the repository.
pub fn read(name: &str, precision_bits: u32) -> Option<Program> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data/sdplib").join(name);
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: {} is not there", path.display());
        return None;
    };
    let separator = |c: char| c.is_whitespace() || "(){},".contains(c);
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with(['"', '*']));
    let mut integers = || -> Vec<i64> {
        let words = lines.next().unwrap().split(separator).filter(|word| !word.is_empty());
        words.map_while(|word| word.parse().ok()).collect()
    };
    let (count, block_count) = (integers()[0] as usize, integers()[0] as usize);
    let sizes = integers();
    assert_eq!(sizes.len(), block_count, "{name}");
    let blocks: Vec<usize> = sizes.iter().map(|size| size.unsigned_abs() as usize).collect();
    let mut words = lines.flat_map(|line| line.split(separator)).filter(|word| !word.is_empty()).skip(count);
    let mut constraints = vec![vec![Block::new(); block_count]; count];
    while let Some(constraint) = words.next() {
        let constraint: usize = constraint.parse().unwrap();
        let [block, row, col] = [(); 3].map(|()| words.next().unwrap().parse::<usize>().unwrap() - 1);
        let value = Float::with_val(precision_bits, Float::parse(words.next().unwrap()).unwrap());
        if constraint == 0 {
            continue; // the cost matrix
        }
        let entries = &mut constraints[constraint - 1][block];
        if row != col {
            entries.push((col, row, value.clone()));
        }
        entries.push((row, col, value));
    }
    Some(Program { blocks, constraints })
}

/// A random positive definite block, graded by `2^-step` from one row to the next.
fn definite_block(n: usize, step: i32, precision_bits: u32, rng: &mut Rng) -> Vec<Float> {
    let mut factor = vec![Float::new(precision_bits); n * n];
    for j in 0..n {
        for i in j..n {
            let size = if i == j { 1 << 20 } else { rng.within(1 << 18) };
            factor[i + n * j] = Float::with_val(precision_bits, size) << (-20 - step * j as i32);
        }
    }
    let mut block = vec![Float::new(precision_bits); n * n];
    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
        for k in 0..=i.min(j) {
            block[i + n * j] += Float::with_val(precision_bits, &factor[i + n * k] * &factor[j + n * k]);
        }
    }
    block
}

/// `X A Y` for a sparse `A`, of which only the columns that are not 0 are worked through.
fn multiply_around(x: &[Float], a: &Block, y: &[Float], n: usize) -> Vec<Float> {
    let bits = x.first().map_or(64, Float::prec);
    let mut left = std::collections::BTreeMap::<usize, Vec<Float>>::new();
    for (row, col, value) in a {
        let column = left.entry(*col).or_insert_with(|| vec![Float::new(bits); n]);
        for (sum, x) in column.iter_mut().zip(&x[n * row..]) {
            *sum += Float::with_val(bits, x * value);
        }
    }
    let mut product = vec![Float::new(bits); n * n];
    for (k, column) in &left {
        for (at, sum) in product.iter_mut().enumerate() {
            *sum += Float::with_val(bits, &column[at % n] * &y[k + n * (at / n)]);
        }
    }
    product
}

impl Program {
    /// `S_ij = sum over blocks of tr(A_i X A_j Y)` with random positive definite X and Y, graded against each other as
    /// the iterates are near a solution; computed and stored at `precision_bits` bits.
    pub fn schur_complement(&self, step: i32, precision_bits: u32, seed: u64) -> Matrix {
        let mut rng = Rng::new(seed);
        let m = self.constraints.len();
        let mut sums = vec![Float::new(precision_bits); m * m];
        for (block, &n) in self.blocks.iter().enumerate() {
            let x = definite_block(n, step, precision_bits, &mut rng);
            let y = definite_block(n, -step, precision_bits, &mut rng);
            for j in 0..m {
                let image = multiply_around(&x, &self.constraints[j][block], &y, n);
                for i in j..m {
                    for (p, q, a) in &self.constraints[i][block] {
                        sums[i + m * j] += Float::with_val(precision_bits, a * &image[q + n * p]);
                    }
                }
            }
        }
        for (i, j) in (0..m).flat_map(|i| (0..i).map(move |j| (i, j))) {
            sums[j + m * i] = sums[i + m * j].clone();
        }
        Matrix::from_floats(m, m, precision_bits, &sums).unwrap()
    }
}
