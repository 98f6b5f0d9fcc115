//! The activities of all ranks over time, at the root: phases, tasks and transfers for the trace, ready tiles and
//! memory for the picture.

use std::path::Path;
use sunzi::Result;
use sunzi::advanced::drive::{RankReport, Sample, SpanKind, WorkSpan};
use sunzi::comm::Transport;
use sunzi::distributed::{RANK_PHASES, RankSpan, Team};
use sunzi::report::{CholeskyReport, Span, TaskKind};
use sunzi_session::plot::{self, Chart, Figure, Line, Point, Scale, draw_lines};
use sunzi_session::session::ROOT;
use sunzi_session::trace::{Names, Timed, Trace};

/// Words of a span.
const SPAN_WORDS: usize = 7;

/// Words of a sample.
const SAMPLE_WORDS: usize = 4;

/// Times of the picture.
const TIMES: usize = 500;

const MEBIBYTE: f64 = (1u64 << 20) as f64;

/// The words of all ranks, in their order, on the root. Collective.
fn gather(world: &dyn Transport, own: Vec<u64>) -> Result<Vec<Vec<u64>>> {
    let mut counts = vec![0; world.size()];
    world.all_gather(&[own.len() as u64], &mut counts)?;
    let most = counts.iter().copied().max().unwrap_or(0) as usize;
    let (mut padded, mut all) = (own, vec![0; most * world.size()]);
    padded.resize(most, 0);
    world.all_gather(&padded, &mut all)?;
    if world.rank() != ROOT || most == 0 {
        return Ok(Vec::new());
    }
    let ranks = all.chunks_exact(most).zip(&counts);
    Ok(ranks.map(|(words, &count)| words[..count as usize].to_vec()).collect())
}

fn span_words(thread: usize, span: &WorkSpan) -> [u64; SPAN_WORDS] {
    let (kind, what) = match span.kind {
        SpanKind::Updates(count) => (0, count),
        SpanKind::Finish(count) => (1, count),
        SpanKind::Pack => (2, 0),
        SpanKind::Unpack => (3, 0),
        SpanKind::Receive { from } => (4, from),
        SpanKind::Send { to } => (5, to),
    };
    [kind, what.into(), span.row.into(), span.col.into(), span.start_ns, span.end_ns, thread as u64]
}

fn name([kind, what, row, col, ..]: [u64; SPAN_WORDS]) -> String {
    let on_diagonal = row == col;
    let last = if on_diagonal { "potrf" } else { "trsm" };
    let updates = if on_diagonal { "syrk" } else { "gemm" };
    let step = match (kind, what) {
        (0, 0) => "load".into(),
        (0, count) => format!("{count} {updates}"),
        (1, 0) => last.into(),
        (1, count) => format!("{count} {updates}, {last}"),
        (2, _) => "pack".into(),
        (3, _) => "unpack".into(),
        (4, from) => format!("receive from {from}"),
        (_, to) => format!("send to {to}"),
    };
    format!("{step} ({row}, {col})")
}

/// Adds the tasks and transfers of all ranks to the latest step of the root's trace. Collective.
///
/// # Errors
/// [`sunzi::Error::Transport`].
pub fn add_tasks(trace: &mut Trace, world: &dyn Transport, own: &RankReport) -> Result<()> {
    let workers = own.workers.iter().enumerate();
    let tasks = workers.flat_map(|(worker, report)| report.spans.iter().map(move |span| (worker + 1, span)));
    let transfers = own.transfers.iter().map(|span| (own.workers.len() + 1, span));
    let words = tasks.chain(transfers).flat_map(|(thread, span)| span_words(thread, span)).collect();
    let all = gather(world, words)?;
    let ranks = all.iter().map(|words| words.as_chunks::<SPAN_WORDS>().0).enumerate();
    let messages = own.workers.len() + 1;
    let thread = |thread| if thread == messages { "messages".into() } else { format!("worker {thread}") };
    let names = Names { process: &|rank| format!("rank {rank}"), thread: &thread };
    let spans = ranks.flat_map(|(process, spans)| {
        spans.iter().map(move |&span| {
            let [.., start_ns, end_ns, thread] = span;
            Timed { name: name(span), process, thread: thread as usize, start: seconds(start_ns), end: seconds(end_ns) }
        })
    });
    trace.add_ranks(spans, &names);
    Ok(())
}

