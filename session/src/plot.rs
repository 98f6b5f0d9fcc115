//! Pictures: figures over time, such as ready tasks and memory, as the mean and the maximum over processes; and lines
//! over a count, such as the number of iterations.

mod lines;

pub use lines::{Chart, Line, Scale, draw_lines};

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use sunzi::io::write_atomically;
use sunzi::{Error, Result};

/// Pixels of the picture.
const SIZE: (u32, u32) = (900, 840);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Axes<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A figure of all processes at one time.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The time.
    pub seconds: f64,
    /// Mean over the processes.
    pub mean: f64,
    /// The maximum over the processes.
    pub most: f64,
}

/// A figure over time.
pub struct Figure {
    /// The caption.
    pub caption: &'static str,
    /// In the order of time.
    pub points: Vec<Point>,
}

/// Room for the legend above the curves, in parts of the largest value.
const HEADROOM: f64 = 1.4;

/// Writes the picture.
///
/// # Errors
/// [`Error::Io`].
pub fn draw(figures: &[Figure], path: &Path) -> Result<()> {
    let mut text = String::new();
    save(render(figures, &mut text), &text, path)
}

/// Writes a picture that was drawn.
fn save(drawn: std::result::Result<(), String>, text: &str, path: &Path) -> Result<()> {
    let fail = |source| Error::Io { path: path.to_path_buf(), action: "write", source };
    drawn.map_err(|message| fail(std::io::Error::other(message)))?;
    write_atomically(path, |mut file| file.write_all(text.as_bytes()).map_err(fail))
}

fn render(figures: &[Figure], text: &mut String) -> std::result::Result<(), String> {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(|error| error.to_string())?;
    for (area, figure) in root.split_evenly((figures.len(), 1)).iter().zip(figures) {
        chart(area, figure).map_err(|error| error.to_string())?;
    }
    root.present().map_err(|error| error.to_string())
}

/// Axes below a caption.
fn axes<'a, 'b>(area: &'a Area<'b>, caption: &str, x: Range<f64>, y: Range<f64>) -> Drawn<Axes<'a, 'b>> {
    let mut builder = ChartBuilder::on(area);
    builder.margin(10).caption(caption, ("sans-serif", 16)).x_label_area_size(34).y_label_area_size(60);
    Ok(builder.build_cartesian_2d(x, y)?)
}

/// The legend of the curves, above them on the right.
fn legend<'a, 'b: 'a>(axes: &mut Axes<'a, 'b>) -> Drawn<()> {
    let mut labels = axes.configure_series_labels();
    labels.position(SeriesLabelPosition::UpperRight).background_style(WHITE).border_style(BLACK.mix(0.4)).draw()?;
    Ok(())
}

fn chart(area: &Area<'_>, figure: &Figure) -> Drawn<()> {
    let points = &figure.points;
    let end = points.last().map_or(1.0, |point| point.seconds).max(f64::MIN_POSITIVE);
    let top = points.iter().map(|point| point.most).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut chart = axes(area, figure.caption, 0.0..end, 0.0..HEADROOM * top)?;
    let mesh = BLACK.mix(0.12);
    chart.configure_mesh().light_line_style(TRANSPARENT).bold_line_style(mesh).x_desc("seconds").draw()?;
    // The most of any is an area and the mean a line upon it, so that both are seen where they are equal.
    let curve = |of: fn(&Point) -> f64| points.iter().map(move |point| (point.seconds, of(point)));
    let most = AreaSeries::new(curve(|point| point.most), 0.0, RED.mix(0.25)).border_style(RED.mix(0.5));
    let label = chart.draw_series(most)?;
    label
        .label("maximum over processes")
        .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 16, y + 5)], RED.mix(0.35).filled()));
    let mean = LineSeries::new(curve(|point| point.mean), BLUE.stroke_width(2));
    let label = chart.draw_series(mean)?;
    label.label("mean over processes").legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], BLUE.stroke_width(2)));
    legend(&mut chart)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Curves that are equal are both drawn, the mean last, and below the legend; only the light mesh is grey.
    #[test]
    fn equal_curves_are_both_seen() {
        let points = (0..20).map(|at| Point { seconds: f64::from(at), mean: 3.0, most: 3.0 }).collect();
        let mut text = String::new();
        render(&[Figure { caption: "ready tasks", points }], &mut text).unwrap();
        let (area, line) = (text.find("#FF0000").unwrap(), text.rfind("#0000FF").unwrap());
        assert!(area < line && text.contains("<polygon") && text.contains("<polyline"), "{text}");
        for words in ["ready tasks", "mean over processes", "maximum over processes", "seconds"] {
            assert!(text.contains(words), "{words}");
        }
    }
}
