//! Programs whose matrices are in a caller's memory: SDPA's standard form, optionally with equations for x.

use super::{Constraints, Form, Group, Problem, Sparse, SparseCone};
use crate::block::Shape;
use crate::numbers::{rounded, trimmed};
use rug::Float;
use sunzi::{Error, Matrix, Result};

fn refused<T>(text: String) -> Result<T> {
    Err(Error::InvalidArgument(text))
}

impl SparseCone {
    /// Whether entries lie in the lower triangle, or on the diagonal of a diagonal block.
    fn check(&self, number: usize, variables: usize) -> Result<()> {
        let order = self.shape.order();
        if order == 0 {
            return refused(format!("block {number} has no rows"));
        }
        let rises = self.active.windows(2).all(|pair| pair[0] < pair[1]);
        if !rises
            || self.active.iter().any(|&variable| variable >= variables)
            || self.active.len() != self.entries.len()
        {
            return refused(format!(
                "block {number}: each variable with entries, in increasing order, needs one list of them"
            ));
        }
        for entry in self.entries.iter().flatten().chain(&self.constant) {
            let (row, col) = (entry.row, entry.col);
            let is_inside = match self.shape {
                Shape::Dense(_) => row < order && col <= row,
                Shape::Diagonal(_) => row < order && col == row,
            };
            if !is_inside {
                return refused(format!("block {number}: row {row}, column {col} is outside its lower triangle"));
            }
        }
        Ok(())
    }

    /// The same entries rounded to `bits`, without those that are 0 and variables that have none.
    fn packed(self, bits: u32) -> SparseCone {
        let pack = |mut entries: Vec<super::Entry>| {
            entries.retain(|entry| !entry.value.is_zero());
            for entry in &mut entries {
                entry.value = trimmed(Float::with_val(entry.value.prec().min(bits), &entry.value));
            }
            entries
        };
        let lists = self.active.into_iter().zip(self.entries.into_iter().map(pack));
        let (active, entries) = lists.filter(|(_, entries)| !entries.is_empty()).unzip();
        SparseCone { shape: self.shape, active, entries, constant: pack(self.constant) }
    }
}

