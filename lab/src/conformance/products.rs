//! Checks of products of big floats on devices: every bit as on the CPU.
//!
//! Depends on: the public verbs. Independent of: how a product is cut or converted.

use super::{Setup, failed, least_bytes};
use rug::{Float, Integer, integer::Order};
use std::sync::Arc;
use sunzi::advanced::kernels::device::DeviceFamily;
use sunzi::advanced::math::float::limbs_for;
use sunzi::devices::Device;
use sunzi::gallery::{Size, counter_random};
use sunzi::{
    Accuracy, Context, ContextBuilder, GemmOptions, Matrix, Op, Outcome, Result, Symmetric, SyrkOptions, Uplo,
    gemm_with, syrk_with,
};
use sunzi_session::engine::largest_precision_bits;
use sunzi_session::units::describe;

/// Precisions at which products are compared.
const PRECISIONS: [u32; 5] = [64, 113, 512, 1024, 4000];

/// Exponents of most checks are spread over twice as many bits.
const SPREAD_BITS: u32 = 40;

/// Where exponents are spread, one entry in this number is 1.
const ONE_ENTRIES: usize = 97;

/// Devices that multiply together, the family they use, and the CPU to compare with.
pub struct Subject<'a> {
    /// Threads and progress.
    pub setup: &'a Setup,
    /// A context without devices.
    pub cpu: &'a Context,
    /// The devices, in order.
    pub devices: Vec<Arc<dyn Device>>,
    /// The family.
    pub family: DeviceFamily,
    /// Whether sizes may be those of a GPU.
    pub large: bool,
}

impl Subject<'_> {
    /// A context on the devices, by the family.
    pub fn builder(&self) -> ContextBuilder {
        self.setup.builder().devices(self.devices.clone()).kernel(self.family.name())
    }

    /// Compares a SYRK in a context with the CPU's; returns the outcome of the devices.
    fn syrk(&self, ctx: &Context, p: &Matrix, options: &SyrkOptions<'_>) -> Result<Outcome> {
        let bits = p.precision_bits();
        let Outcome { result, report } = syrk_with(ctx, p, bits, options)?;
        let outcome = Outcome { result: result.into_matrix(), report };
        self.same(outcome, &syrk_with(self.cpu, p, bits, options)?.result, p)
    }

    fn gemm(&self, ctx: &Context, a: &Matrix, b: &Matrix, options: &GemmOptions<'_>) -> Result<Outcome> {
        let bits = a.precision_bits().max(b.precision_bits());
        let outcome = gemm_with(ctx, a, b, bits, options)?;
        self.same(outcome, &gemm_with(self.cpu, a, b, bits, options)?.result, a)
    }

    /// The outcome, if the devices made it and every bit of it is that of `want`.
    fn same(&self, outcome: Outcome, want: &Matrix, operand: &Matrix) -> Result<Outcome> {
        let (got, report) = (&outcome.result, &outcome.report);
        let what = format!("{} of {}", report.operation, describe(operand));
        let failed = |why: String| failed(format!("{what}: {why}"));
        if report.kernel != self.family.name() || report.devices.iter().all(|device| device.traffic.h2d_bytes == 0) {
            return failed(format!("it ran on {}, not on the device", report.kernel));
        }
        if got == want {
            return Ok(outcome);
        }
        if (got.rows(), got.cols(), got.precision_bits()) != (want.rows(), want.cols(), want.precision_bits()) {
            return failed(format!("the result is {}", describe(got)));
        }
        let places = || (0..got.cols()).flat_map(|col| (0..got.rows()).map(move |row| (row, col)));
        let wrong = places().filter(|&(row, col)| got.get(row, col) != want.get(row, col)).collect::<Vec<_>>();
        failed(format!("{} entries differ bitwise from those on the CPU, the first at {:?}", wrong.len(), wrong[0]))
    }
}

/// A matrix that only depends on the arguments; where exponents are spread, some entries are 0 and some are 1.
pub fn random(rows: usize, cols: usize, precision_bits: u32, spread_bits: u32) -> Result<Matrix> {
    let seed = (rows * 1_000_003 + cols) as u64 ^ u64::from(precision_bits) << 40;
    let mut matrix = counter_random(Size { rows, cols, precision_bits }, spread_bits, seed)?;
    let ones = if spread_bits > 0 { rows * cols } else { 0 };
    (5..ones).step_by(ONE_ENTRIES).try_for_each(|at| matrix.set_f64(at % rows, at / rows, 1.0))?;
    Ok(matrix)
}

