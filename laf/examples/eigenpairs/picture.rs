//! Pictures of runs: tasks in queues and free memory, computing in comparison with reading and writing, bytes by
//! partition.
//!
//! Source: figures 5 to 7 of Saule, Aktulga, Yang, Ng, Catalyurek, "An Out-of-Core Task-based Middleware for
//! Data-Intensive Scientific Computing", 2015.

use plotters::coord::Shift;
use plotters::prelude::*;
use std::io::Write;
use std::path::Path;
use sunzi::io::write_atomically;
use sunzi::{Error, Result};
use sunzi_laf::engine::Sample;

/// Pixels of a chart.
const SIZE: (u32, u32) = (900, 300);

/// Equal parts of the time that a chart distinguishes.
const INTERVALS: usize = 200;

/// Room for the legend above the curves, in parts of the largest value.
const HEADROOM: f64 = 1.5;

const MEGABYTE: f64 = 1e6;

const COLORS: [RGBColor; 4] =
    [RGBColor(31, 119, 180), RGBColor(255, 127, 14), RGBColor(44, 160, 44), RGBColor(214, 39, 40)];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// The activity of the nodes between two times.
pub struct Course<'a> {
    /// All samples of a session.
    pub samples: &'a [Sample],
    /// Number of nodes.
    pub nodes: usize,
    /// Threads of each.
    pub threads: usize,
    /// Memory limit of each.
    pub memory_bytes: u64,
    /// When the part to be shown begins, in seconds.
    pub begin: f64,
}

impl Course<'_> {
    fn end(&self) -> f64 {
        self.samples.last().map_or(0.0, |sample| sample.seconds).max(self.begin)
    }

    fn seconds(&self) -> f64 {
        (self.end() - self.begin).max(1e-9)
    }

    /// Hands out each part of an interval in which a node stood still: interval, share of its time, how it stood.
    fn for_each_part(&self, node: usize, mut visit: impl FnMut(usize, f64, &Sample)) {
        let mut own = self.samples.iter().filter(|sample| sample.node == node).peekable();
        let place = |seconds: f64| (seconds - self.begin) / self.seconds() * INTERVALS as f64;
        while let Some(sample) = own.next() {
            let until = own.peek().map_or(self.end(), |next| next.seconds);
            let (mut from, to) = (place(sample.seconds).max(0.0), place(until).min(INTERVALS as f64));
            while from < to {
                let interval = (from as usize).min(INTERVALS - 1);
                let stop = to.min((interval + 1) as f64);
                visit(interval, stop - from, sample);
                from = stop;
            }
        }
    }

    /// The mean of a figure of a node in each interval.
    fn means(&self, node: usize, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        let mut means = vec![0.0; INTERVALS];
        self.for_each_part(node, |interval, share, sample| means[interval] += share * figure(sample));
        means
    }

    /// The most of it in each interval.
    fn most(&self, node: usize, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        let mut most = vec![0.0f64; INTERVALS];
        self.for_each_part(node, |interval, _, sample| most[interval] = most[interval].max(figure(sample)));
        most
    }

    /// The mean over the nodes of the means of a figure.
    fn means_of_all(&self, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        let mut all = vec![0.0; INTERVALS];
        for node in 0..self.nodes {
            let means = self.means(node, &figure);
            all.iter_mut().zip(means).for_each(|(sum, mean)| *sum += mean / self.nodes as f64);
        }
        all
    }

    /// Part of the threads of a node that compute.
    fn computing(&self, sample: &Sample) -> f64 {
        sample.running_tasks.min(self.threads) as f64 / self.threads as f64
    }
}

/// A figure over time, in each interval.
struct Curve {
    label: String,
    values: Vec<f64>,
}

/// Curves on common axes.
struct Chart {
    caption: String,
    seconds: f64,
    curves: Vec<Curve>,
}

