//! Tile kernels against plain loops, on every instruction set of this CPU.

use super::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ORDERS: &[usize] = &[0, 1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 64, 100, 257];

/// A column-major matrix with columns further apart than they are long.
#[derive(Clone)]
struct Plain {
    words: Vec<f64>,
    rows: usize,
    cols: usize,
    stride: usize,
}

/// The words between and after the columns, and above diagonals: no kernel may read it or write to it.
const OUTSIDE: f64 = f64::NAN;

impl Plain {
    fn new(rows: usize, cols: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Plain {
        let stride = rows + rows % 3;
        let mut words = vec![OUTSIDE; stride * cols + 5];
        for j in 0..cols {
            (0..rows).for_each(|i| words[j * stride + i] = entry(i, j));
        }
        Plain { words, rows, cols, stride }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.words[j * self.stride + i]
    }

    fn tile(&self) -> Tile<'_> {
        Tile::new(&self.words, self.rows, self.cols, self.stride)
    }

    fn tile_mut(&mut self) -> TileMut<'_> {
        TileMut::new(&mut self.words, self.rows, self.cols, self.stride)
    }

    /// Compares all words; `wanted(i, j)` is `None` where the old word, of `old`, must still stand.
    fn check(&self, old: &Plain, what: &str, mut wanted: impl FnMut(usize, usize) -> Option<(f64, f64)>) {
        for (at, (&got, &old)) in self.words.iter().zip(&old.words).enumerate() {
            let (i, j) = (at % self.stride.max(1), at / self.stride.max(1));
            let inside = i < self.rows && j < self.cols;
            match inside.then(|| wanted(i, j)).flatten() {
                None => assert_eq!(got.to_bits(), old.to_bits(), "{what}: word ({i}, {j}) changed"),
                Some((value, bound)) => {
                    assert!((got - value).abs() <= bound, "{what}: ({i}, {j}) is {got}, not {value}")
                }
            }
        }
    }
}

fn kernels() -> impl Iterator<Item = TileKernels> {
    F64Isa::available().map(TileKernels::on)
}

/// Random entries, and the sum over `k < depth` of products with the bound of its rounding errors.
fn random(rng: &mut ChaCha8Rng, rows: usize, cols: usize) -> Plain {
    Plain::new(rows, cols, |_, _| rng.random_range(-1.0..1.0))
}

fn dot(x: &Plain, i: usize, y: &Plain, j: usize, depth: usize) -> (f64, f64) {
    let products = (0..depth).map(|k| x.at(i, k) * y.at(j, k));
    let size = products.clone().map(f64::abs).sum::<f64>();
    (products.sum(), (2 * depth + 4) as f64 * f64::EPSILON * (size + 1.0))
}

#[test]
fn products_are_those_of_a_plain_loop() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut shapes = ORDERS.iter().map(|&n| (n, n, n)).collect::<Vec<_>>();
    shapes.extend([(1, 257, 3), (257, 1, 100), (25, 9, 1), (40, 33, 400), (600, 17, 5), (9, 600, 7), (5, 7, 0)]);
    for mut kernels in kernels() {
        for &(m, n, k) in &shapes {
            let (x, y, old) = (random(&mut rng, m, k), random(&mut rng, n, k), random(&mut rng, m, n));
            let mut c = old.clone();
            kernels.gemm_nt(x.tile(), y.tile(), c.tile_mut());
            c.check(&old, &format!("{m} x {n} x {k}"), |i, j| {
                let (sum, bound) = dot(&x, i, &y, j, k);
                Some((old.at(i, j) - sum, bound))
            });
        }
    }
}

#[test]
fn symmetric_products_leave_the_upper_triangle_alone() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut shapes = ORDERS.iter().map(|&n| (n, n, n)).collect::<Vec<_>>();
    shapes.extend([(100, 30, 20), (257, 25, 9), (600, 590, 3), (33, 1, 2), (24, 24, 400)]);
    for mut kernels in kernels() {
        for &(m, n, k) in &shapes {
            let (x, old) = (random(&mut rng, m, k), random(&mut rng, m, n));
            let mut c = old.clone();
            kernels.syrk(x.tile(), c.tile_mut());
            c.check(&old, &format!("syrk {m} x {n} x {k}"), |i, j| {
                let (sum, bound) = dot(&x, i, &x, j, k);
                (i >= j).then(|| (old.at(i, j) - sum, bound))
            });
        }
    }
}

