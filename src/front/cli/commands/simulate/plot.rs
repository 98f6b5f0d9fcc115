//! A picture of ready tasks, slots in use and device memory over virtual time.

use crate::error::{Error, Result};
use crate::front::formats::write_atomically;
use crate::simulate::{Level, Sample};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::io::Write;
use std::path::Path;

/// Pixels of the picture.
const SIZE: (u32, u32) = (900, 840);

const GIBIBYTE: f64 = (1u64 << 30) as f64;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A caption, and the figure to be drawn.
type Figure = (&'static str, fn(&Sample) -> Level);

/// A name in the legend, a colour, and the part of the figure.
type Line = (&'static str, RGBColor, fn(&Level) -> f64);

const FIGURES: [Figure; 3] = [
    ("ready tasks of a process", |sample| sample.ready),
    ("slots in use of a process", |sample| sample.slots),
    ("GiB on the devices of a process", |sample| Level {
        mean: sample.device_bytes.mean / GIBIBYTE,
        most: sample.device_bytes.most / GIBIBYTE,
    }),
];

const LINES: [Line; 2] =
    [("mean of the processes", BLUE, |level| level.mean), ("most of any", RED, |level| level.most)];

/// Writes the picture.
///
/// # Errors
/// [`Error::Io`].
pub fn draw(samples: &[Sample], path: &Path) -> Result<()> {
    let mut text = String::new();
    let drawn = render(samples, &mut text);
    let fail = |source| Error::Io { path: path.to_path_buf(), action: "write", source };
    drawn.map_err(|message| fail(std::io::Error::other(message)))?;
    write_atomically(path, |mut file| file.write_all(text.as_bytes()).map_err(fail))
}

fn render(samples: &[Sample], text: &mut String) -> std::result::Result<(), String> {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(|error| error.to_string())?;
    for (area, (caption, level)) in root.split_evenly((FIGURES.len(), 1)).iter().zip(FIGURES) {
        chart(area, caption, samples, level).map_err(|error| error.to_string())?;
    }
    root.present().map_err(|error| error.to_string())
}

fn chart(
    area: &Area<'_>,
    caption: &str,
    samples: &[Sample],
    level: fn(&Sample) -> Level,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let end = samples.last().map_or(1.0, |sample| sample.time).max(f64::MIN_POSITIVE);
    let top = samples.iter().map(|sample| level(sample).most).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .caption(caption, ("sans-serif", 16))
        .x_label_area_size(34)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..end, 0.0..1.05 * top)?;
    chart.configure_mesh().x_desc("seconds").draw()?;
    for (name, color, of) in LINES {
        let points = samples.iter().map(|sample| (sample.time, of(&level(sample))));
        let line = chart.draw_series(LineSeries::new(points, color.stroke_width(1)))?;
        line.label(name).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    Ok(())
}
