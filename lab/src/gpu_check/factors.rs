//! Checks of factorisations and triangular solves on devices: big floats have every bit of the CPU's, doubles a small
//! residual.
//!
//! Knows: the public verbs. Does not know: how tiles move.

use super::Setup;
use super::products::{Subject, random};
use crate::bench::{RESIDUAL_BOUND, double_matrix, largest_residual};
use crate::units::describe;
use rayon::prelude::*;
use std::sync::Arc;
use sunzi::advanced::runtime::Eviction;
use sunzi::advanced::tile::RankGrid;
use sunzi::comm::local::{self, LocalRank};
use sunzi::comm::{Transport, agreed};
use sunzi::double::{DoubleMatrix, DoubleOptions, double_cholesky};
use sunzi::gallery::{Size, counter_random};
use sunzi::{
    CholeskyOptions, Context, Device, Error, Head, Matrix, Result, Symmetric, TrsmOptions, cholesky_with, solve, trsm,
};

/// Precisions at which factors are compared.
const PRECISIONS: [u32; 3] = [64, 512, 1024];

/// Threads and rows of a tile: many tiles, tiles that leave a remainder, one tile.
const CUTS: [(usize, usize); 3] = [(1, 8), (3, 24), (2, 104)];

/// Device memory of small factorisations, which would else fill the device with places for tiny tiles.
const SMALL_BYTES: u64 = 256 << 20;

/// A positive definite matrix, made as fast as memory takes it: ones on the diagonal, and entries so small beside it
/// that those of a row add up to less than a half. Only its lower triangle means anything.
///
/// # Errors
/// Those of [`Matrix::zeros`].
pub fn dominant(order: usize, precision_bits: u32) -> Result<Matrix> {
    let mut matrix = counter_random(Size { rows: order, cols: order, precision_bits }, 0, order as u64)?;
    if order == 0 {
        return Ok(matrix);
    }
    // Entries come with exponent 0, which is below 1.
    let exponent = -i64::from(order.next_power_of_two().ilog2()) - 1;
    let width = matrix.limbs_per_element();
    let (heads, limbs) = matrix.parts_mut();
    heads.par_chunks_mut(order).zip(limbs.par_chunks_mut(order * width)).enumerate().for_each(
        |(col, (heads, limbs))| {
            heads.iter_mut().for_each(|head| *head = Head::new(Head(*head).is_negative(), exponent).0);
            heads[col] = Head::new(false, 1).0;
            let one = &mut limbs[col * width..][..width];
            one.fill(0);
            one[width - 1] = 1 << 63;
        },
    );
    Ok(matrix)
}

fn failed<T>(why: String) -> Result<T> {
    Err(Error::Verification(why))
}

/// One factorisation on the device, and whether its factor is `want`; the number of tiles that had to leave comes back.
fn compare(ctx: &Context, a: &Matrix, want: &Matrix, tile_rows: Option<usize>) -> Result<u64> {
    let options = CholeskyOptions { tile_rows };
    let (factor, report) = cholesky_with(ctx, Symmetric::lower(a), a.precision_bits(), &options)?.into_parts();
    let what = format!("{}, tiles of {} rows", describe(a), report.tile_rows);
    let [device] = &report.devices[..] else { return failed(format!("{what}: no device was used")) };
    if report.tiles > 1 && device.traffic.h2d_bytes == 0 {
        return failed(format!("{what}: nothing was sent to the device"));
    }
    let order = a.rows();
    let places = (0..order).flat_map(|col| (0..order).map(move |row| (row, col)));
    match places.into_iter().find(|&(row, col)| factor.get(row, col) != want.get(row, col)) {
        None => Ok(device.cache.evictions),
        Some(place) => failed(format!("{what}: other bits than on the CPU, the first at {place:?}")),
    }
}

