//! A picture of figures over time, such as ready tasks and memory: mean over processes and most of any.

use plotters::coord::Shift;
use plotters::prelude::*;
use std::io::Write;
use std::path::Path;
use sunzi::io::write_atomically;
use sunzi::{Error, Result};

/// Pixels of the picture.
const SIZE: (u32, u32) = (900, 840);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A figure at one time, over all processes.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// When.
    pub seconds: f64,
    /// Mean over the processes.
    pub mean: f64,
    /// Most of any process.
    pub most: f64,
}

/// A figure over time.
pub struct Figure {
    /// What it shows.
    pub caption: &'static str,
    /// In the order of time.
    pub points: Vec<Point>,
}

/// A name in the legend, a colour, and the part of a point.
type Line = (&'static str, RGBColor, fn(&Point) -> f64);

const LINES: [Line; 2] =
    [("mean of the processes", BLUE, |point| point.mean), ("most of any", RED, |point| point.most)];

/// Writes the picture.
///
/// # Errors
/// [`Error::Io`].
pub fn draw(figures: &[Figure], path: &Path) -> Result<()> {
    let mut text = String::new();
    let drawn = render(figures, &mut text);
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

fn chart(area: &Area<'_>, figure: &Figure) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let points = &figure.points;
    let end = points.last().map_or(1.0, |point| point.seconds).max(f64::MIN_POSITIVE);
    let top = points.iter().map(|point| point.most).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .caption(figure.caption, ("sans-serif", 16))
        .x_label_area_size(34)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..end, 0.0..1.05 * top)?;
    chart.configure_mesh().x_desc("seconds").draw()?;
    for (name, color, of) in LINES {
        let points = points.iter().map(|point| (point.seconds, of(point)));
        let line = chart.draw_series(LineSeries::new(points, color.stroke_width(1)))?;
        line.label(name).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    Ok(())
}
