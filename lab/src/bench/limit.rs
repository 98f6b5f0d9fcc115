//! The least time an operation can take: its multiply-adds of residues and, for a solve, its reads of memory; nothing
//! else.
//!
//! Classical products by residues take as many multiply-adds for each plane as on numbers, with the least working
//! precision and number of primes that the bounds allow (docs/BENCHMARKS.md, "The limit"). The limit is that of the
//! family of moduli which is fastest on this CPU; rates are those of all threads used, measured between the runs.

use super::spread::Spread;
use crate::baselines::Operation;
use sunzi::advanced::kernels;
use sunzi::advanced::math::bound::{
    cholesky_modulus_bits, cholesky_working_bits, ifma52_prime_count, modulus_bits, working_bits,
};
use sunzi::advanced::math::family_i8::{i8_modulus_count, i8_planes};
use sunzi::advanced::math::family_i16::i16_prime_count;
use sunzi::advanced::store::{room_for_threads, start_in};

/// Trials of about 3 ms of which the best is one measurement of the rate.
const RATE_TRIALS: usize = 4;

/// A family of moduli.
struct Family {
    kernel: &'static str,
    /// Bits of a factor of one multiplication.
    digit_bits: u32,
    /// The number of planes whose moduli together exceed a number of bits.
    planes: fn(u32) -> usize,
}

/// The families whose issue rate is measured. Doubles are left out: a multiplication of 16-bit pairs does more on every
/// CPU that multiplies doubles in vectors.
const FAMILIES: [Family; 3] = [
    Family { kernel: "ifma52", digit_bits: 52, planes: ifma52_prime_count },
    Family { kernel: "i16", digit_bits: 13, planes: i16_prime_count },
    Family { kernel: "i8", digit_bits: 8, planes: |modulus_bits| i8_planes(0..i8_modulus_count(modulus_bits)).len() },
];

/// Multiply-adds of residues per second, by all threads together, for each of the families; 0 where the CPU lacks the
/// family.
#[derive(Clone, Copy, Debug, Default)]
pub struct IssueRates(pub [f64; FAMILIES.len()]);

impl IssueRates {
    /// Measures the rates with `threads` threads that work at the same time; `None` on a CPU without any of the
    /// families.
    pub fn measure(threads: usize) -> Option<IssueRates> {
        let rates = FAMILIES.map(|family| rate(family.kernel, threads).unwrap_or(0.0));
        rates.iter().any(|&rate| rate > 0.0).then_some(IssueRates(rates))
    }
}

/// Multiply-adds a second of one family.
fn rate(kernel: &str, threads: usize) -> Option<f64> {
    let kernel = kernels::by_name(kernel).ok()?;
    if threads == 1 {
        return kernel.issue_rate(RATE_TRIALS);
    }
    room_for_threads(threads).ok()?;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| start_in(scope, || kernel.issue_rate(RATE_TRIALS))).collect();
        workers.into_iter().map(|worker| worker.join().ok().flatten()).sum()
    })
}

/// A limit, and the data it follows from.
pub struct LeastTime {
    /// Seconds; 0 where there is nothing to do.
    pub seconds: f64,
    /// The kernel of the family.
    pub kernel: &'static str,
    /// Its rate in multiply-adds per second.
    pub multiply_adds: Spread,
}

/// An operation whose limit is computed.
pub struct Limit {
    pub operation: Operation,
    pub rows: usize,
    pub cols: usize,
    pub precision_bits: u32,
}

impl Limit {
    /// The least time over all families, at the medians of the measured rates and with memory read at `read_bytes`
    /// bytes per second; `None` where no rate was measured.
    pub fn least(&self, rates: &[IssueRates], read_bytes: f64) -> Option<LeastTime> {
        self.each(rates, read_bytes).min_by(|one, other| one.seconds.total_cmp(&other.seconds))
    }

    /// The least time with the family of one kernel; `None` where the rate of the family is not measured.
    pub fn of_kernel(&self, kernel: &str, rates: &[IssueRates], read_bytes: f64) -> Option<LeastTime> {
        self.each(rates, read_bytes).find(|time| time.kernel == kernel)
    }

    /// The least time with each family whose rate is measured.
    fn each(&self, rates: &[IssueRates], read_bytes: f64) -> impl Iterator<Item = LeastTime> {
        FAMILIES.iter().enumerate().filter_map(move |(number, family)| {
            let measured: Vec<f64> = rates.iter().map(|rates| rates.0[number]).filter(|&rate| rate > 0.0).collect();
            let multiply_adds = (!measured.is_empty()).then(|| Spread::of(&measured))?;
            let products = self.multiply_adds(family) / multiply_adds.median;
            let seconds = match self.operation {
                Operation::Solve if self.cols > 0 => products.max(2.0 * self.factor_bytes() / read_bytes),
                _ => products,
            };
            Some(LeastTime { seconds, kernel: family.kernel, multiply_adds })
        })
    }

    /// The bytes of the lower triangle of the factor: half of the entries, each with a header and its limbs.
    pub fn factor_bytes(&self) -> f64 {
        let entry_bytes = 8 * (1 + self.precision_bits.div_ceil(64));
        self.rows as f64 * self.rows as f64 / 2.0 * f64::from(entry_bytes)
    }

