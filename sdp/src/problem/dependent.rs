//! Equations of a program that follow from others of its own, or contradict them.
//!
//! Where a combination of the matrices `A_p` and of the rows of B is 0, the equations `A_p . Y + (B y)_p = c_p` depend
//! on each other: if the same combination of c is 0, one of them is redundant, and its variable may be 0; otherwise
//! there is no Y. The same holds for columns of B and the equations `B^T x = b`. Either makes an equation of the solver
//! singular at every precision.
//!
//! Elimination modulo a prime finds which rows may depend on others, and the combination; only one that holds in exact
//! rational arithmetic counts. A number that rounding to the program's precision may have made of a fraction with a
//! small denominator, as decimals are, counts as that fraction.
//! Independent of: files, iterations.

use super::{Constraints, Group, Problem, Sparse, SparseCone, Units};
use rug::ops::RemRounding;
use rug::{Float, Integer, Rational};
use std::collections::HashMap;
use sunzi::{Error, Matrix, Result};

/// The prime `2^61 - 1`.
const PRIME: u64 = (1 << 61) - 1;

/// Products modulo the prime after which no more rows are looked at: they take about a second.
const MOST_PRODUCTS: usize = 1 << 29;

/// Magnitudes of numerators and denominators of a combination are below it: their quotient modulo the prime is unique.
const MOST_PART: u64 = 1 << 30;

/// Equations of a program that follow from its others, by their numbers, rising.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dependent {
    /// Equations of Y and y: their variables x are 0.
    variables: Vec<usize>,
    /// Equations of x: their variables y are 0.
    free: Vec<usize>,
}

fn product(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

fn inverse(a: u64) -> u64 {
    let (mut power, mut base, mut exponent) = (1, a, PRIME - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = product(power, base);
        }
        base = product(base, base);
        exponent >>= 1;
    }
    power
}

/// A number modulo the prime; none where that divides its denominator.
fn residue(value: &Rational) -> Option<u64> {
    let modulo = |integer: &Integer| integer.clone().rem_euc(PRIME).to_u64();
    let (numerator, denominator) = (modulo(value.numer())?, modulo(value.denom())?);
    (denominator != 0).then(|| product(numerator, inverse(denominator)))
}

/// The fraction of small parts with this residue.
fn fraction(residue: u64) -> Option<Rational> {
    let (mut before, mut now) = ((PRIME, 0i128), (residue, 1i128));
    while now.0 >= MOST_PART {
        let quotient = before.0 / now.0;
        (before, now) = (now, (before.0 % now.0, before.1 - i128::from(quotient) * now.1));
    }
    let is_small = now.1 != 0 && now.1.unsigned_abs() < u128::from(MOST_PART);
    is_small.then(|| Rational::from((Integer::from(now.0), Integer::from(now.1))))
}

/// The number that was meant by one rounded to `bits` bits: the fraction with the least denominator that is rounded to
/// it, where that has less than a third of the bits; else itself.
fn meant(value: &Float, bits: u32) -> Rational {
    let exact = exact(value);
    if value.prec() <= bits / 2 || exact == 0 {
        return exact;
    }
    let most = Integer::from(1) << (bits / 3);
    let numerator = Integer::from(exact.numer().abs_ref());
    // Euclid's algorithm: with the convergent p / q of n / d its remainder is |n q - d p|.
    let (mut high, mut low) = (numerator.clone(), exact.denom().clone());
    let (mut before, mut now) = ((Integer::new(), Integer::from(1)), (Integer::from(1), Integer::new()));
    while low != 0 {
        let (whole, rest) = high.div_rem_floor(low.clone());
        let next = (Integer::from(&whole * &now.0) + before.0, Integer::from(&whole * &now.1) + before.1);
        (before, now) = (now, next);
        if now.1 > most {
            break;
        }
        if Integer::from(&rest << bits) <= Integer::from(&numerator * &now.1) {
            let found = Rational::from(now);
            return if exact < 0 { -found } else { found };
        }
        (high, low) = (low, rest);
    }
    exact
}

fn exact(value: &Float) -> Rational {
    value.to_rational().unwrap_or_default()
}

/// A row of an equation, by rising positions.
type Row = Vec<(usize, Rational)>;

/// A number modulo the prime that is not 0, and its position in a row, or the row that it is the factor of.
#[derive(Clone, Copy)]
struct Residue {
    place: usize,
    value: u64,
}

/// Residues of a row, and of the combination of rows that it is.
#[derive(Clone)]
struct Reduced {
    row: Vec<Residue>,
    combination: Vec<Residue>,
}

