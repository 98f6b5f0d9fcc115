//! When each step of a command ran: a list of spans in the JSON form that trace viewers (Perfetto, chrome://tracing) read.
//!
//! Whole or absent, as a report. Does not know: what the steps do.

use crate::error::Result;
use crate::front::cli::report::ReportFile;
use crate::front::cli::signals::{Mode, in_mode};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// One step: what ran on which thread, from when for how long.
#[derive(Serialize)]
struct Span {
    name: String,
    /// `X`: a span with a duration.
    ph: &'static str,
    pid: u32,
    tid: usize,
    /// Microseconds since the command began.
    ts: f64,
    /// Microseconds.
    dur: f64,
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
    /// [`crate::Error::Io`] where the folder cannot be written.
    pub fn begin(path: Option<&Path>) -> Result<Trace> {
        Ok(Trace { file: path.map(ReportFile::new).transpose()?, begin: Instant::now(), spans: Vec::new() })
    }

    /// Runs `step` and notes how long it took; returns the seconds too.
    ///
    /// # Errors
    /// Those of `step`.
    pub fn span<T>(&mut self, name: &str, step: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
        let start = Instant::now();
        let value = step()?;
        let seconds = start.elapsed().as_secs_f64();
        self.spans.push(Span {
            name: name.to_string(),
            ph: "X",
            pid: std::process::id(),
            tid: 0,
            ts: (start - self.begin).as_secs_f64() * 1e6,
            dur: seconds * 1e6,
        });
        Ok((value, seconds))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn finish(self) -> Result<()> {
        match self.file {
            Some(file) => in_mode(Mode::Writing, || file.finish(&File { spans: self.spans })),
            None => Ok(()),
        }
    }
}
