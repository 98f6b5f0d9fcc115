//! The least time a classical product by residues can take: its IFMA instructions, and nothing else.
//!
//! `multiply-adds * primes * 2 / 8 / rate` with the least working precision and number of 52-bit primes that the bound
//! allows (docs/ALGORITHM.md, "The limit"); `rate` is that of all threads used.

use crate::front::cli::config::Operation;
use crate::kernels;
use crate::math::bound::{ifma52_prime_count, modulus_bits, working_bits};

/// Trials of about 3 ms of which the best is one measurement of the rate.
const RATE_TRIALS: usize = 4;

/// A product whose limit is asked for.
pub struct Limit {
    pub operation: Operation,
    pub rows: usize,
    pub cols: usize,
    pub precision_bits: u32,
}

impl Limit {
    /// Seconds at `rate` instructions a second.
    pub fn seconds(&self, rate: f64) -> f64 {
        let bits = working_bits(self.precision_bits, self.rows);
        let primes = ifma52_prime_count(modulus_bits(bits, bits)) as f64;
        let (rows, cols) = (self.rows as f64, self.cols as f64);
        let entries = match self.operation {
            Operation::Syrk => cols * (cols + 1.0) / 2.0,
            Operation::Gemm => cols * cols,
        };
        rows * entries * primes * 2.0 / 8.0 / rate
    }
}

/// Instructions a second of `threads` threads at work at the same time; `None` on a CPU without them.
pub fn instruction_rate(threads: usize) -> Option<f64> {
    if threads == 1 {
        return kernels::instruction_rate(RATE_TRIALS);
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| kernels::instruction_rate(RATE_TRIALS))).collect();
        workers.into_iter().map(|worker| worker.join().ok().flatten()).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_documented_one() {
        let limit = Limit { operation: Operation::Syrk, rows: 4000, cols: 1000, precision_bits: 1024 };
        // 40 primes: 4000 * 1000 * 1001 / 2 * 40 / 4 instructions.
        assert_eq!(limit.seconds(8.0e9), 4000.0 * 500_500.0 * 10.0 / 8.0e9);
        let gemm = Limit { operation: Operation::Gemm, ..limit };
        assert_eq!(gemm.seconds(8.0e9), 4.0e9 * 10.0 / 8.0e9);
    }
}
