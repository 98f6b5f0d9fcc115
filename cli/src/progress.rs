//! A progress bar on standard error while a product runs, where that is a terminal; and the answer to its callback.
//!
//! Knows: the phases' names and counts. Does not know: what is computed.

use crate::signals;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use sunzi::Progress;

/// A bar that may be invisible.
#[derive(Clone)]
pub struct Bar(Option<Arc<ProgressBar>>);

/// Whether anything may be drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visibility {
    /// On a terminal.
    Auto,
    /// Never.
    Hidden,
}

impl Bar {
    /// A bar for one command; nothing is drawn before its first progress.
    pub fn new(visibility: Visibility) -> Bar {
        if visibility == Visibility::Hidden || !std::io::stderr().is_terminal() {
            return Bar(None);
        }
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template("{msg:12} [{bar:40}] {percent:>3} %  {elapsed} (left {eta})");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        Bar(Some(Arc::new(bar)))
    }

    /// Shows a step; returns whether to go on, which a signal denies.
    pub fn advance(&self, progress: Progress) -> bool {
        if let Some(bar) = &self.0 {
            if bar.is_finished() {
                bar.reset(); // the next piece of work
            }
            bar.set_length(progress.total);
            bar.set_position(progress.done);
            if bar.message() != progress.phase {
                bar.set_message(progress.phase);
            }
        }
        !signals::stop_requested()
    }

    /// Takes the bar off the terminal.
    pub fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