/// Draws the tasks in the queue of each node and its free memory over time.
///
/// # Errors
/// [`Error::Io`].
pub fn draw_states(course: &Course<'_>, path: &Path) -> Result<()> {
    let curves = |values: &dyn Fn(usize) -> Vec<f64>| {
        let curve = |node: usize| Curve { label: format!("node {}", node + 1), values: values(node) };
        (0..course.nodes).map(curve).collect()
    };
    let tasks = |sample: &Sample| (sample.state.waiting_tasks + sample.state.planned_tasks) as f64;
    let limit = course.memory_bytes as f64 / MEGABYTE;
    let free = |node| {
        let used = course.most(node, |sample| sample.state.used_bytes as f64 / MEGABYTE);
        used.into_iter().map(|used| limit - used).collect()
    };
    let seconds = course.seconds();
    let queues = Chart {
        caption: "tasks in the queue, most in each interval".to_string(),
        seconds,
        curves: curves(&|node| course.most(node, tasks)),
    };
    let caption = format!("free memory of {limit:.0} MB, least in each interval, MB");
    let memory = Chart { caption, seconds, curves: curves(&free) };
    draw(path, 2, |areas| {
        queues.draw(&areas[0])?;
        memory.draw(&areas[1])
    })
}

/// Draws how much of the time threads compute and disks work, and how much both do.
///
/// # Errors
/// [`Error::Io`].
pub fn draw_overlap(course: &Course<'_>, path: &Path) -> Result<()> {
    let busy = |sample: &Sample| if sample.disk_requests > 0 { 1.0 } else { 0.0 };
    let computing = course.means_of_all(|sample| course.computing(sample));
    let disks = course.means_of_all(busy);
    let both = course.means_of_all(|sample| course.computing(sample) * busy(sample));
    let seconds = course.seconds();
    let total = |values: &[f64]| values.iter().sum::<f64>() / INTERVALS as f64 * seconds;
    let caption = format!("percent of the time: threads compute, disks work; {seconds:.1} s in all");
    let curve = |label: &str, values: &[f64]| {
        let label = format!("{label}: {:.1} s", total(values));
        Curve { label, values: values.iter().map(|value| 100.0 * value).collect() }
    };
    let curves = vec![curve("compute", &computing), curve("disk", &disks), curve("both at once", &both)];
    draw(path, 1, |areas| Chart { caption, seconds, curves }.draw(&areas[0]))
}

/// Bytes that were moved with one partition.
pub struct Moved {
    /// The partition, such as `4 nodes, 1D`.
    pub label: String,
    /// Bytes that came from other nodes, of all nodes.
    pub received_bytes: u64,
    /// Bytes read from disks, of all nodes.
    pub read_bytes: u64,
}

/// Draws bars of the bytes between nodes and of those from disks, the latter where there are any.
///
/// # Errors
/// [`Error::Io`].
pub fn draw_partitions(all: &[Moved], path: &Path) -> Result<()> {
    let bars = |bytes: fn(&Moved) -> u64| {
        all.iter().map(|one| (one.label.as_str(), bytes(one) as f64 / MEGABYTE)).collect::<Vec<_>>()
    };
    let mut charts = vec![("MB between nodes", bars(|one| one.received_bytes))];
    if all.iter().any(|one| one.read_bytes > 0) {
        charts.push(("MB read from disks", bars(|one| one.read_bytes)));
    }
    draw(path, charts.len(), |areas| {
        areas.iter().zip(&charts).try_for_each(|(area, (caption, bars))| draw_bars(area, caption, bars))
    })
}

