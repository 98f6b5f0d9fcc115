//! Units in which a program's numbers are near 1: powers of two for its constraints, blocks and objectives.
//!
//! With `x_p = 2^(rho_p - delta) x'_p`, `X'_k = 2^(sigma_k + delta) X_k`, `Y'_k = 2^(gamma - sigma_k) Y_k` and
//! `y'_j = 2^(gamma - tau_j) y_j` the program in the new units has the matrices `2^(rho_p + sigma_k) A_pk` and
//! `2^(rho_p + tau_j) B_pj`, the constants `2^(sigma_k + delta) C_k` and `2^(tau_j + delta) b_j`, and the costs
//! `2^(rho_p + gamma) c_p`; its objectives are `2^(gamma + delta)` times those of the program, and so is `X . Y`. A
//! block of a diagonal is one for each entry. No bit of a significand changes.
//!
//! Exponents rho, sigma and tau bring those of the largest entries of all `A_pk` and `B_pj` as near to 0 as least
//! squares do, gamma and delta those of the largest costs and constants to 0. So a program whose constraints or blocks
//! are multiplied by powers of two has the same numbers in these units, except for roundings of exponents.
//! Independent of: files, iterations.

use super::{Constraints, Form, Group, Problem, Sparse, SparseCone};
use crate::block::Shape;
use crate::numbers::shift;
use rug::Float;
use sunzi::{Matrix, Result};

/// Exponents of a program's numbers beyond which it gets units of its own: below, all is as SDPA has it.
const WINDOW: i64 = 24;

/// Exponents beyond which a program is left as it is: sums of a few of them are still those of numbers.
const MOST: i64 = 1 << 24;

/// Passes over the largest entries that least squares take.
const PASSES: usize = 100;

/// Exponents of numbers, each with the variable or place that it belongs to.
type Exponents = [(usize, i64)];

/// The exponents of a program's units; see the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Units {
    /// rho.
    variables: Vec<i64>,
    /// sigma: one number for a dense block, one for each entry of a diagonal.
    blocks: Vec<Vec<i64>>,
    /// tau.
    free: Vec<i64>,
    gamma: i64,
    delta: i64,
}

/// The exponent `e` of a number with `2^(e-1) <= |value| < 2^e`; none of 0.
fn exponent(value: &Float) -> Option<i64> {
    value.get_exp().map(i64::from)
}

/// The unit of an entry's block among those of its cone.
fn place(shape: Shape, row: usize) -> usize {
    match shape {
        Shape::Dense(_) => 0,
        Shape::Diagonal(_) => row,
    }
}

fn count(shape: Shape) -> usize {
    match shape {
        Shape::Dense(_) => 1,
        Shape::Diagonal(order) => order,
    }
}

/// The exponent of the largest entry of a variable in a block or a column of B, which have one numbering.
struct Largest {
    variable: usize,
    place: usize,
    exponent: i64,
}

/// The largest entries of all matrices, and where the blocks of each cone begin in their numbering; columns of B are
/// behind them.
fn largest(group: &Group, cones: &[SparseCone]) -> (Vec<Largest>, Vec<usize>) {
    let mut starts = vec![0];
    for cone in cones {
        starts.push(starts[starts.len() - 1] + count(cone.shape));
    }
    let mut found = Vec::new();
    for (cone, start) in cones.iter().zip(&starts) {
        for (&variable, entries) in cone.active.iter().zip(&cone.entries) {
            let mut own = Vec::<Largest>::new();
            for entry in entries {
                let Some(exponent) = exponent(&entry.value) else { continue };
                let place = start + place(cone.shape, entry.row);
                // Entries of a diagonal have places of their own, and stand in their order.
                match own.last_mut().filter(|known| known.place == place) {
                    Some(known) => known.exponent = known.exponent.max(exponent),
                    None => own.push(Largest { variable, place, exponent }),
                }
            }
            found.append(&mut own);
        }
    }
    let first = starts[starts.len() - 1];
    for (variable, col) in (0..group.free.rows()).flat_map(|row| (0..group.free.cols()).map(move |col| (row, col))) {
        if let Some(exponent) = exponent(&group.free.float(variable, col)) {
            found.push(Largest { variable, place: first + col, exponent });
        }
    }
    (found, starts)
}

/// Exponents for variables and for places, on the way to whole ones.
struct Balance {
    of_variables: Vec<f64>,
    of_places: Vec<f64>,
}

