//! Checks of a device's own operations: copies, products and solves against a loop on the host, the order of streams.
//!
//! Depends on: the trait [`Device`]. Independent of: big floats, residues. All numbers are integers small enough for
//! sums to be exact in any order, but for triangular solves.

use super::failed;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sunzi::advanced::device::{Element, Gemm, GemmOperand, Region, Stream, Trsm};
use sunzi::devices::Device;
use sunzi::{Error, Result};

/// Relative error that a triangular solve of a well-conditioned matrix may have, far above rounding errors.
const SOLVE_ERROR: f64 = 1e-11;

/// Rounds of the check of events: an order that is not kept need not show at once.
const EVENT_ROUNDS: usize = 10;

/// A device with a stream.
pub struct Fixture<'a> {
    /// The device.
    pub device: &'a dyn Device,
    /// Its stream.
    pub stream: Stream,
}

impl Fixture<'_> {
    /// A fixture on a device.
    ///
    /// # Errors
    /// The errors of [`Device::stream`].
    pub fn new(device: &dyn Device) -> Result<Fixture<'_>> {
        Ok(Fixture { device, stream: device.stream()? })
    }

    /// Memory with these bytes, from byte `offset` on.
    fn send(&self, bytes: &[u8], offset: usize) -> Result<Region> {
        let pinned = self.device.allocate_pinned(bytes.len())?;
        pinned.lock()?.copy_from_slice(bytes);
        let region = self.device.allocate(offset + bytes.len())?.whole().from(offset);
        self.device.upload(self.stream, &pinned, 0, &region)?;
        Ok(region)
    }

    fn fetch(&self, region: &Region) -> Result<Vec<u8>> {
        let pinned = self.device.allocate_pinned(region.bytes())?;
        self.device.download(self.stream, region, &pinned, 0)?;
        Ok(pinned.lock()?.to_vec())
    }
}

fn random_bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; count];
    ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

/// Every byte comes back unchanged from odd addresses, through a copy on the device; cleared bytes are 0; the traffic
/// is counted.
pub fn copies(device: &dyn Device, _large: bool) -> Result<()> {
    let fixture = Fixture::new(device)?;
    for bytes in [1usize, 255, 4099, (1 << 20) + 7] {
        let before = device.traffic();
        let data = random_bytes(bytes, bytes as u64);
        let (there, back) = (device.allocate_pinned(bytes + 3)?, device.allocate_pinned(bytes + 7)?);
        there.lock()?[3..].copy_from_slice(&data);
        let first = device.allocate(bytes + 5)?.whole().from(5);
        let second = device.allocate(bytes + 9)?.whole().region(1..bytes + 1);
        device.upload(fixture.stream, &there, 3, &first)?;
        device.copy(fixture.stream, &first, &second)?;
        let cleared = bytes / 3..bytes / 2;
        device.clear(fixture.stream, &second.region(cleared.clone()))?;
        device.download(fixture.stream, &second, &back, 7)?;
        let mut want = data;
        want[cleared].fill(0);
        let (got, moved) = (back.lock()?[7..].to_vec(), device.traffic().since(&before));
        if let Some(at) = (0..bytes).find(|&at| got[at] != want[at]) {
            return failed(format!("{bytes} bytes: byte {at} came back as {}, not {}", got[at], want[at]));
        }
        if (moved.h2d_bytes, moved.d2h_bytes) != (bytes as u64, bytes as u64) {
            return failed(format!("{bytes} bytes moved, counted as {} and {}", moved.h2d_bytes, moved.d2h_bytes));
        }
    }
    Ok(())
}

/// A batch of products to check. Paddings are those between columns and between matrices, in elements.
#[derive(Clone, Copy, Debug)]
struct Case {
    m: usize,
    n: usize,
    k: usize,
    batch: usize,
    pad_cols: usize,
    pad_matrices: usize,
    /// One B for all products of the batch.
    one_b: bool,
    negate: bool,
    accumulate: bool,
    by_rows: bool,
}

