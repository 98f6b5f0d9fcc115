//! `sunzi sdp --certify` and `sunzi verify sdp`: proven bounds of semidefinite programs.

use crate::args::{Sdp, VerifySdp};
use crate::files::{input_format, is_standard};
use crate::session::Session;
use crate::signals::{Mode, in_mode};
use rug::Float;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;
use sunzi::{Context, Error, Result};
use sunzi_sdp::output::write_text;
use sunzi_sdp::proof::{Program, Proof, read_exact_as, verify};
use sunzi_sdp::{Certificate, Problem, Solution, SolverOptions, Termination, certificate_bytes, certify};
use sunzi_session::session::Session as _;

/// Name of the proof in the directory of results.
const FILE: &str = "certificate";

/// Digits of a bound that are printed.
const DIGITS: usize = 30;

/// A proof to be made behind a run.
pub struct Certification {
    program: Program,
    path: PathBuf,
}

/// The outcome of a certification.
pub struct Certified {
    /// With the reasons for missing bounds, and what may help.
    certificate: Certificate,
    path: PathBuf,
    seconds: f64,
}

impl Certification {
    /// Reads the program a second time, exactly, where a proof is requested: a program without an exact form is refused
    /// before any work.
    pub fn new(config: &Sdp, results: &Path) -> Result<Option<Certification>> {
        if !config.certify {
            return Ok(None);
        }
        let input = config.places.input()?;
        if is_standard(input) {
            let message = "--certify reads the program twice, but standard input can be read only once: give a file";
            return Err(Error::InvalidArgument(message.into()));
        }
        let program = read_exact_as(input, input_format())?;
        Ok(Some(Certification { program, path: results.join(FILE) }))
    }

    /// The largest number of bytes that the search takes after the run.
    pub fn planned_bytes(&self, ctx: &Context, problem: &Problem) -> Result<u64> {
        certificate_bytes(ctx, &self.program, problem)
    }

    /// Removes the proof of a run before.
    pub fn clear(&self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::Io { path: self.path.clone(), action: "remove", source })
            }
            _ => Ok(()),
        }
    }

    /// Looks for a proof near the point of a solution, and writes it. All other results are on disk: a signal ends the
    /// process at once.
    pub fn prove(
        self,
        ctx: &Context,
        problem: &Problem,
        solution: &Solution,
        options: &SolverOptions,
    ) -> Result<Certified> {
        let start = Instant::now();
        let mut certificate = certify(ctx, &self.program, problem, &solution.point)?;
        for side in Side::both(solution, options) {
            side.add_outlook(&mut certificate, solution.termination);
        }
        if let Some(proof) = &certificate.proof {
            in_mode(Mode::Writing, || write_text(&self.path, &proof.text()))?;
        }
        Ok(Certified { certificate, path: self.path, seconds: start.elapsed().as_secs_f64() })
    }
}

/// A side of the program that gives a bound.
struct Side<'a> {
    name: &'static str,
    error: &'a Float,
    threshold: &'a Float,
    /// The end of a run that found this side without feasible points.
    infeasible: Termination,
}

impl<'a> Side<'a> {
    fn both(solution: &'a Solution, options: &'a SolverOptions) -> [Side<'a>; 2] {
        let dual = Side {
            name: "dual",
            error: &solution.quality.dual_error,
            threshold: &options.dual_error_threshold,
            infeasible: Termination::DualInfeasible,
        };
        let primal = Side {
            name: "primal",
            error: solution.quality.primal_error(),
            threshold: &options.primal_error_threshold,
            infeasible: Termination::PrimalInfeasible,
        };
        [dual, primal]
    }

    /// Adds to the reason for a missing bound whether another run may have it. Where it is proven that the side has no
    /// point, none does.
    fn add_outlook(&self, certificate: &mut Certificate, end: Termination) {
        let Certificate { proof, without_lower, without_upper } = certificate;
        let (is_empty, reason) = match self.infeasible {
            Termination::DualInfeasible => (proof.as_ref().is_some_and(|proof| proof.no_dual.is_some()), without_lower),
            _ => (proof.as_ref().is_some_and(|proof| proof.no_primal.is_some()), without_upper),
        };
        if let Some(reason) = reason.as_mut().filter(|_| !is_empty) {
            reason.push_str("; ");
            reason.push_str(&self.outlook(end));
        }
    }

