//! The values that options take: one function for each kind of value. Each refusal states the expected form; the parser
//! adds the option and the typed text.

use super::ProgressForm;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rug::Float;
use sunzi::advanced::device::DeviceName;
use sunzi::advanced::kernels;
use sunzi::advanced::kernels::device::DeviceFamily;
use sunzi::advanced::runtime::Eviction;
use sunzi::advanced::runtime::protocol::{DeliveryKind, Termination};
use sunzi::advanced::storage::Caching;
use sunzi::comm::window::WindowKind;
use sunzi::distributed::RankGrid;
use sunzi::gallery::{KINDS, Kind};
use sunzi::io::{FileFormat, parse_number};
use sunzi::{Accuracy, Error, MAXIMUM_PRECISION_BITS, Result, Side, Uplo};
use sunzi_session::units::{parse_count, parse_size};

/// A value, or why it is refused.
type Parsed<T> = std::result::Result<T, String>;

/// A number of rows, columns or other things, 0 included.
pub fn size(text: &str) -> Parsed<usize> {
    usize::try_from(parse_count(text)?).map_err(|_| "too large".into())
}

/// A number of at least 1.
pub fn positive(text: &str) -> Parsed<usize> {
    match size(text)? {
        0 => Err("choose 1 or more".into()),
        count => Ok(count),
    }
}

/// A number of at least 1, of any size.
pub fn positive_count(text: &str) -> Parsed<u64> {
    match parse_count(text)? {
        0 => Err("choose 1 or more".into()),
        count => Ok(count),
    }
}

/// A number of at least 1 and at most `most`.
fn up_to(most: usize, what: &str, text: &str) -> Parsed<usize> {
    match size(text)? {
        count if (1..=most).contains(&count) => Ok(count),
        count => Err(format!("{count} {what}: choose 1 to {most}")),
    }
}

/// Worker threads.
pub fn threads(text: &str) -> Parsed<usize> {
    up_to(4096, "threads", text)
}

/// Timed runs.
pub fn runs(text: &str) -> Parsed<usize> {
    up_to(1000, "runs", text)
}

/// Simulated processes.
pub fn processes(text: &str) -> Parsed<usize> {
    up_to(1 << 20, "processes", text)
}

/// Bits of a significand.
pub fn precision(text: &str) -> Parsed<u32> {
    let (precision_bits, maximum_bits) = (parse_count(text)?, u64::from(MAXIMUM_PRECISION_BITS));
    match precision_bits {
        bits if (2..=maximum_bits).contains(&bits) => Ok(bits as u32),
        _ => Err(Error::Precision { precision_bits, maximum_bits }.to_string()),
    }
}

/// A precision, or the smallest precision that suffices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrecisionChoice {
    /// A given number of bits.
    Bits(u32),
    /// As many bits as the requested digits need.
    Automatic,
}

/// Bits of a significand, or `auto`.
pub fn precision_or_auto(text: &str) -> Parsed<PrecisionChoice> {
    match text {
        "auto" => Ok(PrecisionChoice::Automatic),
        _ => precision(text).map(PrecisionChoice::Bits),
    }
}

/// Decimal digits.
pub fn digits(text: &str) -> Parsed<u32> {
    up_to(10_000, "digits", text).map(|digits| digits as u32)
}

/// Bits of a tolerance.
const TOLERANCE_BITS: u32 = 64;

/// A number of at least 0, of any exponent.
pub fn tolerance(text: &str) -> Parsed<Float> {
    let value = parse_number(text, TOLERANCE_BITS).map_err(|error| error.to_string())?.value;
    if value < 0 { Err("choose 0 or more".into()) } else { Ok(value) }
}