const PLAIN: Case = Case {
    m: 1,
    n: 1,
    k: 1,
    batch: 1,
    pad_cols: 0,
    pad_matrices: 0,
    one_b: false,
    negate: false,
    accumulate: false,
    by_rows: false,
};

/// Sizes around the block sizes of tensor cores and their libraries.
const SIZES: [(usize, usize, usize); 7] =
    [(1, 1, 1), (16, 16, 16), (17, 15, 33), (64, 48, 127), (5, 130, 65), (129, 3, 256), (31, 33, 1)];

/// Products of doubles, in every form, against a loop.
pub fn products_f64(device: &dyn Device, large: bool) -> Result<()> {
    let mut cases = Vec::new();
    for (at, (m, n, k)) in SIZES.into_iter().enumerate() {
        let odd = Case { m, n, k, batch: 1 + at % 3, pad_cols: at, pad_matrices: 5 * at, ..PLAIN };
        for (negate, accumulate, by_rows) in
            [(false, false, false), (true, false, true), (false, true, true), (true, true, false)]
        {
            cases.push(Case { negate, accumulate, by_rows, one_b: at % 2 == 1, ..odd });
        }
    }
    if large {
        cases.push(Case { m: 513, n: 255, k: 1000, batch: 2, pad_cols: 3, ..PLAIN });
    }
    let fixture = Fixture::new(device)?;
    cases.iter().enumerate().try_for_each(|(seed, case)| check_product(&fixture, Element::F64, case, seed as u64))
}

/// Products of bytes against a loop: columns and matrices at multiples of 16, sizes of any kind.
pub fn products_i8(device: &dyn Device, large: bool) -> Result<()> {
    let mut cases = Vec::new();
    for (at, (m, n, k)) in SIZES.into_iter().enumerate() {
        let odd = Case { m, n, k, batch: 1 + at % 3, pad_cols: 16 * (at % 2), pad_matrices: 48 * at, ..PLAIN };
        cases.extend([false, true].map(|accumulate| Case { accumulate, one_b: at % 2 == 1, ..odd }));
    }
    if large {
        cases.push(Case { m: 512, n: 256, k: 2048, batch: 2, pad_cols: 16, ..PLAIN });
    }
    let fixture = Fixture::new(device)?;
    cases.iter().enumerate().try_for_each(|(seed, case)| check_product(&fixture, Element::I8, case, seed as u64))
}

/// Matrices of a batch on the host: every element of the memory as a number, and where they lie.
struct BatchBlock {
    numbers: Vec<f64>,
    rows: usize,
    cols: usize,
    ld: usize,
    stride: usize,
}

impl BatchBlock {
    fn new(rows: usize, cols: usize, case: &Case, align: usize, fill: impl FnMut() -> f64) -> BatchBlock {
        let ld = rows.next_multiple_of(align) + case.pad_cols;
        let stride = ld * cols + case.pad_matrices;
        let numbers = std::iter::repeat_with(fill).take(stride * case.batch).collect();
        BatchBlock { numbers, rows, cols, ld, stride }
    }

    fn place(&self, matrix: usize, row: usize, col: usize) -> usize {
        assert!(row < self.rows && col < self.cols);
        matrix * self.stride + col * self.ld + row
    }
}

fn encode(numbers: &[f64], element_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len() * element_bytes);
    for &number in numbers {
        match element_bytes {
            1 => bytes.push(number as i8 as u8),
            4 => bytes.extend((number as i32).to_le_bytes()),
            _ => bytes.extend(number.to_le_bytes()),
        }
    }
    bytes
}

fn decode(bytes: &[u8], element_bytes: usize) -> Vec<f64> {
    let numbers = bytes.chunks_exact(element_bytes).map(|chunk| match *chunk {
        [a, b, c, d] => f64::from(i32::from_le_bytes([a, b, c, d])),
        _ => f64::from_le_bytes(std::array::from_fn(|at| chunk[at])),
    });
    numbers.collect()
}

