//! Condition numbers, estimated from the diagonals of Cholesky factors: the square of the largest entry over the least,
//! a lower bound of the condition number in the spectral norm. SDPB's measure, with its names of blocks.

use crate::block::Block;
use crate::iterate::definite::Factor;
use crate::iterate::factors::ConeFactors;
use crate::iterate::point::{Cone, Point};
use crate::iterate::share::Share;
use crate::iterate::site::Site;
use crate::iterate::system::{System, SystemPoint};
use crate::problem::{Constraints, Form};
use rug::Float;
use sunzi::{Matrix, Result};

/// Bits of a condition number.
const BITS: u32 = 64;

/// The distance from singularity of the matrices of an iteration, as condition numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Conditions {
    /// The condition number of Q; 1 if there are no free variables.
    pub free: Float,
    /// The largest of the Schur complement of a group, a block of X and a block of Y.
    pub block: Float,
    /// Its name in SDPB: `schur_complement_cholesky.block_3`, `X_cholesky.block_3_0`, `Y_cholesky.block_3_1`, with the
    /// parity after the number; for SDPA's programs only the number of a block.
    pub name: String,
}

/// The largest of some positive numbers, and the largest inverse; 0 where there are none.
type Extremes = [Float; 2];

fn extremes(numbers: impl Iterator<Item = Float>) -> Extremes {
    let none = [Float::new(BITS), Float::new(BITS)];
    numbers.fold(none, |[most, inverse], number| {
        let number = Float::with_val(BITS, number);
        [most.max(&number), inverse.max(&number.recip())]
    })
}

fn diagonal(matrix: &Matrix) -> impl Iterator<Item = Float> {
    (0..matrix.rows()).map(|at| matrix.float(at, at))
}

/// The condition that a factor with these extremes shows.
fn of_factor([most, inverse]: &Extremes) -> Float {
    let ratio = Float::with_val(BITS, most * inverse);
    ratio.square().max(&Float::with_val(BITS, 1))
}

/// The condition of a block of which this is the diagonal of the factor, or of its inverse; of a diagonal block its
/// own entries are the squares of these.
fn of_block(lower: Option<&Matrix>, block: &Block) -> Float {
    match (lower, block) {
        (Some(lower), _) => of_factor(&extremes(diagonal(lower))),
        (None, Block::Dense(matrix)) => of_factor(&extremes(diagonal(matrix))),
        (None, Block::Diagonal(column)) => {
            let [most, inverse] = extremes((0..column.rows()).map(|row| column.float(row, 0)));
            Float::with_val(BITS, most * inverse).max(&Float::with_val(BITS, 1))
        }
    }
}

/// The condition number of a factor that this rank has, or of which it has tiles. Collective in the latter case.
fn of_system(site: &Site<'_>, factor: &Factor) -> Result<Float> {
    let found = match factor {
        Factor::Own(factor) => extremes(diagonal(factor.factor())),
        // Its rows are matrices of their own.
        Factor::Diagonal(_) => return Ok(Float::with_val(BITS, 1)),
        Factor::Tiles(tiles, _) => {
            let on_diagonal = tiles.tiles().iter().filter(|(id, _)| id.row == id.col);
            let own = extremes(on_diagonal.flat_map(|(_, tile)| diagonal(tile)));
            site.share.ranks.largest(BITS, Ok(own))?
        }
    };
    Ok(of_factor(&found))
}

/// The condition numbers of the matrices of an iteration. Collective.
///
/// # Errors
/// The errors of any rank.
pub fn conditions(place: &SystemPoint<'_>, system: &System) -> Result<Conditions> {
    let SystemPoint { site, point, factors } = *place;
    let (groups, free) = system.factors();
    let groups = groups.map(|factor| of_system(&site, factor)).collect::<Result<Vec<_>>>()?;
    let free = free.map_or_else(|| Ok(Float::with_val(BITS, 1)), |factor| of_system(&site, factor))?;
    let own = site.share.spoken_for().map(|at| [groups[at].clone()]).collect();
    let groups = site.share.of_groups(BITS, Ok(own))?;
    let cones = site.share.of_cones(BITS, Ok(of_blocks(&site, point, factors)))?;
    let mut found = Conditions { free, block: Float::new(BITS), name: String::new() };
    let mut offer = |value: &Float, name: &dyn Fn() -> String| {
        if *value > found.block {
            (found.block, found.name) = (value.clone(), name());
        }
    };
    for (number, group) in in_callers_order(site.share) {
        let [schur] = &groups[group];
        offer(schur, &|| format!("schur_complement_cholesky.block_{number}"));
        let first = site.share.all.partition_point(|cone| cone.group < group);
        let of_group = site.share.all[first..].iter().zip(&cones[first..]).take_while(|(cone, _)| cone.group == group);
        for (cone, [x, y]) in of_group {
            offer(x, &|| format!("X_cholesky.block_{}", label(&site, number, cone)));
            offer(y, &|| format!("Y_cholesky.block_{}", label(&site, number, cone)));
        }
    }
    Ok(found)
}

/// The caller's groups with those in which they are.
fn in_callers_order(share: &Share) -> Vec<(usize, usize)> {
    let mut found = (0..share.group_owners.len())
        .flat_map(|group| share.callers_rows(group).map(move |row| (share.callers_group(group, row), group)))
        .collect::<Vec<_>>();
    found.sort_unstable();
    found
}

/// The condition numbers of the blocks of this rank.
fn of_blocks(site: &Site<'_>, point: &Point, factors: &[ConeFactors]) -> Vec<[Float; 2]> {
    let blocks = point.primal.iter().zip(&point.dual).zip(factors).zip(site.cones);
    let pair = |(((x, y), factors), cone): (((&Block, &Block), &ConeFactors), &Cone)| {
        if site.share.is_joined(site.share.groups[cone.group]) {
            return std::array::from_fn(|_| Float::with_val(BITS, 1));
        }
        [of_block(factors.x_lower_inverse.as_ref(), x), of_block(factors.y_lower.as_ref(), y)]
    };
    blocks.map(pair).collect()
}

/// SDPB's name of a block: its group, by its number among the caller's, and its parity, which this rank can tell where
/// it has the group.
fn label(site: &Site<'_>, number: usize, cone: &Cone) -> String {
    if site.problem.form == Form::Sdpa {
        return cone.number.to_string();
    }
    let local = site.share.groups.binary_search(&cone.group);
    let parity = match local.ok().map(|at| &site.problem.groups[at].constraints) {
        Some(Constraints::Sampled(sampled)) => sampled.parities()[cone.number],
        _ => cone.number,
    };
    format!("{number}_{parity}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_those_of_diagonals() {
        let matrix = Matrix::from_f64s(2, 2, 64, &[8.0, 0.0, 3.0, 0.5]).unwrap();
        assert_eq!(of_block(Some(&matrix), &Block::Dense(matrix.clone())), 256);
        let column = Matrix::from_f64s(3, 1, 64, &[8.0, 2.0, 0.5]).unwrap();
        assert_eq!(of_block(None, &Block::Diagonal(column)), 16);
        let empty = Matrix::zeros(0, 1, 64).unwrap();
        assert_eq!(of_block(None, &Block::Diagonal(empty)), 1);
    }
}
