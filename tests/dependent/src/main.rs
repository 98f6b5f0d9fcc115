//! A program of a user: prints how many seconds a product takes, the best of some.

use std::time::Instant;
use sunzi::rug::Float;
use sunzi::{Context, Matrix, Result};

const ROWS: usize = 200;
const BITS: u32 = 512;

fn main() -> Result<()> {
    let ctx = Context::builder().threads(1).build()?;
    let p = Matrix::from_fn(ROWS, ROWS, BITS, |row, col| Float::with_val(BITS, 1 + row + 7 * col).sqrt())?;
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        let q = sunzi::syrk(&ctx, &p, BITS)?;
        best = best.min(start.elapsed().as_secs_f64());
        assert!(q.float(0, 0) > 0);
    }
    println!("{best:.4}");
    Ok(())
}