/// Multiplies on the device and on the host; also the elements between the columns of C must be as before.
fn check_product(fixture: &Fixture<'_>, element: Element, case: &Case, seed: u64) -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (bytes, largest) = match element {
        Element::I8 => (true, 127),
        Element::F64 => (false, 1 << 20),
    };
    let align = if bytes { 16 } else { 1 };
    let (inner, outer) = (element.operand_bytes(), element.product_bytes());
    let mut number = |largest: i64| rng.random_range(-largest - 1..=largest) as f64;
    let shape = |size: usize| if case.by_rows { (size, case.k) } else { (case.k, size) };
    let ((a_rows, a_cols), (b_rows, b_cols)) = (shape(case.m), shape(case.n));
    let a = BatchBlock::new(a_rows, a_cols, case, align, || number(largest));
    let mut b = BatchBlock::new(b_rows, b_cols, case, align, || number(largest));
    b.stride = if case.one_b { 0 } else { b.stride };
    // An entry that is overwritten must not be read: a NaN would spread.
    let dirt = if bytes { 7e6 } else { f64::NAN };
    let mut c = BatchBlock::new(case.m, case.n, case, 1, || if case.accumulate { number(1 << 20) } else { dirt });
    let send = |block: &BatchBlock, size: usize| fixture.send(&encode(&block.numbers, size), 16 * 3);
    let operand = |block: &BatchBlock, region: Region| GemmOperand { region, ld: block.ld, stride: block.stride };
    let gemm = Gemm {
        element,
        m: case.m,
        n: case.n,
        k: case.k,
        a: operand(&a, send(&a, inner)?),
        b: operand(&b, send(&b, inner)?),
        c: operand(&c, send(&c, outer)?),
        batch: case.batch,
        negate: case.negate,
        accumulate: case.accumulate,
        by_rows: case.by_rows,
    };
    fixture.device.multiply(fixture.stream, &gemm)?;
    let got = decode(&fixture.fetch(&gemm.c.region)?, outer);
    multiply_here(case, &a, &b, &mut c);
    let same = |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan());
    match (0..got.len()).find(|&at| !same(got[at], c.numbers[at])) {
        None => Ok(()),
        Some(at) => failed(format!("{case:?}: element {at} of C is {}, not {}", got[at], c.numbers[at])),
    }
}

fn multiply_here(case: &Case, a: &BatchBlock, b: &BatchBlock, c: &mut BatchBlock) {
    let at = |block: &BatchBlock, matrix: usize, inner: usize, outer: usize| match case.by_rows {
        true => block.numbers[block.place(matrix, outer, inner)],
        false => block.numbers[block.place(matrix, inner, outer)],
    };
    for matrix in 0..case.batch {
        for col in 0..case.n {
            for row in 0..case.m {
                let sum = (0..case.k).map(|k| at(a, matrix, k, row) * at(b, matrix, k, col)).sum::<f64>();
                let place = c.place(matrix, row, col);
                let before = if case.accumulate { c.numbers[place] } else { 0.0 };
                c.numbers[place] = before + if case.negate { -sum } else { sum };
            }
        }
    }
}

/// `B := B L^-T` for `B = X L^T`: X comes back.
pub fn solves(device: &dyn Device, large: bool) -> Result<()> {
    let fixture = Fixture::new(device)?;
    let sizes: &[(usize, usize)] = &[(1, 1), (17, 16), (3, 65), (100, 33), (300, 257)];
    for (seed, &(m, n)) in sizes[..if large { 5 } else { 4 }].iter().enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
        let mut number = || rng.random_range(-1.0..1.0);
        let (ld_l, ld_b) = (n + 3, m + 2);
        let mut l = std::iter::repeat_with(&mut number).take(ld_l * n).collect::<Vec<f64>>();
        // The diagonal outweighs its row, so that hardly any rounding shows.
        (0..n).for_each(|at| l[at * ld_l + at] = 2.0 * n as f64 + number());
        let x = std::iter::repeat_with(&mut number).take(ld_b * n).collect::<Vec<f64>>();
        let mut b = x.clone();
        for col in 0..n {
            for row in 0..m {
                b[col * ld_b + row] = (0..=col).map(|k| x[k * ld_b + row] * l[k * ld_l + col]).sum();
            }
        }
        let operand = |numbers: &[f64], ld: usize| -> Result<GemmOperand> {
            Ok(GemmOperand { region: fixture.send(&encode(numbers, 8), 24)?, ld, stride: 0 })
        };
        let trsm = Trsm { m, n, l: operand(&l, ld_l)?, b: operand(&b, ld_b)? };
        device.solve(fixture.stream, &trsm)?;
        let got = decode(&fixture.fetch(&trsm.b.region)?, 8);
        // The padding of the columns was sent as it is in X.
        if let Some(at) = (0..got.len()).find(|&at| (got[at] - x[at]).abs() > SOLVE_ERROR || got[at].is_nan()) {
            return failed(format!("{m} x {n}: element {at} is {:e}, not {:e}", got[at], x[at]));
        }
    }
    Ok(())
}

