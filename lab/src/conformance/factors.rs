//! Checks of factorisations and triangular solves on devices: big floats have the same bits as on the CPU, doubles a
//! small residual.
//!
//! Depends on: the public operations. Independent of: how tiles move.

use super::products::{Subject, random};
use super::{Setup, failed, least_bytes};
use crate::bench::{RESIDUAL_BOUND, double_matrix, largest_residual};
use rayon::prelude::*;
use std::sync::Arc;
use sunzi::advanced::kernels::tiles::TileTraffic;
use sunzi::advanced::runtime::Eviction;
use sunzi::comm::agreed;
use sunzi::comm::local::{self, LocalRank};
use sunzi::devices::Device;
use sunzi::double::{DoubleOptions, double_cholesky};
use sunzi::gallery::{Size, counter_random};
use sunzi::{Accuracy, CholeskyOptions, Context, Error, Head, Matrix, Outcome, Result, Symmetric};
use sunzi::{cholesky_with, ldlt, solve, trsm};
use sunzi_session::units::describe;

/// Precisions at which factors are compared.
const PRECISIONS: [u32; 3] = [64, 512, 1024];

/// Threads and rows of a tile: many tiles, tiles that leave a remainder, one tile.
const CUTS: [(usize, usize); 3] = [(1, 8), (3, 24), (2, 104)];

/// Device memory of small factorisations, which would else fill the device with places for tiny tiles.
const SMALL_BYTES: u64 = 256 << 20;

/// A positive definite matrix that is generated quickly: ones on the diagonal, and entries so small that those of a row
/// add up to less than a half. Only its lower triangle is defined.
///
/// # Errors
/// The errors of [`Matrix::zeros`].
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

/// The same, its rows and columns scaled by powers of two that differ by up to `2^40`.
fn uneven(order: usize, precision_bits: u32) -> Result<Matrix> {
    let mut matrix = dominant(order, precision_bits)?;
    let shift = |index: usize| (index * 7 % 40) as i64 - 20;
    let (heads, _) = matrix.parts_mut();
    for (at, head) in heads.iter_mut().enumerate() {
        let (negative, exponent) = (Head(*head).is_negative(), Head(*head).exponent());
        *head = Head::new(negative, exponent + shift(at % order) + shift(at / order)).0;
    }
    Ok(matrix)
}

fn on_cpu(subject: &Subject<'_>, a: &Matrix) -> Result<Matrix> {
    let options = CholeskyOptions::new().accuracy(Accuracy::Norm);
    Ok(cholesky_with(subject.cpu, Symmetric::lower(a), a.precision_bits(), &options)?.result.into_factor())
}

/// One factorisation on the devices, and whether its factor is `want`; returns the work of each device.
fn compare(ctx: &Context, a: &Matrix, want: &Matrix, tile_rows: Option<usize>) -> Result<Vec<TileTraffic>> {
    let options = CholeskyOptions::new().accuracy(Accuracy::Norm).tile_rows(tile_rows);
    let Outcome { result, report } = cholesky_with(ctx, Symmetric::lower(a), a.precision_bits(), &options)?;
    let factor = result.factor();
    let what = format!("{}, tiles of {} rows", describe(a), report.tile_rows);
    if report.devices.is_empty() || report.tiles > 1 && report.devices.iter().all(|own| own.traffic.h2d_bytes == 0) {
        return failed(format!("{what}: no device was used"));
    }
    let order = a.rows();
    let places = (0..order).flat_map(|col| (0..order).map(move |row| (row, col)));
    match places.into_iter().find(|&(row, col)| factor.get(row, col) != want.get(row, col)) {
        None => Ok(report.devices),
        Some(place) => failed(format!("{what}: the result differs bitwise from that on the CPU, first at {place:?}")),
    }
}

/// Orders around the edges of tiles, precisions, threads, with and without the self-check.
pub fn cholesky(subject: &Subject<'_>) -> Result<()> {
    for self_check in [false, true] {
        for (threads, rows) in CUTS {
            let builder = subject.builder().threads(threads).device_memory_bytes(SMALL_BYTES);
            let ctx = builder.self_check(self_check).build()?;
            for (order, bits) in [1, 8, 15, 65].into_iter().flat_map(|order| PRECISIONS.map(|bits| (order, bits))) {
                let a = uneven(order, bits)?;
                let want = on_cpu(subject, &a)?;
                compare(&ctx, &a, &want, Some(rows))?;
            }
        }
    }
    if subject.large {
        let a = dominant(1700, 512)?;
        let want = on_cpu(subject, &a)?;
        for tile_rows in [None, Some(256)] {
            compare(&subject.builder().build()?, &a, &want, tile_rows)?;
        }
    }
    Ok(())
}