/// `a - factor b`, of lists by rising positions.
fn less(a: &[Residue], factor: u64, b: &[Residue]) -> Vec<Residue> {
    let (mut found, mut at) = (Vec::with_capacity(a.len() + b.len()), 0);
    let minus = PRIME - factor;
    for &Residue { place, value } in b {
        while at < a.len() && a[at].place < place {
            found.push(a[at]);
            at += 1;
        }
        let own = if at < a.len() && a[at].place == place { a[at].value } else { 0 };
        at += usize::from(at < a.len() && a[at].place == place);
        let sum = (product(minus, value) + own) % PRIME;
        if sum != 0 {
            found.push(Residue { place, value: sum });
        }
    }
    found.extend_from_slice(&a[at..]);
    found
}

/// A combination of rows that is 0, and of which the last has the factor 1.
type Combination = Vec<(usize, Rational)>;

/// Combinations of these rows that are exactly 0, each with another last row.
fn combinations(rows: &[Row]) -> Vec<Combination> {
    let (mut pivots, mut found) = (HashMap::<usize, Reduced>::new(), Vec::new());
    let mut products = 0;
    for (number, row) in rows.iter().enumerate() {
        let residues = row.iter().map(|(place, value)| Some(Residue { place: *place, value: residue(value)? }));
        let Some(residues) = residues.collect::<Option<Vec<_>>>() else { continue };
        let row = residues.into_iter().filter(|residue| residue.value != 0).collect();
        let mut own = Reduced { row, combination: vec![Residue { place: number, value: 1 }] };
        while let Some(Residue { place, value }) = own.row.first().copied() {
            let Some(pivot) = pivots.get(&place) else {
                let factor = inverse(value);
                let all = own.row.iter_mut().chain(&mut own.combination);
                all.for_each(|residue| residue.value = product(residue.value, factor));
                pivots.insert(place, own.clone());
                break;
            };
            products += own.row.len() + own.combination.len() + pivot.row.len() + pivot.combination.len();
            if products > MOST_PRODUCTS {
                return found;
            }
            own = Reduced {
                row: less(&own.row, value, &pivot.row),
                combination: less(&own.combination, value, &pivot.combination),
            };
        }
        if own.row.is_empty() {
            found.extend(checked(rows, &own.combination));
        }
    }
    found
}

/// The combination with these residues, if there is one of small parts, and it is exactly 0.
fn checked(rows: &[Row], residues: &[Residue]) -> Option<Combination> {
    let combination = residues.iter().map(|residue| Some((residue.place, fraction(residue.value)?)));
    let combination = combination.collect::<Option<Combination>>()?;
    let mut sums = HashMap::<usize, Rational>::new();
    for (row, factor) in &combination {
        for (place, value) in &rows[*row] {
            *sums.entry(*place).or_default() += Rational::from(value * factor);
        }
    }
    sums.values().all(|sum| *sum == 0).then_some(combination)
}

/// `sum_p lambda_p c_p` of a combination.
fn combined(combination: &Combination, right: impl Fn(usize) -> Rational) -> Rational {
    combination.iter().fold(Rational::new(), |sum, (row, factor)| sum + right(*row) * factor)
}

/// The last rows of combinations whose right-hand sides are 0 as well.
fn redundant(
    combinations: Vec<Combination>,
    right: impl Fn(usize) -> Rational,
    kind: &str,
    what: &str,
) -> Result<Vec<usize>> {
    let mut rows = Vec::new();
    for combination in combinations {
        let sum = combined(&combination, &right);
        let Some((last, others)) = combination.split_last() else { continue };
        if sum != 0 {
            let list = others.iter().map(|(row, _)| (row + 1).to_string()).collect::<Vec<_>>().join(", ");
            let with = if others.is_empty() { String::new() } else { format!(" with {kind}s {list}") };
            return Err(Error::InvalidArgument(format!(
                "{kind} {} is inconsistent{with}: a combination of the equations is 0 = 1, so no {what} (counted \
                 from 1)",
                last.0 + 1
            )));
        }
        rows.push(last.0);
    }
    Ok(rows)
}

/// The rows of A and B of the one group of sparse matrices.
fn rows(problem: &Problem, sparse: &Sparse) -> Vec<Row> {
    let bits = problem.precision_bits;
    let free = &problem.groups[0].free;
    let of_free = |row: usize| {
        let entries = (0..free.cols()).map(move |col| (col, free.float(row, col)));
        entries.filter(|(_, value)| *value != 0).map(|(col, value)| (col, meant(&value, bits))).collect()
    };
    let mut rows = (0..sparse.variables).map(of_free).collect::<Vec<Row>>();
    let mut first = free.cols();
    for SparseCone { shape, active, entries, .. } in &sparse.cones {
        for (&variable, list) in active.iter().zip(entries) {
            let place = |entry: &super::Entry| first + entry.col * shape.order() + entry.row;
            rows[variable].extend(list.iter().map(|entry| (place(entry), meant(&entry.value, bits))));
        }
        first += shape.order() * shape.order();
    }
    rows.iter_mut().for_each(|row| row.sort_by_key(|(place, _)| *place));
    rows
}

