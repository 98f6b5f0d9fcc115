//! Polynomial matrix programs, as SDPB's pmp2sdp takes them, and the semidefinite programs that they are.
//!
//! `max a . z` over the vectors z with `n . z = 1` and `sum_i z_i P_i(x) >= 0` for all `x >= 0`, where each `P_i` is a
//! symmetric matrix of polynomials; `n = (1, 0, 0, ...)` where no normalization is given. A matrix of degree d is
//! determined by its values at `d + 1` points `x_k`; that it is positive semidefinite for `x >= 0` becomes the
//! existence of Y with `M(x_k)_{rs} s_k = A_{rsk} . Y` ([`crate::Sampled`]).
//! Source: the manual of SDPB, equations 2.2 and 3.1; SDPB (`src/pmp`, `src/pmp2sdp`); arXiv:2509.14307.
//! Independent of: files.

mod basis;
mod points;

pub(crate) use basis::orthonormal;

use crate::numbers::entrywise;
use crate::problem::{Constraints, Form, Group, Origin, Problem, Sampled};
use rug::Float;
use sunzi::{Context, Error, MAXIMUM_PRECISION_BITS, Matrix, Result, gemm_with};

/// The function `constant base^x / prod_p (x - p)`, which is positive for `x >= 0` if the constant is positive and no
/// pole p is.
#[derive(Clone, PartialEq, Debug)]
pub struct DampedRational {
    /// The constant factor.
    pub constant: Float,
    /// The base of the exponential.
    pub base: Float,
    /// The poles, each repeated according to its order.
    pub poles: Vec<Float>,
}

impl DampedRational {
    /// Whether it is positive for `x > 0`, and does not grow.
    fn check(&self, name: &str) -> Result<()> {
        let refused = |text: String| Err(Error::InvalidArgument(text));
        let DampedRational { constant, base, poles } = self;
        if constant.is_nan() || *constant <= 0 {
            return refused(format!("the constant of the {name} is {constant:.6}, but must be positive"));
        }
        if base.is_nan() || *base <= 0 || *base > 1 {
            return refused(format!("the base of the {name} is {base:.6}, but must be above 0 and at most 1"));
        }
        match poles.iter().find(|pole| pole.is_nan() || **pole > 0) {
            Some(pole) => refused(format!("the {name} has a pole at {pole:.6}, which is above 0")),
            None => Ok(()),
        }
    }
}

/// Coefficients of a polynomial, from the constant one on.
pub type Polynomial = Vec<Float>;

/// The sampling of a polynomial matrix; values that are `None` are chosen as in SDPB's pmp2sdp.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sampling {
    /// The positive function that multiplies the matrix; by default `e^-x`, and 1 for a constant matrix.
    pub prefactor: Option<DampedRational>,
    /// The prefactor used for the points and bases; `None` for the prefactor of the matrix.
    pub reduced_prefactor: Option<DampedRational>,
    /// The largest number of poles of the reduced prefactor: the poles nearest to 0 are kept.
    pub maximum_poles: Option<usize>,
    /// The sample points.
    pub points: Option<Vec<Float>>,
    /// The factor `s_k` of the matrix at each point; by default the value of the prefactor.
    pub scalings: Option<Vec<Float>>,
    /// The factor of the bases at each point; by default the value of the reduced prefactor.
    pub reduced_scalings: Option<Vec<Float>>,
    /// Polynomials of degree 0, 1, 2 and so on of the even and of the odd basis; by default orthonormal polynomials.
    pub bases: Option<[Vec<Polynomial>; 2]>,
}

/// A symmetric matrix whose entries are vectors of polynomials.
#[derive(Clone, PartialEq, Debug)]
pub struct PolynomialMatrix {
    /// Rows.
    pub dim: usize,
    /// Entries `(r, s)` with `r <= s`, in the order `(0, 0), (0, 1), (1, 1), (0, 2), ...`; each has a polynomial for
    /// every entry of z.
    pub entries: Vec<Vec<Polynomial>>,
    /// The sampling of the matrix.
    pub sampling: Sampling,
}

