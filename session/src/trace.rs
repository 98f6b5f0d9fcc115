//! When each step of a command ran, and each task of a factorisation: spans in the JSON form that trace viewers
//! (<https://ui.perfetto.dev>, chrome://tracing) read, with names of processes and threads.
//!
//! The file is either complete or absent, as a report is. Independent of: the work of the steps.

use crate::report::ReportFile;
use crate::session::Session;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use sunzi::Result;

/// One step: its name, on which thread, from when for how long.
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

/// An activity; its times are in seconds from a common start.
pub struct Timed {
    /// Its name.
    pub name: String,
    /// The process of the activity.
    pub process: usize,
    /// The number of the thread or engine.
    pub thread: usize,
    /// Its start.
    pub start: f64,
    /// Its end.
    pub end: f64,
}

/// The name of a process or a thread.
#[derive(Serialize)]
struct Naming {
    /// `process_name` or `thread_name`.
    name: &'static str,
    /// `M`: metadata.
    ph: &'static str,
    pid: u32,
    tid: usize,
    args: Named,
}

#[derive(Serialize)]
struct Named {
    name: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Event {
    Naming(Naming),
    Span(Span),
}

#[derive(Serialize)]
struct File {
    #[serde(rename = "displayTimeUnit")]
    unit: &'static str,
    #[serde(rename = "otherData")]
    other: Other,
    #[serde(rename = "traceEvents")]
    events: Vec<Event>,
}

/// Further data for a reader of the file.
#[derive(Serialize)]
struct Other {
    program: &'static str,
    viewer: &'static str,
    tiles: &'static str,
}

/// The program in which a trace can be viewed.
pub const VIEWER: &str = "https://ui.perfetto.dev";

/// The names of the processes and threads of spans, by their numbers.
pub struct Names<'a> {
    /// The name of a process.
    pub process: &'a dyn Fn(usize) -> String,
    /// The name of a thread, or engine, of any process.
    pub thread: &'a dyn Fn(usize) -> String,
}

/// A function that gets the name of a step.
type Listener = Box<dyn Fn(&str)>;

/// A trace that is written when the work is done, where one was requested.
pub struct Trace {
    file: Option<ReportFile>,
    path: PathBuf,
    begin: Instant,
    spans: Vec<Span>,
    /// Names of processes, and of threads.
    names: BTreeMap<(u32, Option<usize>), String>,
    /// Gets the name of each step that begins.
    tell: Option<Listener>,
}

impl Trace {
    /// Begins a trace that will be written to `path`.
    ///
    /// # Errors
    /// [`sunzi::Error::Io`] where the folder cannot be written.
    pub fn begin(path: Option<&Path>) -> Result<Trace> {
        let file = path.map(ReportFile::new).transpose()?;
        let path = path.map(Path::to_path_buf).unwrap_or_default();
        Ok(Trace { file, path, begin: Instant::now(), spans: Vec::new(), names: BTreeMap::new(), tell: None })
    }

    /// A trace that passes the name of each step that begins to `tell`.
    pub fn telling(self, tell: impl Fn(&str) + 'static) -> Trace {
        Trace { tell: Some(Box::new(tell)), ..self }
    }

    /// Runs `step` and records its duration; also returns the seconds.
    ///
    /// # Errors
    /// The errors of `step`.
    pub fn span<T>(&mut self, name: &str, step: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
        if let Some(tell) = &self.tell {
            tell(name);
        }
        let start = Instant::now();
        let value = step()?;
        let seconds = start.elapsed().as_secs_f64();
        self.push(name.to_string(), 0, (start - self.begin).as_secs_f64(), seconds);
        Ok((value, seconds))
    }

    /// Adds the tasks of a factorisation that ran in the latest step.
    pub fn add_tasks(&mut self, tasks: &[sunzi::report::Span]) {
        let begin = self.spans.last().map_or(0.0, |step| step.ts / 1e6);
        if self.file.is_none() {
            return;
        }
        for task in tasks {
            let name = format!("{:?} ({}, {})", task.kind, task.row, task.col).to_lowercase();
            self.push(name, task.worker + 1, begin + task.start, task.end - task.start);
        }
    }

    /// Adds the activities of ranks in the latest step, which began on all of them at once.
    pub fn add_ranks(&mut self, spans: impl Iterator<Item = Timed>, names: &Names<'_>) {
        let begin = self.spans.last().map_or(0.0, |step| step.ts);
        self.extend(begin, spans, names);
    }

    /// Adds spans with a time of their own, such as the time of a simulation.
    pub fn add_timed(&mut self, spans: impl Iterator<Item = Timed>, names: &Names<'_>) {
        self.extend(0.0, spans, names);
    }

    fn extend(&mut self, begin: f64, spans: impl Iterator<Item = Timed>, names: &Names<'_>) {
        for Timed { name, process, thread, start, end } in spans {
            let (pid, ts, dur) = (process as u32, begin + start * 1e6, (end - start) * 1e6);
            self.names.entry((pid, None)).or_insert_with(|| (names.process)(process));
            self.names.entry((pid, Some(thread))).or_insert_with(|| (names.thread)(thread));
            self.spans.push(Span { name, ph: "X", pid, tid: thread, ts, dur });
        }
    }

    fn push(&mut self, name: String, tid: usize, start_seconds: f64, seconds: f64) {
        let (ts, dur) = (start_seconds * 1e6, seconds * 1e6);
        let pid = std::process::id();
        self.names.entry((pid, None)).or_insert_with(|| "sunzi".into());
        let thread = || if tid == 0 { "steps of the command".into() } else { format!("worker {tid}") };
        self.names.entry((pid, Some(tid))).or_insert_with(thread);
        self.spans.push(Span { name, ph: "X", pid, tid, ts, dur });
    }

    /// Writes the file, and prints which viewer shows it.
    ///
    /// # Errors
    /// [`sunzi::Error::Io`].
    pub fn finish(self, session: &dyn Session) -> Result<()> {
        let Some(file) = self.file else { return Ok(()) };
        let namings = self.names.into_iter().map(|((pid, tid), name)| {
            let kind = if tid.is_none() { "process_name" } else { "thread_name" };
            Event::Naming(Naming { name: kind, ph: "M", pid, tid: tid.unwrap_or(0), args: Named { name } })
        });
        let events = namings.chain(self.spans.into_iter().map(Event::Span)).collect();
        let other = Other { program: "sunzi", viewer: VIEWER, tiles: "rows and columns of tiles count from 0" };
        let content = File { unit: "ms", other, events };
        session.write_file(&mut || file.finish(&content))?;
        session.say(&format!("{}: trace, to open in {VIEWER} or chrome://tracing", self.path.display()))
    }
}
