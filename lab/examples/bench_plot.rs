//! Draws the reports of `make bench` as one picture: how many times faster than each baseline, row by row.
//!
//! `cargo run --release --example bench_plot -- target/bench docs/benchmarks.svg`. Reads every `syrk-*-1.json` there
//! (one thread) that has baselines; a bar is the ratio of medians, on a logarithmic scale. The caption names the CPU,
//! and what of it `SUNZI_CPU` left.

use plotters::prelude::*;
use serde_json::Value;
use std::error::Error;

/// One report: its label, the processor, and the ratio over each baseline.
struct Row {
    label: String,
    processor: String,
    ratios: Vec<(String, f64)>,
}

/// Colours of the baselines, in the order in which the reports name them.
const COLORS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(255, 127, 14),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
    RGBColor(148, 103, 189),
    RGBColor(140, 86, 75),
];

/// Pixels of a row of the picture.
const ROW_HEIGHT: u32 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let [folder, output] = arguments.as_slice() else {
        return Err("usage: bench_plot FOLDER OUTPUT.svg".into());
    };
    let rows = read(folder)?;
    if rows.is_empty() {
        return Err(format!("no report of one thread with baselines in {folder}").into());
    }
    draw(&rows, output)
}

/// The reports of a folder, the largest product first.
fn read(folder: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !(name.starts_with("syrk-") && name.ends_with("-1.json")) {
            continue;
        }
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
        let baselines = report["baselines"].as_array().into_iter().flatten();
        let ratios = baselines
            .filter_map(|baseline| Some((baseline["name"].as_str()?.to_string(), baseline["ratio"].as_f64()?)));
        let ratios = ratios.collect::<Vec<_>>();
        let label = format!("{} x {}, {} bits", report["rows"], report["cols"], report["precision_bits"]);
        if !ratios.is_empty() {
            let processor = processor(&report["machine"]);
            rows.push((report["seconds"]["median"].as_f64().unwrap_or(0.0), Row { label, processor, ratios }));
        }
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// The processor of a report, and what of it was used.
fn processor(machine: &Value) -> String {
    let name = machine["cpu"].as_str().unwrap_or("unknown CPU");
    match machine["shown"].as_str() {
        None | Some("native") => name.to_string(),
        Some(level) => format!("{name}, SUNZI_CPU={level}"),
    }
}

fn draw(rows: &[Row], output: &str) -> Result<(), Box<dyn Error>> {
    let size = (900, 110 + ROW_HEIGHT * (rows.len() as u32 + 1));
    let root = SVGBackend::new(output, size).into_drawing_area();
    root.fill(&WHITE)?;
    let ratios = || rows.iter().flat_map(|row| &row.ratios).map(|(_, ratio)| *ratio);
    let (least, largest) = (ratios().fold(1.0, f64::min), ratios().fold(2.0, f64::max));
    // Where a baseline is faster its bar goes to the left of 1.
    let left = if least < 1.0 { least / 1.3 } else { 1.0 };
    let mut names = Vec::<&str>::new();
    for (name, _) in rows.iter().flat_map(|row| &row.ratios) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut chart = ChartBuilder::on(&root)
        .margin(10)
        .caption(
            format!("SYRK, one thread: times faster than each baseline ({})", rows[0].processor),
            ("sans-serif", 16),
        )
        .x_label_area_size(36)
        .y_label_area_size(170)
        .build_cartesian_2d((left..largest * 1.6).log_scale(), (rows.len() as f64 + 1.2)..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_label_formatter(&|x| if *x < 1.0 { format!("{x:.1}") } else { format!("{x:.0}") })
        .x_desc("ratio of medians")
        .draw()?;
    for (name, color) in names.into_iter().zip(COLORS.into_iter().cycle()) {
        let bars = rows.iter().enumerate().flat_map(|(index, row)| {
            let slot = row.ratios.iter().position(|(baseline, _)| *baseline == name);
            slot.map(|slot| {
                let height = 0.8 / row.ratios.len() as f64;
                let top = index as f64 + 0.1 + slot as f64 * height;
                let ratio = row.ratios[slot].1;
                Rectangle::new([(ratio.min(1.0), top), (ratio.max(1.0), top + 0.9 * height)], color.filled())
            })
        });
        chart
            .draw_series(bars)?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
    }
    for (index, row) in rows.iter().enumerate() {
        let count = row.ratios.len() as f64;
        for (slot, (_, ratio)) in row.ratios.iter().enumerate() {
            let y = index as f64 + 0.1 + (slot as f64 + 0.3) * 0.8 / count;
            let style = ("sans-serif", 12).into_font();
            chart.draw_series([Text::new(format!(" {ratio:.1}"), (ratio.max(1.0), y - 0.1), style)])?;
        }
        let middle = chart.backend_coord(&(left, index as f64 + 0.5));
        let place = (middle.0 - 165, middle.1 - 7);
        root.draw(&Text::new(row.label.clone(), place, ("sans-serif", 13).into_font()))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .border_style(BLACK.mix(0.4))
        .background_style(WHITE)
        .draw()?;
    root.present()?;
    Ok(())
}