/// A polynomial program; the page of this module describes its form.
///
/// ```
/// use sunzi::rug::Float;
/// use sunzi_sdp::{PolynomialMatrix, PolynomialProgram, Sampling};
/// let number = |value: i32| Float::with_val(200, value);
/// // max z_1 with x^2 - 4 x + 7 - z_1 >= 0 for x >= 0: 3.
/// let program = PolynomialProgram {
///     objective: vec![number(0), number(1)],
///     normalization: None,
///     matrices: vec![PolynomialMatrix {
///         dim: 1,
///         entries: vec![vec![vec![number(7), number(-4), number(1)], vec![number(-1)]]],
///         sampling: Sampling::default(),
///     }],
/// };
/// let problem = program.problem(200)?;
/// assert_eq!((problem.variables(), problem.free_variables(), problem.total_rows()), (3, 1, 3));
/// # Ok::<(), sunzi::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct PolynomialProgram {
    /// `a`.
    pub objective: Vec<Float>,
    /// `n`.
    pub normalization: Option<Vec<Float>>,
    /// The matrices.
    pub matrices: Vec<PolynomialMatrix>,
}

/// Bits of everything between a polynomial program and the numbers of its semidefinite program at `precision_bits`:
/// values of polynomials are small relative to their terms, roughly by the precision that is then requested.
pub fn working_bits(precision_bits: u32) -> u32 {
    precision_bits.saturating_mul(2).max(precision_bits.saturating_add(64)).min(MAXIMUM_PRECISION_BITS)
}

/// Bits up to which values of polynomials are products of matrices: products with every kernel reach them.
const PRODUCT_BITS: u32 = 5000;

/// A matrix at its points.
struct Samples {
    points: Vec<Float>,
    scalings: Vec<Float>,
    bases: [Vec<Vec<Float>>; 2],
}

/// z as the entry that the normalization determines, and y, the others.
struct Elimination<'a> {
    /// The index of the largest number of the normalization, and the normalization; `None` for `(1, 0, 0, ...)`.
    normalization: Option<(usize, &'a [Float])>,
    bits: u32,
}

impl PolynomialProgram {
    /// The semidefinite program, with the blocks that SDPB's pmp2sdp would write, and its numbers rounded to
    /// `precision_bits`.
    ///
    /// Shapes: each matrix of m rows and degree d becomes a group of `m (m + 1) / 2` variables for each of `D = d + 1`
    /// points (fewer with fewer poles), with blocks of `m ceil(D / 2)` and `m floor(D / 2)` rows; the objective of n
    /// numbers leaves `n - 1` free variables. Accuracy: values and bases are computed with twice the bits and rounded
    /// once. The orthonormal bases are fully accurate, whereas those of pmp2sdp lose some digits to the condition of a
    /// matrix of moments: 6 of 231 at 24 points, 10 at 31. Cost for each matrix: `m^2 n d D / 2` products for the
    /// values (one by one above 2500 bits), about `3 D^3 / 4` for the bases, and for each point a root by Newton's
    /// method. Source: as for the module; docs/decisions/057-polynomial-programs.md.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the number of the matrix, from 0, if the numbers of entries, points or scalings
    /// do not fit, or points cannot be chosen; the errors of [`Matrix::from_fn`].
    pub fn problem(&self, precision_bits: u32) -> Result<Problem> {
        self.check()?;
        let bits = working_bits(precision_bits);
        let elimination = Elimination::new(self, bits);
        let (constant, objective) = elimination.objective(&self.objective);
        let ctx = Context::builder().threads(1).build()?;
        let group = |(number, matrix): (usize, &PolynomialMatrix)| {
            let group = matrix.group(&ctx, &elimination, precision_bits);
            group.map_err(|error| of_matrix(number, error))
        };
        let groups = self.matrices.iter().enumerate().map(group).collect::<Result<Vec<_>>>()?;
        let column = |values: &[Float]| Matrix::from_fn(values.len(), 1, precision_bits, |row, _| values[row].clone());
        let problem = Problem {
            form: Form::Sdpb,
            precision_bits,
            constant: Float::with_val(precision_bits, constant),
            objective: column(&objective)?,
            groups,
            normalization: self.normalization.as_deref().map(column).transpose()?,
        };
        problem.check()?;
        Ok(problem)
    }

