//! The table of `sunzi gpu-check`: measured figures next to their targets.

use serde::Serialize;
use sunzi_session::units::format_seconds;

/// A target.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// The unit of a figure, which decides how it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    MultiplyAddsPerSecond,
    BytesPerSecond,
    Bytes,
    Seconds,
    /// A fraction of something else, shown as a percentage.
    Share,
    /// A ratio to something else.
    Ratio,
}

/// One line.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub what: String,
    pub measured: f64,
    pub unit: Unit,
    pub target: Option<Target>,
    /// `None` where there is no target, or nothing was measured on a GPU.
    pub met: Option<bool>,
}

/// The lines, and whether they were measured on a GPU.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    pub on_gpu: bool,
    pub rows: Vec<Row>,
}

impl Table {
    pub fn new(on_gpu: bool) -> Table {
        Table { on_gpu, rows: Vec::new() }
    }

    /// A figure without a target.
    pub fn figure(&mut self, what: String, measured: f64, unit: Unit) {
        self.rows.push(Row { what, measured, unit, target: None, met: None });
    }

    /// A figure next to its target.
    pub fn aim(&mut self, what: String, measured: f64, unit: Unit, target: Target) {
        let met = match target {
            Target::AtLeast(least) => measured >= least,
            Target::AtMost(most) => measured <= most,
        };
        self.rows.push(Row { what, measured, unit, target: Some(target), met: self.on_gpu.then_some(met) });
    }

    /// The table as text for the terminal.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("{:<80} {:>12}  {:<14} {}", "what", "measured", "target", "met")];
        for row in &self.rows {
            let target = row.target.map_or(String::new(), |target| match target {
                Target::AtLeast(least) => format!("at least {}", show(least, row.unit, 3)),
                Target::AtMost(most) => format!("at most {}", show(most, row.unit, 3)),
            });
            let met = match (row.target, row.met) {
                (None, _) => "",
                (_, Some(true)) => "met",
                (_, Some(false)) => "NOT MET",
                (_, None) => "not measured on a GPU",
            };
            let line = format!("{:<80} {:>12}  {target:<14} {met}", row.what, show(row.measured, row.unit, 0));
            lines.push(line.trim_end().to_string());
        }
        lines.join("\n")
    }
}

/// A figure for people; targets are round numbers and lose their last zeros.
fn show(value: f64, unit: Unit, round: usize) -> String {
    let decimals = |value: f64, most: usize| {
        let text = format!("{value:.most$}");
        if round > 0 { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
    };
    match unit {
        Unit::MultiplyAddsPerSecond if value >= 1e12 => format!("{} T/s", decimals(value / 1e12, 2)),
        Unit::MultiplyAddsPerSecond => format!("{} G/s", decimals(value / 1e9, 3)),
        Unit::BytesPerSecond => format!("{} GB/s", decimals(value / 1e9, 2)),
        Unit::Bytes if value >= 1e9 => format!("{} GB", decimals(value / 1e9, 2)),
        Unit::Bytes => format!("{} MB", decimals(value / 1e6, 3)),
        Unit::Seconds => format_seconds(value),
        Unit::Share => format!("{} %", decimals(100.0 * value, 1)),
        Unit::Ratio => decimals(value, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_checked_on_gpus_only() {
        for (on_gpu, words) in [(true, ["met", "NOT MET"]), (false, ["not measured on a GPU"; 2])] {
            let mut table = Table::new(on_gpu);
            table.aim("a".into(), 0.9, Unit::Share, Target::AtLeast(0.85));
            table.aim("b".into(), 1.6, Unit::Ratio, Target::AtMost(1.5));
            table.figure("c".into(), 2e13, Unit::MultiplyAddsPerSecond);
            let text = table.text();
            let lines = text.lines().collect::<Vec<_>>();
            assert!(lines[1].contains("90.0 %  at least 85 %") && lines[1].ends_with(words[0]), "{text}");
            assert!(lines[2].contains("1.60  at most 1.5") && lines[2].ends_with(words[1]), "{text}");
            assert!(lines[3].ends_with("20.00 T/s"), "{text}");
        }
    }
}
