//! How far a whole command is: its stages in order, each with its share of the time.
//!
//! Promise: [`Run::fraction`] never falls. Independent of: clocks, terminals, what a stage does.

/// A stage of a command.
#[derive(Clone, PartialEq, Debug)]
pub struct Stage {
    /// Its name.
    pub name: &'static str,
    /// Seconds that it takes, up to a factor common to all stages.
    pub weight: f64,
    /// Whether it is one call, whose own count of work gives its progress; else time does.
    pub is_one_call: bool,
}

impl Stage {
    /// A stage that is one call, of `weight` seconds on some machine.
    pub fn call(name: &'static str, weight: f64) -> Stage {
        Stage { name, weight: weight.max(LEAST_WEIGHT), is_one_call: true }
    }

    /// A stage of several calls.
    pub fn calls(name: &'static str, weight: f64) -> Stage {
        Stage { is_one_call: false, ..Stage::call(name, weight) }
    }
}

/// The least weight of a stage: opening a file, say.
const LEAST_WEIGHT: f64 = 1e-4;

/// The largest fraction that an unfinished stage can have completed, judged by time.
const MOST_BY_TIME: f64 = 0.95;

/// Part of a stage after which its pace is believed.
const BELIEVED: f64 = 0.03;

/// The stages, and how far they are. Times are seconds since the command began.
#[derive(Default)]
pub struct Run {
    stages: Vec<Stage>,
    /// The stage at work.
    at: usize,
    /// Whether it has begun.
    has_begun: bool,
    /// When it began.
    start: f64,
    /// The completed fraction, at the most optimistic time.
    part: f64,
    /// The completed fraction by the latest report. It may be less than before, since later iterations are estimated.
    latest: f64,
    /// The part done of its call at work.
    call_part: f64,
    is_several: bool,
    /// Whether one call runs all stages, so that its phases determine the current stage.
    follows_phases: bool,
    /// Seconds that stages took which are over, and their weights.
    past: (f64, f64),
    shown: f64,
}

impl Run {
    /// The stages to come, in order.
    pub fn expect(&mut self, stages: Vec<Stage>) {
        *self = Run { stages, shown: self.shown, ..Run::default() };
    }

    /// One call runs all expected stages, and its phases determine the current stage.
    pub fn follow_phases(&mut self) {
        self.follows_phases = true;
        self.stages.iter_mut().for_each(|stage| stage.is_one_call = true);
    }

    /// Whether it does.
    pub fn follows_phases(&self) -> bool {
        self.follows_phases
    }

    /// Whether anything is expected.
    pub fn is_planned(&self) -> bool {
        !self.stages.is_empty()
    }

