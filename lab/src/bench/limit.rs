//! The least time an operation can take: its IFMA instructions and, for a solve, its reads of memory; nothing else.
//!
//! Classical products by residues take `multiply-adds * primes * 2 / 8` instructions with the least working precision
//! and number of 52-bit primes that the bounds allow (docs/ALGORITHM.md, "The limit"); rates are those of all threads
//! used, measured beside the runs.

use crate::baselines::Operation;
use sunzi::advanced::kernels;
use sunzi::advanced::math::bound::{
    cholesky_modulus_bits, cholesky_working_bits, ifma52_prime_count, modulus_bits, working_bits,
};
use sunzi::advanced::store::room_for_threads;

/// Trials of about 3 ms of which the best is one measurement of the rate.
const RATE_TRIALS: usize = 4;

/// Bits of a digit of the 52-bit multiplier.
const DIGIT_BITS: u32 = 52;

/// What the machine can do in a second.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// IFMA instructions.
    pub instructions: f64,
    /// Bytes read from memory.
    pub read_bytes: f64,
}

/// An operation whose limit is asked for.
pub struct Limit {
    pub operation: Operation,
    pub rows: usize,
    pub cols: usize,
    pub precision_bits: u32,
}

impl Limit {
    /// Seconds at these rates.
    pub fn seconds(&self, rates: Rates) -> f64 {
        let instructions = self.instructions() / rates.instructions;
        match self.operation {
            Operation::Solve if self.cols > 0 => instructions.max(2.0 * self.factor_bytes() / rates.read_bytes),
            _ => instructions,
        }
    }

    /// Bytes of the lower triangle of the factor: half its entries, a head and the limbs of each.
    pub fn factor_bytes(&self) -> f64 {
        let entry_bytes = 8 * (1 + self.precision_bits.div_ceil(64));
        self.rows as f64 * self.rows as f64 / 2.0 * f64::from(entry_bytes)
    }

    fn instructions(&self) -> f64 {
        let (rows, cols) = (self.rows as f64, self.cols as f64);
        let primes = self.primes() as f64;
        let planes = |multiply_adds: f64| multiply_adds * primes * 2.0 / 8.0;
        match self.operation {
            Operation::Syrk => planes(rows * cols * (cols + 1.0) / 2.0),
            Operation::Gemm => planes(rows * cols * cols),
            Operation::Cholesky => planes(rows * rows * rows / 6.0),
            Operation::Trsm => planes(rows * rows * cols / 2.0),
            Operation::Solve => {
                // Digit by digit, or by residues once those of the factor are there: digits win for one column.
                let digits = f64::from(self.precision_bits.div_ceil(DIGIT_BITS));
                let direct = rows * rows * cols * digits * digits / 4.0;
                let conversion = if cols > 0.0 { rows * rows / 2.0 * digits * primes * 2.0 / 8.0 } else { 0.0 };
                direct.min(conversion + planes(rows * rows * cols))
            }
        }
    }

    fn primes(&self) -> usize {
        let bits = match self.operation {
            Operation::Cholesky => cholesky_modulus_bits(cholesky_working_bits(self.precision_bits)),
            _ => {
                let bits = working_bits(self.precision_bits, self.rows);
                modulus_bits(bits, bits)
            }
        };
        ifma52_prime_count(bits)
    }
}

/// Instructions a second of `threads` threads at work at the same time; `None` on a CPU without them.
pub fn instruction_rate(threads: usize) -> Option<f64> {
    if threads == 1 {
        return kernels::instruction_rate(RATE_TRIALS);
    }
    room_for_threads(threads).ok()?;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| kernels::instruction_rate(RATE_TRIALS))).collect();
        workers.into_iter().map(|worker| worker.join().ok().flatten()).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { instructions: 8.0e9, read_bytes: 2.0e10 };

    #[test]
    fn the_limit_of_products_is_the_documented_one() {
        let limit = Limit { operation: Operation::Syrk, rows: 4000, cols: 1000, precision_bits: 1024 };
        // 40 primes: 4000 * 1000 * 1001 / 2 * 40 / 4 instructions.
        assert_eq!(limit.seconds(RATES), 4000.0 * 500_500.0 * 10.0 / 8.0e9);
        let gemm = Limit { operation: Operation::Gemm, ..limit };
        assert_eq!(gemm.seconds(RATES), 4.0e9 * 10.0 / 8.0e9);
    }

    #[test]
    fn the_limit_of_operations_with_a_factor_is_the_documented_one() {
        let cholesky = Limit { operation: Operation::Cholesky, rows: 1000, cols: 1000, precision_bits: 1024 };
        // floor((2 * 1026 + 3) / 52) + 1 = 40 primes.
        assert_eq!(cholesky.seconds(RATES), 1.0e9 / 6.0 * 40.0 * 2.0 / 8.0 / 8.0e9);
        let trsm = Limit { operation: Operation::Trsm, ..cholesky };
        assert_eq!(trsm.seconds(RATES), 0.5e9 * 10.0 / 8.0e9);
        let solve = Limit { operation: Operation::Solve, cols: 1, ..cholesky };
        // 20 digits: 100 instructions for each of 1e6 entries, against 136 bytes for each.
        assert_eq!(solve.seconds(RATES), 1.0e8 / 8.0e9);
        assert_eq!(solve.seconds(Rates { read_bytes: 1.0e9, ..RATES }), 1.36e8 / 1.0e9);
        let many = Limit { cols: 1000, ..solve };
        assert_eq!(many.seconds(RATES), (1.0e6 / 2.0 * 20.0 * 10.0 + 1.0e10) / 8.0e9);
        assert_eq!(Limit { cols: 0, ..solve }.seconds(RATES), 0.0);
    }
}
