//! A GPU against the software device, bit for bit; skipped with a message where there is no GPU.

use super::{CudaDevice, FALLBACK, GRID_BLOCKS, RESERVE_BYTES, capacity, compile, compiler_version};
use crate::device::soft::{SoftDevice, SoftOptions};
use crate::device::{
    Argument, Device, DeviceAllocator, DeviceEvents, DeviceStatus, Element, Gemm, GemmOperand, Kernel, Region, Stream,
    Trsm,
};
use crate::error::{Error, Result};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::process::Command;

/// Set for the process that loses its GPU.
const LOSE: &str = "SUNZI_TEST_LOSE_THE_CARD";

fn gpu() -> Option<CudaDevice> {
    CudaDevice::open(0, None).inspect_err(|error| println!("skipped: {error}")).ok()
}

fn write(device: &dyn Device, stream: Stream, bytes: &[u8]) -> Region {
    let (region, pinned) =
        (device.allocate(bytes.len()).unwrap().whole(), device.allocate_pinned(bytes.len()).unwrap());
    pinned.lock().unwrap().copy_from_slice(bytes);
    device.upload(stream, &pinned, 0, &region).unwrap();
    region
}

fn read(device: &dyn Device, stream: Stream, region: &Region) -> Vec<u8> {
    let pinned = device.allocate_pinned(region.bytes()).unwrap();
    device.download(stream, region, &pinned, 0).unwrap();
    pinned.lock().unwrap().to_vec()
}

/// Draws the bytes of one number.
type Draw = dyn Fn(&mut ChaCha8Rng) -> Vec<u8>;

/// A shape: m, n, k, batch, and whether by rows, negated, added.
type Shape = (usize, usize, usize, usize, [bool; 3]);

/// A product of seeded numbers on a device; all bytes of C, including the bytes between its columns.
fn product(device: &dyn Device, element: Element, shape: Shape, seed: u64) -> Vec<u8> {
    let (m, n, k, batch, [by_rows, negate, accumulate]) = shape;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let stream = device.stream().unwrap();
    let mut operand = |rows: usize, cols: usize, bytes: usize, number: &Draw| {
        let ld = rows.next_multiple_of(16).max(16);
        let stride = ld * cols + 16;
        let data = (0..stride * batch.max(1)).flat_map(|_| number(&mut random)).collect::<Vec<_>>();
        assert_eq!(data.len(), stride * batch.max(1) * bytes);
        GemmOperand { region: write(device, stream, &data), ld, stride }
    };
    let double = |random: &mut ChaCha8Rng| f64::from(random.random_range(-(1 << 20)..1 << 20)).to_ne_bytes().to_vec();
    let byte = |random: &mut ChaCha8Rng| vec![random.random::<u8>()];
    let word = |random: &mut ChaCha8Rng| random.random_range(-1000..1000i32).to_ne_bytes().to_vec();
    let (inner, outer): (&Draw, &Draw) = match element {
        Element::F64 => (&double, &double),
        Element::I8 => (&byte, &word),
    };
    let turned = |rows, cols| if by_rows { (cols, rows) } else { (rows, cols) };
    let ((a_rows, a_cols), (b_rows, b_cols)) = (turned(k, m), turned(k, n));
    let a = operand(a_rows, a_cols, element.operand_bytes(), inner);
    let b = operand(b_rows, b_cols, element.operand_bytes(), inner);
    let c = operand(m, n, element.product_bytes(), outer);
    let region = c.region.clone();
    device.multiply(stream, &Gemm { element, m, n, k, a, b, c, batch, negate, accumulate, by_rows }).unwrap();
    read(device, stream, &region)
}

#[test]
fn products_have_the_bits_of_the_software_device() {
    let Some(gpu) = gpu() else { return };
    let soft = SoftDevice::new(SoftOptions::default());
    let sizes = [(1, 1, 1), (16, 16, 16), (64, 48, 128), (33, 17, 5), (5, 64, 100), (7, 9, 0), (0, 3, 4)];
    for (case, (m, n, k)) in sizes.into_iter().enumerate() {
        for batch in [1, 3] {
            for bits in 0..8 {
                let flags = [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0];
                let shape = (m, n, k, batch, flags);
                let seed = case as u64;
                let check = |element| {
                    let (ours, theirs) = (product(&gpu, element, shape, seed), product(&soft, element, shape, seed));
                    assert!(ours == theirs, "{element:?} {shape:?}");
                };
                check(Element::F64);
                if !flags[0] && !flags[1] {
                    check(Element::I8);
                }
            }
        }
    }
}