/// The columns of B of all groups, one behind the other, of numbers that `read` makes fractions of.
fn columns(problem: &Problem, dropped: &[usize], read: impl Fn(&Float) -> Rational) -> Vec<Row> {
    let mut columns = vec![Row::new(); problem.free_variables()];
    let mut first = 0;
    for group in &problem.groups {
        for row in (0..group.free.rows()).filter(|row| dropped.binary_search(row).is_err()) {
            for (col, list) in columns.iter_mut().enumerate() {
                let value = group.free.float(row, col);
                if value != 0 {
                    list.push((first + row, read(&value)));
                }
            }
        }
        first += group.free.rows();
    }
    columns
}

impl Dependent {
    /// The dependent equations of a program; none where all of its equations are needed.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where equations contradict each other, by their numbers.
    pub fn of(problem: &Problem) -> Result<Option<Dependent>> {
        let bits = problem.precision_bits;
        let sparse = match &problem.groups[..] {
            [Group { costs, constraints: Constraints::Sparse(sparse), .. }] => Some((costs, sparse)),
            _ => None,
        };
        // Values of polynomials at sample points are no fractions, and have many bits.
        let read = |value: &Float| if sparse.is_some() { meant(value, bits) } else { exact(value) };
        let right = |column: &Matrix, row: usize| read(&column.float(row, 0));
        let variables = sparse.map_or(Ok(Vec::new()), |(costs, sparse)| {
            let found = combinations(&rows(problem, sparse));
            redundant(found, |row| right(costs, row), "constraint", "Y and y satisfy all")
        })?;
        let found = combinations(&columns(problem, &variables, read));
        let free = redundant(found, |row| right(&problem.objective, row), "free variable", "x satisfies all")?;
        let found = Dependent { variables, free };
        Ok((!found.variables.is_empty() || !found.free.is_empty()).then_some(found))
    }

    /// The program without these equations and their variables.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn applied(&self, problem: &Problem) -> Result<Problem> {
        let mut changed = problem.clone();
        changed.objective = without(&problem.objective, &self.free, &[])?;
        for group in &mut changed.groups {
            group.costs = without(&group.costs, &self.variables, &[])?;
            group.free = without(&group.free, &self.variables, &self.free)?;
            if let Constraints::Sparse(sparse) = &group.constraints {
                group.constraints = Constraints::Sparse(self.sparse(sparse));
            }
        }
        Ok(changed)
    }

    /// Units of the program without the equations, from those of the program with them.
    pub fn units(&self, units: &Units) -> Units {
        units.without(&self.variables, &self.free)
    }

    fn sparse(&self, sparse: &Sparse) -> Sparse {
        let place = |variable: &usize| {
            let before = self.variables.partition_point(|dropped| dropped < variable);
            (self.variables.get(before) != Some(variable)).then(|| variable - before)
        };
        let cone = |cone: &SparseCone| {
            let kept = cone.active.iter().zip(&cone.entries);
            let kept = kept.filter_map(|(variable, entries)| Some((place(variable)?, entries.clone())));
            let (active, entries) = kept.unzip();
            SparseCone { shape: cone.shape, active, entries, constant: cone.constant.clone() }
        };
        Sparse::new(sparse.variables - self.variables.len(), sparse.cones.iter().map(cone).collect())
    }

    /// The variables x, or y if `is_free`, without those of the omitted equations.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn shortened(&self, column: &Matrix, is_free: bool) -> Result<Matrix> {
        without(column, if is_free { &self.free } else { &self.variables }, &[])
    }

    /// The variables x, or y if `is_free`, with zeros for those of the omitted equations.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn lengthened(&self, column: &Matrix, is_free: bool) -> Result<Matrix> {
        with_zeros(column, if is_free { &self.free } else { &self.variables })
    }

    /// The equations left out, in words.
    pub fn sentence(&self) -> String {
        let list = |kind: &str, numbers: &[usize]| {
            let all = numbers.iter().map(|number| (number + 1).to_string()).collect::<Vec<_>>().join(", ");
            let plural = if numbers.len() == 1 { "" } else { "s" };
            (!numbers.is_empty()).then(|| format!("{kind}{plural} {all}"))
        };
        let parts = [list("constraint", &self.variables), list("free variable", &self.free)];
        let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(" and ");
        format!("omitted, since other equations imply theirs, counted from 1: {parts}")
    }
}

