//! Progress of the whole run on standard error, as a bar or as plain lines; and the answer to the progress callbacks of
//! all long calls.
//!
//! Depends on: stages, phases, clocks. Independent of: what is computed.

mod run;
mod weights;

pub use run::Stage;
pub use weights::{
    checking, factor_seconds, generate_seconds, inverse_seconds, product_seconds, reading, solve_seconds, trsm_seconds,
    writing,
};

use crate::args::ProgressForm;
use crate::output::print_note;
use crate::signals;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use run::Run;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use sunzi::{DiskProgress, Progress};
use sunzi_session::units::{format_bytes, format_seconds};

/// Steps of a bar that is full.
const FULL: u64 = 1000;

/// Percents from one plain line to the next.
const LINE_PERCENT: u64 = 10;

/// Seconds from one plain line to the next where the progress of the run is not known.
const LINE_SECONDS: f64 = 10.0;

/// Seconds after which there is a plain line in any case.
const MOST_LINE_SECONDS: f64 = 60.0;

/// A disk that has not answered for this number of seconds is called silent.
const SILENT_SECONDS: f64 = 5.0;

/// Progress that may be invisible.
#[derive(Clone)]
pub struct Bar(Option<Arc<Mutex<Shown>>>);

/// The display of a run.
struct Shown {
    run: Run,
    begin: Instant,
    form: Form,
}

/// The form in which it is shown.
enum Form {
    Bar(ProgressBar),
    Plain(LastLine),
}

/// The last plain line.
#[derive(Default)]
struct LastLine {
    percent: u64,
    stage: &'static str,
    seconds: f64,
}

impl Bar {
    /// Progress of one command; nothing is shown before its first stage.
    pub fn new(form: ProgressForm, quiet: bool) -> Bar {
        let terminal = std::io::stderr().is_terminal();
        let capable = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let form = match form {
            _ if quiet => return Bar(None),
            ProgressForm::Plain => Form::Plain(LastLine::default()),
            ProgressForm::Bar if terminal => Form::Bar(bar()),
            ProgressForm::Auto if terminal && capable => Form::Bar(bar()),
            _ => return Bar(None),
        };
        Bar(Some(Arc::new(Mutex::new(Shown { run: Run::default(), begin: Instant::now(), form }))))
    }

    /// Progress that is never shown.
    pub fn hidden() -> Bar {
        Bar(None)
    }

    /// Whether anything may be shown.
    pub fn is_hidden(&self) -> bool {
        self.0.is_none()
    }

    fn with(&self, change: impl FnOnce(&mut Shown, f64)) {
        if let Some(shown) = &self.0 {
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            let now = shown.begin.elapsed().as_secs_f64();
            change(&mut shown, now);
        }
    }

    /// The stages of the whole run, in order.
    pub fn expect(&self, stages: Vec<Stage>) {
        self.with(|shown, _| shown.run.expect(stages));
    }

    /// One call runs all stages, and its phases determine the current stage.
    pub fn follow_phases(&self) {
        self.with(|shown, _| shown.run.follow_phases());
    }

    /// A stage begins, unless phases begin stages.
    pub fn begin(&self, name: &str) {
        self.with(|shown, now| {
            if !shown.run.follows_phases() {
                shown.run.begin(name, now);
                shown.show(None, now);
            }
        });
    }

    /// Shows a step; returns `false` if a signal requests a stop.
    pub fn advance(&self, progress: Progress) -> bool {
        self.with(|shown, now| {
            shown.run.advance(progress.phase, progress.done, progress.total, now);
            shown.show(Some(progress), now);
        });
        !signals::stop_requested()
    }

    /// Takes the bar off the terminal.
    pub fn finish(&self) {
        self.with(|shown, _| {
            if let Form::Bar(bar) = &shown.form {
                bar.finish_and_clear();
            }
        });
    }

    /// The command has done its work.
    pub fn end(&self) {
        self.with(|shown, now| {
            if let (Form::Plain(_), true) = (&shown.form, shown.run.is_planned()) {
                print_note(&format!("100 % done in {}", format_seconds(now)));
            }
        });
    }
}

/// A bar for a whole run.
fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(FULL), ProgressDrawTarget::stderr_with_hz(10));
    let style = ProgressStyle::with_template("{msg:12} [{bar:40}] {percent:>3} %  {elapsed} {prefix}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar
}

/// The work that the disk has done, and whether it is silent.
fn of_disk(disk: &DiskProgress) -> String {
    let [read, written, reused] = [disk.read_bytes, disk.written_bytes, disk.reused_bytes].map(format_bytes);
    let silence = silence(disk).map_or(String::new(), |time| format!(", no response from the disk for {time}"));
    format!("{read} read, {written} written, {reused} reused{silence}")
}

/// For how long the disk has not answered, where that is worth showing.
fn silence(disk: &DiskProgress) -> Option<String> {
    let seconds = disk.waiting?.as_secs_f64();
    (seconds >= SILENT_SECONDS).then(|| format_seconds(seconds))
}

impl Shown {
    /// Shows where the run is; `call` is the call at work, for runs without known stages.
    fn show(&mut self, call: Option<Progress>, now: f64) {
        let (fraction, left) = (self.run.fraction(), self.run.left(now));
        let is_planned = self.run.is_planned();
        let stage = if is_planned { self.run.stage() } else { call.map_or("", |call| call.phase) };
        let disk = call.and_then(|call| call.disk);
        let words = format!("{stage}{}", disk.map_or(String::new(), |disk| format!(", {}", of_disk(&disk))));
        match &mut self.form {
            Form::Bar(bar) => {
                if bar.is_finished() {
                    bar.reset_eta();
                    bar.reset_elapsed();
                    bar.reset(); // words were printed in between
                }
                let position = match call {
                    Some(Progress { done, total, .. }) if !is_planned => FULL * done.min(total) / total.max(1),
                    _ => (fraction * FULL as f64) as u64,
                };
                let left = if is_planned { format!("({} left)", format_seconds(left)) } else { String::new() };
                bar.set_position(position);
                bar.set_prefix(left);
                if bar.message() != words {
                    bar.set_message(words);
                }
            }
            Form::Plain(last) => {
                let percent = (100.0 * fraction) as u64;
                let is_due = percent >= last.percent + LINE_PERCENT || now >= last.seconds + MOST_LINE_SECONDS;
                let moved = is_planned && (stage != last.stage || is_due);
                let is_silent = disk.is_some_and(|disk| silence(&disk).is_some());
                if moved {
                    let elapsed = format_seconds(now);
                    print_note(&format!("{percent} % {words}, {elapsed}, about {} left", format_seconds(left)));
                } else if (!is_planned || is_silent) && now >= last.seconds + LINE_SECONDS {
                    print_note(&format!("{words}, {}", format_seconds(now)));
                } else {
                    return;
                }
                *last = LastLine { percent: if moved { percent } else { last.percent }, stage, seconds: now };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_disk_that_does_not_answer_is_named() {
        let mut disk = DiskProgress::default();
        (disk.read_bytes, disk.written_bytes, disk.waiting) = (3 << 30, 1 << 20, Some(Duration::from_millis(4900)));
        assert_eq!(of_disk(&disk), "3.00 GiB read, 1.00 MiB written, 0 B reused");
        disk.waiting = Some(Duration::from_secs(12));
        assert_eq!(of_disk(&disk), "3.00 GiB read, 1.00 MiB written, 0 B reused, no response from the disk for 12.0 s");
    }
}
