//! Ranks on a made-up factorisation: the reads of each task are checked, nothing is computed.

use super::*;
use crate::comm::local;
use crate::comm::mailbox::faulty::{Call, Faulty, PLANTED};
use crate::runtime::Policy;
use crate::runtime::protocol::{DeliveryKind, Memories, Termination};
use std::collections::HashSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// Far more time than any run here takes: a run that takes longer waits for ever.
const LIMIT: Duration = Duration::from_secs(100);

/// Words by which a tile is known again.
fn words_of(tile: TileId) -> Vec<u64> {
    (0..10 + tile.row as u64).map(|at| at << 32 | (tile.row << 16 | tile.col) as u64).collect()
}

/// Bytes of the words of a tile in that row.
fn bytes_of_tile(row: usize) -> u64 {
    8 * words_of(TileId { row, col: 0 }).len() as u64
}

/// Tiles that are there, by name.
struct Names {
    graph: CholeskyGraph,
    present: Mutex<HashSet<TileId>>,
    /// Where a run fails, and whether it panics.
    fault: Option<(TileId, bool)>,
}

impl RankTiles for Names {
    type Local = usize;

    const UNPACKS: bool = true;

    fn run(&self, local: &mut usize, run: &TileRun) -> Result<()> {
        for own in run.tiles() {
            let present = self.present.lock().unwrap().clone();
            let tasks = run.updates.clone().map(|k| self.graph.update(own, k));
            for task in tasks.chain(run.finish.then(|| self.graph.finish(own))) {
                assert!(self.graph.inputs(task).iter().all(|input| present.contains(input)), "{task:?}");
                *local += 1;
            }
            match self.fault {
                Some((tile, panics)) if run.finish && tile == own => {
                    assert!(!panics, "planted");
                    return Err(Error::verification(format!("planted at {}, {}", tile.row, tile.col)));
                }
                _ if run.finish => drop(self.present.lock().unwrap().insert(own)),
                _ => {}
            }
        }
        Ok(())
    }

    fn pack(&self, _local: &mut usize, tile: TileId) -> Result<Payload> {
        Ok(Arc::new(words_of(tile)))
    }

    fn payload_words(&self, tile: TileId) -> usize {
        words_of(tile).len()
    }

    fn unpack(&self, _local: &mut usize, tile: TileId, payload: &Payload) -> Result<()> {
        assert_eq!(**payload, words_of(tile));
        assert!(self.present.lock().unwrap().insert(tile), "{tile:?} came twice");
        Ok(())
    }

    fn release(&self, tile: TileId) {
        assert!(self.present.lock().unwrap().remove(&tile), "{tile:?} goes before it came");
    }

    fn advanced(&self, _run: &TileRun) -> Result<()> {
        Ok(())
    }
}

fn plan(grid: RankGrid, tiles: usize, delivery: DeliveryKind) -> RankPlan {
    let protocol = ProtocolOptions {
        delivery,
        termination: Termination::default(),
        policy: Policy::Fifo,
        slots: grid.least_slots(tiles),
        workers: 0,
        devices: None,
        most_updates: 1,
        strip_tiles: 1,
        updates_at_once: false,
        loads_ahead: true,
        imports: false,
        room_tiles: 8,
    };
    let (memories, graph) = (Memories::apart(), CholeskyGraph { tiles });
    RankPlan { grid, memories, graph, protocol, spans: true, room: TransferRoom::ANY }
}

fn run(rank: &dyn Transport, plan: &RankPlan, fault: Option<(TileId, bool)>) -> Result<(RankReport, usize)> {
    run_with(rank, &mut *rank.open_mailbox()?, plan, fault)
}

fn run_with(
    rank: &dyn Transport,
    mailbox: &mut dyn Mailbox,
    plan: &RankPlan,
    fault: Option<(TileId, bool)>,
) -> Result<(RankReport, usize)> {
    let names = Names { graph: plan.graph, present: Mutex::default(), fault };
    let mut locals = vec![0; 1 + rank.rank() % 3];
    let report = run_ranks(rank, mailbox, plan, &names, &mut locals)?;
    let own = names.present.into_inner().unwrap();
    assert!(own.iter().all(|&tile| plan.grid.owner(tile) == rank.rank()), "all that came is released");
    Ok((report, locals.iter().sum()))
}

