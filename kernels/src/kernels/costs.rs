//! The extra costs of a kernel that multiplies faster than the preferred one: rules of sizes, fitted to measurements.

/// The extra time of a kernel's conversions, compared with those of the preferred kernel, divided by the time that it
/// saves in each multiplication of residues. The ratio grows with the precision, as conversions of operands do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConversionCosts {
    /// The fraction of the time of multiplications that is saved.
    pub saved: f64,
    /// Time for each entry of an operand.
    pub operands: f64,
    /// Time for each entry of the result.
    pub results: f64,
    /// Time for each entry of the result and each bit of the precision: a part of the conversions' time grows with its
    /// square.
    pub result_bits: f64,
}

impl ConversionCosts {
    /// The time that is saved, in multiplications of the preferred kernel; negative if conversions take more time than
    /// is saved.
    pub fn gain(&self, multiplications: f64, operands: f64, results: f64, precision_bits: u32) -> f64 {
        let each_result = self.results + self.result_bits * f64::from(precision_bits);
        self.saved * (multiplications - self.operands * operands - each_result * results)
    }

    /// The smallest number of rows of a square matrix whose SYRK is faster: it multiplies once for each row and each
    /// entry of a triangle.
    pub fn least_rows(&self, precision_bits: u32) -> usize {
        let gain = |rows: f64| {
            let results = rows * (rows + 1.0) / 2.0;
            self.gain(rows * results, rows * rows, results, precision_bits)
        };
        (1..u32::MAX).find(|&rows| gain(f64::from(rows)) > 0.0).map_or(usize::MAX, |rows| rows as usize)
    }
}

/// The number of rows from which a factor or a solve is faster on another kernel than on the preferred one. On the
/// other kernel, finishing an entry takes longer, and this time grows with the square of the precision; products take
/// less time, which grows with the precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FactorCosts {
    /// Number of rows at the lowest precision.
    pub rows: f64,
    /// Additional rows for each working bit.
    pub row_bits: f64,
}

impl FactorCosts {
    /// The fewest rows.
    pub fn least_rows(&self, working_bits: u32) -> usize {
        (self.rows + self.row_bits * f64::from(working_bits)).ceil() as usize
    }
}

/// The multiplier units of a processor that decide which kernel is faster for a large product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multipliers {
    /// Digits of 52 bits in eight lanes, which `ifma52` needs.
    pub digits: bool,
    /// Whether a core issues only one of these multiplications per cycle.
    pub one_a_cycle: bool,
    /// Pairs of 16 bits that one instruction multiplies and adds.
    pub pairs: bool,
    /// Tiles of bytes in dedicated registers.
    pub tiles: bool,
    /// Whether the processor is one of Intel's, which finish tiles more slowly at the same rate of multiplications.
    pub of_intel: bool,
}