/// Exponents for variables and for places that bring those of the largest entries near 0.
fn balanced(largest: &[Largest], variables: usize, places: usize) -> Balance {
    let (mut of_variables, mut of_places) = (vec![0.0; variables], vec![0.0; places]);
    let mean = |sums: &[(f64, f64)], into: &mut Vec<f64>| {
        into.iter_mut().zip(sums).filter(|(_, sum)| sum.1 > 0.0).for_each(|(value, sum)| *value = -sum.0 / sum.1);
    };
    for _ in 0..PASSES {
        let mut sums = vec![(0.0, 0.0); variables];
        for one in largest {
            let sum = &mut sums[one.variable];
            *sum = (sum.0 + one.exponent as f64 + of_places[one.place], sum.1 + 1.0);
        }
        mean(&sums, &mut of_variables);
        let mut sums = vec![(0.0, 0.0); places];
        for one in largest {
            let sum = &mut sums[one.place];
            *sum = (sum.0 + one.exponent as f64 + of_variables[one.variable], sum.1 + 1.0);
        }
        mean(&sums, &mut of_places);
    }
    Balance { of_variables, of_places }
}

/// The part of each variable and of each place behind them: they are of one part where entries connect them.
fn parts(largest: &[Largest], variables: usize, places: usize) -> Vec<usize> {
    fn root(parents: &mut [usize], mut at: usize) -> usize {
        while parents[at] != at {
            parents[at] = parents[parents[at]];
            at = parents[at];
        }
        at
    }
    let mut parents = (0..variables + places).collect::<Vec<_>>();
    for one in largest {
        let (from, to) = (root(&mut parents, one.variable), root(&mut parents, variables + one.place));
        parents[from.max(to)] = from.min(to);
    }
    (0..parents.len()).map(|at| root(&mut parents, at)).collect()
}

impl Balance {
    /// Whole exponents. A scaling of all variables of a part that is undone at its places changes no matrix: it brings
    /// the largest of the part's costs and the largest of its constants to the same size.
    fn levelled(self, parts: &[usize], costs: &Exponents, constants: &Exponents) -> (Vec<i64>, Vec<i64>) {
        let Balance { mut of_variables, mut of_places } = self;
        let variables = of_variables.len();
        let most = |list: &mut dyn Iterator<Item = (usize, f64)>| {
            let mut most = vec![None::<f64>; parts.len()];
            list.for_each(|(part, size)| most[part] = Some(most[part].map_or(size, |most| most.max(size))));
            most
        };
        let of_costs = most(&mut costs.iter().map(|&(at, size)| (parts[at], size as f64 + of_variables[at])));
        let of_constants = constants.iter().map(|&(at, size)| (parts[variables + at], size as f64 + of_places[at]));
        let of_constants = most(&mut of_constants.into_iter());
        let both =
            || of_costs.iter().zip(&of_constants).filter_map(|(costs, constants)| Some((*costs)? + (*constants)?));
        // Parts that have only one kind of numbers follow those that have both.
        let size = both().fold(f64::NEG_INFINITY, f64::max) / 2.0;
        let size = if size.is_finite() { size } else { 0.0 };
        let levels = of_costs.iter().zip(&of_constants).map(|(costs, constants)| match (costs, constants) {
            (Some(costs), Some(constants)) => (constants - costs) / 2.0,
            (Some(costs), None) => size - costs,
            (None, Some(constants)) => constants - size,
            (None, None) => 0.0,
        });
        let levels = levels.collect::<Vec<_>>();
        of_variables.iter_mut().enumerate().for_each(|(at, value)| *value += levels[parts[at]]);
        of_places.iter_mut().enumerate().for_each(|(at, value)| *value -= levels[parts[variables + at]]);
        let whole = |list: Vec<f64>| list.into_iter().map(|value| value.round() as i64).collect();
        (whole(of_variables), whole(of_places))
    }
}