#[test]
fn the_slow_product_has_the_bits_of_the_fast_one() {
    let Some(gpu) = gpu() else { return };
    let stream = gpu.stream().unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut bytes = |count: usize| (0..count).map(|_| random.random::<u8>()).collect::<Vec<_>>();
    let (m, n, k) = (32, 16, 64);
    let operand = |region: Region, ld: usize, cols: usize| GemmOperand { region, ld, stride: ld * cols };
    let a = operand(write(&gpu, stream, &bytes(2 * k * m)), k, m);
    let b = operand(write(&gpu, stream, &bytes(2 * k * n)), k, n);
    let start = bytes(2 * m * n * 4);
    let [fast, slow] = [false, true].map(|slow| {
        let c = operand(write(&gpu, stream, &start), m, n);
        let (a, b, region) = (a.clone(), b.clone(), c.region.clone());
        let (element, batch, negate, accumulate, by_rows) = (Element::I8, 2, false, true, false);
        let gemm = Gemm { element, m, n, k, a, b, c, batch, negate, accumulate, by_rows };
        match slow {
            true => gpu.multiply_slowly(&gpu.queue(stream).unwrap(), &gemm).unwrap(),
            false => gpu.multiply(stream, &gemm).unwrap(),
        }
        read(&gpu, stream, &region)
    });
    assert!(fast == slow);
}

#[test]
fn solves_of_integers_are_exact() {
    let Some(gpu) = gpu() else { return };
    let (stream, m, n) = (gpu.stream().unwrap(), 21, 13);
    let mut random = ChaCha8Rng::seed_from_u64(2);
    // The inverse of L has small entries too, so that solving by inverted blocks is exact as well.
    let mut small = || f64::from(random.random_range(-9..10));
    // Above the diagonal stands what must not be read.
    let mut l = vec![f64::NAN; n * n];
    for col in 0..n {
        l[col * n + col] = if col % 2 == 0 { 2.0 } else { -0.5 };
        (col + 1..n).for_each(|row| l[col * n + row] = if row == col + 1 && col % 3 == 0 { 1.0 } else { 0.0 });
    }
    let solution = (0..m * n).map(|_| small()).collect::<Vec<_>>();
    // B = X L^T, so its entry (i, j) is the sum of X(i, t) L(j, t) over t up to j.
    let entry = |row: usize, col: usize| (0..=col).map(|t| solution[t * m + row] * l[t * n + col]).sum::<f64>();
    let right = (0..n).flat_map(|col| (0..m).map(move |row| (row, col))).map(|(row, col)| entry(row, col));
    let right = right.collect::<Vec<_>>();
    let b = write(&gpu, stream, bytemuck::cast_slice(&right));
    let l = GemmOperand { region: write(&gpu, stream, bytemuck::cast_slice(&l)), ld: n, stride: 0 };
    gpu.solve(stream, &Trsm { m, n, l, b: GemmOperand { region: b.clone(), ld: m, stride: 0 } }).unwrap();
    let found = read(&gpu, stream, &b);
    let found = found.chunks_exact(8).map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap()));
    assert_eq!(found.collect::<Vec<_>>(), solution);
}

/// Stands for the host's version, which is not called here.
extern "C" fn never(_first: u64, _end: u64, _arguments: *const u64) {}

const ADD: Kernel = Kernel {
    name: "add",
    source: "struct Arguments { unsigned long long *words; unsigned long long number; };
        extern \"C\" __global__ void add(unsigned long long threads, Arguments arguments) {
            unsigned long long thread = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
            if (thread < threads) arguments.words[thread] += arguments.number * FACTOR + thread;
        }",
    host: never,
};

#[test]
fn kernels_get_their_arguments_and_constants() {
    let Some(gpu) = gpu() else { return };
    let stream = gpu.stream().unwrap();
    let region = gpu.allocate(8 * 1000).unwrap().whole();
    gpu.clear(stream, &region).unwrap();
    for factor in [3, u64::MAX, 3] {
        let arguments = [Argument::Address(region.region(0..8 * 900)), Argument::Number(10)];
        // SAFETY: these are the kernel's arguments, and 900 threads stay inside 900 words.
        unsafe { gpu.launch(stream, &ADD, &[("FACTOR", factor)], 900, &arguments) }.unwrap();
        // SAFETY: no thread runs.
        unsafe { gpu.launch(stream, &ADD, &[("FACTOR", factor)], 0, &arguments) }.unwrap();
    }
    assert_eq!(gpu.modules.lock().unwrap().len(), 2);
    let found = read(&gpu, stream, &region);
    let words = found.chunks_exact(8).map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap()));
    let wanted = (0..1000).map(|index: u64| if index < 900 { 60 - 10 + 3 * index } else { 0 });
    assert!(words.eq(wanted));
    let broken = Kernel { source: "no kernel", ..ADD };
    // SAFETY: a kernel that does not compile does not run.
    let refused = unsafe { gpu.launch(stream, &broken, &[], 1, &[]) };
    assert!(matches!(refused, Err(Error::Device(_))), "{refused:?}");
    // SAFETY: more threads than a launch has room for never run.
    let refused = unsafe { gpu.launch(stream, &ADD, &[("FACTOR", 3)], (GRID_BLOCKS + 1) * 256, &[]) };
    assert!(matches!(refused, Err(Error::Device(_))), "{refused:?}");
}