/// A kernel that is known and available; `None` for the fastest.
#[derive(Clone, Copy, Debug)]
pub struct Kernel(pub Option<&'static str>);

/// The name of a kernel, or `auto`.
///
/// # Errors
/// [`Error::UnknownKernel`], [`Error::KernelUnavailable`].
pub fn kernel(text: &str) -> Result<Kernel> {
    let name = match (text, DeviceFamily::by_name(text)) {
        ("auto", _) => return Ok(Kernel(None)),
        (_, Some(family)) => family.name(),
        _ => kernels::by_name(text)?.name(),
    };
    Ok(Kernel(Some(name)))
}

/// A device, or all CUDA devices.
pub fn device(text: &str) -> Parsed<DeviceName> {
    DeviceName::parse(text, parse_size)
}

/// A format of files, by its short name.
pub fn format() -> impl TypedValueParser<Value = FileFormat> {
    named(FileFormat::ALL.map(|format| (format.name(), format)).to_vec())
}

/// A format in which files are written.
pub fn written_format() -> impl TypedValueParser<Value = FileFormat> {
    let written = FileFormat::ALL.into_iter().filter(|format| format.is_written());
    named(written.map(|format| (format.name(), format)).collect())
}

/// Rows and columns of ranks or processes, such as `2x3`.
pub fn grid(text: &str) -> Parsed<RankGrid> {
    let (rows, cols) = text.split_once(['x', 'X']).ok_or("not rows and columns such as 2x3")?;
    let grid = RankGrid { rows: positive(rows)?, cols: positive(cols)? };
    grid.rows.checked_mul(grid.cols).map(|_| grid).ok_or_else(|| "too large".into())
}

/// A process and the factor of its times, such as `3:10`.
pub fn slow(text: &str) -> Parsed<(usize, f64)> {
    let pair = text.split_once(':').and_then(|(process, factor)| Some((process.parse().ok()?, factor.parse().ok()?)));
    let fits = |&(_, factor): &(usize, f64)| factor.is_finite() && factor > 0.0;
    pair.filter(fits).ok_or_else(|| "not PROCESS:FACTOR, such as 0:10".into())
}

/// A number of at least 0.
pub fn jitter(text: &str) -> Parsed<f64> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    value.ok_or_else(|| "not a number of 0 or more".into())
}

/// The form in which progress is shown.
pub fn progress() -> impl TypedValueParser<Value = ProgressForm> {
    let (auto, bar) = (("auto", ProgressForm::Auto), ("bar", ProgressForm::Bar));
    named(vec![auto, bar, ("plain", ProgressForm::Plain), ("none", ProgressForm::None)])
}

/// One of a list of names, each with its value.
fn named<T: Clone + Send + Sync + 'static>(known: Vec<(&'static str, T)>) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(known.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    names.map(move |typed| known.iter().find(|(name, _)| *name == typed).expect("a listed name").1.clone())
}

/// A kind of test matrix.
pub fn kind() -> impl TypedValueParser<Value = Kind> {
    named(KINDS.to_vec())
}

/// The source of the memory that ranks share.
pub fn window() -> impl TypedValueParser<Value = WindowKind> {
    let names = ["auto", "mpi", "posix", "heap"];
    named(names.into_iter().filter_map(|name| Some((name, WindowKind::by_name(name)?))).collect())
}

/// The algorithm that sends finished tiles to ranks.
pub fn broadcast() -> impl TypedValueParser<Value = DeliveryKind> {
    named(DeliveryKind::ALL.map(|kind| (kind.name(), kind)).to_vec())
}

/// The rule by which a process detects that it may end.
pub fn termination() -> impl TypedValueParser<Value = Termination> {
    named(vec![("lists", Termination::Lists), ("all_to_all", Termination::AllToAll)])
}

/// The use of the system's cache.
pub fn caching() -> impl TypedValueParser<Value = Caching> {
    named(vec![("direct", Caching::Direct), ("cached", Caching::Cached), ("drop-behind", Caching::DropBehind)])
}

/// The rule that selects the tile to be evicted from a full device.
pub fn eviction() -> impl TypedValueParser<Value = Eviction> {
    named(Eviction::ALL.map(|rule| (rule.name(), rule)).to_vec())
}

/// The side on which a triangular matrix is multiplied.
pub fn side() -> impl TypedValueParser<Value = Side> {
    named(vec![("left", Side::Left), ("right", Side::Right)])
}

/// The accuracy that a product promises for each entry.
pub fn accuracy() -> impl TypedValueParser<Value = Accuracy> {
    named(vec![("norm", Accuracy::Norm), ("entrywise", Accuracy::Entrywise)])
}

/// A triangle of a matrix.
pub fn uplo() -> impl TypedValueParser<Value = Uplo> {
    named(vec![("lower", Uplo::Lower), ("upper", Uplo::Upper)])
}

/// Schur complement matrices of quadratic assignment problems, as in the papers that docs/SIMULATION.md names.
const PROBLEMS: [(&str, u64); 6] = [
    ("QAP5", 379_350),
    ("QAP6", 709_275),
    ("QAP7", 1_218_400),
    ("QAP8", 1_484_406),
    ("QAP9", 1_962_225),
    ("QAP10", 2_339_331),
];

/// The order of a matrix of the literature.
pub fn problem() -> impl TypedValueParser<Value = u64> {
    named(PROBLEMS.to_vec())
}