/// Doubles are reduced after 1024 rows at most, which ends inside a tile of 104; padding goes to multiples of 16. The
/// memory of a factorisation is released when it ends.
pub fn long_sums(subject: &Subject<'_>) -> Result<()> {
    let (rows, bits) = (104, 64);
    let a = dominant(11 * rows, bits)?;
    let used_bytes = || subject.devices.iter().map(|device| device.used_bytes()).sum::<u64>();
    let (ctx, before) = (subject.builder().build()?, used_bytes());
    compare(&ctx, &a, &on_cpu(subject, &a)?, Some(rows))?;
    match used_bytes() {
        after if after == before => Ok(()),
        after => failed(format!("{after} bytes are in use after a factorisation, {before} were before it")),
    }
}

/// On several devices the bits are the same, each device updates tiles of its own, and every update is made once.
pub fn shares(subject: &Subject<'_>) -> Result<()> {
    let a = dominant(120, 128)?;
    let want = on_cpu(subject, &a)?;
    for threads in [1, 3] {
        let ctx = subject.builder().threads(threads).device_memory_bytes(SMALL_BYTES).build()?;
        let products = compare(&ctx, &a, &want, Some(16))?.iter().map(|own| own.products).collect::<Vec<_>>();
        // Updates of 8 x 8 tiles: each is the product of two finished ones.
        if products.len() != subject.devices.len() || products.contains(&0) || products.iter().sum::<u64>() != 84 {
            return failed(format!("updates {products:?}, of 84"));
        }
    }
    Ok(())
}

/// A limit so low that tiles must leave the device for others; with one byte less the factorisation is refused.
pub fn little_memory(subject: &Subject<'_>) -> Result<()> {
    let (order, bits, rows) = if subject.large { (1000, 512, 64) } else { (72, 256, 8) };
    let a = dominant(order, bits)?;
    let want = on_cpu(subject, &a)?;
    let within = |bytes: u64| -> Result<u64> {
        let ctx = subject.builder().threads(4).device_memory_bytes(bytes).build()?;
        let [own] = &compare(&ctx, &a, &want, Some(rows))?[..] else { return failed("other devices were used".into()) };
        match own.device_bytes {
            taken if taken > bytes => failed(format!("{taken} bytes were used of a limit of {bytes}")),
            _ => Ok(own.cache.evictions),
        }
    };
    let least_bytes = least_bytes(within)?;
    for bytes in [least_bytes, 3 * least_bytes] {
        if within(bytes)? == 0 && bytes == least_bytes {
            return failed(format!("{bytes} bytes: no tile was evicted, although not all fit"));
        }
    }
    Ok(())
}

