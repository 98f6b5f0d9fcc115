//! Queues of a software device: the work that was submitted, in which order it runs, and when on the device's clock.

use super::threads::apart;
use super::{Card, Clock, Fault, Rates, SoftOptions, math};
use crate::device::{Argument, Element, Gemm, HostKernel, Pinned, Region, Stream, Traffic, Trsm};
use crate::error::{Error, Result};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// One command.
pub(super) enum QueueAction {
    Upload { from: Pinned, at: usize, to: Region },
    Download { from: Region, to: Pinned, at: usize },
    Copy { from: Region, to: Region },
    Clear(Region),
    Multiply(Gemm),
    Solve(Trsm),
    Launch { kernel: HostKernel, threads: u64, arguments: Vec<Argument> },
    Record,
    Wait(CommandMark),
}

/// Parts of a device that work at the same time: copies in either direction, and computing.
#[derive(Clone, Copy)]
enum QueueEngine {
    In,
    Out,
    Compute,
}

/// The end of a command: its stream, how many commands of it are done then, and the time on the device's clock.
#[derive(Clone)]
pub(super) struct CommandMark {
    stream: usize,
    count: u64,
    time: Arc<AtomicU64>,
}

impl CommandMark {
    /// When it passed.
    pub fn seconds(&self) -> f64 {
        f64::from_bits(self.time.load(Ordering::Relaxed))
    }
}

struct Command {
    action: QueueAction,
    /// Number among all commands of the device.
    number: u64,
    time: Arc<AtomicU64>,
}

#[derive(Default)]
struct QueueLine {
    waiting: VecDeque<Command>,
    submitted: u64,
    done: u64,
    clock: f64,
}

pub(super) struct Queues {
    lines: Vec<QueueLine>,
    /// Streams that were given back.
    idle: Vec<Stream>,
    clock: Clock,
    /// The host's own threads; where there is one, commands use them all.
    pool: Option<ThreadPool>,
    fault: Option<Fault>,
    random: Option<ChaCha8Rng>,
    submitted: u64,
    done: u64,
    products: u64,
    /// The state that other openings of the device share with this one.
    card: Arc<Card>,
    begun: Instant,
    traffic: Traffic,
}

impl Queues {
    pub fn new(options: &SoftOptions, card: Arc<Card>) -> Queues {
        Queues {
            lines: Vec::new(),
            idle: Vec::new(),
            clock: options.clock,
            pool: pool(options),
            fault: options.fault,
            random: options.seed.map(ChaCha8Rng::seed_from_u64),
            submitted: 0,
            done: 0,
            products: 0,
            card,
            begun: Instant::now(),
            traffic: Traffic::default(),
        }
    }

    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Takes out the commands that were never waited for.
    pub fn clear(&mut self) -> Vec<impl Sized + use<>> {
        self.lines.iter_mut().map(|line| std::mem::take(&mut line.waiting)).collect()
    }

    pub fn retire(&mut self, stream: Stream) {
        self.idle.push(stream);
    }

    pub fn stream(&mut self) -> Stream {
        // On the device's clock it begins when everything done so far is done.
        let clock = self.lines.iter().map(|line| line.clock).fold(0.0, f64::max);
        let at_rest = self.idle.iter().position(|stream| self.lines[stream.0].waiting.is_empty());
        if let Some(index) = at_rest {
            let stream = self.idle.swap_remove(index);
            self.lines[stream.0].clock = clock;
            return stream;
        }
        self.lines.push(QueueLine { clock, ..QueueLine::default() });
        Stream(self.lines.len() - 1)
    }

    pub fn submit(&mut self, stream: Stream, action: QueueAction) -> Result<CommandMark> {
        self.lost()?;
        let time = Arc::new(AtomicU64::new(0));
        let line = &mut self.lines[stream.0];
        line.waiting.push_back(Command { action, number: self.submitted, time: time.clone() });
        line.submitted += 1;
        self.submitted += 1;
        Ok(CommandMark { stream: stream.0, count: line.submitted, time })
    }

    fn lost(&self) -> Result<()> {
        match self.fault {
            Some(Fault::LostAfter(count)) if self.done >= count => {
                Err(Error::DeviceLost(format!("the software device was lost after {count} commands, as planned")))
            }
            _ => Ok(()),
        }
    }

    /// Carries commands out until `mark` has passed.
    pub fn run_until(&mut self, mark: &CommandMark) -> Result<()> {
        while self.lines[mark.stream].done < mark.count {
            self.lost()?;
            let next = self.choose();
            self.step(next);
        }
        Ok(())
    }

    /// A stream whose next command can run: the one submitted first, or one drawn from the seed.
    fn choose(&mut self) -> usize {
        let ready = |line: &QueueLine| match line.waiting.front().map(|command| &command.action) {
            None => false,
            Some(QueueAction::Wait(mark)) => self.lines[mark.stream].done >= mark.count,
            Some(_) => true,
        };
        let ready = (0..self.lines.len()).filter(|&index| ready(&self.lines[index])).collect::<Vec<_>>();
        assert!(!ready.is_empty(), "every stream waits for another");
        match &mut self.random {
            Some(random) => ready[random.random_range(0..ready.len())],
            None => {
                let number = |&index: &usize| self.lines[index].waiting[0].number;
                ready.into_iter().min_by_key(number).expect("one is ready")
            }
        }
    }

