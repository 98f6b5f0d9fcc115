//! A command under way: where it may print, its report, its progress, and reading and writing matrices.

use crate::args::{Global, Output};
use crate::files::{self, admit, bytes, header, output_format};
use crate::progress::{Bar, Stage, reading, writing};
use crate::signals::{Mode, complete, in_mode, stop_requested};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use sunzi::comm::{Transport, agreed};
use sunzi::io::{FileInfo, Loaded, ReadOptions, Symmetry, WriteOptions};
use sunzi::{ContextBuilder, MatrixView, ProgressCallback, Result};
use sunzi_session::engine::Engine;
use sunzi_session::report::{ReportFile, check_writable};
use sunzi_session::session::Session as SessionTrait;

/// The work of a command between reading and writing.
pub struct Work<'a> {
    /// Its stages.
    pub stages: Vec<Stage>,
    /// The file that is written, and the shape of its matrix.
    pub output: Option<(&'a Path, (usize, usize))>,
}

/// The state that a command needs in addition to its options: where it may print, and its report.
pub struct Session {
    quiet: bool,
    report: Option<ReportFile>,
    bar: Bar,
    /// The remarks made on files: a file that is read again gives no new ones.
    remarks: RefCell<HashSet<String>>,
}

impl Session {
    /// The session of one rank; only the root prints. Collective where ranks work `together`.
    pub fn begin(global: Global, root: bool, together: Option<&dyn Transport>) -> Result<Session> {
        let quiet = global.quiet || !root;
        let report = global.report.as_deref().filter(|_| root).map(ReportFile::new).transpose();
        let report = match together {
            Some(world) => agreed(world, report)?,
            None => report?,
        };
        Ok(Session { quiet, report, bar: Bar::new(global.progress, quiet), remarks: RefCell::default() })
    }

    /// From now on nothing is printed but errors, as where the session is quiet.
    pub fn silence(&mut self) {
        self.quiet = true;
        self.bar = Bar::hidden();
    }

    /// Names the stages of the whole command: its `inputs` of `bits` bits, the stages that `work` derives from their
    /// headers, and the output. Without a header for each input no stages are known, and each call shows its own
    /// progress.
    pub fn expect<'a>(&self, inputs: &[&Path], bits: u32, work: impl FnOnce(&[FileInfo]) -> Work<'a>) {
        if self.bar.is_hidden() {
            return;
        }
        // An error in a file is reported where it is read.
        let infos = inputs.iter().map(|path| header(path).ok().flatten()).collect::<Option<Vec<_>>>();
        let Some(infos) = infos else { return };
        let Work { stages, output } = work(&infos);
        let format = output.and_then(|(path, _)| output_format(path).ok());
        let write = output.zip(format).map(|((_, (rows, cols)), format)| writing(format, rows, cols, bits));
        let read = infos.iter().map(|info| reading(info, bits));
        self.bar.expect(read.chain(stages).chain(write).collect());
    }

    /// One call runs all expected stages, and its phases determine the current stage.
    pub fn follow_phases(&self) {
        self.bar.follow_phases();
    }

    /// A stage of the command begins.
    pub fn stage(&self, name: &str) {
        self.bar.begin(name);
    }

    /// A function that reports to the progress of the command that a step of a trace begins.
    pub fn steps(&self) -> impl Fn(&str) + 'static {
        let bar = self.bar.clone();
        move |name| bar.begin(name)
    }

    /// The command has done its work.
    pub fn end(&self) {
        self.bar.end();
    }

    /// Writes a remark to standard error, unless this session is quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.bar.finish();
            crate::output::print_note(text);
        }
    }

    /// Prints requested numbers, one a line, also where the session is quiet.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn answer(&self, lines: &[String]) -> Result<()> {
        self.bar.finish();
        lines.iter().try_for_each(|line| crate::output::print(&format!("{line}\n")))
    }

    /// Whether a report was requested.
    pub fn is_reporting(&self) -> bool {
        self.report.is_some()
    }

    /// Writes the report, where one was requested.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish_report(&mut self, report: &impl Serialize) -> Result<()> {
        (self as &mut dyn SessionTrait).finish_report(report)
    }

    /// A builder with the choices of the command line but the memory limit, and the command's progress.
    ///
    /// # Errors
    /// [`Error::NoDevice`].
    pub fn context(&self, engine: &Engine) -> Result<ContextBuilder> {
        (self as &dyn SessionTrait).context(engine)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The errors of [`files::read`]; [`Error::OutOfMemory`] where the header announces more than the machine has.
    pub fn read(&self, path: &Path, options: ReadOptions) -> Result<Loaded> {
        if let Some(info) = header(path)? {
            admit(bytes(&info, &options))?;
        }
        self.bar.begin("read");
        let loaded = files::read(path, &options.progress(self.progress()))?;
        for remark in &loaded.remarks {
            let line = format!("{}: {remark}", path.display());
            if self.remarks.borrow_mut().insert(line.clone()) {
                self.note(&line);
            }
        }
        Ok(loaded)
    }

    /// Writes a matrix to the place of `output`, after which no signal cancels the run any more.
    ///
    /// # Errors
    /// The errors of [`files::write`].
    pub fn write<'a>(&self, output: &Output, matrix: impl Into<MatrixView<'a>>, symmetry: Symmetry) -> Result<()> {
        let options =
            WriteOptions::new().symmetry(symmetry).number_form(output.number_form()).progress(self.progress());
        self.bar.begin("write");
        in_mode(Mode::Writing, || files::write(&output.path, matrix, &options).inspect(|()| complete()))
    }
}

impl SessionTrait for Session {
    fn say(&self, text: &str) -> Result<()> {
        self.bar.finish();
        if self.quiet { Ok(()) } else { crate::output::print(&format!("{text}\n")) }
    }

    fn progress(&self) -> Arc<ProgressCallback> {
        let bar = self.bar.clone();
        Arc::new(move |progress| bar.advance(progress))
    }

    fn hide_progress(&mut self) {
        self.bar = Bar::hidden();
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