    /// The name of the stage at work.
    pub fn stage(&self) -> &'static str {
        self.stages.get(self.at).map_or("", |stage| stage.name)
    }

    /// The next stage of that name begins; a name that is not expected belongs to the stage at work.
    pub fn begin(&mut self, name: &str, now: f64) {
        let first = if self.has_begun && (self.part > 0.0 || self.stage() != name) { self.at + 1 } else { self.at };
        let Some(offset) = self.stages.iter().skip(first).position(|stage| stage.name == name) else { return };
        if self.has_begun && first > self.at {
            self.past.0 += now - self.start;
            self.past.1 += self.stages[self.at].weight;
        }
        self.fraction();
        self.at = first + offset;
        (self.has_begun, self.start, self.part, self.call_part, self.is_several) = (true, now, 0.0, 0.0, false);
        self.latest = 0.0;
    }

    /// A call of the stage at work, in a phase of its own, has done the part `done` of its work `total`.
    pub fn advance(&mut self, phase: &str, done: u64, total: u64, now: f64) {
        let part = if total == 0 { 0.0 } else { (done as f64 / total as f64).min(1.0) };
        let starts_anew = part < self.call_part && self.call_part >= 1.0;
        if self.follows_phases && (phase != self.stage() || starts_anew) {
            self.begin(phase, now);
        }
        let Some(stage) = self.stages.get(self.at) else { return };
        self.is_several |= part < self.call_part && self.call_part >= 1.0;
        self.call_part = part.max(if self.is_several { 0.0 } else { self.call_part });
        self.latest = part;
        let found = match stage.is_one_call && !self.is_several {
            true => self.call_part,
            false => ((now - self.start) / (stage.weight * self.pace(now))).min(MOST_BY_TIME),
        };
        (self.part, self.has_begun) = (self.part.max(found), true);
    }

    /// Seconds for a unit of weight, estimated from the past.
    fn pace(&self, now: f64) -> f64 {
        let own = match self.stages.get(self.at) {
            Some(stage) if stage.is_one_call && !self.is_several && self.latest > BELIEVED => {
                (now - self.start, stage.weight * self.latest)
            }
            _ => (0.0, 0.0),
        };
        let (seconds, weight) = (self.past.0 + own.0, self.past.1 + own.1);
        if weight > 0.0 && seconds > 0.0 { seconds / weight } else { 1.0 }
    }

    /// The completed fraction of the whole run, from 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        let all = self.stages.iter().map(|stage| stage.weight).sum::<f64>();
        let done = self.stages.iter().take(self.at).map(|stage| stage.weight).sum::<f64>();
        let own = self.stages.get(self.at).map_or(0.0, |stage| stage.weight * self.part);
        self.shown = if all > 0.0 { self.shown.max((done + own) / all) } else { self.shown };
        self.shown
    }

    /// Seconds until the run is over, about.
    pub fn left(&self, now: f64) -> f64 {
        let Some(stage) = self.stages.get(self.at) else { return 0.0 };
        let pace = self.pace(now);
        let own = match self.latest > BELIEVED && stage.is_one_call && !self.is_several {
            true => (now - self.start) * (1.0 - self.latest) / self.latest,
            false => (stage.weight * pace - (now - self.start)).max(0.0),
        };
        own + pace * self.stages.iter().skip(self.at + 1).map(|stage| stage.weight).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages() -> Vec<Stage> {
        let (read, factor) = (Stage::call("read", 1.0), Stage::call("factor", 6.0));
        vec![read.clone(), read, factor, Stage::calls("solve", 2.0), Stage::call("write", 1.0)]
    }

    /// Twice as slow as the weights predict: fractions rise, and the time left is right wherever the pace is known.
    #[test]
    fn fractions_rise_and_the_time_left_is_right() {
        let mut run = Run::default();
        run.expect(stages());
        let (total, mut now, mut last) = (22.0, 0.0, 0.0);
        let names = ["read", "read", "factor", "solve", "write"];
        for (name, seconds) in names.into_iter().zip([2.0, 2.0, 12.0, 4.0, 2.0]) {
            run.begin(name, now);
            for step in 1..=20 {
                now += seconds / 20.0;
                let done = if name == "solve" { step * 3 % 20 } else { step };
                run.advance(name, done, 20, now);
                let fraction = run.fraction();
                assert!(fraction >= last && fraction <= 1.0, "{name}: {fraction} after {last}");
                last = fraction;
                let left = run.left(now);
                assert!((left - (total - now)).abs() < 1.5, "{name}, {now}: {left} left");
            }
            assert_eq!(run.stage(), name);
        }
        assert!(last > 0.99, "{last}");
    }

    /// Of iterations the end is estimated, first too early: the bar stands still, and the time left is the latest one.
    #[test]
    fn the_time_left_follows_an_estimate_that_grows() {
        let mut run = Run::default();
        run.expect(vec![Stage::call("iterations", 1.0)]);
        run.begin("iterations", 0.0);
        for (now, all, fraction) in [(10.0, 20.0, 0.5), (20.0, 100.0, 0.5), (60.0, 100.0, 0.6)] {
            run.advance("iterations", now as u64, all as u64, now);
            assert!((run.left(now) - (all - now)).abs() < 1e-9 && (run.fraction() - fraction).abs() < 1e-9, "{now}");
        }
    }

    #[test]
    fn names_that_nobody_expects_and_stages_that_are_left_out_do_no_harm() {
        let mut run = Run::default();
        run.begin("read", 0.0);
        run.advance("read", 1, 2, 1.0);
        assert!(!run.is_planned() && run.fraction() == 0.0 && run.left(2.0) == 0.0);
        run.expect(stages());
        run.begin("factor", 0.0);
        run.begin("what", 1.0);
        assert_eq!(run.stage(), "factor");
        run.begin("write", 2.0);
        run.begin("read", 3.0);
        assert_eq!(run.stage(), "write");
        run.advance("read", 0, 0, 3.0);
        assert!((run.fraction() - 0.909).abs() < 1e-3);
    }

    /// A call that reads twice, factors in two kinds of steps, and writes, with a check of the written file.
    #[test]
    fn phases_of_one_call_lead_through_the_stages() {
        let mut run = Run::default();
        run.expect(stages());
        run.follow_phases();
        let phases = ["read", "read", "convert", "factor", "solve", "write", "checksum"];
        let expected = ["read", "read", "read", "factor", "solve", "write", "write"];
        let (mut now, mut last) = (0.0, 0.0);
        for (phase, expected) in phases.into_iter().zip(expected) {
            for done in 1..=10 {
                now += 0.1;
                run.advance(phase, done, 10, now);
                let fraction = run.fraction();
                assert!(run.stage() == expected && fraction >= last, "{phase}: {} {fraction}", run.stage());
                last = fraction;
            }
            let done = match phase {
                "factor" => 8.0 / 11.0,
                "solve" => 10.0 / 11.0,
                _ => continue,
            };
            assert!((last - done).abs() < 1e-9, "{phase}: {last}");
        }
        assert!(last > 0.99, "{last}");
    }
}