/// Orders around the edges of tiles, precisions, threads, with and without the self-check.
pub fn cholesky(subject: &Subject<'_>) -> Result<()> {
    for self_check in [false, true] {
        for (threads, rows) in CUTS {
            let builder = subject.builder().threads(threads).device_memory_bytes(SMALL_BYTES);
            let ctx = builder.self_check(self_check).build()?;
            for (order, bits) in [1, 8, 15, 65].into_iter().flat_map(|order| PRECISIONS.map(|bits| (order, bits))) {
                let a = dominant(order, bits)?;
                let want =
                    cholesky_with(subject.cpu, Symmetric::lower(&a), bits, &CholeskyOptions::default())?.into_factor();
                compare(&ctx, &a, &want, Some(rows))?;
            }
        }
    }
    if subject.large {
        let a = dominant(1700, 512)?;
        let want = cholesky_with(subject.cpu, Symmetric::lower(&a), 512, &CholeskyOptions::default())?.into_factor();
        for tile_rows in [None, Some(256)] {
            compare(&subject.builder().build()?, &a, &want, tile_rows)?;
        }
    }
    Ok(())
}

/// A limit so low that tiles must leave the device for others; one byte less is refused.
pub fn little_memory(subject: &Subject<'_>) -> Result<()> {
    let (order, bits, rows) = if subject.large { (1000, 512, 64) } else { (72, 256, 8) };
    let a = dominant(order, bits)?;
    let want = cholesky_with(subject.cpu, Symmetric::lower(&a), bits, &CholeskyOptions::default())?.into_factor();
    let within = |bytes: u64| -> Result<u64> {
        compare(&subject.builder().device_memory_bytes(bytes).build()?, &a, &want, Some(rows))
    };
    let least_bytes = match within(1) {
        Err(Error::DeviceLimit { minimum_bytes, .. }) => minimum_bytes,
        Err(other) => return failed(format!("one byte of memory was refused with: {other}")),
        Ok(_) => return failed("one byte of memory was enough".into()),
    };
    if within(least_bytes - 1).is_ok() {
        return failed(format!("{least_bytes} bytes were named as the least, and one less is enough"));
    }
    for bytes in [least_bytes, 3 * least_bytes] {
        if within(bytes)? == 0 && bytes == least_bytes {
            return failed(format!("{bytes} bytes: no tile left, though there is no room for all"));
        }
    }
    Ok(())
}

/// Matrices that have no factor: the same index as on the CPU, and the device goes on.
pub fn not_positive_definite(subject: &Subject<'_>) -> Result<()> {
    let (order, bits) = (60, 150);
    let options = CholeskyOptions { tile_rows: Some(8) };
    let index = |ctx: &Context, a: &Matrix| match cholesky_with(ctx, Symmetric::lower(a), bits, &options) {
        Err(Error::NotPositiveDefinite { index, .. }) => Ok(index),
        Err(other) => Err(other),
        Ok(_) => failed("a matrix that is not positive definite was factored".into()),
    };
    let ctx = subject.builder().self_check(true).device_memory_bytes(SMALL_BYTES).build()?;
    for at in [1, 7, 8, 31, 59] {
        for pivot in [-1.0, 1e-9] {
            let mut a = dominant(order, bits)?;
            a.set_f64(at, at, pivot)?;
            let (got, want) = (index(&ctx, &a)?, index(subject.cpu, &a)?);
            if got != want {
                return failed(format!("pivot {at} is {pivot}: stopped at {got}, the CPU at {want}"));
            }
        }
    }
    Ok(())
}

/// A triangular system and one with a matrix to factor, of several tiles.
pub fn solves(subject: &Subject<'_>) -> Result<()> {
    let bits = 192;
    let ctx = subject.builder().build()?;
    let order = 2 * ctx.tile_engine(ctx.kernel(), bits)?.preferred_rows() + 9;
    let (a, b) = (dominant(order, bits)?, random(order, 40, bits, 5)?);
    let l = cholesky_with(subject.cpu, Symmetric::lower(&a), bits, &CholeskyOptions::default())?.into_factor();
    let sent = || subject.devices[0].traffic().h2d_bytes;
    let compare = |what: &str, run: &dyn Fn(&Context) -> Result<Matrix>| {
        let before = sent();
        let got = run(&ctx)?;
        if sent() == before {
            return failed(format!("{what} of {order} rows: nothing was sent to the device"));
        }
        match got == run(subject.cpu)? {
            true => Ok(()),
            false => failed(format!("{what} of {order} rows: other bits than on the CPU")),
        }
    };
    compare("a triangular system", &|ctx| trsm(ctx, &l, &b, bits, &TrsmOptions::default()))?;
    compare("a system", &|ctx| solve(ctx, Symmetric::lower(&a), &b, bits))
}

