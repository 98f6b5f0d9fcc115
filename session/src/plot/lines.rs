//! Lines over a count, in charts one below the other, each with its own scale.

use super::{Area, Drawn, axes, legend, save};
use plotters::prelude::*;
use std::ops::Range;
use std::path::Path;
use sunzi::Result;

/// Pixels of the picture, and of each of its charts.
const WIDTH: u32 = 900;
const HEIGHT: u32 = 300;

/// Colours of the lines of a chart, in their order.
const COLOURS: [RGBColor; 4] = [BLUE, RED, RGBColor(0, 128, 0), RGBColor(128, 0, 128)];

/// The quantity on the vertical axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// The number itself.
    Linear,
    /// The decimal logarithm of the quantity, so that numbers outside the range of a double can be drawn as well.
    Logarithmic,
}

/// A line of a chart.
pub struct Line {
    /// Its label.
    pub label: &'static str,
    /// Count and height, in the order of the counts.
    pub points: Vec<(f64, f64)>,
}

/// A chart of the picture.
pub struct Chart {
    /// Its caption.
    pub caption: &'static str,
    /// The quantity on the horizontal axis.
    pub count: &'static str,
    /// The quantity on the vertical axis.
    pub scale: Scale,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// Writes the picture.
///
/// # Errors
/// [`sunzi::Error::Io`].
pub fn draw_lines(charts: &[Chart], path: &Path) -> Result<()> {
    let mut text = String::new();
    save(render(charts, &mut text), &text, path)
}

fn render(charts: &[Chart], text: &mut String) -> std::result::Result<(), String> {
    let root = SVGBackend::with_string(text, (WIDTH, HEIGHT * charts.len().max(1) as u32)).into_drawing_area();
    root.fill(&WHITE).map_err(|error| error.to_string())?;
    for (area, one) in root.split_evenly((charts.len().max(1), 1)).iter().zip(charts) {
        chart(area, one).map_err(|error| error.to_string())?;
    }
    root.present().map_err(|error| error.to_string())
}

/// The largest number of points of a line that are marked.
const MARKED_POINTS: usize = 16;

/// From the least to the largest of the numbers, never empty.
fn range(numbers: impl Iterator<Item = f64>) -> Range<f64> {
    let (least, most) = numbers.fold((f64::MAX, f64::MIN), |(least, most), next| (least.min(next), most.max(next)));
    match least < most {
        true => least..most,
        false if least == most => least..least + 1.0,
        false => 0.0..1.0,
    }
}

/// At least one unit, or one power of ten.
fn widened(heights: Range<f64>) -> Range<f64> {
    heights.start..heights.end.max(heights.start + 1.0)
}

/// The power of ten with this exponent, in two digits unless it is one of the whole powers.
fn power_of_ten(exponent: f64) -> String {
    let mantissa = 10f64.powf(exponent - exponent.floor());
    match (1.05..9.95).contains(&mantissa) {
        true => format!("{mantissa:.1}e{:.0}", exponent.floor()),
        false => format!("1e{:.0}", exponent.round()),
    }
}

/// A number without the digits that rounding in doubles adds.
fn plain(number: f64) -> String {
    format!("{}", (number * 1e9).round() / 1e9)
}

fn chart(area: &Area<'_>, chart: &Chart) -> Drawn<()> {
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let heights = widened(range(points().map(|point| point.1)));
    // A linear scale begins at 0; the legend stands above the lines.
    let bottom = if chart.scale == Scale::Linear { heights.start.min(0.0) } else { heights.start };
    let top = heights.end + (0.15 + 0.1 * chart.lines.len() as f64) * (heights.end - bottom);
    let mut context = axes(area, chart.caption, range(points().map(|point| point.0)), bottom..top)?;
    let label = |height: &f64| match chart.scale {
        Scale::Linear => format!("{height:.1}"),
        Scale::Logarithmic => power_of_ten(*height),
    };
    let mesh = BLACK.mix(0.12);
    let mut lattice = context.configure_mesh();
    lattice.light_line_style(TRANSPARENT).bold_line_style(mesh).x_desc(chart.count);
    lattice.x_label_formatter(&|number| plain(*number)).y_label_formatter(&label).draw()?;
    for (line, colour) in chart.lines.iter().zip(COLOURS.iter().cycle()) {
        let style = colour.stroke_width(2);
        let size = if line.points.len() <= MARKED_POINTS { 3 } else { 0 };
        let drawn = context.draw_series(LineSeries::new(line.points.iter().copied(), style).point_size(size))?;
        drawn.label(line.label).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    legend(&mut context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_colours_labels_and_scales() {
        let line =
            |label, slope: f64| Line { label, points: (1..20).map(|at| (at.into(), slope * f64::from(at))).collect() };
        let count = "iteration";
        let charts = [
            Chart {
                caption: "gap",
                count,
                scale: Scale::Logarithmic,
                lines: vec![line("first", -2.0), line("second", -1.0)],
            },
            Chart { caption: "steps", count, scale: Scale::Linear, lines: vec![line("third", 0.05)] },
            Chart {
                caption: "nothing",
                count,
                scale: Scale::Linear,
                lines: vec![Line { label: "fourth", points: vec![] }],
            },
        ];
        let mut text = String::new();
        render(&charts, &mut text).unwrap();
        for words in ["gap", "steps", "nothing", "first", "second", "third", "fourth", "iteration", "1e-30", "0.5"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        // Each line, and its mark in the legend.
        let drawn =
            |colour: &str| text.lines().filter(|line| line.contains("polyline") && line.contains(colour)).count();
        assert_eq!((drawn("#0000FF\" stroke-width=\"2"), drawn("#FF0000\" stroke-width=\"2")), (5, 2), "{text}");
    }

    #[test]
    fn ranges_are_never_empty() {
        assert_eq!(range([].into_iter()), 0.0..1.0);
        assert_eq!(range([3.0].into_iter()), 3.0..4.0);
        assert_eq!(range([3.0, -1.0, 5.0].into_iter()), -1.0..5.0);
        assert_eq!(range([0.25, 0.5].into_iter()), 0.25..0.5);
        assert_eq!(widened(0.25..0.5), 0.25..1.25);
    }

    #[test]
    fn labels_are_short() {
        let words = [-30.0, -1.5, 0.0, 2.0, 0.3].map(power_of_ten);
        assert_eq!(words, ["1e-30", "3.2e-2", "1e0", "1e2", "2.0e0"]);
        assert_eq!([256.0, 0.1 + 0.2, -4.5].map(plain), ["256", "0.3", "-4.5"]);
    }
}