impl Units {
    /// The units of a program in SDPA's form some of whose sizes lie outside 2^-24 to 2^24: of its costs, of its
    /// constants, and of each variable's and each block's largest entry. None for other programs, which stay as they
    /// are.
    pub fn of(problem: &Problem) -> Option<Units> {
        let [group] = &problem.groups[..] else { return None };
        let (Form::Sdpa, Constraints::Sparse(sparse)) = (problem.form, &group.constraints) else { return None };
        let (largest, starts) = largest(group, &sparse.cones);
        let blocks = starts[starts.len() - 1];
        let places = blocks + problem.objective.rows();
        let column =
            |matrix: &Matrix| (0..matrix.rows()).map(|row| exponent(&matrix.float(row, 0))).collect::<Vec<_>>();
        let (costs, right) = (column(&group.costs), column(&problem.objective));
        let constants = sparse.cones.iter().zip(&starts).flat_map(|(cone, start)| {
            cone.constant.iter().map(move |entry| (start + place(cone.shape, entry.row), exponent(&entry.value)))
        });
        let constants = constants.chain(right.into_iter().enumerate().map(|(at, found)| (blocks + at, found)));
        let constants = constants.filter_map(|(place, found)| Some((place, found?))).collect::<Vec<_>>();
        let mut sizes = vec![i64::MIN; sparse.variables + places];
        for one in &largest {
            for at in [one.variable, sparse.variables + one.place] {
                sizes[at] = sizes[at].max(one.exponent);
            }
        }
        sizes.extend(costs.iter().copied().flatten().max());
        sizes.extend(constants.iter().map(|(_, found)| *found).max());
        sizes.retain(|&size| size != i64::MIN);
        let all = largest.iter().map(|one| one.exponent).chain(costs.iter().copied().flatten());
        let mut all = all.chain(constants.iter().map(|(_, found)| *found));
        if sizes.iter().all(|size| size.abs() <= WINDOW) || all.any(|size| size.abs() > MOST) {
            return None;
        }
        let balance = balanced(&largest, sparse.variables, places);
        let parts = parts(&largest, sparse.variables, places);
        let of_costs = costs.iter().enumerate().filter_map(|(at, found)| Some((at, (*found)?))).collect::<Vec<_>>();
        let (variables, of_places) = balance.levelled(&parts, &of_costs, &constants);
        let scaled = of_costs.iter().map(|(variable, found)| found + variables[*variable]);
        let gamma = -scaled.max().unwrap_or(0);
        let delta = -constants.iter().map(|(place, found)| found + of_places[*place]).max().unwrap_or(0);
        let of_cone = |pair: &[usize]| of_places[pair[0]..pair[1]].to_vec();
        let free = of_places[blocks..].to_vec();
        Some(Units { variables, blocks: starts.windows(2).map(of_cone).collect(), free, gamma, delta })
    }

    /// The units without those of some variables and free variables, listed in ascending order.
    pub(super) fn without(&self, variables: &[usize], free: &[usize]) -> Units {
        let kept = |list: &[i64], dropped: &[usize]| {
            let kept = list.iter().enumerate().filter(|(at, _)| dropped.binary_search(at).is_err());
            kept.map(|(_, exponent)| *exponent).collect()
        };
        Units { variables: kept(&self.variables, variables), free: kept(&self.free, free), ..self.clone() }
    }

    /// The program in these units.
    ///
    /// # Errors
    /// The errors of copies of matrices.
    pub fn applied(&self, problem: &Problem) -> Result<Problem> {
        self.program(problem, 1)
    }

    /// The original program of a program in these units.
    ///
    /// # Errors
    /// The errors of copies of matrices.
    pub fn removed(&self, problem: &Problem) -> Result<Problem> {
        self.program(problem, -1)
    }

    fn program(&self, problem: &Problem, sign: i64) -> Result<Problem> {
        let mut changed = problem.clone();
        let (gamma, delta) = (sign * self.gamma, sign * self.delta);
        changed.constant = shifted(&problem.constant, gamma + delta);
        shift(&mut changed.objective, |at, _| sign * self.free[at] + delta);
        for group in &mut changed.groups {
            shift(&mut group.costs, |at, _| sign * self.variables[at] + gamma);
            shift(&mut group.free, |at, col| sign * (self.variables[at] + self.free[col]));
            let Constraints::Sparse(sparse) = &group.constraints else { continue };
            let mut cones = sparse.cones.clone();
            for (cone, units) in cones.iter_mut().zip(&self.blocks) {
                let SparseCone { shape, active, entries, constant } = cone;
                for (&variable, list) in active.iter().zip(entries) {
                    for entry in list {
                        let by = self.variables[variable] + units[place(*shape, entry.row)];
                        entry.value = shifted(&entry.value, sign * by);
                    }
                }
                for entry in constant {
                    entry.value = shifted(&entry.value, sign * units[place(*shape, entry.row)] + delta);
                }
            }
            group.constraints = Constraints::Sparse(Sparse::new(sparse.variables, cones));
        }
        Ok(changed)
    }

    /// The exponent by which a variable x in these units is larger.
    pub fn of_x(&self, at: usize) -> i64 {
        self.delta - self.variables[at]
    }

    /// The exponent by which a free variable is larger.
    pub fn of_y(&self, at: usize) -> i64 {
        self.gamma - self.free[at]
    }

    /// The exponent by which a row of a block of X is larger.
    pub fn of_primal(&self, cone: usize, row: usize) -> i64 {
        self.of_block(cone, row) + self.delta
    }

    /// The exponent by which a row of a block of Y is larger.
    pub fn of_dual(&self, cone: usize, row: usize) -> i64 {
        self.gamma - self.of_block(cone, row)
    }

    /// The unit of a diagonal's entry, or of all rows of a dense block.
    fn of_block(&self, cone: usize, row: usize) -> i64 {
        let units = &self.blocks[cone];
        if units.len() == 1 { units[0] } else { units[row] }
    }

    /// An objective of the program, or a sum of products of X and Y, in these units.
    pub fn objective(&self, value: &Float) -> Float {
        shifted(value, self.gamma + self.delta)
    }