    fn check(&self) -> Result<()> {
        let refused = |text: String| Err(Error::InvalidArgument(text));
        let count = self.objective.len();
        if count == 0 || self.matrices.is_empty() {
            let matrices = self.matrices.len();
            return refused(format!(
                "the program has {count} numbers in its objective and {matrices} polynomial matrices, but needs both"
            ));
        }
        if let Some(normalization) = &self.normalization {
            if normalization.len() != count {
                let found = normalization.len();
                return refused(format!("the normalization has {found} numbers, but the objective {count}"));
            }
            if normalization.iter().all(Float::is_zero) {
                return refused("the normalization is 0: no z has n . z = 1".into());
            }
        }
        let mut matrices = self.matrices.iter().enumerate();
        matrices.try_for_each(|(number, matrix)| matrix.check(count).map_err(|error| of_matrix(number, error)))
    }
}

/// The error with the matrix in front.
fn of_matrix(number: usize, error: Error) -> Error {
    match error {
        Error::InvalidArgument(text) => {
            Error::InvalidArgument(format!("polynomial matrix {number}, counted from 0: {text}"))
        }
        other => other,
    }
}

impl<'a> Elimination<'a> {
    fn new(program: &'a PolynomialProgram, bits: u32) -> Elimination<'a> {
        let is_trivial = |n: &[Float]| n[0] == 1 && n[1..].iter().all(Float::is_zero);
        let normalization = program.normalization.as_deref().filter(|n| !is_trivial(n));
        let normalization = normalization.map(|n| {
            let mut largest = 0;
            for at in 1..n.len() {
                if n[at].cmp_abs(&n[largest]).is_some_and(|order| order.is_gt()) {
                    largest = at;
                }
            }
            (largest, n)
        });
        Elimination { normalization, bits }
    }

    /// `f` and `b` of `a . z = f + b . y`, by columns of numbers that stand for the entries of z.
    fn split(&self, values: impl Fn(usize) -> Float, count: usize) -> (Float, Vec<Float>) {
        let Some((largest, n)) = self.normalization else {
            return (values(0), (1..count).map(values).collect());
        };
        let constant = Float::with_val(self.bits, values(largest) / &n[largest]);
        let others = (0..count).filter(|&at| at != largest);
        let other = |at: usize| Float::with_val(self.bits, values(at) - Float::with_val(self.bits, &constant * &n[at]));
        let others = others.map(other).collect();
        (constant, others)
    }

    fn objective(&self, objective: &[Float]) -> (Float, Vec<Float>) {
        self.split(|at| Float::with_val(self.bits, &objective[at]), objective.len())
    }
}

impl Sampling {
    /// Whether the matrix with these factors is positive where it is without: signs of all that is given.
    fn check(&self) -> Result<()> {
        let refused = |text: String| Err(Error::InvalidArgument(text));
        for (name, prefactor) in [("prefactor", &self.prefactor), ("reduced prefactor", &self.reduced_prefactor)] {
            prefactor.iter().try_for_each(|prefactor| prefactor.check(name))?;
        }
        for scalings in [&self.scalings, &self.reduced_scalings].into_iter().flatten() {
            if let Some(at) = scalings.iter().position(|scaling| scaling.is_nan() || *scaling <= 0) {
                return refused(format!(
                    "the scaling of sample point {at} is {:.6}, but must be positive",
                    scalings[at]
                ));
            }
        }
        let Some(points) = &self.points else { return Ok(()) };
        if let Some(at) = points.iter().position(|point| point.is_nan() || *point < 0) {
            return refused(format!("sample point {at} is {:.6}, which is below 0", points[at]));
        }
        let mut sorted = points.iter().collect::<Vec<_>>();
        sorted.sort_by(|a, b| a.total_cmp(b));
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => refused(format!("two sample points coincide at {:.6}", pair[0])),
            None => Ok(()),
        }
    }
}