impl Problem {
    /// The program `min c^T x` with `X = sum_p x_p A_p - C >= 0`, and with `B^T x = b` if `equations` are `B` and `b`.
    ///
    /// `costs` is c, a column with a number for each variable; `blocks` are the blocks of the matrices `A_p` and C; B
    /// has a row for each variable and a column for each equation, b is a column. All numbers are rounded to
    /// `precision_bits`. The defaults of the solver are those for SDPA's files.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if shapes do not fit, an entry lies outside its block, there are no variables, or a
    /// matrix `A_p` is 0 but its row of B is not; the errors of [`Matrix::from_fn`].
    ///
    /// ```
    /// use sunzi::{Context, Matrix, rug::Float};
    /// use sunzi_sdp::{Control, Entry, Problem, Solver, SolverOptions, SparseCone, block::Shape};
    /// let entry = |row, col, value| Entry { row, col, value: Float::with_val(53, value) };
    /// // The least t with t I - A >= 0 for A = [[0, 1], [1, 0]].
    /// let block = SparseCone {
    ///     shape: Shape::Dense(2),
    ///     active: vec![0],
    ///     entries: vec![vec![entry(0, 0, 1), entry(1, 1, 1)]],
    ///     constant: vec![entry(1, 0, 1)],
    /// };
    /// let problem = Problem::standard(200, Matrix::from_f64s(1, 1, 200, &[1.0])?, vec![block], None)?;
    /// let solver = Solver::new(Context::new()?, &problem, SolverOptions::new(problem.form))?;
    /// let solution = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
    /// assert!((solution.quality.primal_objective - 1u32).abs() < 1e-29);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    pub fn standard(
        precision_bits: u32,
        costs: Matrix,
        blocks: Vec<SparseCone>,
        equations: Option<(Matrix, Matrix)>,
    ) -> Result<Problem> {
        let variables = costs.rows();
        if variables == 0 {
            return refused("there are no variables: there is nothing to optimise".into());
        }
        blocks.iter().enumerate().try_for_each(|(number, block)| block.check(number, variables))?;
        let blocks = blocks.into_iter().map(|block| block.packed(precision_bits)).collect::<Vec<_>>();
        let (free, objective) = match equations {
            Some(equations) => equations,
            None => (Matrix::zeros(variables, 0, precision_bits)?, Matrix::zeros(0, 1, precision_bits)?),
        };
        if objective.cols() != 1 || objective.rows() != free.cols() {
            let (rows, cols) = (objective.rows(), objective.cols());
            return refused(format!("b is {rows} x {cols}, but B has {} columns", free.cols()));
        }
        let mut seen = vec![false; variables];
        blocks.iter().flat_map(|block| &block.active).for_each(|&variable| seen[variable] = true);
        let is_free = |row: usize| row < free.rows() && (0..free.cols()).any(|col| free.float(row, col) != 0);
        if let Some(variable) = seen.iter().enumerate().position(|(row, seen)| !seen && is_free(row)) {
            return refused(format!(
                "the constraint matrix of variable {variable} (counted from 0) is 0, but row {variable} of B is not"
            ));
        }
        let problem = Problem {
            form: Form::Sdpa,
            precision_bits,
            constant: Float::new(precision_bits),
            objective: rounded(objective, precision_bits)?,
            groups: vec![Group {
                costs: rounded(costs, precision_bits)?,
                free: rounded(free, precision_bits)?,
                constraints: Constraints::Sparse(Sparse::new(variables, blocks)),
            }],
            normalization: None,
        };
        problem.check()?;
        Ok(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Entry;
    use crate::{Control, Solver, SolverOptions, Termination};
    use sunzi::Context;

    fn entry(row: usize, col: usize, value: f64) -> Entry {
        Entry { row, col, value: Float::with_val(53, value) }
    }

    fn diagonal(rows: &[&[f64]], constant: &[f64]) -> SparseCone {
        let list = |row: &&[f64]| row.iter().enumerate().map(|(at, &value)| entry(at, at, value)).collect();
        SparseCone {
            shape: Shape::Diagonal(constant.len()),
            active: (0..rows.len()).collect(),
            entries: rows.iter().map(list).collect(),
            constant: constant.iter().enumerate().map(|(at, &value)| entry(at, at, value)).collect(),
        }
    }

    /// `min 2 u + 3 v` with `u, v >= 0` and `u + v = 5`: 10, at (5, 0).
    #[test]
    fn equations_hold_at_the_solution() -> Result<()> {
        let column = |values: &[f64]| Matrix::from_f64s(values.len(), 1, 256, values);
        let blocks = vec![diagonal(&[&[1.0, 0.0], &[0.0, 1.0]], &[0.0, 0.0])];
        let equations = Some((column(&[1.0, 1.0])?, column(&[5.0])?));
        let problem = Problem::standard(256, column(&[2.0, 3.0])?, blocks, equations)?;
        let solver = Solver::new(Context::builder().threads(1).build()?, &problem, SolverOptions::new(problem.form))?;
        let solution = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
        assert_eq!(solution.termination, Termination::PrimalDualOptimal);
        assert!((solution.quality.primal_objective - 10u32).abs() < 1e-28);
        assert!((solution.point.x[0].float(0, 0) - 5u32).abs() < 1e-25);
        // The shadow price of an equation: one more on its right side costs 2.
        assert!((solution.point.y.float(0, 0) - 2u32).abs() < 1e-25);
        Ok(())
    }

    /// Residuals are 0 at any precision, so only the gap shows that the first stage has too few bits.
    #[test]
    fn thresholds_below_the_bits_of_the_first_iterations_are_reached() -> Result<()> {
        let block = SparseCone {
            shape: Shape::Dense(2),
            active: vec![0],
            entries: vec![vec![entry(0, 0, 1.0), entry(1, 1, 1.0)]],
            constant: vec![entry(1, 0, 1.0)],
        };
        let problem = Problem::standard(500, Matrix::from_f64s(1, 1, 500, &[1.0])?, vec![block], None)?;
        let mut options = SolverOptions::new(problem.form);
        options.duality_gap_threshold = Float::with_val(64, 1) >> 200u32;
        options.max_iterations = 150;
        let solver = Solver::new(Context::builder().threads(1).build()?, &problem, options)?;
        let solution = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
        assert_eq!(solution.termination, Termination::PrimalDualOptimal);
        assert!((solution.quality.primal_objective - 1u32).abs() < Float::with_val(64, 1) >> 199u32);
        Ok(())
    }

    #[test]
    fn what_does_not_fit_is_refused() -> Result<()> {
        let costs = |count| Matrix::zeros(count, 1, 64);
        let refusal = |count, block: SparseCone, equations| {
            Problem::standard(64, costs(count).unwrap(), vec![block], equations).unwrap_err().to_string()
        };
        let fine = || diagonal(&[&[1.0]], &[0.0]);
        assert!(Problem::standard(64, costs(1)?, vec![fine()], None).is_ok());
        assert!(refusal(0, fine(), None).contains("no variables"));
        // An equation 0 = 0 is none; one of only y is another matter.
        assert!(Problem::standard(64, costs(2)?, vec![fine()], None).is_ok());
        let free = |at: f64| Some((Matrix::from_f64s(2, 1, 64, &[1.0, at]).unwrap(), Matrix::zeros(1, 1, 64).unwrap()));
        assert!(Problem::standard(64, costs(2)?, vec![fine()], free(0.0)).is_ok());
        assert!(refusal(2, fine(), free(1.0)).contains("variable 1 (counted from 0) is 0, but row 1 of B is not"));
        assert!(refusal(1, diagonal(&[&[1.0], &[1.0]], &[0.0]), None).contains("block 0"));
        assert!(refusal(1, diagonal(&[&[]], &[]), None).contains("no rows"));
        let beside = SparseCone { constant: vec![entry(0, 1, 1.0)], ..fine() };
        assert!(refusal(1, beside, None).contains("row 0, column 1"));
        let dense = SparseCone { shape: Shape::Dense(2), constant: vec![entry(2, 0, 1.0)], ..fine() };
        assert!(refusal(1, dense, None).contains("row 2, column 0"));
        let wrong = Some((Matrix::zeros(1, 2, 64)?, Matrix::zeros(1, 1, 64)?));
        assert!(refusal(1, fine(), wrong).contains("B has 2 columns"));
        let wrong = Some((Matrix::zeros(2, 1, 64)?, Matrix::zeros(1, 1, 64)?));
        assert!(refusal(1, fine(), wrong).contains("B is 2 x 1"));
        Ok(())
    }
}