/// One stream copies what another multiplies, over and over in the same memory: only the events keep them apart.
pub fn events(device: &dyn Device, large: bool) -> Result<()> {
    let (first, second) = (Fixture::new(device)?, Fixture::new(device)?);
    let size = if large { 2048 } else { 48 };
    let one = |at: usize| if at.is_multiple_of(size + 1) { 1.0 } else { 0.0 };
    let identity = first.send(&encode(&(0..size * size).map(one).collect::<Vec<_>>(), 8), 0)?;
    let (sums, copy) = (device.allocate(8 * size * size)?.whole(), device.allocate(8 * size * size)?.whole());
    let mut copied = None;
    for round in 0..EVENT_ROUNDS {
        let numbers = (0..size * size).map(|at| (at * (round + 1) % 8191) as f64).collect::<Vec<_>>();
        let right = first.send(&encode(&numbers, 8), 0)?;
        let operand = |region: &Region| GemmOperand { region: region.clone(), ld: size, stride: 0 };
        // The first stream must not overwrite what the second still reads.
        if let Some(copied) = &copied {
            device.wait(first.stream, copied)?;
        }
        device.multiply(first.stream, &Gemm { a: operand(&identity), b: operand(&right), ..square(size, &sums) })?;
        let multiplied = device.record(first.stream)?;
        device.clear(second.stream, &copy)?;
        device.wait(second.stream, &multiplied)?;
        device.copy(second.stream, &sums, &copy)?;
        copied = Some(device.record(second.stream)?);
        let got = decode(&second.fetch(&copy)?, 8);
        if let Some(at) = (0..got.len()).find(|&at| got[at] != numbers[at]) {
            return failed(format!("round {round}: the second stream read element {at} too early"));
        }
        if device.seconds_between(&multiplied, &device.record(second.stream)?)? < 0.0 {
            return failed("the device's clock runs backwards".into());
        }
    }
    Ok(())
}

/// `C := C^T C` of doubles, with dimensions but without operands yet.
pub fn square(size: usize, c: &Region) -> Gemm {
    let operand = GemmOperand { region: c.clone(), ld: size, stride: 0 };
    Gemm {
        element: Element::F64,
        m: size,
        n: size,
        k: size,
        a: operand.clone(),
        b: operand.clone(),
        c: operand,
        batch: 1,
        negate: false,
        accumulate: false,
        by_rows: false,
    }
}

/// More memory than may be used is refused with the numbers, and the device works afterwards.
pub fn memory(device: &dyn Device, _large: bool) -> Result<()> {
    let capacity_bytes = device.capacity_bytes();
    let Ok(bytes) = usize::try_from(capacity_bytes.saturating_add(1)) else { return Ok(()) };
    match device.allocate(bytes) {
        Err(Error::DeviceMemory { .. }) => {}
        Err(other) => return failed(format!("{bytes} bytes of {capacity_bytes} were refused with: {other}")),
        Ok(_) => return failed(format!("{bytes} bytes were given of {capacity_bytes}")),
    }
    let used_bytes = device.used_bytes();
    let held = device.allocate(4096)?;
    if device.used_bytes() < used_bytes + held.bytes() as u64 || device.peak_bytes() < device.used_bytes() {
        let after = device.used_bytes();
        return failed(format!("after an allocation of 4096 bytes {after} bytes are counted, before it {used_bytes}"));
    }
    Ok(())
}
