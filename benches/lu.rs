//! LU factors beside two Cholesky factors of the same order and bits, which take as many products.
//!
//! `cargo bench --bench lu` runs both in turns on one thread and prints the best seconds and their ratio;
//! `cargo bench --bench lu -- 500 512 9` takes an order, bits and a number of turns.

use std::error::Error;
use std::time::Instant;
use sunzi::rug::{Float, rand::RandState};
use sunzi::{CholeskyOptions, Context, LuOptions, Matrix, Symmetric};

/// Orders, bits and turns.
const CASES: [(usize, u32, usize); 3] = [(100, 256, 30), (500, 512, 5), (1000, 1024, 2)];

fn main() -> Result<(), Box<dyn Error>> {
    let numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect::<Vec<usize>>();
    let cases = match numbers[..] {
        [order, bits, turns] => vec![(order, u32::try_from(bits)?, turns)],
        _ if std::env::args().any(|argument| argument == "--test") => vec![(40, 128, 1)],
        _ => CASES.to_vec(),
    };
    let ctx = Context::builder().threads(1).build()?;
    println!("order  bits  LU, s       Cholesky, s  LU over two");
    for (order, bits, turns) in cases {
        let (mut rng, half) = (RandState::new(), Float::with_val(2, 0.5));
        let a =
            Matrix::from_fn(order, order, bits, |_, _| Float::with_val(bits, Float::random_bits(&mut rng)) - &half)?;
        let mut definite = a.clone();
        (0..order).try_for_each(|i| definite.set_f64(i, i, order as f64))?;
        let (mut own, mut factor) = (Default::default(), Default::default());
        let (mut lu, mut cholesky) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..turns {
            let start = Instant::now();
            sunzi::lu_into(&ctx, &a, bits, &LuOptions::new(), &mut own)?;
            lu = lu.min(start.elapsed().as_secs_f64());
            let (start, definite) = (Instant::now(), Symmetric::lower(&definite));
            sunzi::cholesky_into(&ctx, definite, bits, &CholeskyOptions::new(), &mut factor)?;
            cholesky = cholesky.min(start.elapsed().as_secs_f64());
        }
        println!("{order:5} {bits:5}  {lu:.3e}   {cholesky:.3e}    {:.2}", lu / (2.0 * cholesky));
    }
    Ok(())
}