    /// Converts an objective in these units to those of the program.
    pub fn own_objective(&self, value: &Float) -> Float {
        shifted(value, -self.gamma - self.delta)
    }
}

fn shifted(value: &Float, by: i64) -> Float {
    // Exponents of programs with units are below 2^24, and so are their sums.
    Float::with_val(value.prec(), value << by.clamp(-(1 << 29), 1 << 29) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Entry;

    /// Two variables on a dense block and a diagonal, with an equation between them.
    fn program(value: impl Fn(f64) -> Float) -> Problem {
        let entry = |row, col, number: f64| Entry { row, col, value: value(number) };
        let dense = SparseCone {
            shape: Shape::Dense(2),
            active: vec![0, 1],
            entries: vec![vec![entry(0, 0, 1.0), entry(1, 1, 0.5)], vec![entry(1, 0, -3.0)]],
            constant: vec![entry(0, 0, 2.0)],
        };
        let diagonal = SparseCone {
            shape: Shape::Diagonal(3),
            active: vec![0],
            entries: vec![vec![entry(0, 0, 1.0), entry(2, 2, 1.5)]],
            constant: vec![entry(1, 1, -1.0)],
        };
        let column = |numbers: &[f64]| {
            Matrix::from_floats(numbers.len(), 1, 100, &numbers.iter().map(|n| value(*n)).collect::<Vec<_>>())
        };
        let equations = (column(&[1.0, 0.25]).unwrap(), column(&[3.0]).unwrap());
        Problem::standard(100, column(&[1.0, -2.0]).unwrap(), vec![dense, diagonal], Some(equations)).unwrap()
    }

    fn sparse(problem: &Problem) -> &Sparse {
        let Constraints::Sparse(sparse) = &problem.groups[0].constraints else { panic!("sparse") };
        sparse
    }

    fn assert_same(one: &Problem, other: &Problem) {
        let (own, others) = (sparse(one), sparse(other));
        for (own, others) in own.cones.iter().zip(&others.cones) {
            assert_eq!((&own.active, &own.entries, &own.constant), (&others.active, &others.entries, &others.constant));
        }
        let group = |problem: &Problem| (problem.groups[0].costs.clone(), problem.groups[0].free.clone());
        assert!(group(one) == group(other) && one.objective == other.objective && one.constant == other.constant);
    }

    #[test]
    fn programs_of_ordinary_sizes_have_no_units() {
        let at = |exponent: i32| Units::of(&program(|number| Float::with_val(53, number) << exponent)).is_some();
        // The largest sizes are those of -3 and 3, below 2^2; the least that of the block of 1, below 2^1.
        assert!(!at(0) && !at(22) && at(23) && !at(-25) && at(-26));
        assert!(!at(1 << 25) && at((1 << 24) - 2) && !at((1 << 24) - 1));
    }

    #[test]
    fn units_change_no_significand_and_are_undone() {
        let own = program(|number| Float::with_val(53, number) << if number < 0.0 { 300 } else { -70 });
        let units = Units::of(&own).unwrap();
        let scaled = units.applied(&own).unwrap();
        assert_same(&units.removed(&scaled).unwrap(), &own);
        let objective = Float::with_val(100, 7);
        assert_eq!(units.own_objective(&units.objective(&objective)), objective);
    }

    /// Constraints, blocks, equations and objectives multiplied by powers of two: the numbers in these units are the
    /// same, but for exponents that are rounded the other way.
    #[test]
    fn units_do_not_depend_on_how_a_program_is_scaled() {
        let plain = program(|number| Float::with_val(53, number) << 40);
        let normal = Units::of(&plain).unwrap().applied(&plain).unwrap();
        assert!(Units::of(&normal).is_none());
        let other = Units {
            variables: vec![211, -95],
            blocks: vec![vec![-300], vec![17, 160, -44]],
            free: vec![90],
            gamma: -250,
            delta: 130,
        };
        let scaled = other.applied(&plain).unwrap();
        let again = Units::of(&scaled).unwrap().applied(&scaled).unwrap();
        let exponents = |problem: &Problem| {
            let column = |matrix: &Matrix| (0..matrix.rows()).map(|row| matrix.float(row, 0)).collect::<Vec<_>>();
            let mut all = [column(&problem.groups[0].costs), column(&problem.objective)].concat();
            all.extend(column(&problem.groups[0].free));
            for cone in &sparse(problem).cones {
                all.extend(cone.entries.iter().flatten().chain(&cone.constant).map(|entry| entry.value.clone()));
            }
            all.iter().map(|value| exponent(value).unwrap()).collect::<Vec<_>>()
        };
        for (one, other) in exponents(&normal).into_iter().zip(exponents(&again)) {
            assert!((one - other).abs() <= 2, "{:?} and {:?}", exponents(&normal), exponents(&again));
        }
    }
}
