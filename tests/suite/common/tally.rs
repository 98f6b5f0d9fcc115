//! Digits that were stated and proven, counted beside those that are right.

/// What was said, beside the truth.
#[derive(Default, Debug)]
pub struct Tally {
    pub answers: usize,
    /// Estimates that are more than a digit above the truth, and more than two below it.
    pub above: usize,
    pub below: usize,
    /// Proofs, and those more than three digits below the truth.
    pub proofs: usize,
    pub loose: usize,
}

impl Tally {
    /// Takes in the digits stated, proven and right of an answer of so many bits.
    ///
    /// # Panics
    /// Where more are proven than are right.
    pub fn note(&mut self, (label, bits): (&str, u32), [stated, proven, truth]: [f64; 3]) {
        // No answer is said to have more digits than its precision, and none has fewer than none. Both logarithms, of
        // the truth and of the precision, are rounded.
        let truth = truth.clamp(0.0, f64::from(bits) * std::f64::consts::LOG10_2);
        assert!(proven <= truth + 1e-12, "{label}: {proven} digits proven, {truth} right");
        self.answers += 1;
        self.above += usize::from(stated > truth + 1.0);
        self.below += usize::from(stated < truth - 2.0);
        self.proofs += 1;
        self.loose += usize::from(proven < truth - 3.0);
        if std::env::var_os("SHOW").is_some() && (stated > truth + 1.0 || stated < truth - 2.0 || proven < truth - 3.0)
        {
            println!("{label}: stated {stated:.2}, proven {proven:.2}, right {truth:.2}");
        }
    }

    /// One estimate of a thousand may be above, one of ten below, one proof of ten loose.
    pub fn check(&self) {
        assert!(1000 * self.above <= self.answers.max(999), "{self:?}");
        assert!(10 * self.below <= self.answers && 10 * self.loose <= self.proofs, "{self:?}");
    }
}
