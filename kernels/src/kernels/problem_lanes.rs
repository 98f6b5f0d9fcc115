//! Eight small problems computed together with the vector instructions for 52-bit integers, or with AVX2, if the
//! processor has them: [`ProblemLanes`].

pub use crate::kernels::problems::{
    LEAST_TOGETHER, Matrices, PROBLEMS, ProblemColumns, ProblemProducts, Rounded, Systems,
};
#[cfg(not(target_arch = "x86_64"))]
pub use absent::ProblemLanes;
#[cfg(target_arch = "x86_64")]
pub use native::ProblemLanes;

/// Whether the lanes of this processor use AVX2, with which factors, systems and all but the larger products took
/// longer than single calls: measured on a Zen 4 with `SUNZI_CPU=avx2` (docs/decisions/087-lanes-on-avx2.md).
pub fn are_slow() -> bool {
    #[cfg(target_arch = "x86_64")]
    return matches!(ProblemLanes::new(256), Some(ProblemLanes::Avx2(_)));
    #[cfg(not(target_arch = "x86_64"))]
    false
}

thread_local! {
    /// Whether this thread uses the lanes of AVX2 where there are others as well.
    static AVX2_ALONE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs a test on the lanes that are used by default, and on those of AVX2. The tests of several packages call it.
#[doc(hidden)]
pub fn on_all_lanes(check: impl Fn()) {
    for alone in [false, true] {
        AVX2_ALONE.set(alone);
        check();
    }
    AVX2_ALONE.set(false);
}

#[cfg(target_arch = "x86_64")]
mod native {
    use super::{Matrices, ProblemProducts, Rounded, Systems};
    use crate::kernels::x86_64::{ifma52::problem_lanes as ifma52, on_avx2::problem_lanes as avx2};

    /// Eight problems side by side: integers of one length, and how they lie in digits.
    pub enum ProblemLanes {
        /// With AVX-512 IFMA.
        Ifma52(ifma52::ProblemLanes),
        /// With AVX2 and FMA.
        Avx2(avx2::ProblemLanes),
    }

    /// The same call on either.
    macro_rules! on_either {
        ($lanes:expr, $own:ident => $call:expr) => {
            match $lanes {
                ProblemLanes::Ifma52($own) => $call,
                ProblemLanes::Avx2($own) => $call,
            }
        };
    }

    impl ProblemLanes {
        /// For integers `|x| < 2^(bits + 1)`, and sums of products `|s| <= 2^(2 bits)`; `None` where this processor
        /// lacks the instructions, or digits are too few or too many.
        pub fn new(bits: u32) -> Option<ProblemLanes> {
            if super::AVX2_ALONE.get() {
                return avx2::ProblemLanes::new(bits).map(ProblemLanes::Avx2);
            }
            let own = ifma52::ProblemLanes::new(bits).map(ProblemLanes::Ifma52);
            own.or_else(|| avx2::ProblemLanes::new(bits).map(ProblemLanes::Avx2))
        }

        /// Digits of 52 bits of an integer.
        pub fn digits(&self) -> usize {
            on_either!(self, own => own.digits())
        }

        /// The largest number of terms of a sum.
        pub fn most_terms(&self) -> usize {
            on_either!(self, own => own.most_terms())
        }

        /// Words for factors of that order.
        pub fn factor_words(&self, order: usize, precision_bits: u32) -> usize {
            on_either!(self, own => own.factor_words(order, precision_bits))
        }

        /// Factors eight matrices of no more than [`ProblemLanes::most_terms`] rows, with as many words as
        /// [`ProblemLanes::factor_words`]: passes on the entries one by one, by columns, and returns the lanes in which
        /// all of them agree with the definition.
        pub fn factor(&self, matrices: &Matrices<'_>, words: &mut [u64], out: &mut Rounded<'_>) -> u8 {
            on_either!(self, own => own.factor(matrices, words, out))
        }

        /// Words for systems of that order.
        pub fn solve_words(&self, order: usize, precision_bits: u32) -> usize {
            on_either!(self, own => own.solve_words(order, precision_bits))
        }

        /// Solves eight systems of no more than [`ProblemLanes::most_terms`] rows and at least one, with as many words
        /// as [`ProblemLanes::solve_words`]: passes on the unknowns one by one, right side by right side, and returns
        /// the lanes in which all of them agree with the definition.
        pub fn solve(&self, systems: &Systems<'_>, words: &mut [u64], out: &mut Rounded<'_>) -> u8 {
            on_either!(self, own => own.solve(systems, words, out))
        }

        /// Words for products of operands of `columns` columns in all, and `rows` rows.
        pub fn product_words(&self, columns: usize, rows: usize, precision_bits: u32) -> usize {
            on_either!(self, own => own.product_words(columns, rows, precision_bits))
        }

        /// Multiplies operands of no more than [`ProblemLanes::most_terms`] rows, with as many words as
        /// [`ProblemLanes::product_words`]: passes on the wanted entries, exact and then rounded.
        pub fn multiply(&self, products: &ProblemProducts<'_>, words: &mut [u64], out: &mut Rounded<'_>) {
            on_either!(self, own => own.multiply(products, words, out));
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[expect(missing_docs, reason = "documented in the module for x86-64")]
mod absent {
    use super::{Matrices, ProblemProducts, Rounded, Systems};

    /// There is none.
    pub enum ProblemLanes {}

    impl ProblemLanes {
        pub fn new(_bits: u32) -> Option<ProblemLanes> {
            None
        }

        pub fn digits(&self) -> usize {
            match *self {}
        }

        pub fn most_terms(&self) -> usize {
            match *self {}
        }

        pub fn factor_words(&self, _order: usize, _precision_bits: u32) -> usize {
            match *self {}
        }

        pub fn factor(&self, _matrices: &Matrices<'_>, _words: &mut [u64], _out: &mut Rounded<'_>) -> u8 {
            match *self {}
        }

        pub fn solve_words(&self, _order: usize, _precision_bits: u32) -> usize {
            match *self {}
        }

        pub fn solve(&self, _systems: &Systems<'_>, _words: &mut [u64], _out: &mut Rounded<'_>) -> u8 {
            match *self {}
        }

        pub fn product_words(&self, _columns: usize, _rows: usize, _precision_bits: u32) -> usize {
            match *self {}
        }

        pub fn multiply(&self, _products: &ProblemProducts<'_>, _words: &mut [u64], _out: &mut Rounded<'_>) {
            match *self {}
        }
    }
}