    fn step(&mut self, stream: usize) {
        let Command { action, time, .. } = self.lines[stream].waiting.pop_front().expect("a command waits");
        let start = self.lines[stream].clock;
        let end = match self.clock {
            Clock::Wall => {
                self.execute(action);
                self.begun.elapsed().as_secs_f64()
            }
            Clock::Virtual(rates) => {
                let card = self.card.clone();
                let mut turn = card.turn();
                let end = match (cost(&action, &rates), &action) {
                    (Some((engine, seconds)), _) => {
                        let free = &mut turn[engine as usize];
                        *free = free.max(start) + seconds;
                        *free
                    }
                    (None, QueueAction::Wait(mark)) => start.max(mark.seconds()),
                    _ => start,
                };
                self.execute(action);
                end
            }
        };
        time.store(end.to_bits(), Ordering::Relaxed);
        let line = &mut self.lines[stream];
        (line.clock, line.done) = (end, line.done + 1);
        self.done += 1;
    }

    fn execute(&mut self, action: QueueAction) {
        match action {
            QueueAction::Upload { from, at, to } => {
                self.traffic.h2d_bytes += to.bytes() as u64;
                self.traffic.h2d_copies += 1;
                // SAFETY: `Pinned::submit` checked the range; the host stays away until the copy is done, and the
                // region is memory of this device that the command keeps alive.
                unsafe { (to.address() as *mut u8).copy_from(from.raw().pointer().add(at), to.bytes()) };
            }
            QueueAction::Download { from, to, at } => {
                self.traffic.d2h_bytes += from.bytes() as u64;
                self.traffic.d2h_copies += 1;
                // SAFETY: as for uploads.
                unsafe { to.raw().pointer().add(at).copy_from(from.address() as *const u8, from.bytes()) };
            }
            QueueAction::Copy { from, to } => {
                // SAFETY: both regions are memory of this device that the command keeps alive; they may overlap.
                unsafe { (to.address() as *mut u8).copy_from(from.address() as *const u8, to.bytes()) };
            }
            QueueAction::Clear(region) => {
                // SAFETY: the region is memory of this device that the command keeps alive.
                unsafe { (region.address() as *mut u8).write_bytes(0, region.bytes()) };
            }
            QueueAction::Multiply(gemm) => {
                math::multiply(&gemm, self.pool.as_ref());
                if self.fault == Some(Fault::FlipInProduct(self.products)) {
                    math::flip(&gemm);
                }
                self.products += 1;
            }
            QueueAction::Solve(trsm) => math::solve(&trsm),
            QueueAction::Launch { kernel, threads, arguments } => {
                let words = arguments.iter().map(|argument| match argument {
                    Argument::Address(region) => region.address(),
                    Argument::Number(number) => *number,
                });
                let words = words.collect::<Vec<_>>();
                let words = &words;
                let run = |range: Range<u64>| {
                    // SAFETY: whoever launched it promised that these are its arguments, that all threads stay inside
                    // the regions, which the command keeps alive, and that no two of them touch the same place.
                    unsafe { kernel(range.start, range.end, words.as_ptr()) }
                };
                match &self.pool {
                    Some(pool) => apart(pool, || slices(threads).into_par_iter().for_each(run)),
                    None => run(0..threads),
                }
            }
            QueueAction::Record | QueueAction::Wait(_) => {}
        }
    }
}

/// The engine that a command occupies, and for how long.
fn cost(action: &QueueAction, rates: &Rates) -> Option<(QueueEngine, f64)> {
    let bytes = |region: &Region| region.bytes() as f64;
    Some(match action {
        QueueAction::Upload { to, .. } => (QueueEngine::In, bytes(to) / rates.bytes_per_second),
        QueueAction::Download { from, .. } => (QueueEngine::Out, bytes(from) / rates.bytes_per_second),
        QueueAction::Copy { .. } | QueueAction::Clear(_) => (QueueEngine::Compute, 0.0),
        QueueAction::Multiply(gemm) => {
            let rate = if gemm.element == Element::F64 { rates.f64_per_second } else { rates.i8_per_second };
            (QueueEngine::Compute, gemm.work() as f64 / rate)
        }
        QueueAction::Solve(trsm) => {
            (QueueEngine::Compute, (trsm.m * trsm.n * trsm.n) as f64 / 2.0 / rates.f64_per_second)
        }
        QueueAction::Launch { threads, .. } => (QueueEngine::Compute, *threads as f64 / rates.threads_per_second),
        QueueAction::Record | QueueAction::Wait(_) => return None,
    })
}

/// Threads of a kernel, cut for the host's threads.
fn slices(threads: u64) -> Vec<Range<u64>> {
    let step = threads.div_ceil(8 * rayon::current_num_threads() as u64).max(256);
    (0..threads.div_ceil(step)).map(|part| part * step..((part + 1) * step).min(threads)).collect()
}

/// Threads for the host's own device.
fn pool(options: &SoftOptions) -> Option<ThreadPool> {
    let builder = ThreadPoolBuilder::new().num_threads(options.threads);
    matches!(options.clock, Clock::Wall).then(|| builder.build().ok()).flatten()
}