/// Sizes of one row, of one column, on both sides of the edge of every block, tall and wide.
pub fn syrk_shapes(subject: &Subject<'_>) -> Result<()> {
    let ctx = subject.builder().build()?;
    let mut shapes = vec![(1, 1), (16, 16), (17, 17), (15, 33), (1, 40), (300, 1), (257, 20), (10, 70)];
    if subject.large {
        let chunk = subject.family.largest_chunk_rows();
        shapes.extend([(512, 512), (100, 513), (8192, 33), (8193, 17), (40, 2000), (30_000, 16)]);
        shapes.extend([(chunk, 3), (chunk + 1, 17)].iter().filter(|(rows, _)| *rows <= 1 << 20));
    }
    for (rows, cols) in shapes {
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let options = SyrkOptions::new().accuracy(Accuracy::Norm).uplo(uplo);
            // The larger the shape, the fewer bits.
            for bits in if rows * cols <= 1 << 16 { &[64, 300][..] } else { &[64] } {
                subject.syrk(&ctx, &random(rows, cols, *bits, SPREAD_BITS)?, &options)?;
            }
        }
    }
    Ok(())
}

/// Other sizes in all three directions, operands of different precision.
pub fn gemm_shapes(subject: &Subject<'_>) -> Result<()> {
    let ctx = subject.builder().build()?;
    let mut shapes = vec![(1, 1, 1), (16, 17, 16), (17, 16, 15), (1, 300, 1), (40, 1, 3), (3, 20, 65)];
    if subject.large {
        shapes.extend([(513, 64, 512), (2000, 30, 16), (16, 30, 2000), (33, 9000, 31)]);
    }
    for (rows, contracted, cols) in shapes {
        let (a, b) = (random(rows, contracted, 113, SPREAD_BITS)?, random(contracted, cols, 70, 0)?);
        subject.gemm(&ctx, &a, &b, &GemmOptions::new().accuracy(Accuracy::Norm))?;
    }
    Ok(())
}

/// Precisions from one limb to many, exponents thousands of bits apart.
pub fn precisions(subject: &Subject<'_>) -> Result<()> {
    let ctx = subject.builder().build()?;
    let largest_bits = largest_precision_bits(subject.family.maximum_modulus_bits());
    let (rows, cols) = if subject.large { (200, 130) } else { (40, 18) };
    for bits in PRECISIONS.into_iter().filter(|&bits| bits <= largest_bits) {
        for spread_bits in [0, 4000] {
            let p = random(rows, cols, bits, spread_bits)?;
            subject.syrk(&ctx, &p, &SyrkOptions::new().accuracy(Accuracy::Norm))?;
            subject.gemm(
                &ctx,
                &random(11, rows, bits, spread_bits)?,
                &p,
                &GemmOptions::new().accuracy(Accuracy::Norm),
            )?;
        }
    }
    Ok(())
}

/// `P P^T`, and all four forms of a product of two.
pub fn transposes(subject: &Subject<'_>) -> Result<()> {
    let ctx = subject.builder().build()?;
    let p = random(35, 50, 192, SPREAD_BITS)?;
    for uplo in [Uplo::Lower, Uplo::Upper] {
        subject.syrk(&ctx, &p, &SyrkOptions::new().accuracy(Accuracy::Norm).op(Op::Transpose).uplo(uplo))?;
    }
    for op_a in [Op::NoTranspose, Op::Transpose] {
        for op_b in [Op::NoTranspose, Op::Transpose] {
            let (rows, cols) = if op_b == Op::Transpose { (21, 35) } else { (35, 21) };
            let a = if op_a == Op::Transpose { random(35, 18, 192, 3)? } else { random(18, 35, 192, 3)? };
            let options = GemmOptions::new().accuracy(Accuracy::Norm).op_a(op_a).op_b(op_b);
            subject.gemm(&ctx, &a, &random(rows, cols, 150, SPREAD_BITS)?, &options)?;
        }
    }
    Ok(())
}

/// Products of integers, to the last bit.
pub fn integers(subject: &Subject<'_>) -> Result<()> {
    let ctx = subject.builder().build()?;
    for bits in [1u32, 30, 200] {
        let source = random(40, 13, bits.max(2), 3)?;
        let integer = |at: usize| {
            let number = source.get(at % 40, at / 40);
            let length = 64 * limbs_for(bits.max(2)) as u32;
            let magnitude = Integer::from_digits(number.limbs, Order::Lsf) >> (length - bits);
            if number.head.is_negative() { -magnitude } else { magnitude }
        };
        let values = (0..40 * 13).map(integer).collect::<Vec<_>>();
        let p = Matrix::from_integers(40, 13, bits.max(2), &values)?;
        let options = SyrkOptions::new().accuracy(Accuracy::Norm).exact_integers(true);
        subject.syrk(&ctx, &p, &options)?;
    }
    Ok(())
}

