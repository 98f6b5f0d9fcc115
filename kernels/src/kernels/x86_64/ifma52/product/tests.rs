//! Classical products against sums in plain loops: around each length at which the loops divide, on parts of a plane.
//!
//! Operands and results end where a page does that must not be touched.

use super::*;
use crate::kernels::area::Area;
use crate::kernels::fenced::Fenced;
use crate::kernels::x86_64::ifma52::probe;
use crate::math::family::ifma52_primes;
use crate::testing::effort;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The expected contents of `c` after a product.
fn by_plain_loops(prime: u64, operands: &Ifma52Operands<'_>, target: &Target, c: &mut [u64], into: Store) {
    let Ifma52Operands { x, y, rows, .. } = *operands;
    for index in target.blocks.clone() {
        let col = target.grid.column_of(index);
        let row = target.grid.first_row(col) + index - target.grid.column_start(col);
        if !target.row_window.contains(&row) || !target.col_window.contains(&col) {
            continue;
        }
        let block = &mut c[(index - target.blocks.start) * BLOCK_WORDS..][..BLOCK_WORDS];
        let x = x.words.get((row - target.origin.0) * x.stride..).unwrap_or(&[]);
        let y = y.words.get((col - target.origin.1) * y.stride..).unwrap_or(&[]);
        for (at, word) in block.iter_mut().enumerate() {
            let mut sum = if into == Store::Add { u128::from(*word) } else { 0 };
            for k in 0..rows {
                sum += u128::from(x[k * BLOCK + at % BLOCK]) * u128::from(y[k * BLOCK + at / BLOCK]);
            }
            *word = (sum % u128::from(prime)) as u64;
        }
    }
}

/// Panels in which an operand of `rows` rows begins `skipped` rows on.
struct Shape {
    rows: usize,
    skipped: usize,
}

fn check(shape: &Shape, target: &Target, rng: &mut ChaCha8Rng) {
    let Shape { rows, skipped } = *shape;
    let primes = ifma52_primes();
    let prime = [primes[0], primes[primes.len() - 1]][rows % 2];
    let stride = (rows + skipped) * BLOCK;
    let largest = rng.random_range(0..3) == 0;
    let mut words = |count: usize| -> Vec<u64> {
        (0..count).map(|_| if largest { prime - 1 } else { rng.random_range(0..prime) }).collect()
    };
    let x = Fenced::new(&words((target.row_window.end - target.origin.0) * stride));
    let y = Fenced::new(&words((target.col_window.end - target.origin.1) * stride));
    let [x, y] = [&x, &y].map(|words| Ifma52Panels { words, stride }.from(0, skipped));
    let start = words(target.blocks.len() * BLOCK_WORDS);
    let next = rows.is_multiple_of(3).then(|| Next::following(x, &target.grid, rows));
    let operands = Ifma52Operands { x, y, rows, next };
    for into in [Store::Overwrite, Store::Add] {
        let (mut got, mut want) = (Fenced::new(&start), start.clone());
        by_plain_loops(prime, &operands, target, &mut want, into);
        // SAFETY: `probe` found the instructions.
        unsafe { multiply(&Fold::new(prime), &operands, target, &mut got, into) };
        let Target { grid, blocks, row_window, col_window, origin } = target;
        let place = format!("{grid:?}, blocks {blocks:?}, {row_window:?} by {col_window:?} from {origin:?}");
        assert!(got[..] == want[..], "{rows} rows after {skipped}: {place}");
    }
}

/// Targets of a grid: the whole, some of its blocks, and parts whose operands begin elsewhere.
fn targets(grid: BlockGrid) -> Vec<Target> {
    let (len, m, n) = (grid.len(), grid.rows, grid.cols);
    let blocks = [0..len, 0..len / 3, len / 3..len, len / 2..(len / 2 + 1).min(len), len..len];
    let mut targets = blocks.map(|blocks| Target::new(grid, blocks)).to_vec();
    // A corner, and below the diagonal the part on its left; each whole, then without its first row or column.
    let (row, col) = (m - m / 2, n / 3);
    let corner = Area::whole(grid).part(row..m, 0..col.min(row));
    let diagonal = Area::whole(grid).part(n / 2..m.min(n), n / 2..m.min(n));
    for area in [corner, diagonal] {
        let (m, n) = area.panels();
        targets.extend([area.target(0..m, 0..n), area.target(m.min(1)..m, 0..n), area.target(0..m, n.min(1)..n)]);
    }
    targets
}

#[test]
fn products_are_sums_in_plain_loops() {
    if let Err(reason) = probe() {
        return println!("skipped: {reason}");
    }
    let mut rng = ChaCha8Rng::seed_from_u64(52);
    // One, two and three passes over the rows, whole turns of the innermost loop and the remaining rows.
    for rows in [0, 1, 3, 4, 7, KC - 1, KC, KC + 1, 2 * KC, 2 * KC + 1, 2 * KC + 6] {
        for grid in [BlockGrid::rectangle(8, 8), BlockGrid::rectangle(33, 25), BlockGrid::triangle(41)] {
            for target in targets(grid) {
                let skipped = (target.blocks.len() + rows) % 3;
                check(&Shape { rows, skipped }, &target, &mut rng);
            }
        }
    }
}

#[test]
fn groups_of_panels_meet_without_gaps() {
    if let Err(reason) = probe() {
        return println!("skipped: {reason}");
    }
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    // One, two and three groups, with one pass and with two.
    for panels in [MC_PANELS - 1, MC_PANELS, MC_PANELS + 1, 2 * MC_PANELS, 2 * MC_PANELS + 1] {
        for rows in [5, KC + 3] {
            for grid in [BlockGrid::rectangle(8 * panels, 20), BlockGrid::triangle(8 * panels)] {
                // Parts of a triangle with two passes, and with little effort of a rectangle, are as with one.
                let is_whole = rows > 5 && (grid.triangle || effort() == 1);
                let all = if is_whole { vec![Target::whole(grid)] } else { targets(grid) };
                for target in all {
                    check(&Shape { rows, skipped: 1 }, &target, &mut rng);
                }
            }
        }
    }
}

#[test]
fn passes_are_even_and_none_is_longer_than_it_may_be() {
    for rows in 0..5 * KC {
        let depth = depth_of_passes(rows, KC);
        assert!(depth <= KC && depth.is_multiple_of(4) && (rows == 0 || depth > 0), "{rows} rows");
        assert_eq!(rows.div_ceil(depth.max(1)), rows.div_ceil(KC), "{rows} rows");
    }
    const { assert!(KC.is_multiple_of(4) && KC <= crate::math::bound::IFMA52_CHUNK_ROWS) };
}
