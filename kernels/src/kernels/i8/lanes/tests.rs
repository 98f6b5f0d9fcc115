//! Every unit against sums in plain loops; the register tile of 512-bit lanes on a model of them.

use super::*;
use crate::kernels::i8::isa::I8Isa;
use crate::kernels::i8::tiles::{I8Task, SIDE, STEP, STEP_WORDS, columns_mut, rows_mut};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Sixteen integers in plain Rust: VPDPBUSD on 512 bits.
#[derive(Clone, Copy)]
struct Model([u32; 16]);

impl I8Lanes for Model {
    const WIDTH: usize = 16;
    type Vectors = vectors::PlainVector;

    fn zero() -> Self {
        Model([0; 16])
    }

    fn splat(x: u32) -> Self {
        Model([x; 16])
    }

    fn load(from: &[u32]) -> Self {
        Model(*from.first_chunk().unwrap())
    }

    fn store(self, to: &mut [i32]) {
        to[..16].copy_from_slice(&self.0.map(|lane| lane as i32));
    }

    fn xor(self, other: Self) -> Self {
        Model(std::array::from_fn(|lane| self.0[lane] ^ other.0[lane]))
    }

    fn add_products(self, unsigned: Self, signed: Self) -> Self {
        Model(std::array::from_fn(|lane| {
            let pairs = unsigned.0[lane].to_le_bytes().into_iter().zip(signed.0[lane].to_le_bytes());
            pairs.fold(self.0[lane], |sum, (u, s)| sum.wrapping_add((i32::from(u) * i32::from(s as i8)) as u32))
        }))
    }
}

/// Multiplies and keeps the sums; the bytes of columns have signs if `SIGNED`.
struct Product<'a, const SIGNED: bool> {
    operands: (&'a [TileRows], &'a [TileColumns]),
    extent: Extent,
    sums: &'a mut TileSums,
}

impl<const SIGNED: bool> I8Task for Product<'_, SIGNED> {
    #[inline(always)]
    fn run<U: Unit>(self) {
        U::multiply::<SIGNED>(self.operands.0, self.operands.1, self.extent, self.sums);
    }
}

/// A unit that runs tasks.
trait Units {
    fn run(&self, task: impl I8Task);
}

impl Units for I8Isa {
    fn run(&self, task: impl I8Task) {
        I8Isa::run(*self, task);
    }
}

impl<U: Unit> Units for PhantomData<U> {
    fn run(&self, task: impl I8Task) {
        task.run::<U>();
    }
}

/// The operands' bytes by term, and as tiles.
struct Operands {
    rows: Vec<[i8; SIDE]>,
    columns: Vec<[u8; SIDE]>,
    words: [Vec<u32>; 2],
}

impl Operands {
    fn new(terms: usize, mut row: impl FnMut(usize) -> i8, mut column: impl FnMut(usize) -> u8) -> Operands {
        let steps = terms.div_ceil(STEP);
        let mut words = [vec![0; steps * STEP_WORDS], vec![0; steps * STEP_WORDS]];
        let rows: Vec<[i8; SIDE]> = (0..terms).map(|_| std::array::from_fn(&mut row)).collect();
        let columns: Vec<[u8; SIDE]> = (0..terms).map(|_| std::array::from_fn(&mut column)).collect();
        for term in 0..terms {
            let (step, group, shift) = (term / STEP, term / 4 % STEP_GROUPS, 8 * (term % 4));
            for side in 0..SIDE {
                rows_mut(&mut words[0])[step][side][group] |= u32::from(rows[term][side] as u8) << shift;
                columns_mut(&mut words[1])[step][side / 16][group][side % 16] |=
                    u32::from(columns[term][side]) << shift;
            }
        }
        Operands { rows, columns, words }
    }

    /// Checks `units` with unsigned columns, then with signed ones.
    fn check(&mut self, extent: Extent, label: &str, units: impl Units) {
        self.check_one(extent, &format!("{label}, unsigned"), |product: Product<'_, false>| units.run(product));
        self.check_one(extent, &format!("{label}, signed"), |product: Product<'_, true>| units.run(product));
    }

    fn check_one<const SIGNED: bool>(
        &mut self,
        extent: Extent,
        label: &str,
        multiply: impl FnOnce(Product<'_, SIGNED>),
    ) {
        let mut sums = [[i32::MIN; SIDE]; SIDE];
        let [rows, columns] = &mut self.words;
        multiply(Product { operands: (rows_mut(rows), columns_mut(columns)), extent, sums: &mut sums });
        for m in 0..extent.rows {
            for n in 0..extent.columns {
                let pairs = self.rows.iter().zip(&self.columns);
                let column = |byte: u8| if SIGNED { i64::from(byte as i8) } else { i64::from(byte) };
                let want: i64 = pairs.map(|(row, other)| i64::from(row[m]) * column(other[n])).sum();
                assert_eq!(i64::from(sums[m][n]), want, "{label}: sum ({m}, {n})");
            }
        }
    }
}

#[test]
fn every_unit_sums_products_of_bytes() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for terms in [0usize, 1, 4, 5, STEP - 1, STEP, STEP + 1, 3 * STEP] {
        for (rows, columns) in [(32, 32), (8, 8), (1, 32), (24, 16), (17, 25)] {
            let extent = Extent { groups: terms.div_ceil(4), rows, columns };
            let mut other = ChaCha8Rng::seed_from_u64(2);
            let mut random = Operands::new(terms, |_| rng.random(), |_| other.random());
            for isa in I8Isa::all() {
                let label = format!("{isa:?}, {terms} terms, {extent:?}");
                random.check(extent, &label, isa);
            }
            random.check(extent, "512 bits", PhantomData::<ByLanes<Model, 8, 2>>);
            random.check(extent, "256 bits", PhantomData::<ByLanes<I8PlainLanes, 4, 2>>);
        }
    }
}

#[test]
fn the_largest_bytes_do_not_saturate() {
    for (row, column) in [(-128, 255), (127, 255), (-128, 128), (127, 128), (-1, 255)] {
        for terms in [4, 2 * STEP] {
            let mut operands = Operands::new(terms, |side| if side % 3 == 2 { -1 } else { row }, |_| column);
            let extent = Extent { groups: terms / 4, rows: SIDE, columns: SIDE };
            for isa in I8Isa::all() {
                operands.check(extent, &format!("{isa:?}, {row} times {column}"), isa);
            }
            operands.check(extent, "512 bits", PhantomData::<ByLanes<Model, 8, 2>>);
        }
    }
}
