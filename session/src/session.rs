//! The services that a command needs from its program: printing, a progress bar, a report file, and requests to stop.

use crate::engine::Engine;
use crate::report::ReportFile;
use serde::Serialize;
use std::sync::Arc;
use sunzi::{Context, ContextBuilder, ProgressCallback, Result};

/// The rank that prints, where there are several.
pub const ROOT: usize = 0;

/// A command under way, as the program sees it.
pub trait Session {
    /// Prints a line, or several, for people.
    ///
    /// # Errors
    /// [`sunzi::Error::Io`].
    fn say(&self, text: &str) -> Result<()>;

    /// The callback of all that takes time: draws a bar, passes on the wish to stop.
    fn progress(&self) -> Arc<ProgressCallback>;

    /// Draws no bar from now on: drawing would be timed.
    fn hide_progress(&mut self);

    /// Whether the user requested a stop.
    fn stop_requested(&self) -> bool;

    /// Runs `write`, which a request to stop does not interrupt.
    ///
    /// # Errors
    /// The errors of `write`; [`sunzi::Error::Cancelled`] where the request came before.
    fn write_file(&self, write: &mut dyn FnMut() -> Result<()>) -> Result<()>;

    /// The report that was requested, once.
    fn take_report(&mut self) -> Option<ReportFile>;
}

impl dyn Session + '_ {
    /// Writes the report, where one was requested.
    ///
    /// # Errors
    /// [`sunzi::Error::Io`].
    pub fn finish_report(&mut self, report: &impl Serialize) -> Result<()> {
        match self.take_report() {
            Some(file) => self.write_file(&mut || file.finish(report)),
            None => Ok(()),
        }
    }

    /// A builder with the choices of `engine` except the memory limit, and the progress of the session.
    ///
    /// # Errors
    /// [`sunzi::Error::NoDevice`].
    pub fn context(&self, engine: &Engine) -> Result<ContextBuilder> {
        let callback = self.progress();
        engine.apply(Context::builder().progress(move |progress| callback(progress)))
    }
}
