//! Up to eight small triangular systems of one shape side by side, each in a lane of its own.
//!
//! Solves systems that the single call solves in fixed point on tiles, with the same integers and so the same bits. A
//! system that needs more bits than the others, or has a rounding too close to call, is left to the single call.

use crate::context::{Context, WorkspaceNeeds};
use crate::error::{Error, Result};
use crate::kernels::problem_lanes::{LEAST_TOGETHER, PROBLEMS, ProblemLanes, Systems};
use crate::math::bound::{TRSM_FIXED_BITS, TRSM_FIXED_SPARE_BITS};
use crate::math::float::{FloatRef, Head, round_integer};
use crate::matrix::{Destination, MatrixView, MatrixViewMut, check_exponent};
use crate::ops::exact_sum::ExactEntry;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::problem::{LOWER, Method, Path, SystemShape, solve_bits};
use crate::ops::solve::system::TriangularSystem;
use crate::ops::solve::tiles::{first_bits, tries};
use crate::ops::solve::triangle::{Triangle, backwards};
use crate::store::Buffer;
use bytemuck::cast_slice_mut;

/// Bytes of the words of eight systems beyond which they leave the nearest caches: the value measured for factors.
const MOST_BYTES: u64 = 2 << 20;

/// The largest number of bits beyond those of the unknowns: systems whose pivots need more are left to single calls.
const MOST_EXTRA_BITS: u32 = 2 * TRSM_FIXED_BITS;

/// Systems of one shape and precision.
pub(crate) struct LaneSolves {
    lanes: ProblemLanes,
    shape: SystemShape,
    precision_bits: u32,
    working_bits: u32,
    extra_bits: u32,
}

/// One of the systems, its unknowns in the order in which they are found.
#[derive(Clone, Copy)]
struct OneSystem<'a> {
    triangle: Triangle<'a>,
    lower: MatrixView<'a>,
    right: MatrixView<'a>,
    extra_bits: u32,
}

impl LaneSolves {
    /// The path where this processor has it, neither a kernel nor devices are prescribed, and the single call is one in
    /// fixed point; with as many bits as most systems take.
    pub fn choose(ctx: &Context, shape: SystemShape, precision_bits: u32) -> Option<LaneSolves> {
        LaneSolves::with_extra_bits(ctx, shape, precision_bits, MOST_EXTRA_BITS)
    }

    fn with_extra_bits(ctx: &Context, shape: SystemShape, precision_bits: u32, extra_bits: u32) -> Option<LaneSolves> {
        let SystemShape { order, columns } = shape;
        let path = Method::choose(LOWER, order, columns, Accuracy::Norm).path;
        if path != Path::Tiles || ctx.forced_kernel().is_some() || !ctx.devices().is_empty() {
            return None;
        }
        let working_bits = solve_bits(ctx, LOWER, precision_bits, order).ok()?.working;
        tries(working_bits, extra_bits.into()).next()?;
        let lanes = ProblemLanes::new(working_bits + extra_bits)?;
        let all = LaneSolves { lanes, shape, precision_bits, working_bits, extra_bits };
        (order <= all.lanes.most_terms() && all.bytes() <= MOST_BYTES).then_some(all)
    }

    /// Words of the exponents of rows and right-hand sides, and of the lanes.
    fn words(&self) -> usize {
        let SystemShape { order, columns } = self.shape;
        (order + columns) * PROBLEMS + self.lanes.solve_words(order, self.working_bits)
    }

    /// Bytes in addition to the solutions.
    pub fn bytes(&self) -> u64 {
        Buffer::bytes_for(self.words())
    }