/// Matrices without a factor: the reported index is the same as on the CPU, and the device works afterwards.
pub fn not_positive_definite(subject: &Subject<'_>) -> Result<()> {
    let (order, bits) = (60, 150);
    let options = CholeskyOptions::new().accuracy(Accuracy::Norm).tile_rows(8);
    let index = |ctx: &Context, a: &Matrix| match cholesky_with(ctx, Symmetric::lower(a), bits, &options) {
        Err(Error::NotPositiveDefinite { index, .. }) => Ok(index),
        Err(other) => Err(other),
        Ok(_) => failed("a matrix that is not positive definite was factored".into()),
    };
    let ctx = subject.builder().self_check(true).device_memory_bytes(SMALL_BYTES).build()?;
    for at in [0, 1, 7, 8, 31, 59] {
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
    let l = on_cpu(subject, &a)?;
    same(subject, &ctx, "a triangular system", &|ctx| trsm(ctx, &l, &b, bits))?;
    same(subject, &ctx, "a system", &|ctx| solve(ctx, Symmetric::lower(&a), &b, bits))
}

/// Five right-hand sides go by parts, with a product for each part; an inverse and `L D L^T` multiply as well.
pub fn products_in_solves(subject: &Subject<'_>) -> Result<()> {
    let (order, bits) = (72, 128);
    let (a, b) = (dominant(order, bits)?, random(order, 5, bits, 5)?);
    let ctx = subject.builder().build()?;
    let factor = sunzi::cholesky(subject.cpu, Symmetric::lower(&a), bits)?;
    same(subject, &ctx, "trsm", &|ctx| trsm(ctx, factor.factor(), &b, bits))?;
    same(subject, &ctx, "solve", &|ctx| factor.solve(ctx, &b, bits))?;
    same(subject, &ctx, "inverse", &|ctx| Ok(factor.inverse(ctx, bits)?.into_matrix()))?;
    same(subject, &ctx, "ldlt", &|ctx| Ok(ldlt(ctx, Symmetric::lower(&a), bits)?.lower().clone()))
}

/// Whether `run` sends something to the first device, and gives the bits of the CPU.
fn same(subject: &Subject<'_>, ctx: &Context, what: &str, run: &dyn Fn(&Context) -> Result<Matrix>) -> Result<()> {
    let sent = || subject.devices[0].traffic().h2d_bytes;
    let before = sent();
    let got = run(ctx)?;
    if sent() == before {
        return failed(format!("{what}: nothing was sent to the device"));
    }
    match got == run(subject.cpu)? {
        true => Ok(()),
        false => failed(format!("{what}: the result differs bitwise from that on the CPU")),
    }
}

/// Doubles in tiles, on one device: little memory, every rule of eviction, a small residual.
pub fn doubles(setup: &Setup, device: &Arc<dyn Device>, large: bool) -> Result<()> {
    let (order, rows) = if large { (3000, 250) } else { (200, 32) };
    let matrix = double_matrix(local::alone(), order, rows)?;
    let factor = |device_bytes: Option<u64>, eviction: Eviction| {
        let builder = setup.builder().devices(vec![device.clone()]);
        let builder = device_bytes.into_iter().fold(builder, |builder, bytes| builder.device_memory_bytes(bytes));
        let (ctx, mut l) = (builder.build()?, matrix.clone());
        let options = DoubleOptions::new().eviction(eviction);
        double_cholesky(&ctx, local::alone(), &mut l, &options).map(|report| (l, report))
    };
    let least_bytes = least_bytes(|bytes| factor(Some(bytes), Eviction::default()))?;
    for device_bytes in [Some(least_bytes), Some(3 * least_bytes), None] {
        for eviction in Eviction::ALL {
            let (l, report) = factor(device_bytes, eviction)?;
            let (residual, name) = (largest_residual(local::alone(), &l)?, eviction.name());
            if residual > RESIDUAL_BOUND {
                return failed(format!("{order} rows, {name}: the residual is {residual:.3} times rows eps |A|"));
            }
            let evictions = report.devices.iter().map(|share| share.cache.evictions).sum::<u64>();
            if device_bytes == Some(least_bytes) && evictions == 0 {
                return failed(format!("{least_bytes} bytes, {name}: no tile was evicted, although not all fit"));
            }
        }
    }
    Ok(())
}

/// Doubles in tiles over two ranks that share one device, with little memory each: a small residual.
pub fn doubles_over_ranks(setup: &Setup, device: &Arc<dyn Device>, large: bool) -> Result<()> {
    let (order, rows): (usize, usize) = if large { (3000, 250) } else { (200, 32) };
    // Room for a quarter of the tiles of a rank.
    let tiles = order.div_ceil(rows) as u64;
    let bytes = (tiles * tiles / 16).max(4) * (rows * rows * size_of::<f64>()) as u64;
    let on_rank = |rank: &LocalRank| {
        let ctx = setup.builder().threads(1).devices(vec![device.clone()]).device_memory_bytes(bytes).build();
        let ctx = agreed(rank, ctx)?;
        let mut a = agreed(rank, double_matrix(rank, order, rows))?;
        let report = double_cholesky(&ctx, rank, &mut a, &DoubleOptions::default())?;
        let moved = report.h2d_bytes > 0 && report.d2h_bytes > 0;
        Ok((largest_residual(rank, &a)?, moved))
    };
    for outcome in local::run(2, on_rank) {
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