/// Adds the phases of all ranks to the latest step of the root's trace: all begin a call at the same fence. Collective.
///
/// # Errors
/// [`sunzi::Error::Transport`].
pub fn add_phases(trace: &mut Trace, team: &Team, own: &[RankSpan]) -> Result<()> {
    let words = own.iter().flat_map(|span| [span.phase as u64, span.start_ns, span.end_ns]).collect();
    let all = gather(team.world(), words)?;
    let ranks = all.iter().map(|words| words.as_chunks::<3>().0).enumerate();
    let names = Names { process: &|node| format!("node {node}"), thread: &|thread| format!("rank {}", thread - 1) };
    let spans = ranks.flat_map(|(rank, spans)| {
        let node = team.layout().node_of[rank];
        spans.iter().map(move |&[phase, start_ns, end_ns]| {
            let name = RANK_PHASES[phase as usize].1.into();
            Timed { name, process: node, thread: rank + 1, start: seconds(start_ns), end: seconds(end_ns) }
        })
    });
    trace.add_ranks(spans, &names);
    Ok(())
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

/// Draws ready tiles, busy workers and held bytes of all ranks over time, on the root, which passes the path.
/// Collective; the outer error is that of the messages, the inner one that of the picture.
///
/// # Errors
/// [`sunzi::Error::Transport`].
pub fn draw(world: &dyn Transport, own: &RankReport, path: Option<&Path>) -> Result<Result<()>> {
    let words = own.samples.iter().flat_map(|sample| {
        let Sample { at_ns, ready, busy, held_bytes } = *sample;
        [at_ns, ready.into(), busy.into(), held_bytes]
    });
    let all = gather(world, words.collect())?;
    let ranks = all.iter().map(|words| words.as_chunks::<SAMPLE_WORDS>().0).collect::<Vec<_>>();
    let figure = |caption, column, unit| Figure { caption, points: points(&ranks, column, unit) };
    let figures = [
        figure("ready tiles of a rank", 1, 1.0),
        figure("busy workers of a rank", 2, 1.0),
        figure("MiB of remote tiles and of own tiles to be sent", 3, MEBIBYTE),
    ];
    Ok(path.map_or(Ok(()), |path| plot::draw(&figures, path)))
}

/// Draws busy workers and finished tiles of a factorisation in one process over time.
///
/// # Errors
/// [`sunzi::Error::Io`].
pub fn draw_tasks(report: &CholeskyReport, path: &Path) -> Result<()> {
    let chart = |caption, label, points| Chart {
        caption,
        count: "seconds",
        scale: Scale::Linear,
        lines: vec![Line { label, points }],
    };
    let charts = [
        chart("busy workers", "workers", busy(&report.spans, report.seconds)),
        chart("finished tiles", "tiles", finished(&report.spans, report.seconds)),
    ];
    draw_lines(&charts, path)
}

/// A change of a count.
struct Change {
    seconds: f64,
    by: f64,
}

/// Workers that have a task, from the beginning to the end at `seconds`. A small factor is one task without spans.
fn busy(spans: &[Span], seconds: f64) -> Vec<(f64, f64)> {
    let task = |start, end| [Change { seconds: start, by: 1.0 }, Change { seconds: end, by: -1.0 }];
    let changes = spans.iter().flat_map(|span| task(span.start, span.end)).collect::<Vec<_>>();
    steps(if changes.is_empty() { task(0.0, seconds).into() } else { changes }, seconds)
}

/// Tiles that are finished, from the beginning to the end at `seconds`.
fn finished(spans: &[Span], seconds: f64) -> Vec<(f64, f64)> {
    let last = spans.iter().filter(|span| matches!(span.kind, TaskKind::Potrf | TaskKind::Trsm));
    let changes = last.map(|span| Change { seconds: span.end, by: 1.0 }).collect::<Vec<_>>();
    steps(if changes.is_empty() { vec![Change { seconds, by: 1.0 }] } else { changes }, seconds)
}

/// The sum of all changes so far, at the times that the picture shows.
fn steps(mut changes: Vec<Change>, seconds: f64) -> Vec<(f64, f64)> {
    changes.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let (mut sum, mut next) = (0.0, changes.into_iter().peekable());
    let at = |step: usize| {
        let time = seconds * step as f64 / TIMES as f64;
        while let Some(change) = next.next_if(|change| change.seconds <= time) {
            sum += change.by;
        }
        (time, sum)
    };
    (0..=TIMES).map(at).collect()
}

/// Mean and most over the ranks at evenly spaced times, of the last value that each rank had noted.
fn points(ranks: &[&[[u64; SAMPLE_WORDS]]], column: usize, unit: f64) -> Vec<Point> {
    let end = ranks.iter().filter_map(|samples| samples.last()).map(|sample| sample[0]).max().unwrap_or(0);
    let at = |time: u64| {
        let last = |samples: &&[[u64; SAMPLE_WORDS]]| {
            let count = samples.partition_point(|sample| sample[0] <= time);
            count.checked_sub(1).map_or(0.0, |index| samples[index][column] as f64 / unit)
        };
        let all = ranks.iter().map(last).collect::<Vec<_>>();
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        Point { seconds: seconds(time), mean, most: all.iter().copied().fold(0.0, f64::max) }
    };
    (0..=TIMES as u64).map(|step| at(end / TIMES as u64 * step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_what_each_rank_noted_last() {
        let (first, second) = ([[0, 4, 0, 0], [500, 2, 0, 0]], [[250, 8, 0, 0], [1000, 0, 0, 0]]);
        let points = points(&[&first, &second], 1, 2.0);
        let near = |time: f64| points.iter().find(|point| point.seconds >= time * 1e-9).unwrap();
        assert_eq!((points[0].mean, points[0].most), (1.0, 2.0));
        assert_eq!((near(300.0).mean, near(300.0).most), (3.0, 4.0));
        assert_eq!((near(600.0).mean, near(600.0).most), (2.5, 4.0));
        assert_eq!((near(1000.0).mean, near(1000.0).most), (0.5, 1.0));
    }

    #[test]
    fn steps_are_the_sums_of_all_changes_so_far() {
        let changes = [(0.5, -1.0), (0.0, 2.0), (1.0, 3.0)].map(|(seconds, by)| Change { seconds, by });
        let found = steps(changes.into(), 1.0);
        let at = |time: f64| found.iter().rfind(|point| point.0 <= time).unwrap().1;
        assert_eq!((found.len(), at(0.0), at(0.49), at(0.51), at(1.0)), (TIMES + 1, 2.0, 2.0, 1.0, 4.0));
        // A factor of few rows has no spans: one worker is busy, and has one tile in the end.
        assert_eq!((busy(&[], 2.0)[TIMES / 2], finished(&[], 2.0)[TIMES]), ((1.0, 1.0), (2.0, 1.0)));
    }

    #[test]
    fn spans_have_names() {
        let span = |kind, row, col| WorkSpan { kind, row, col, start_ns: 1, end_ns: 2 };
        for (kind, row, want) in [
            (SpanKind::Updates(3), 5, "3 gemm (5, 2)"),
            (SpanKind::Updates(0), 5, "load (5, 2)"),
            (SpanKind::Finish(0), 2, "potrf (2, 2)"),
            (SpanKind::Finish(2), 5, "2 gemm, trsm (5, 2)"),
            (SpanKind::Receive { from: 7 }, 5, "receive from 7 (5, 2)"),
        ] {
            assert_eq!(name(span_words(1, &span(kind, row, 2))), want);
        }
    }
}