impl PolynomialMatrix {
    /// The largest degree of the polynomials as they are written: zeros in front count.
    fn degree(&self) -> usize {
        let polynomials = self.entries.iter().flatten();
        polynomials.map(|polynomial| polynomial.len().saturating_sub(1)).max().unwrap_or(0)
    }

    fn check(&self, count: usize) -> Result<()> {
        let refused = |text: String| Err(Error::InvalidArgument(text));
        let wanted = self.dim.checked_mul(self.dim + 1).map_or(0, |twice| twice / 2);
        if wanted == 0 || self.entries.len() != wanted {
            let (dim, found) = (self.dim, self.entries.len());
            return refused(format!(
                "a matrix of {dim} rows needs {wanted} entries with r <= s, at least one, not {found}"
            ));
        }
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.len() != count {
                let found = entry.len();
                return refused(format!("entry {at} has {found} polynomials, but the objective {count} numbers"));
            }
            if let Some(polynomial) = entry.iter().position(Vec::is_empty) {
                return refused(format!("polynomial {polynomial} of entry {at} has no coefficients"));
            }
        }
        self.sampling.check()
    }

    /// Points, scalings and bases, at the working precision.
    fn samples(&self, bits: u32) -> Result<Samples> {
        let refused = |text: String| Err(Error::InvalidArgument(text));
        let sampling = &self.sampling;
        let degree = self.degree();
        let exponential = || {
            let base = match degree {
                0 => Float::with_val(bits, 1),
                _ => Float::with_val(bits, -1).exp(),
            };
            DampedRational { constant: Float::with_val(bits, 1), base, poles: Vec::new() }
        };
        let prefactor = sampling.prefactor.clone().unwrap_or_else(exponential);
        let mut reduced = sampling.reduced_prefactor.clone().unwrap_or_else(|| prefactor.clone());
        if let Some(most) = sampling.maximum_poles.filter(|&most| most < reduced.poles.len()) {
            reduced.poles.sort_by(Float::total_cmp);
            reduced.poles.drain(..reduced.poles.len() - most);
        }
        let count = (degree + 1 + reduced.poles.len()).saturating_sub(prefactor.poles.len());
        if count == 0 {
            let (all, kept) = (prefactor.poles.len(), reduced.poles.len());
            return refused(format!("degree {degree} with {kept} of {all} poles leaves no sample points"));
        }
        let points = match &sampling.points {
            Some(points) => points.clone(),
            None => points::sample_points(count, &reduced, bits)?,
        };
        let has_own_scalings = sampling.reduced_scalings.is_some()
            || sampling.reduced_prefactor.is_some()
            || reduced.poles.len() != prefactor.poles.len();
        let at_points = |prefactor| points::scalings(&points, prefactor, bits);
        let scalings = sampling.scalings.clone().unwrap_or_else(|| at_points(&prefactor));
        let reduced_scalings = match (&sampling.reduced_scalings, has_own_scalings) {
            (Some(scalings), _) => scalings.clone(),
            (None, true) => at_points(&reduced),
            (None, false) => scalings.clone(),
        };
        let lengths = [points.len(), scalings.len(), reduced_scalings.len()];
        if let Some((name, found)) =
            ["points", "scalings", "reduced scalings"].iter().zip(lengths).find(|(_, length)| *length != count)
        {
            return refused(format!("there are {found} {name}, but degree {degree} with these poles requires {count}"));
        }
        let bases = self.bases(&points, &reduced_scalings, bits)?;
        Ok(Samples { points, scalings, bases })
    }

    /// Both bases at the points.
    fn bases(&self, points: &[Float], scalings: &[Float], bits: u32) -> Result<[Vec<Vec<Float>>; 2]> {
        let count = points.len();
        let odd = scalings.iter().zip(points).map(|(s, x)| Float::with_val(bits, s * x)).collect::<Vec<_>>();
        let basis = |parity: usize, weights: &[Float]| {
            let rows = if parity == 0 { count.div_ceil(2) } else { count / 2 };
            match &self.sampling.bases {
                Some(bases) if bases[parity].len() < rows => {
                    let found = bases[parity].len();
                    Err(Error::InvalidArgument(format!(
                        "basis {parity} has {found} polynomials, but {count} points require at least {rows}"
                    )))
                }
                Some(bases) => basis::given(&bases[parity][..rows], points, weights, bits),
                None if count == 1 => basis::given(&vec![vec![Float::with_val(bits, 1)]; rows], points, weights, bits),
                None => orthonormal(points, weights, rows, bits),
            }
        };
        Ok([basis(0, scalings)?, basis(1, &odd)?])
    }

    /// The values `s_k P_i^{rs}(x_k)`: a row for each entry `(r, s)` and each i, a column for each point.
    fn values(&self, ctx: &Context, samples: &Samples, bits: u32) -> Result<Matrix> {
        let polynomials = self.entries.iter().flatten().collect::<Vec<_>>();
        if bits > PRODUCT_BITS {
            return Matrix::from_fn(polynomials.len(), samples.points.len(), bits, |row, point| {
                basis::value(polynomials[row], &samples.points[point], bits) * &samples.scalings[point]
            });
        }
        let coefficients = Matrix::from_fn(polynomials.len(), self.degree() + 1, bits, |row, power| {
            polynomials[row].get(power).cloned().unwrap_or_else(|| Float::new(2))
        })?;
        let mut powers = Vec::with_capacity(samples.points.len());
        for (x, scaling) in samples.points.iter().zip(&samples.scalings) {
            let mut power = Float::with_val(bits, scaling);
            let column = (0..=self.degree()).map(|_| {
                let found = power.clone();
                power *= x;
                found
            });
            powers.push(column.collect::<Vec<_>>());
        }
        let powers =
            Matrix::from_fn(self.degree() + 1, powers.len(), bits, |power, point| powers[point][power].clone())?;
        Ok(gemm_with(ctx, &coefficients, &powers, bits, &entrywise())?.result)
    }

    fn group(&self, ctx: &Context, elimination: &Elimination<'_>, precision_bits: u32) -> Result<Group> {
        let bits = elimination.bits;
        let samples = self.samples(bits)?;
        let values = self.values(ctx, &samples, bits)?;
        let (points, count) = (samples.points.len(), self.entries[0].len());
        let variables = self.entries.len() * points;
        let mut costs = Matrix::zeros(variables, 1, precision_bits)?;
        let mut free = Matrix::zeros(variables, count - 1, precision_bits)?;
        for variable in 0..variables {
            let (entry, point) = (variable / points, variable % points);
            let (constant, others) = elimination.split(|at| values.float(entry * count + at, point), count);
            costs.set_float(variable, 0, &constant)?;
            for (col, other) in others.into_iter().enumerate() {
                free.set_float(variable, col, &-other)?;
            }
        }
        let Samples { points: at, scalings, bases } = samples;
        let bases = bases.map(|rows| {
            let cols = if rows.is_empty() { 0 } else { points };
            Matrix::from_fn(rows.len(), cols, precision_bits, |row, point| rows[row][point].clone())
        });
        let [even, odd] = bases;
        let constraints = Sampled::new(self.dim, points, [even?, odd?])?.with_origin(Origin { points: at, scalings });
        let constraints = Constraints::Sampled(constraints);
        Ok(Group { costs, free, constraints })
    }
}
