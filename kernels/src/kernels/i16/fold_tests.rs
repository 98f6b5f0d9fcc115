//! Folds of the sums of products at their bound.

use super::tests::{check_sums, engines, panels, sums};
use super::*;
use crate::math::family_i16::i16_primes;
use crate::math::modulus::Modulus;

#[test]
fn the_largest_residues_everywhere_stay_exact() {
    // (p - 1) / 2 with all signs equal, opposite, or mixed, over many folds: a sum that leaves 32 bits would show. The
    // result of a fold has the sign of the sum for some primes and the other one for the rest, so the worst case has
    // sums of one sign, or of another from one fold to the next. The primes are those whose folds leave the largest and
    // the least results, of either sign, and one of each length.
    let spec = EngineSpec { operand_bits: 30, modulus_bits: i16_maximum_modulus_bits(), redundant: true };
    let primes = i16_primes();
    let fold = |at: &usize| Modulus::new(primes[*at]).balanced((1 << 16) % primes[*at]);
    let size = |at: &usize| fold(at).unsigned_abs();
    let (most, lowest) = ((0..464).max_by_key(fold).unwrap(), (0..464).min_by_key(fold).unwrap());
    let least = (0..464).min_by_key(size).unwrap();
    assert!(fold(&most) > 3000 && fold(&lowest) < -3000);
    let sign = |is_positive: bool| if is_positive { 1 } else { -1 };
    // Signs of the second operand, by row, column and the rows between two folds.
    let patterns: [fn(usize, usize, usize) -> bool; 5] = [
        |_, _, _| true,
        |_, col, _| col % 2 == 0,
        |row, col, _| (row + col) % 2 == 0,
        |row, _, _| row < 120,
        |row, _, between| (row / between).is_multiple_of(2),
    ];
    let engines = engines(spec).collect::<Vec<_>>();
    for prime in [0, most, lowest, least, 463, 464, 855] {
        let half = (primes[prime] / 2) as i64;
        let interval = engines[0].1.tables.factors[prime].field.interval;
        assert!(engines.iter().all(|(_, engine)| engine.tables.factors[prime].field.interval == interval));
        for rows in [2 * interval, 2 * interval + 2, 1030] {
            let x = panels(rows, 24, |_, col| half * sign(col % 3 > 0));
            for (index, pattern) in patterns.iter().enumerate() {
                let y = panels(rows, 24, |row, col| half * sign(pattern(row, col, 2 * interval)));
                let (grid, accumulate) = (BlockGrid::rectangle(24, 24), index % 2 == 0);
                let product = PlaneProduct { x: &x, y: &y, rows, grid, blocks: 0..grid.len(), accumulate };
                let sums = sums(&product);
                for (isa, engine) in &engines {
                    check_sums(engine, prime, &product, &sums, &format!("{isa:?}, prime {prime}, pattern {index}"));
                }
            }
        }
    }
}
