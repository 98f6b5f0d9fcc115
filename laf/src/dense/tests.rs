//! Each operation against loops over single entries.

use super::*;
use proptest::prelude::*;

fn random_numbers(seed: u64, rows: usize, cols: usize) -> Vec<f64> {
    let mut numbers = vec![0.0; rows * cols];
    fill_random(seed, 0, cols, &mut numbers);
    numbers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn products_are_those_of_single_entries(
        rows in 0usize..600, cols in prop::collection::vec(1usize..12, 1..4), m in 1usize..20, accumulate: bool,
    ) {
        let parts = cols.iter().enumerate().map(|(k, &cols)| (random_numbers(k as u64, rows, cols), cols));
        let parts = parts.collect::<Vec<_>>();
        let tall = parts.iter().map(|(numbers, cols)| Tall { numbers, cols: *cols }).collect::<Vec<_>>();
        let inner_size = cols.iter().sum();
        let c = SmallMatrix::from_numbers(inner_size, m, random_numbers(9, inner_size, m)).unwrap();
        let mut y = random_numbers(10, rows, m);
        let old = y.clone();
        times_small(&tall, &c, accumulate, &mut y).unwrap();
        let entry = |row: usize, index: usize| {
            let mut index = index;
            for (numbers, cols) in &parts {
                if index < *cols {
                    return numbers[row * cols + index];
                }
                index -= cols;
            }
            unreachable!()
        };
        for row in 0..rows {
            for col in 0..m {
                let mut sum = if accumulate { old[row * m + col] } else { 0.0 };
                for k in 0..inner_size {
                    sum += entry(row, k) * c.at(k, col);
                }
                prop_assert_eq!(sum.to_bits(), y[row * m + col].to_bits());
            }
        }
        let other = Tall { numbers: &y, cols: m };
        let found = inner(&tall, &[other, tall[0]]).unwrap();
        for i in 0..inner_size {
            for j in 0..m {
                let panels = (0..rows).step_by(PANEL_ROWS).map(|start| {
                    let rows = start..(start + PANEL_ROWS).min(rows);
                    rows.fold(0.0, |sum, row| sum + entry(row, i) * y[row * m + j])
                });
                prop_assert_eq!(panels.fold(0.0, |sum, part| sum + part).to_bits(), found.at(i, j).to_bits());
            }
            prop_assert_eq!(found.cols(), m + cols[0]);
        }
    }
}

#[test]
fn chunks_of_random_numbers_are_parts_of_one_matrix() {
    let whole = random_numbers(3, 20, 8);
    let mut part = vec![0.0; 5 * 8];
    fill_random(3, 11, 8, &mut part);
    assert_eq!(part, whole[11 * 8..16 * 8]);
}

#[test]
fn sums_and_divisions() {
    let x = [1.0, -2.0, 4.0, 8.0];
    let mut y = [f64::NAN; 4];
    axpby(2.0, &x, 0.0, &mut y).unwrap();
    assert_eq!(y, [2.0, -4.0, 8.0, 16.0]);
    axpby(1.0, &x, 1.0, &mut y).unwrap();
    axpby(1.0, &x, -1.0, &mut y).unwrap();
    assert_eq!(y, [-2.0, 4.0, -8.0, -16.0]);
    divide_rows(&[2.0, 8.0], 2, &mut y).unwrap();
    assert_eq!(y, [-1.0, 2.0, -1.0, -2.0]);
    assert!(matches!(divide_rows(&[1.0, 0.0], 2, &mut y), Err(Error::Singular { index: 1 })));
    assert!(matches!(axpby(1.0, &x, 1.0, &mut y[1..]), Err(Error::ShapeMismatch { .. })));
    assert!(matches!(divide_rows(&[1.0], 2, &mut y), Err(Error::ShapeMismatch { .. })));
    let (two, three) = (Tall { numbers: &x, cols: 2 }, Tall { numbers: &x[..3], cols: 1 });
    assert!(matches!(inner(&[two], &[three]), Err(Error::ShapeMismatch { .. })));
    assert!(matches!(inner(&[two, three], &[two]), Err(Error::ShapeMismatch { .. })));
    let c = SmallMatrix::zeros(3, 1);
    assert!(matches!(times_small(&[two], &c, false, &mut [0.0; 2]), Err(Error::ShapeMismatch { .. })));
}