/// A matrix without some rows and columns.
fn without(matrix: &Matrix, rows: &[usize], cols: &[usize]) -> Result<Matrix> {
    if rows.is_empty() && cols.is_empty() {
        return Ok(matrix.clone());
    }
    let kept = |count: usize, dropped: &[usize]| {
        (0..count).filter(|at| dropped.binary_search(at).is_err()).collect::<Vec<_>>()
    };
    let (rows, cols) = (kept(matrix.rows(), rows), kept(matrix.cols(), cols));
    Matrix::from_fn(rows.len(), cols.len(), matrix.precision_bits(), |row, col| matrix.float(rows[row], cols[col]))
}

/// A column with zeros put in at these rows.
fn with_zeros(column: &Matrix, zeros: &[usize]) -> Result<Matrix> {
    if zeros.is_empty() {
        return Ok(column.clone());
    }
    let bits = column.precision_bits();
    Matrix::from_fn(column.rows() + zeros.len(), 1, bits, |row, _| {
        let before = zeros.partition_point(|&zero| zero < row);
        match zeros.get(before) == Some(&row) {
            true => Float::new(bits),
            false => column.float(row - before, 0),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rational(numerator: i64, denominator: i64) -> Rational {
        Rational::from((numerator, denominator))
    }

    #[test]
    fn fractions_are_known_by_their_residues() {
        for value in [rational(0, 1), rational(-7, 3), rational(1, (1 << 30) - 1), rational((1 << 30) - 1, 1)] {
            assert_eq!(fraction(residue(&value).unwrap()), Some(value));
        }
        assert_ne!(fraction(residue(&rational(1 << 40, 1)).unwrap()), Some(rational(1 << 40, 1)));
        assert_eq!(residue(&Rational::from((Integer::from(3), Integer::from(PRIME)))), None);
    }

    #[test]
    fn rounded_numbers_stand_for_fractions_and_exact_ones_for_themselves() {
        let at = |numerator: i64, denominator: i64, bits: u32| {
            meant(&Float::with_val(bits, rational(numerator, denominator)), bits)
        };
        for (numerator, denominator) in [(1, 3), (-22, 7), (1, 10_000_000_019), (123_456_789, 1000)] {
            assert_eq!(at(numerator, denominator, 200), rational(numerator, denominator));
        }
        // The denominator has more than a third of the bits.
        let few = Float::with_val(60, rational(1, 10_000_019));
        assert_eq!(meant(&few, 60), few.to_rational().unwrap());
        let short = Float::with_val(20, rational(1, 3));
        assert_eq!(meant(&short, 200), short.to_rational().unwrap());
        let root = Float::with_val(200, 2).sqrt();
        assert_eq!(meant(&root, 200), root.to_rational().unwrap());
        // A number one unit in the last place from a third is none.
        let mut beside = Float::with_val(200, rational(1, 3));
        beside.next_up();
        assert_eq!(meant(&beside, 200), beside.to_rational().unwrap());
    }

    #[test]
    fn combinations_are_those_that_are_exactly_0() {
        let row = |numbers: &[(i64, i64)]| {
            let list = numbers.iter().enumerate().map(|(at, &(n, d))| (at, rational(n, d)));
            list.filter(|(_, value)| *value != 0).collect::<Row>()
        };
        let rows = [
            row(&[(1, 1), (2, 1), (0, 1)]),
            row(&[(0, 1), (1, 3), (1, 1)]),
            row(&[(0, 1), (0, 1), (0, 1)]),
            // Twice the first less three times the second.
            row(&[(2, 1), (3, 1), (-3, 1)]),
            // The same but for a multiple of the prime.
            vec![(0, rational(2, 1)), (1, rational(3, 1)), (2, Rational::from(Integer::from(PRIME) - 3))],
            row(&[(0, 1), (0, 1), (5, 7)]),
            row(&[(1, 1), (1, 1), (1, 1)]),
        ];
        let found = combinations(&rows);
        let of = |list: &[(usize, i64)]| list.iter().map(|&(row, n)| (row, rational(n, 1))).collect::<Combination>();
        assert_eq!(found[..2], [of(&[(2, 1)]), of(&[(0, -2), (1, 3), (3, 1)])]);
        assert_eq!(found.iter().map(|one| one[one.len() - 1].0).collect::<Vec<_>>(), [2, 3, 6]);
    }

    #[test]
    fn zeros_stand_where_rows_were_left_out() -> Result<()> {
        let column = Matrix::from_f64s(5, 1, 64, &[1.0, 2.0, 3.0, 4.0, 5.0])?;
        for dropped in [&[][..], &[0], &[4], &[1, 2], &[0, 2, 4]] {
            let back = with_zeros(&without(&column, dropped, &[])?, dropped)?;
            for row in 0..5 {
                let value = if dropped.contains(&row) { 0.0 } else { row as f64 + 1.0 };
                assert_eq!(back.float(row, 0), value, "{dropped:?}");
            }
        }
        Ok(())
    }
}