#[test]
fn memory_is_counted_and_limited() {
    if gpu().is_none() {
        return;
    }
    let gpu = CudaDevice::open(0, Some(1 << 20)).unwrap();
    assert_eq!(gpu.capacity_bytes(), 1 << 20);
    let first = gpu.allocate(1 << 19).unwrap();
    assert_eq!(first.whole().address() % 256, 0);
    let refused = gpu.allocate((1 << 19) + 1).map(|_| ());
    assert!(matches!(refused, Err(Error::DeviceMemory { used_bytes: 524288, .. })), "{refused:?}");
    let second = gpu.allocate(1 << 19).unwrap();
    drop((first, second));
    assert_eq!((gpu.used_bytes(), gpu.peak_bytes()), (0, 1 << 20));
    let pinned = gpu.allocate_pinned(1000).unwrap();
    assert!(pinned.lock().unwrap().iter().all(|&byte| byte == 0));
    let (stream, region) = (gpu.stream().unwrap(), gpu.allocate(1000).unwrap().whole());
    gpu.upload(stream, &pinned, 8, &region.region(0..992)).unwrap();
    gpu.download(stream, &region.region(0..10), &pinned, 0).unwrap();
    let traffic = gpu.traffic();
    assert_eq!((traffic.h2d_bytes, traffic.d2h_bytes, traffic.h2d_copies, traffic.d2h_copies), (992, 10, 1, 1));
    drop(gpu);
    assert!(pinned.lock().is_ok(), "memory outlives the device's value");
}

#[test]
fn streams_wait_for_events_and_threads_share_a_card() {
    let Some(gpu) = gpu() else { return };
    println!("{:?}, compute capability {:?}", gpu.description(), gpu.compute_capability());
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let gpu = &gpu;
            scope.spawn(move || {
                let (first, second) = (gpu.stream().unwrap(), gpu.stream().unwrap());
                let data = (0..1 << 20).map(|index| (index * 7 + seed) as u8).collect::<Vec<_>>();
                let start = gpu.record(first).unwrap();
                let from = write(gpu, first, &data);
                let to = gpu.allocate(data.len()).unwrap().whole();
                gpu.copy(first, &from, &to).unwrap();
                let copied = gpu.record(first).unwrap();
                drop(from);
                gpu.wait(second, &copied).unwrap();
                assert!(read(gpu, second, &to) == data);
                assert!(gpu.seconds_between(&start, &copied).unwrap() > 0.0);
                gpu.synchronize(&copied).unwrap();
            });
        }
    });
}

#[test]
fn a_card_that_is_lost_says_so_ever_after() {
    let Some(gpu) = gpu() else { return };
    if std::env::var_os(LOSE).is_none() {
        let name = "device::cuda::tests::a_card_that_is_lost_says_so_ever_after";
        let child = Command::new(std::env::current_exe().unwrap()).args([name, "--exact"]).env(LOSE, "1").output();
        let child = child.unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
        return;
    }
    let stream = gpu.stream().unwrap();
    let region = gpu.allocate(8).unwrap().whole();
    let pinned = gpu.allocate_pinned(8).unwrap();
    // SAFETY: there is none: the address is wild on purpose, in a process that ends here and owns no other work.
    unsafe { gpu.launch(stream, &ADD, &[("FACTOR", 1)], 1, &[Argument::Number(64), Argument::Number(1)]) }.unwrap();
    let _ = gpu.download(stream, &region, &pinned, 0);
    let lost = |result: Result<()>| assert!(matches!(result, Err(Error::DeviceLost(_))), "{result:?}");
    lost(gpu.record(stream).and_then(|event| gpu.synchronize(&event)));
    lost(gpu.allocate(8).map(drop));
    lost(gpu.clear(stream, &region));
    lost(gpu.record(stream).map(drop));
}

#[test]
fn a_card_that_is_not_there_is_an_error_that_says_what_is() {
    let Err(Error::NoDevice(message)) = CudaDevice::open(1000, None) else { panic!("opened") };
    println!("{message}");
    if let Ok(gpus) = super::probe() {
        assert!(message.contains("1000") && message.contains(&gpus.len().to_string()), "{message}");
    }
}

#[test]
fn the_capacity_leaves_a_reserve() {
    assert_eq!(capacity(100 << 30, None), (100 << 30) - RESERVE_BYTES);
    assert_eq!(capacity(4 << 30, None), 7 << 29);
    assert_eq!(capacity(4 << 30, Some(5)), 5);
    assert_eq!(capacity(4 << 30, Some(u64::MAX)), 7 << 29);
    assert_eq!(capacity(0, None), 0);
}

#[test]
fn the_slow_product_compiles() {
    match compiler_version() {
        Ok(_) => {
            [80, 90, 100].into_iter().for_each(|number| drop(compile(FALLBACK.1, FALLBACK.0, &[], number).unwrap()))
        }
        Err(error) => println!("skipped: {error}"),
    }
}
