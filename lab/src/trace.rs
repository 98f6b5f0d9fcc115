//! When each step of a command ran, and each task of a factorisation: spans in the JSON form that trace viewers
//! (Perfetto, chrome://tracing) read.
//!
//! Whole or absent, as a report. Does not know: what the steps do.

use crate::report::ReportFile;
use crate::session::Session;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;
use sunzi::Result;

/// One step: what ran on which thread, from when for how long.
#[derive(Serialize)]
struct Span {
    name: String,
    /// `X`: a span with a duration.
    ph: &'static str,
    pid: u32,
    /// 0 for the command itself, from 1 for the workers.
    tid: usize,
    /// Microseconds since the command began.
    ts: f64,
    /// Microseconds.
    dur: f64,
}

/// What took a while, in seconds since something that began before it.
pub struct Timed {
    /// What it was.
    pub name: String,
    /// The process that did it.
    pub process: usize,
    /// Which of its threads or engines.
    pub thread: usize,
    /// Its start.
    pub start: f64,
    /// Its end.
    pub end: f64,
}

#[derive(Serialize)]
struct File {
    #[serde(rename = "traceEvents")]
    spans: Vec<Span>,
}

/// A trace that is written when the work is done, where one was asked for.
pub struct Trace {
    file: Option<ReportFile>,
    begin: Instant,
    spans: Vec<Span>,
}

impl Trace {
    /// A trace that begins now and will be `path`.
    ///
    /// # Errors
    /// [`sunzi::Error::Io`] where the folder cannot be written.
    pub fn begin(path: Option<&Path>) -> Result<Trace> {
        let file = path.map(ReportFile::new).transpose()?;
        Ok(Trace { file, begin: Instant::now(), spans: Vec::new() })
    }

    /// Runs `step` and notes how long it took; returns the seconds too.
    ///
    /// # Errors
    /// Those of `step`.
    pub fn span<T>(&mut self, name: &str, step: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
        let start = Instant::now();
        let value = step()?;
        let seconds = start.elapsed().as_secs_f64();
        self.push(name.to_string(), 0, (start - self.begin).as_secs_f64(), seconds);
        Ok((value, seconds))
    }

    /// Adds the tasks of a factorisation that ran in the latest step.
    pub fn add_tasks(&mut self, tasks: &[sunzi::Span]) {
        let begin = self.spans.last().map_or(0.0, |step| step.ts / 1e6);
        if self.file.is_none() {
            return;
        }
        for task in tasks {
            let name = format!("{:?} ({}, {})", task.kind, task.row, task.col).to_lowercase();
            self.push(name, task.worker + 1, begin + task.start, task.end - task.start);
        }
    }

    /// Adds what ranks did in the latest step, which began for all of them at once.
    pub fn add_ranks(&mut self, spans: impl Iterator<Item = Timed>) {
        let begin = self.spans.last().map_or(0.0, |step| step.ts);
        self.extend(begin, spans);
    }

    /// Adds spans of a time of their own, such as a simulation's.
    pub fn add_timed(&mut self, spans: impl Iterator<Item = Timed>) {
        self.extend(0.0, spans);
    }

    fn extend(&mut self, begin: f64, spans: impl Iterator<Item = Timed>) {
        self.spans.extend(spans.map(|Timed { name, process, thread, start, end }| {
            let (ts, dur) = (begin + start * 1e6, (end - start) * 1e6);
            Span { name, ph: "X", pid: process as u32, tid: thread, ts, dur }
        }));
    }

    fn push(&mut self, name: String, tid: usize, start_seconds: f64, seconds: f64) {
        let (ts, dur) = (start_seconds * 1e6, seconds * 1e6);
        self.spans.push(Span { name, ph: "X", pid: std::process::id(), tid, ts, dur });
    }

    /// Writes the file.
    ///
    /// # Errors
    /// [`sunzi::Error::Io`].
    pub fn finish(self, session: &dyn Session) -> Result<()> {
        match self.file {
            Some(file) => {
                let spans = File { spans: self.spans };
                session.write_file(&mut || file.finish(&spans))
            }
            None => Ok(()),
        }
    }
}