    /// Whether another run may have the bound, as far as the end of this one shows it.
    fn outlook(&self, end: Termination) -> String {
        let Side { name, error, threshold, .. } = self;
        let is_feasible = error < threshold;
        let early = format!("the run ended with a {name} error of {error:.1e}, above its threshold of {threshold:.1e}");
        let unknown = format!("it is not known whether the {name} side has a strictly feasible point");
        match end {
            _ if end == self.infeasible => {
                format!("'{end}' is not proven: a proof requires a ray that is exact and in the interior of its cone")
            }
            Termination::PrecisionTooLow => {
                format!("{unknown}: if it has one, more bits may give the bound; if not, they do not")
            }
            Termination::PrimalInfeasible | Termination::DualInfeasible if !is_feasible => early,
            _ if !is_feasible => format!("{early}; a run that continues from there may give the bound"),
            _ => format!(
                "{unknown}: if it has one, smaller error thresholds may give the bound; if not, neither they nor more \
                 bits do"
            ),
        }
    }
}

/// The two ends of an interval, of which one may be missing, and the sides on which nothing is feasible.
fn bounds(proof: &Proof) -> String {
    let lower = proof.lower.as_ref().map_or(String::new(), |lower| format!("{} <= ", lower.shown(DIGITS)));
    let upper = proof.upper.as_ref().map_or(String::new(), |upper| format!(" <= {}", upper.shown(DIGITS)));
    let interval = format!("{lower}optimum{upper}");
    let parts = [
        (proof.lower.is_some() || proof.upper.is_some(), interval.as_str()),
        (proof.no_primal.is_some(), "no primal point is feasible"),
        (proof.no_dual.is_some(), "no dual point is feasible"),
    ];
    parts.into_iter().filter(|(is_proven, _)| *is_proven).map(|(_, text)| text).collect::<Vec<_>>().join(", ")
}

impl Certified {
    /// For the report.
    pub fn report(&self) -> Value {
        let Certificate { proof, without_lower, without_upper } = &self.certificate;
        let proof = proof.as_ref();
        json!({
            "file": proof.map(|_| &self.path),
            "lower_bound": proof.and_then(|proof| proof.lower.as_ref()).map(|lower| lower.shown(DIGITS)),
            "upper_bound": proof.and_then(|proof| proof.upper.as_ref()).map(|upper| upper.shown(DIGITS)),
            "primal_infeasible": proof.is_some_and(|proof| proof.no_primal.is_some()),
            "dual_infeasible": proof.is_some_and(|proof| proof.no_dual.is_some()),
            "without_lower_bound": without_lower,
            "without_upper_bound": without_upper,
            "seconds": self.seconds,
        })
    }

    /// Prints what is proven, and what is not and why.
    pub fn say(&self, session: &Session) -> Result<()> {
        let Certificate { proof, without_lower, without_upper } = &self.certificate;
        let missing = [("lower", without_lower), ("upper", without_upper)];
        let missing = missing.iter().filter_map(|(name, why)| Some((name, why.as_ref()?)));
        let missing = missing.map(|(name, why)| format!("no {name} bound: {why}")).collect::<Vec<_>>();
        match proof {
            None => Err(Error::verification(format!("no certificate was found; {}", missing.join("; ")))),
            Some(proof) => {
                session.say(&format!("{}: proven: {}", self.path.display(), bounds(proof)))?;
                missing.iter().try_for_each(|text| session.say(text))
            }
        }
    }
}

/// `sunzi verify sdp`.
pub fn check(session: &mut Session, config: &VerifySdp) -> Result<()> {
    let start = Instant::now();
    let program = read_exact_as(&config.input, input_format())?;
    let path = &config.certificate;
    let text = std::fs::read(path).map_err(|source| Error::Io { path: path.clone(), action: "read", source })?;
    let refused = |message: String| Error::Format { path: path.clone(), message };
    let text = String::from_utf8(text).map_err(|_| refused("the file is not text".into()))?;
    let proof = Proof::parse(&text).map_err(refused)?;
    let threads = match config.threads {
        Some(threads) => threads,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    verify(&program, &proof, threads)?;
    session.finish_report(&json!({
        "operation": "verify",
        "product": "sdp",
        "input": config.input,
        "certificate": path,
        "lower_bound": proof.lower.as_ref().map(|lower| lower.shown(DIGITS)),
        "upper_bound": proof.upper.as_ref().map(|upper| upper.shown(DIGITS)),
        "primal_infeasible": proof.no_primal.is_some(),
        "dual_infeasible": proof.no_dual.is_some(),
        "threads": threads,
        "seconds": start.elapsed().as_secs_f64(),
    }))?;
    session.say(&format!("{}: proven for {}: {}", path.display(), config.input.display(), bounds(&proof)))
}