/// Bit by bit: with operands read ahead nothing else may change.
#[test]
fn several_products_are_those_one_after_the_other() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for mut kernels in kernels() {
        for (m, n, depths) in [(5, 3, vec![0, 7, 1]), (250, 131, vec![250, 192, 193]), (48, 48, vec![400, 24])] {
            let operands = |rows: usize, rng: &mut ChaCha8Rng| {
                depths.iter().map(|&depth| random(rng, rows, depth)).collect::<Vec<_>>()
            };
            let (x, y, old) = (operands(m, &mut rng), operands(n, &mut rng), random(&mut rng, m, n));
            let (mut c, mut one_by_one) = (old.clone(), old.clone());
            let pairs = x.iter().zip(&y).map(|(x, y)| (x.tile(), y.tile())).collect::<Vec<_>>();
            kernels.gemms_nt(&pairs, c.tile_mut());
            pairs.iter().for_each(|&(x, y)| kernels.gemm_nt(x, y, one_by_one.tile_mut()));
            c.check(&old, &format!("{m} x {n}"), |i, j| Some((one_by_one.at(i, j), 0.0)));
            let square = random(&mut rng, m, m);
            let (mut c, mut one_by_one) = (square.clone(), square.clone());
            kernels.syrks(&x.iter().map(Plain::tile).collect::<Vec<_>>(), c.tile_mut());
            x.iter().for_each(|x| kernels.syrk(x.tile(), one_by_one.tile_mut()));
            c.check(&square, &format!("{m} rows"), |i, j| (i >= j).then(|| (one_by_one.at(i, j), 0.0)));
        }
    }
}

/// Entries of `L` that are exact in doubles, as are all sums of `L L^T`; nothing above the diagonal.
fn exact_factor(order: usize) -> Plain {
    Plain::new(order, order, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Equal => 1.0 + (i % 3) as f64,
        std::cmp::Ordering::Greater => ((i * 7 + j * 13) % 5) as f64 - 2.0,
        std::cmp::Ordering::Less => OUTSIDE,
    })
}

#[test]
fn solutions_of_integers_come_back_exactly() {
    let sizes = ORDERS.iter().flat_map(|&n| [(n, n), (n / 3, n), (n + 25, n), (1, n)]).chain([(30, 300), (5, 520)]);
    let mut found = 0;
    for mut kernels in kernels() {
        for (m, n) in sizes.clone() {
            let l = exact_factor(n);
            let z = Plain::new(m, n, |i, j| ((i * 11 + j * 5) % 7) as f64 - 3.0);
            let old = Plain::new(m, n, |i, j| (0..=j).map(|k| z.at(i, k) * l.at(j, k)).sum());
            let mut b = old.clone();
            kernels.trsm(l.tile(), b.tile_mut());
            b.check(&old, &format!("trsm {m} x {n}"), |i, j| Some((z.at(i, j), 0.0)));
            found += m * n;
        }
    }
    assert!(found > 0);
}

#[test]
fn random_solutions_have_small_residuals() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for mut kernels in kernels() {
        for &n in ORDERS {
            let l = Plain::new(n, n, |i, j| match i.cmp(&j) {
                std::cmp::Ordering::Equal => rng.random_range(1.0..3.0),
                std::cmp::Ordering::Greater => rng.random_range(-1.0..1.0) / n as f64,
                std::cmp::Ordering::Less => OUTSIDE,
            });
            let old = random(&mut rng, n + 7, n);
            let mut b = old.clone();
            kernels.trsm(l.tile(), b.tile_mut());
            for (i, j) in (0..n + 7).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let (sum, bound) = dot(&b, i, &l, j, j + 1);
                assert!((sum - old.at(i, j)).abs() <= bound, "{n}: ({i}, {j})");
            }
        }
    }
}

fn gram(l: &Plain) -> Plain {
    Plain::new(l.rows, l.rows, |i, j| if i < j { OUTSIDE } else { (0..=j).map(|k| l.at(i, k) * l.at(j, k)).sum() })
}

#[test]
fn factors_of_integers_come_back_exactly() {
    for mut kernels in kernels() {
        for &order in ORDERS.iter().chain(&[300]) {
            let l = exact_factor(order);
            let old = gram(&l);
            let mut a = old.clone();
            kernels.potrf(a.tile_mut()).unwrap();
            a.check(&old, &format!("potrf {order}"), |i, j| (i >= j).then(|| (l.at(i, j), 0.0)));
        }
    }
}

#[test]
fn random_factors_have_small_residuals() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for mut kernels in kernels() {
        for &order in ORDERS {
            let x = random(&mut rng, order, order + 3);
            let old = Plain::new(order, order, |i, j| {
                if i < j { OUTSIDE } else { dot(&x, i, &x, j, order + 3).0 + f64::from(u8::from(i == j)) }
            });
            let mut a = old.clone();
            kernels.potrf(a.tile_mut()).unwrap();
            for (i, j) in (0..order).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                let (sum, bound) = dot(&a, i, &a, j, j + 1);
                assert!((sum - old.at(i, j)).abs() <= bound, "{order}: ({i}, {j})");
            }
        }
    }
}

#[test]
fn the_first_bad_pivot_is_named() {
    for mut kernels in kernels() {
        for (order, bad) in [(1, 0), (20, 0), (40, 17), (100, 99), (257, 130)] {
            for change in [-1e6, f64::NAN, f64::INFINITY] {
                let mut a = gram(&exact_factor(order));
                a.words[bad * a.stride + bad] += change;
                let found = kernels.potrf(a.tile_mut()).unwrap_err();
                assert_eq!(found.index, bad, "{order} rows, {change}");
                assert!(!(found.pivot > 0.0 && found.pivot < f64::INFINITY));
            }
        }
    }
}

#[test]
#[should_panic(expected = "with stride")]
fn entries_must_lie_inside_their_words() {
    Tile::new(&[0.0; 10], 3, 3, 4);
}
