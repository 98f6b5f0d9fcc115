//! A command under way: where it may speak, its report, and reading and writing matrices with a bar.

use crate::args::{Global, Output};
use crate::files::{self, admit, bytes, header, output_format};
use crate::progress::{Bar, Visibility};
use crate::signals::{Mode, complete, in_mode, stop_requested};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use sunzi::comm::{Transport, agreed};
use sunzi::io::{Loaded, ReadOptions, Symmetry, WriteOptions};
use sunzi::{ContextBuilder, MatrixView, ProgressCallback, Result};
use sunzi_lab::engine::Engine;
use sunzi_lab::report::{ReportFile, check_writable};
use sunzi_lab::session::{self as lab, Session as _};

/// What a command needs beside its choices: where it may speak, and its report.
pub struct Session {
    quiet: bool,
    report: Option<ReportFile>,
    bar: Bar,
}

impl Session {
    /// The session of one rank; only the root speaks. Collective where ranks work `together`.
    pub fn begin(global: Global, root: bool, together: Option<&dyn Transport>) -> Result<Session> {
        let quiet = global.quiet || !root;
        let report = global.report.as_deref().filter(|_| root).map(ReportFile::new).transpose();
        let report = match together {
            Some(world) => agreed(world, report)?,
            None => report?,
        };
        let visibility = if quiet { Visibility::Hidden } else { Visibility::Auto };
        Ok(Session { quiet, report, bar: Bar::new(visibility) })
    }

    /// Writes a remark to standard error, unless this session is quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.bar.finish();
            crate::output::print_note(text);
        }
    }

    /// Prints numbers that were asked for, one a line, also where the session is quiet.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn answer(&self, lines: &[String]) -> Result<()> {
        self.bar.finish();
        lines.iter().try_for_each(|line| crate::output::print(&format!("{line}\n")))
    }

    /// Writes the report, where one was asked for.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish_report(&mut self, report: &impl Serialize) -> Result<()> {
        (self as &mut dyn lab::Session).finish_report(report)
    }

    /// A builder with the choices of the command line but the memory limit, and the command's progress.
    ///
    /// # Errors
    /// [`Error::NoDevice`].
    pub fn context(&self, engine: &Engine) -> Result<ContextBuilder> {
        (self as &dyn lab::Session).context(engine)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Those of [`files::read`]; [`Error::OutOfMemory`] where the header announces more than the machine has.
    pub fn read(&self, path: &Path, options: ReadOptions) -> Result<Loaded> {
        if let Some(info) = header(path)? {
            admit(bytes(&info, &options))?;
        }
        let loaded = files::read(path, &options.progress(self.progress()));
        self.bar.finish();
        let loaded = loaded?;
        for remark in &loaded.remarks {
            self.note(&format!("{}: {remark}", path.display()));
        }
        Ok(loaded)
    }

    /// Writes a matrix to the place of `output`, after which no signal cancels the run any more.
    ///
    /// # Errors
    /// Those of [`files::write`].
    pub fn write<'a>(&self, output: &Output, matrix: impl Into<MatrixView<'a>>, symmetry: Symmetry) -> Result<()> {
        let options =
            WriteOptions::new().symmetry(symmetry).number_form(output.number_form()).progress(self.progress());
        let written = in_mode(Mode::Writing, || files::write(&output.path, matrix, &options).inspect(|()| complete()));
        self.bar.finish();
        written
    }
}

impl lab::Session for Session {
    fn say(&self, text: &str) -> Result<()> {
        self.bar.finish();
        if self.quiet { Ok(()) } else { crate::output::print(&format!("{text}\n")) }
    }

    fn progress(&self) -> Arc<ProgressCallback> {
        let bar = self.bar.clone();
        Arc::new(move |progress| bar.advance(progress))
    }

    fn hide_progress(&mut self) {
        self.bar = Bar::new(Visibility::Hidden);
    }

    fn stop_requested(&self) -> bool {
        stop_requested()
    }

    fn write_file(&self, write: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        // A trace precedes the report; where no report is left to write, this file is the last one.
        let is_last = self.report.is_none();
        let mut written = || {
            write().inspect(|()| {
                if is_last {
                    complete()
                }
            })
        };
        in_mode(Mode::Writing, &mut written)
    }

    fn take_report(&mut self) -> Option<ReportFile> {
        self.report.take()
    }
}

/// Refuses, before any work, an output that could not be written.
pub fn check_output(output: &Output) -> Result<()> {
    output_format(&output.path)?;
    if files::is_standard(&output.path) { Ok(()) } else { check_writable(&output.path) }
}
