//! The extra costs of a kernel that multiplies faster than the preferred one: rules of sizes, fitted to measurements.

/// The time that conversions of a kernel take beyond those of the preferred one, over the time that it saves in each
/// multiplication of residues. The ratio grows with the precision, as conversions of operands do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConversionCosts {
    /// The part of the time of multiplications that is saved.
    pub saved: f64,
    /// Time for each entry of an operand.
    pub operands: f64,
    /// Time for each entry of the result.
    pub results: f64,
    /// Time for each entry of the result and each bit of the precision: a part of their time grows with its square.
    pub result_bits: f64,
}

impl ConversionCosts {
    /// The time that is saved, in multiplications of the preferred kernel; negative where conversions take more.
    pub fn gain(&self, multiplications: f64, operands: f64, results: f64, precision_bits: u32) -> f64 {
        let each_result = self.results + self.result_bits * f64::from(precision_bits);
        self.saved * (multiplications - self.operands * operands - each_result * results)
    }

    /// The fewest rows of a square matrix whose SYRK gains: it multiplies once for each row and each entry of a
    /// triangle.
    pub fn least_rows(&self, precision_bits: u32) -> usize {
        let gain = |rows: f64| {
            let results = rows * (rows + 1.0) / 2.0;
            self.gain(rows * results, rows * rows, results, precision_bits)
        };
        (1..u32::MAX).find(|&rows| gain(f64::from(rows)) > 0.0).map_or(usize::MAX, |rows| rows as usize)
    }
}

/// The rows from which a factor or a solve is faster on another kernel than the preferred one. There, finishing an
/// entry takes longer, and its time grows with the square of the precision; products take less time, which grows with
/// the precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FactorCosts {
    /// Rows at the least precision.
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

/// The multipliers of a processor, as far as they decide which kernel a large product gains on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multipliers {
    /// Digits of 52 bits in eight lanes, so that `ifma52` runs.
    pub digits: bool,
    /// Whether a core issues one of these multiplications a cycle, and no more.
    pub one_a_cycle: bool,
    /// Pairs of 16 bits that one instruction multiplies and adds.
    pub pairs: bool,
    /// Tiles of bytes in registers of their own.
    pub tiles: bool,
    /// Whether the processor is one of Intel's, which finish tiles more slowly at the same rate of multiplications.
    pub of_intel: bool,
}