    /// Multiply-adds of residues in all planes.
    fn multiply_adds(&self, family: &Family) -> f64 {
        let (rows, cols) = (self.rows as f64, self.cols as f64);
        let planes = (family.planes)(self.modulus_bits()) as f64;
        match self.operation {
            Operation::Syrk => planes * (rows * cols * (cols + 1.0) / 2.0),
            Operation::Gemm => planes * (rows * cols * cols),
            Operation::Cholesky => planes * (rows * rows * rows / 6.0),
            Operation::Trsm => planes * (rows * rows * cols / 2.0),
            Operation::Solve => {
                // Digit by digit, or by residues once those of the factor exist: digits win for one column.
                let digits = f64::from(self.precision_bits.div_ceil(family.digit_bits));
                let direct = rows * rows * cols * digits * digits;
                let conversion = if cols > 0.0 { rows * rows / 2.0 * digits * planes } else { 0.0 };
                direct.min(conversion + planes * (rows * rows * cols))
            }
        }
    }

    fn modulus_bits(&self) -> u32 {
        match self.operation {
            Operation::Cholesky => cholesky_modulus_bits(cholesky_working_bits(self.precision_bits)),
            _ => {
                let bits = working_bits(self.precision_bits, self.rows);
                modulus_bits(bits, bits)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 G instructions a second that multiply 52-bit integers, two for each product of eight.
    const RATES: [IssueRates; 1] = [IssueRates([32.0e9, 0.0, 0.0])];

    impl Limit {
        fn seconds(&self) -> f64 {
            self.least(&RATES, 2.0e10).unwrap().seconds
        }
    }

    #[test]
    fn the_limit_of_products_is_the_documented_one() {
        let limit = Limit { operation: Operation::Syrk, rows: 4000, cols: 1000, precision_bits: 1024 };
        // 40 primes: 4000 * 1000 * 1001 / 2 * 40 / 4 instructions.
        assert_eq!(limit.seconds(), 4000.0 * 500_500.0 * 10.0 / 8.0e9);
        let gemm = Limit { operation: Operation::Gemm, ..limit };
        assert_eq!(gemm.seconds(), 4.0e9 * 10.0 / 8.0e9);
    }

    #[test]
    fn the_limit_of_operations_with_a_factor_is_the_documented_one() {
        let cholesky = Limit { operation: Operation::Cholesky, rows: 1000, cols: 1000, precision_bits: 1024 };
        // floor((2 * 1026 + 3) / 52) + 1 = 40 primes.
        assert_eq!(cholesky.seconds(), 1.0e9 / 6.0 * 40.0 * 2.0 / 8.0 / 8.0e9);
        let trsm = Limit { operation: Operation::Trsm, ..cholesky };
        assert_eq!(trsm.seconds(), 0.5e9 * 10.0 / 8.0e9);
        let solve = Limit { operation: Operation::Solve, cols: 1, ..cholesky };
        // 20 digits: 100 instructions for each of 1e6 entries, against 136 bytes for each.
        assert_eq!(solve.seconds(), 1.0e8 / 8.0e9);
        assert_eq!(solve.least(&RATES, 1.0e9).unwrap().seconds, 1.36e8 / 1.0e9);
        let many = Limit { cols: 1000, ..solve };
        assert_eq!(many.seconds(), (1.0e6 / 2.0 * 20.0 * 10.0 + 1.0e10) / 8.0e9);
        assert_eq!(Limit { cols: 0, ..solve }.seconds(), 0.0);
    }

    #[test]
    fn the_limit_is_that_of_the_fastest_family() {
        let limit = Limit { operation: Operation::Syrk, rows: 4000, cols: 1000, precision_bits: 1024 };
        let least = |rates: &[IssueRates]| limit.least(rates, 1.0e10).map(|least| (least.kernel, least.seconds));
        // 40 planes of 52 bits, 161 of 13, or 422 of bytes.
        let products = 4000.0 * 500_500.0;
        assert_eq!(least(&[IssueRates([14.0e9, 0.0, 0.0])]), Some(("ifma52", products * 40.0 / 14.0e9)));
        assert_eq!(least(&[IssueRates([14.0e9, 112.0e9, 0.0])]), Some(("i16", products * 161.0 / 112.0e9)));
        assert_eq!(least(&[IssueRates([32.0e9, 112.0e9, 150.0e9])]).unwrap().0, "ifma52");
        assert_eq!(
            least(&[IssueRates([0.0, 1.0e9, 0.0]), IssueRates([0.0, 3.0e9, 0.0]), IssueRates([0.0, 2.0e9, 0.0])])
                .unwrap()
                .1,
            products * 161.0 / 2.0e9
        );
        let tiles = IssueRates([29.0e9, 238.0e9, 3.3e12]);
        assert_eq!(least(&[tiles]), Some(("i8", products * 422.0 / 3.3e12)));
        assert!(least(&[]).is_none());
        // Of the kernel at work, however fast another unit is.
        let of = |kernel| limit.of_kernel(kernel, &[tiles], 1.0e10).map(|time| time.seconds);
        assert_eq!((of("i16"), of("f64")), (Some(products * 161.0 / 238.0e9), None));
        let only = [IssueRates([14.0e9, 0.0, 0.0])];
        assert!(limit.of_kernel("i8", &only, 1.0e10).is_none());
    }
}