    /// The same for the bits that most of these systems take, if they are enough of them.
    fn suited(self, ctx: &Context, systems: &[Option<OneSystem<'_>>; PROBLEMS]) -> Option<LaneSolves> {
        let count = |bits: u32| systems.iter().flatten().filter(|system| system.extra_bits == bits).count();
        let steps = (TRSM_FIXED_BITS..=MOST_EXTRA_BITS).step_by(TRSM_FIXED_BITS as usize);
        let bits = steps.max_by_key(|&bits| (count(bits), std::cmp::Reverse(bits)))?;
        if count(bits) < LEAST_TOGETHER {
            return None;
        }
        LaneSolves::with_extra_bits(ctx, self.shape, self.precision_bits, bits)
    }

    /// A system in the form for a lane; `None` for one that only the single call solves.
    fn one<'a>(&self, system: &TriangularSystem<'a>) -> Option<OneSystem<'a>> {
        let triangle = Triangle::new(system.t, system.uplo, system.diag).ok()?;
        let SystemShape { order, columns } = self.shape;
        let fits = (triangle.order(), system.b.rows(), system.b.cols()) == (order, order, columns);
        if !fits || system.alpha.is_some() || system.b.precision_bits() > self.working_bits {
            return None;
        }
        let exponent = |i: usize| if triangle.is_unit() { 1 } else { triangle.get(i, i).head.exponent() };
        let growth = (0..order).map(|i| triangle.row_exponent(i, &(0..order)) + 1 - exponent(i)).max()?;
        let extra_bits = u32::try_from(first_bits(growth, Accuracy::Norm)).ok()?;
        let reversed = !triangle.is_lower();
        let lower = if reversed { backwards(system.t) } else { system.t };
        let right = if reversed { system.b.reversed_rows() } else { system.b };
        Some(OneSystem { triangle, lower, right, extra_bits })
    }

    /// Solves up to eight systems with one kind of triangle into the places of their solutions: a bit for each that is
    /// done.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn run(
        self,
        ctx: &Context,
        systems: &[Option<TriangularSystem<'_>>; PROBLEMS],
        destinations: [Option<Destination<'_>>; PROBLEMS],
    ) -> Result<u8> {
        let mut all: [Option<OneSystem<'_>>; PROBLEMS] =
            std::array::from_fn(|lane| systems[lane].as_ref().and_then(|system| self.one(system)));
        let Some(suited) = self.suited(ctx, &all) else { return Ok(0) };
        let transposed = systems.iter().flatten().next().is_some_and(|system| system.transposed);
        let mut results = LaneResults { views: std::array::from_fn(|_| None), transposed };
        for (lane, destination) in destinations.into_iter().enumerate() {
            all[lane] = all[lane].filter(|one| one.extra_bits == suited.extra_bits);
            let (Some(_), Some(system), Some(destination)) = (&all[lane], &systems[lane], destination) else {
                all[lane] = None;
                continue;
            };
            let shape = (suited.shape.order, suited.shape.columns);
            let shape = if system.transposed { (shape.1, shape.0) } else { shape };
            match destination.prepare(shape, suited.precision_bits) {
                Err(error @ Error::OutOfMemory { .. }) => return Err(error),
                Err(_) => all[lane] = None,
                Ok(view) => results.views[lane] = Some(view),
            }
        }
        let memory = ctx.memory_beside_tables();
        let Some(first) = all.iter().flatten().next().copied().filter(|_| memory.admit(suited.bytes()).is_ok()) else {
            return Ok(0);
        };
        let mut workspace = ctx.workspace();
        let operand_bytes = suited.bytes();
        let needs = WorkspaceNeeds { operand_bytes, planned_bytes: operand_bytes, ..WorkspaceNeeds::default() };
        workspace.trim(memory, &needs);
        let words = workspace.operands.words(suited.words())?;
        // Lanes without a system repeat the work of the first one.
        let lanes = all.map(|one| one.unwrap_or(first));
        Ok(suited.solve(&lanes, &mut results, words))
    }

    /// Solves the systems of all lanes, for those that have a place for their solution.
    fn solve(&self, lanes: &[OneSystem<'_>; PROBLEMS], results: &mut LaneResults<'_>, words: &mut [u64]) -> u8 {
        let SystemShape { order, columns } = self.shape;
        let (exponents, words) = words.split_at_mut(order * PROBLEMS);
        let (scales, words) = words.split_at_mut(columns * PROBLEMS);
        let (exponents, scales) = (cast_slice_mut::<u64, i64>(exponents), cast_slice_mut::<u64, i64>(scales));
        let spare = i64::from(self.extra_bits - TRSM_FIXED_SPARE_BITS);
        let reversed = !lanes[0].triangle.is_lower();
        let place = |row: usize| if reversed { order - 1 - row } else { row };
        for (lane, one) in lanes.iter().enumerate() {
            for row in 0..order {
                exponents[row * PROBLEMS + lane] = one.triangle.row_exponent(place(row), &(0..order));
            }
            for col in 0..columns {
                let heads = (0..order).map(|row| (one.right.get(row, col).head, exponents[row * PROBLEMS + lane]));
                let sizes = heads.filter(|(head, _)| !head.is_zero()).map(|(head, own)| head.exponent() - own);
                scales[col * PROBLEMS + lane] = sizes.max().unwrap_or(0) + spare;
            }
        }
        let systems = Systems {
            triangles: lanes.map(|one| one.lower),
            unit: lanes[0].triangle.is_unit(),
            rights: lanes.map(|one| one.right),
            order,
            columns,
            exponents,
            scales,
            precision_bits: self.working_bits,
        };
        let mut beyond = 0u8;
        let there =
            (0..PROBLEMS).filter(|&lane| results.views[lane].is_some()).fold(0u8, |bits, lane| bits | 1 << lane);
        let done = self.lanes.solve(&systems, words, &mut |(row, col), heads, limbs| {
            beyond |= results.scatter(place(row), col, heads, limbs);
        });
        done & there & !beyond
    }
}

/// Where the solutions of all lanes go.
struct LaneResults<'a> {
    views: [Option<MatrixViewMut<'a>>; PROBLEMS],
    /// Whether they are the transposes of the solutions.
    transposed: bool,
}

impl LaneResults<'_> {
    /// Rounds the unknown in row `row` and column `col` of each solution to the bits of the solution; those whose
    /// exponent is beyond all limits.
    fn scatter(&mut self, row: usize, col: usize, heads: &[u64; PROBLEMS], limbs: &[u64]) -> u8 {
        let (row, col) = if self.transposed { (col, row) } else { (row, col) };
        let (mut beyond, width) = (0, limbs.len() / PROBLEMS);
        for (lane, result) in self.views.iter_mut().enumerate() {
            let Some(result) = result else { continue };
            let value = FloatRef { head: Head(heads[lane]), limbs: &limbs[lane * width..][..width] };
            let (at, own_width) = (row + col * result.leading_dimension(), result.limbs_per_element());
            let precision_bits = result.precision_bits();
            let (own, significands) = result.reborrow().into_parts();
            let out = &mut significands[at * own_width..][..own_width];
            // As the single call does: rounded to the bits of the unknowns, and once more.
            let entry = ExactEntry::from(value);
            let head = round_integer(entry.negative, entry.magnitude, entry.exponent, precision_bits, out);
            if [value.head, head].iter().any(|head| check_exponent(head.exponent(), row, col).is_err()) {
                beyond |= 1 << lane;
                continue; // no matrix holds such a number
            }
            own[at] = head.0;
        }
        beyond
    }
}

#[cfg(test)]
mod tests {
    //! Systems side by side against single calls.

    use super::*;
    use crate::kernels::problem_lanes::on_all_lanes;
    use crate::matrix::{Diag, MAXIMUM_EXPONENT, Matrix, Op, Side, Uplo};
    use crate::ops::product::problem::Accuracy;
    use crate::ops::trsm::{TrsmOptions, oriented, trsm_with};
    use rug::rand::RandState;
    use rug::{Float, Integer};

    /// The special property of a lane.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Kind {
        Plain,
        /// Exponents of rows and columns far apart, some entries 0.
        Spread,
        /// Right sides of which one is 0, and zeros below the diagonal.
        Zeros,
        /// Pivots so small that the first try takes more bits.
        SmallPivots,
        /// Unknowns that outgrow their right side.
        Growing,
        /// A right side of more bits than the unknowns.
        LongRight,
        /// A zero on the diagonal.
        Singular,
        /// Solutions beyond the exponent range.
        Beyond,
    }

    const KINDS: [Kind; PROBLEMS] = [
        Kind::Plain,
        Kind::Spread,
        Kind::Zeros,
        Kind::SmallPivots,
        Kind::Growing,
        Kind::LongRight,
        Kind::Singular,
        Kind::Beyond,
    ];

    /// A triangle, stored as a whole matrix so that either part can be used, and right sides of that shape.
    fn system(kind: Kind, (order, shape): (usize, (usize, usize)), bits: u32, rng: &mut RandState<'_>) -> [Matrix; 2] {
        let mut t = Matrix::zeros(order, order, bits).unwrap();
        let mut random = |bits: u32| Float::with_val(bits, Float::random_bits(rng)) - 0.5f64;
        for (row, col) in (0..order).flat_map(|row| (0..order).map(move |col| (row, col))) {
            let mut value = random(bits) >> 2u32;
            if row == col {
                value = Float::with_val(bits, value.abs_ref()) + 0.75f64;
                value = if row % 3 == 1 { -value } else { value };
                match kind {
                    Kind::SmallPivots if row == order / 2 => value >>= 40u32,
                    Kind::Beyond if row == order / 2 => value >>= 8u32,
                    Kind::Growing if row > 0 => value >>= 18u32,
                    Kind::Singular if row == 2 => value = Float::new(bits),
                    _ => (),
                }
            } else if kind == Kind::Zeros && (row + col) % 4 == 0 {
                value = Float::new(bits);
            }
            let shift = if kind == Kind::Spread { 700 * (row as i32 % 5) } else { 0 };
            t.set_float(row, col, &(value << shift)).unwrap();
        }
        let right_bits = if kind == Kind::LongRight { 2 * bits + 64 } else { bits };
        let mut b = Matrix::zeros(shape.0, shape.1, right_bits).unwrap();
        for (row, col) in (0..shape.0).flat_map(|row| (0..shape.1).map(move |col| (row, col))) {
            let value = random(right_bits);
            let value = if kind == Kind::Zeros && (row == 1 || col == 1) { Float::new(bits) } else { value };
            let shift = match kind {
                Kind::Spread => 31 * (row as i32 % 4) - 900 * (col as i32 % 3),
                Kind::Beyond => MAXIMUM_EXPONENT as i32 - 3,
                _ => 0,
            };
            b.set_float(row, col, &(value << shift)).unwrap();
        }
        [t, b]
    }

    /// The systems side by side: a bit for each that is done, and the results.
    fn run_all(
        ctx: &Context,
        together: LaneSolves,
        pairs: &[[Matrix; 2]; PROBLEMS],
        (bits, options): (u32, &TrsmOptions<'_>),
    ) -> (u8, Vec<Matrix>) {
        let systems = std::array::from_fn(|lane| {
            let [t, b] = &pairs[lane];
            oriented(t.view(), b.view(), bits, options).ok()
        });
        let mut results = vec![Matrix::empty(); PROBLEMS];
        let mut places = results.iter_mut().map(|result| Some(Destination::Matrix(result)));
        let destinations = std::array::from_fn(|_| places.next().flatten());
        drop(places);
        let done = together.run(ctx, &systems, destinations).unwrap();
        (done, results)
    }

    /// All sides, triangles, transposes and diagonals; all lanes are done except those that must be left to the single
    /// call.
    #[test]
    fn systems_side_by_side_are_those_of_single_calls() {
        on_all_lanes(check_systems);
    }

    fn check_systems() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let mut rng = RandState::new();
        rng.seed(&Integer::from(77));
        let mut groups = 0;
        for (case, (order, columns, bits)) in
            [(17, 8, 64), (17, 9, 150), (20, 8, 256), (18, 12, 400), (24, 8, 768), (31, 8, 300), (17, 8, 1100)]
                .into_iter()
                .cycle()
                .take(28)
                .enumerate()
        {
            let options = TrsmOptions::new()
                .accuracy(Accuracy::Norm)
                .side(if case % 2 == 0 { Side::Left } else { Side::Right })
                .uplo(if case / 2 % 2 == 0 { Uplo::Lower } else { Uplo::Upper })
                .op(if case / 4 % 2 == 0 { Op::NoTranspose } else { Op::Transpose })
                .diag(if case % 5 == 4 { Diag::Unit } else { Diag::NonUnit });
            let shape = if options.side == Side::Left { (order, columns) } else { (columns, order) };
            let Some(together) = LaneSolves::choose(&ctx, SystemShape { order, columns }, bits) else { continue };
            groups += 1;
            let pairs = KINDS.map(|kind| system(kind, (order, shape), bits, &mut rng));
            let (done, results) = run_all(&ctx, together, &pairs, (bits, &options));
            // The entries of a row have its exponent where rows are those of the system that is solved.
            let rows_stay = (options.side == Side::Left) == (options.op == Op::NoTranspose);
            for (lane, ([t, b], got)) in pairs.iter().zip(&results).enumerate() {
                let (kind, is_done) = (KINDS[lane], done >> lane & 1 == 1);
                let what = format!("{order} x {columns}, {bits} bits, {options:?}, {kind:?}");
                let want = trsm_with(&ctx, t, b, bits, &options).map(|outcome| outcome.result);
                let unit = options.diag == Diag::Unit;
                match kind {
                    Kind::Plain | Kind::Zeros => assert!(is_done, "{what}"),
                    Kind::Spread => assert_eq!(is_done, rows_stay && !unit, "{what}"),
                    Kind::SmallPivots | Kind::Growing | Kind::Singular | Kind::Beyond if !unit => {
                        assert!(!is_done, "{what}");
                        assert!(kind == Kind::SmallPivots || kind == Kind::Growing || want.is_err(), "{what}");
                    }
                    Kind::LongRight => assert!(!is_done, "{what}"),
                    _ => (),
                }
                // A lane that is given up leaves only entries that a matrix may hold.
                let entries = (0..got.rows()).flat_map(|row| (0..got.cols()).map(move |col| (row, col)));
                for (row, col) in entries {
                    let head = got.view().get(row, col).head;
                    assert!(head.is_zero() || check_exponent(head.exponent(), row, col).is_ok(), "{what}");
                }
                assert!(!is_done || *got == want.unwrap(), "{what}");
            }
        }
        assert!(groups > 20 || ProblemLanes::new(100).is_none(), "no system goes side by side");
    }

    /// Systems that all take more bits go side by side with these, if there are enough of them.
    #[test]
    fn systems_of_small_pivots_go_side_by_side_with_more_bits() {
        on_all_lanes(check_small_pivots);
    }

    fn check_small_pivots() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let mut rng = RandState::new();
        rng.seed(&Integer::from(78));
        let options = TrsmOptions::new().accuracy(Accuracy::Norm);
        for count in [PROBLEMS, LEAST_TOGETHER, LEAST_TOGETHER - 1] {
            let of_all = SystemShape { order: 20, columns: 8 };
            let Some(together) = LaneSolves::choose(&ctx, of_all, 256) else { return println!("skipped: no lanes") };
            let pairs: [_; PROBLEMS] = std::array::from_fn(|lane| {
                let kind = if lane < count { Kind::SmallPivots } else { Kind::LongRight };
                system(kind, (20, (20, 8)), 256, &mut rng)
            });
            let (done, results) = run_all(&ctx, together, &pairs, (256, &options));
            assert_eq!(done, if count < LEAST_TOGETHER { 0 } else { u8::MAX >> (PROBLEMS - count) });
            for ([t, b], got) in pairs.iter().zip(&results).take(done.count_ones() as usize) {
                assert!(*got == trsm_with(&ctx, t, b, 256, &options).unwrap().result);
            }
        }
    }
}