/// Doubles in tiles, on one device: little memory, every rule of eviction, a small residual.
pub fn doubles(setup: &Setup, device: &Arc<dyn Device>, large: bool) -> Result<()> {
    let (order, rows) = if large { (3000, 250) } else { (200, 32) };
    let matrix = double_matrix(local::alone(), order, rows)?;
    let factor = |device_bytes: Option<u64>, eviction: Eviction| {
        let builder = setup.builder().devices(vec![device.clone()]);
        let builder = device_bytes.into_iter().fold(builder, |builder, bytes| builder.device_memory_bytes(bytes));
        let (ctx, mut l) = (builder.build()?, matrix.clone());
        let options = DoubleOptions { eviction, ..DoubleOptions::default() };
        double_cholesky(&ctx, local::alone(), &mut l, &options).map(|report| (l, report))
    };
    let least_bytes = match factor(Some(1), Eviction::default()) {
        Err(Error::DeviceLimit { minimum_bytes, .. }) => minimum_bytes,
        Err(other) => return failed(format!("one byte of memory was refused with: {other}")),
        Ok(_) => return failed("one byte of memory was enough".into()),
    };
    for device_bytes in [Some(least_bytes), Some(3 * least_bytes), None] {
        for eviction in Eviction::ALL {
            let (l, report) = factor(device_bytes, eviction)?;
            let (residual, name) = (largest_residual(local::alone(), &l)?, eviction.name());
            if residual > RESIDUAL_BOUND {
                return failed(format!("{order} rows, {name}: the residual is {residual:.3} times rows eps |A|"));
            }
            let evictions = report.devices.iter().map(|share| share.cache.evictions).sum::<u64>();
            if device_bytes == Some(least_bytes) && evictions == 0 {
                return failed(format!("{least_bytes} bytes, {name}: no tile left, though there is no room for all"));
            }
        }
    }
    Ok(())
}

/// Doubles in tiles over two ranks that share one device, with little memory each: a small residual.
pub fn doubles_over_ranks(setup: &Setup, device: &Arc<dyn Device>, large: bool) -> Result<()> {
    let (order, rows): (usize, usize) = if large { (3000, 250) } else { (200, 32) };
    let grid = RankGrid { rows: 2, cols: 1 };
    // Room for a quarter of the tiles of a rank.
    let tiles = order.div_ceil(rows) as u64;
    let bytes = (tiles * tiles / 16).max(4) * (rows * rows * size_of::<f64>()) as u64;
    let entry = |i: usize, j: usize| {
        let noise = (((i * 7919 + j * 104_729) % 1009) as f64 / 1009.0) - 0.5;
        if i == j { order as f64 + noise } else { noise }
    };
    let vectors = [(0..order).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect::<Vec<_>>()];
    let on_rank = |rank: &LocalRank| {
        let ctx = setup.builder().threads(1).devices(vec![device.clone()]).device_memory_bytes(bytes).build();
        let ctx = agreed(rank, ctx)?;
        let mut a = agreed(rank, DoubleMatrix::from_fn(rank.rank(), order, rows, grid, entry))?;
        let report = double_cholesky(&ctx, rank, &mut a, &DoubleOptions::default())?;
        let moved = report.h2d_bytes > 0 && report.d2h_bytes > 0;
        Ok((a.residual(rank, entry, &vectors)?, moved))
    };
    for outcome in local::run(grid.size(), on_rank) {
        let (residual, moved): (f64, bool) = outcome?;
        if !moved {
            return failed(format!("{order} rows: a rank has left its device idle"));
        }
        if residual > RESIDUAL_BOUND {
            return failed(format!("{order} rows: the residual is {residual:.3} times rows eps |A|"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_diagonal_outweighs_its_row() {
        for order in [0, 1, 2, 9, 16, 17] {
            let a = dominant(order, 70).unwrap();
            for row in 0..order {
                let rest =
                    (0..order).filter(|&col| col != row).map(|col| a.float(row, col).abs().to_f64()).sum::<f64>();
                assert!(a.float(row, row) == 1 && rest < 0.5, "{order}: row {row}");
            }
        }
    }
}