/// Writes a picture of so many charts, one below the other.
fn draw(path: &Path, charts: usize, content: impl FnOnce(&[Area<'_>]) -> Drawn) -> Result<()> {
    let mut text = String::new();
    let drawn = (|| {
        let root = SVGBackend::with_string(&mut text, (SIZE.0, SIZE.1 * charts as u32)).into_drawing_area();
        root.fill(&WHITE)?;
        content(&root.split_evenly((charts, 1)))?;
        root.present()?;
        Ok::<_, Box<dyn std::error::Error>>(())
    })();
    let fail = |source| Error::Io { path: path.to_path_buf(), action: "write", source };
    drawn.map_err(|error| fail(std::io::Error::other(error.to_string())))?;
    write_atomically(path, |mut file| file.write_all(text.as_bytes()).map_err(fail))
}

fn color(place: usize) -> RGBColor {
    COLORS[place % COLORS.len()]
}

impl Chart {
    fn draw(&self, area: &Area<'_>) -> Drawn {
        let values = self.curves.iter().flat_map(|curve| &curve.values);
        let top = values.copied().fold(f64::MIN_POSITIVE, f64::max);
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .caption(&self.caption, ("sans-serif", 16))
            .x_label_area_size(34)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..self.seconds, 0.0..HEADROOM * top)?;
        let mesh = BLACK.mix(0.12);
        chart.configure_mesh().light_line_style(TRANSPARENT).bold_line_style(mesh).x_desc("seconds").draw()?;
        for (place, curve) in self.curves.iter().enumerate() {
            let middle = |interval: usize| (interval as f64 + 0.5) / INTERVALS as f64 * self.seconds;
            let points = curve.values.iter().enumerate().map(|(interval, &value)| (middle(interval), value));
            let line = color(place).stroke_width(1);
            let series = chart.draw_series(LineSeries::new(points, line))?;
            series.label(&curve.label).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], line));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE)
            .border_style(BLACK.mix(0.4))
            .draw()?;
        Ok(())
    }
}

fn draw_bars(area: &Area<'_>, caption: &str, bars: &[(&str, f64)]) -> Drawn {
    let top = bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .caption(caption, ("sans-serif", 16))
        .x_label_area_size(34)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..bars.len() as f64, 0.0..HEADROOM * top)?;
    let mesh = BLACK.mix(0.12);
    let mut axes = chart.configure_mesh();
    axes.light_line_style(TRANSPARENT).bold_line_style(mesh).disable_x_mesh().x_labels(0).draw()?;
    for (place, (label, value)) in bars.iter().enumerate() {
        let (left, right) = (place as f64 + 0.2, place as f64 + 0.8);
        chart.draw_series([Rectangle::new([(left, 0.0), (right, *value)], color(place % 2).filled())])?;
        let font = ("sans-serif", 13).into_font();
        let text = format!("{label}: {value:.0}");
        chart.draw_series([Text::new(text, (left, value + 0.1 * top), font)])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::advanced::runtime::graph::NodeState;

    /// One node of two threads: idle for a second, two tasks for two seconds, the disk for the last of these and one
    /// more.
    #[test]
    fn intervals_have_the_means_and_the_most_of_what_happened() {
        let state = NodeState { waiting_tasks: 0, planned_tasks: 0, used_bytes: 0 };
        let at = |seconds: f64, running_tasks: usize, disk_requests: usize| {
            let state = NodeState { used_bytes: 100 * running_tasks as u64, ..state };
            Sample { seconds, node: 0, state, running_tasks, disk_requests }
        };
        let samples = [at(0.0, 0, 0), at(1.0, 3, 0), at(2.0, 3, 2), at(3.0, 0, 1), at(4.0, 0, 0)];
        let course = Course { samples: &samples, nodes: 1, threads: 2, memory_bytes: 1000, begin: 0.0 };
        let computing = course.means_of_all(|sample| course.computing(sample));
        let quarter = INTERVALS / 4;
        let about = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
        for (place, &found) in computing.iter().enumerate() {
            about(found, if (quarter..3 * quarter).contains(&place) { 1.0 } else { 0.0 });
        }
        let both = course.means_of_all(|sample| course.computing(sample) * sample.disk_requests.min(1) as f64);
        about(both.iter().sum(), quarter as f64);
        let used = course.most(0, |sample| sample.state.used_bytes as f64);
        assert_eq!([used[0], used[quarter], used[INTERVALS - 1]], [0.0, 300.0, 0.0]);
        // What came before the part that is shown counts where it lasts.
        let later = Course { begin: 1.5, ..course };
        about(later.means(0, |sample| sample.running_tasks as f64).iter().sum(), 3.0 * 1.5 / 2.5 * INTERVALS as f64);
    }
}