/// `alpha P^T P + beta C`, rounded once.
pub fn factors(subject: &Subject<'_>) -> Result<()> {
    let ctx = subject.builder().build()?;
    let (a, b) = (random(30, 50, 192, SPREAD_BITS)?, random(50, 21, 192, SPREAD_BITS)?);
    let (c, square) = (random(30, 21, 192, SPREAD_BITS)?, random(21, 21, 192, SPREAD_BITS)?);
    let (alpha, beta) = (Some(Float::with_val(60, 1.75)), Some(Float::with_val(60, -3)));
    for (alpha, beta, add) in [(&alpha, &None, false), (&None, &None, true), (&alpha, &beta, true)] {
        let (alpha, beta) = (alpha.as_ref(), beta.as_ref());
        let options =
            GemmOptions::new().accuracy(Accuracy::Norm).alpha(alpha).beta(beta).accumulate(add.then(|| c.view()));
        subject.gemm(&ctx, &a, &b, &options)?;
        let options = SyrkOptions::new()
            .accuracy(Accuracy::Norm)
            .alpha(alpha)
            .beta(beta)
            .accumulate(add.then(|| Symmetric::lower(&square)));
        subject.syrk(&ctx, &b, &options)?;
    }
    Ok(())
}

/// With the redundant modulus, with Freivalds' test, with both.
pub fn self_checks(subject: &Subject<'_>) -> Result<()> {
    let p = random(if subject.large { 2000 } else { 90 }, 45, 256, SPREAD_BITS)?;
    let alpha = Float::with_val(60, -1.75);
    for (self_check, freivalds) in [(true, false), (false, true), (true, true)] {
        let ctx = subject.builder().self_check(self_check).freivalds(freivalds).build()?;
        let options = GemmOptions::new().accuracy(Accuracy::Norm).op_a(Op::Transpose).alpha(&alpha);
        subject.gemm(&ctx, &p, &p, &options)?;
        let outcome = subject.syrk(&ctx, &p, &SyrkOptions::new().accuracy(Accuracy::Norm))?;
        if !outcome.report.checked {
            return failed("the report does not state that the product was checked".into());
        }
    }
    Ok(())
}

/// A limit so low that the product comes in chunks, batches and bands; one byte less is refused.
pub fn little_memory(subject: &Subject<'_>) -> Result<()> {
    let p = random(700, if subject.large { 200 } else { 60 }, 300, SPREAD_BITS)?;
    let within = |bytes: u64| subject.builder().device_memory_bytes(bytes).build();
    let options = SyrkOptions::new().accuracy(Accuracy::Norm);
    let least_bytes = least_bytes(|bytes| syrk_with(&within(bytes)?, &p, 300, &options))?;
    for bytes in [least_bytes, 2 * least_bytes, 6 * least_bytes] {
        let report = subject.syrk(&within(bytes)?, &p, &options)?.report;
        if let Some(device) = report.devices.iter().find(|device| device.device_bytes > bytes) {
            return failed(format!("{} bytes were used on {} of a limit of {bytes}", device.device_bytes, device.name));
        }
        if bytes == least_bytes && (report.batches < 2 || report.bands < 2 || report.chunks < 2) {
            let cuts = (report.batches, report.bands, report.chunks);
            return failed(format!("{bytes} bytes: batches, bands and chunks {cuts:?}, all of them expected"));
        }
    }
    Ok(())
}

/// Several devices: each has a share, the shares together are all moduli, and the bits are the same, whole and in
/// pieces.
pub fn shares(subject: &Subject<'_>) -> Result<()> {
    let p = random(if subject.large { 3000 } else { 90 }, if subject.large { 300 } else { 45 }, 512, SPREAD_BITS)?;
    let ctx = subject.builder().build()?;
    for uplo in [Uplo::Lower, Uplo::Upper] {
        let options = SyrkOptions::new().accuracy(Accuracy::Norm).uplo(uplo);
        let report = subject.syrk(&ctx, &p, &options)?.report;
        let moduli = report.devices.iter().map(|device| device.moduli).collect::<Vec<_>>();
        // A device that is far slower than the others may have no share.
        if moduli.len() > subject.devices.len() || moduli.contains(&0) || moduli.iter().sum::<usize>() != report.primes
        {
            return failed(format!("shares of {moduli:?} moduli, of {}", report.primes));
        }
    }
    subject.gemm(&ctx, &random(33, p.rows(), 512, 0)?, &p, &GemmOptions::new().accuracy(Accuracy::Norm)).map(drop)
}
