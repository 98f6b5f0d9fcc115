//! The choices of a polynomial program on how it is to be sampled.
//!
//! A bound does not depend on them, as it is for all `x >= 0`. They are checked all the same, so that a program that
//! the solver would not take, or one that means another by a factor that is not positive, is not proven either. A pole
//! at 0 does not count: the condition at 0 follows from the points next to it. Independent of: files.

use super::scaled::are_distinct;
use rug::Rational;

/// `constant base^x / prod_p (x - p)`.
#[derive(Clone)]
pub struct Prefactor {
    pub constant: Rational,
    /// None for `1 / e`.
    pub base: Option<Rational>,
    pub poles: Vec<Rational>,
}

/// Points, prefactors and bases, where they are given.
#[derive(Default)]
pub struct Choices {
    pub prefactor: Option<Prefactor>,
    pub reduced: Option<Prefactor>,
    pub most_poles: Option<usize>,
    pub points: Option<Vec<Rational>>,
    pub scalings: Option<Vec<Rational>>,
    pub reduced_scalings: Option<Vec<Rational>>,
    /// The number of polynomials of each basis.
    pub bases: Option<[usize; 2]>,
}

impl Prefactor {
    /// Whether it is positive for `x > 0`, and does not grow.
    fn check(&self, name: &str) -> Result<(), String> {
        if self.constant <= 0 {
            return Err(format!("the constant of the {name} is not positive"));
        }
        if self.base.as_ref().is_some_and(|base| *base <= 0 || *base > 1) {
            return Err(format!("the base of the {name} is not between 0 and 1"));
        }
        match self.poles.iter().position(|pole| *pole > 0) {
            Some(at) => Err(format!("pole {at} of the {name} is above 0")),
            None => Ok(()),
        }
    }
}

impl Choices {
    /// Whether a matrix of this degree can be sampled with these choices, and they do not change its meaning.
    pub fn check(&self, degree: usize) -> Result<(), String> {
        let natural = || Prefactor {
            constant: Rational::from(1),
            base: (degree == 0).then(|| Rational::from(1)),
            poles: Vec::new(),
        };
        let prefactor = self.prefactor.clone().unwrap_or_else(natural);
        let reduced = self.reduced.clone().unwrap_or_else(|| prefactor.clone());
        prefactor.check("prefactor")?;
        reduced.check("reduced prefactor")?;
        let kept = reduced.poles.len().min(self.most_poles.unwrap_or(usize::MAX));
        let count = (degree + 1 + kept).saturating_sub(prefactor.poles.len());
        if count == 0 {
            return Err("the degree and the poles leave no sample points".into());
        }
        for (name, list) in [
            ("sample points", &self.points),
            ("scalings", &self.scalings),
            ("reduced scalings", &self.reduced_scalings),
        ] {
            if let Some(found) = list.as_ref().map(Vec::len).filter(|&found| found != count) {
                return Err(format!("there are {found} {name}, but degree {degree} with these poles requires {count}"));
            }
        }
        let scalings = [&self.scalings, &self.reduced_scalings];
        if scalings.into_iter().flatten().flatten().any(|scaling| *scaling <= 0) {
            return Err("a scaling of a sample point is not positive".into());
        }
        match &self.points {
            Some(points) => check_points(points)?,
            None if count > 1 && reduced.base.is_some_and(|base| base == 1) => {
                return Err("the base of the prefactor is 1: points can be chosen only for one below 1".into());
            }
            None => {}
        }
        let wanted = [count.div_ceil(2), count / 2];
        match self.bases {
            Some(found) if found[0] < wanted[0] || found[1] < wanted[1] => {
                Err(format!("the bases have {found:?} polynomials, but {count} points require {wanted:?}"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether points are different, and none is below 0.
fn check_points(points: &[Rational]) -> Result<(), String> {
    match are_distinct(points.iter()) && points.iter().all(|point| *point >= 0) {
        true => Ok(()),
        false => Err("two sample points are the same, or one is below 0".into()),
    }
}