#[test]
fn tiles_that_are_unpacked_are_there_when_they_are_read() {
    for (rows, cols) in [(1, 1), (2, 2), (1, 3), (3, 2), (5, 1)] {
        for delivery in DeliveryKind::ALL {
            // Room for one tile each way is enough.
            let room = TransferRoom { packed: 1, incoming: 1 };
            let narrow = RankPlan { room, ..plan(RankGrid { rows, cols }, 9, delivery) };
            let reports = local::run(rows * cols, |rank| run(rank, &narrow, None).unwrap());
            let most = bytes_of_tile(8);
            assert!(
                reports.iter().all(|(report, _)| report.peak_packed_bytes <= most),
                "{rows} x {cols}, {delivery:?}"
            );
            let plan = plan(RankGrid { rows, cols }, 9, delivery);
            let reports = local::run(rows * cols, |rank| run(rank, &plan, None).unwrap());
            let done = reports.iter().map(|(_, tasks)| tasks).sum::<usize>();
            assert_eq!(done, plan.graph.tasks().count(), "{rows} x {cols}, {delivery:?}");
            let sum = |of: &dyn Fn(&RankReport) -> u64| reports.iter().map(|(report, _)| of(report)).sum::<u64>();
            assert_eq!(sum(&|report| report.sent_bytes), sum(&|report| report.received_bytes));
            for (report, tasks) in &reports {
                let spans = report.workers.iter().flat_map(|worker| &worker.spans).collect::<Vec<_>>();
                let runs =
                    spans.iter().filter(|span| matches!(span.kind, SpanKind::Updates(1..) | SpanKind::Finish(_)));
                assert_eq!(runs.count(), *tasks);
                assert!(
                    spans.iter().chain(&report.transfers.iter().collect::<Vec<_>>()).all(|s| s.start_ns <= s.end_ns)
                );
                assert_eq!(report.counters.peak_slots > 0, report.peak_buffer_bytes > 0);
                assert!(report.samples.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
            }
        }
    }
}

/// A process that owns all tiles, with strips.
fn run_one(tiles: usize, workers: usize, fault: Option<(TileId, bool)>) -> Result<(RankReport, usize)> {
    let mut plan = plan(RankGrid { rows: 1, cols: 1 }, tiles, DeliveryKind::default());
    let protocol = &mut plan.protocol;
    (protocol.policy, protocol.most_updates, protocol.strip_tiles) = (Policy::Leftmost, usize::MAX, 8);
    let names = Names { graph: plan.graph, present: Mutex::default(), fault };
    let ctx = Context::builder().threads(workers).build().unwrap();
    let mut locals = vec![0; workers];
    let report = run_alone(&ctx, &plan, &names, &mut locals)?;
    Ok((report, locals.iter().sum()))
}

#[test]
fn one_process_needs_no_messages() {
    for tiles in [0, 1, 2, 9, 21] {
        for workers in [1, 2, 4] {
            let (report, tasks) = run_one(tiles, workers, None).unwrap();
            assert_eq!(tasks, CholeskyGraph { tiles }.tasks().count(), "{tiles} tiles, {workers} workers");
            assert_eq!((report.workers.len(), report.sent_bytes), (workers, 0));
        }
    }
}

#[test]
fn an_error_or_a_panic_ends_all_workers_of_one_process() {
    for workers in [1, 2, 4] {
        for (row, col) in [(0, 0), (2, 2), (5, 3)] {
            let fault = |panics| Some((TileId { row, col }, panics));
            let error = run_one(6, workers, fault(false)).unwrap_err();
            assert!(error.to_string().contains("planted"), "{error}");
            let panicked = catch_unwind(AssertUnwindSafe(|| run_one(6, workers, fault(true)).is_ok()));
            assert!(panicked.is_err(), "{workers} workers");
        }
    }
}

#[test]
fn an_error_of_one_rank_is_that_of_all() {
    for delivery in DeliveryKind::ALL {
        for (row, col) in [(0, 0), (3, 1), (6, 6)] {
            let plan = plan(RankGrid { rows: 2, cols: 3 }, 7, delivery);
            let fault = Some((TileId { row, col }, false));
            let errors = local::run(6, |rank| run(rank, &plan, fault).map(|_| ()).unwrap_err());
            assert!(errors.iter().all(|error| error.to_string().contains("planted")), "{errors:?}");
        }
    }
}

#[test]
fn a_panic_of_one_worker_ends_all_ranks() {
    for (row, col) in [(0, 0), (4, 2)] {
        let plan = plan(RankGrid { rows: 2, cols: 2 }, 7, DeliveryKind::default());
        let fault = Some((TileId { row, col }, true));
        let owner = plan.grid.owner(TileId { row, col });
        let ends = std::thread::scope(|scope| {
            let plan = &plan;
            let start = |rank: local::LocalRank| {
                scope.spawn(move || catch_unwind(AssertUnwindSafe(|| run(&rank, plan, fault).is_err())))
            };
            let threads = local::group(4).into_iter().map(start).collect::<Vec<_>>();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        for (rank, end) in ends.into_iter().enumerate() {
            assert_eq!(end.ok(), (rank != owner).then_some(true), "rank {rank}");
        }
    }
}

/// The result of `work`, which must not take longer than [`LIMIT`].
fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(LIMIT).unwrap_or_else(|error| panic!("{error}"))
}

/// The errors of all ranks where the mailbox of rank `broken` fails. Where it recovers, no message of that run disturbs
/// the next one.
fn errors_of_mailbox(plan: RankPlan, broken: usize, call: Call, fails: Range<usize>) -> Vec<Error> {
    local::run(plan.grid.size(), |rank| {
        let own_fails = if rank.rank() == broken { fails.clone() } else { 0..0 };
        let mut mailbox = Faulty::failing(rank.open_mailbox().unwrap(), call, own_fails);
        let error = run_with(rank, &mut mailbox, &plan, None).map(drop).unwrap_err();
        if fails.end < usize::MAX {
            run_with(rank, &mut mailbox, &plan, None).unwrap();
        }
        error
    })
}

#[test]
fn an_error_of_a_mailbox_ends_all_ranks() {
    let tiles = 7;
    let kinds = [Call::Send, Call::Receive, Call::Poll].map(|call| (call, false));
    for (call, lasts) in kinds.into_iter().chain([(Call::Receive, true), (Call::Poll, true)]) {
        for (at, delivery) in DeliveryKind::ALL.into_iter().enumerate() {
            let (plan, broken) = (plan(RankGrid { rows: 2, cols: 3 }, tiles, delivery), [0, 4, 5, 1, 2][at]);
            let reads = |tile: &TileId| plan.grid.clients(tiles, *tile).contains(&(broken as u32));
            // The number of payloads in a run without faults; each comes after a request, so there are no fewer sends
            // and polls.
            let payloads = plan.graph.all_tiles().filter(reads).count();
            let first = [0, 1, 2, payloads / 2, payloads - 1][at];
            let fails = first..if lasts { usize::MAX } else { first + 1 };
            for error in in_time(move || errors_of_mailbox(plan, broken, call, fails)) {
                let told = match &error {
                    Error::Rank { rank, message, .. } => *rank == broken && message.contains(PLANTED),
                    _ => false,
                };
                assert!(told, "{call:?} {first} of rank {broken}, {delivery:?}: {error}");
            }
        }
    }
}

#[test]
fn samples_stay_few() {
    let mut log = report::SampleLog::new();
    for at_ns in 0..100_000 {
        log.event(|| Sample { at_ns, ready: 0, busy: 0, held_bytes: 0 });
    }
    let samples = log.into_samples();
    assert!((2000..=4096).contains(&samples.len()), "{}", samples.len());
    let steps = samples.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).collect::<HashSet<_>>();
    assert_eq!((samples[0].at_ns, steps.len()), (0, 1));
}
