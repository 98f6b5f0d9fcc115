//! The choices of a run, with SDPB's names and defaults.
//!
//! Source: SDPB, `src/sdp_solve/Solver_Parameters`; for SDPA's files the defaults of SDPA-GMP's `param.sdpa`.

use crate::problem::Form;
use rug::Float;
use sunzi::{Error, Result};

/// Bits of numbers that are given as decimals.
const BITS: u32 = 256;

/// The options of the solver.
#[derive(Clone, Debug, PartialEq)]
pub struct SolverOptions {
    /// Whether to stop at a primal feasible point.
    pub find_primal_feasible: bool,
    /// Whether to stop at a dual feasible point.
    pub find_dual_feasible: bool,
    /// Whether to stop after a primal step of 1.
    pub detect_primal_feasible_jump: bool,
    /// Whether to stop after a dual step of 1.
    pub detect_dual_feasible_jump: bool,
    /// Iterations at most.
    pub max_iterations: u64,
    /// Seconds at most.
    pub max_runtime: u64,
    /// The gap below which a feasible point is optimal; like all thresholds it must be above 0.
    pub duality_gap_threshold: Float,
    /// The primal error below which a point is primal feasible.
    pub primal_error_threshold: Float,
    /// The dual error below which a point is dual feasible.
    pub dual_error_threshold: Float,
    /// The multiple of the identity at which X begins.
    pub initial_matrix_scale_primal: Float,
    /// The multiple of the identity at which Y begins.
    pub initial_matrix_scale_dual: Float,
    /// The smallest factor by which a step aims to reduce the complementarity at feasible points.
    pub feasible_centering_parameter: Float,
    /// The smallest factor by which a step aims to reduce the complementarity at other points.
    pub infeasible_centering_parameter: Float,
    /// The fraction of the distance to the boundary that a step takes.
    pub step_length_reduction: Float,
    /// Stop if a primal step is smaller than this.
    pub min_primal_step: Float,
    /// Stop if a dual step is smaller than this.
    pub min_dual_step: Float,
    /// Stop if the complementarity exceeds this.
    pub max_complementarity: Float,
    /// Stop if a ray proves, with at most this error, that no feasible point exists, or that the magnitudes of the
    /// entries of each feasible point sum to more than the inverse of this error. With 0 the test never stops a run. If
    /// the precision ends a run, a remark may mention that there may be no feasible point.
    pub infeasibility_threshold: Float,
    /// Stop if a point that is primal but not dual feasible has an objective of at most this: SDPA's lowerBound.
    pub lower_bound: Option<Float>,
    /// Stop if a point that is dual but not primal feasible has an objective of at least this: SDPA's upperBound.
    pub upper_bound: Option<Float>,
    /// Whether the first iterations use only as many bits as they need.
    pub ramp: bool,
    /// Whether iterations report their distance from the central path, which needs a product of each block of X and Y.
    pub measures_centre: bool,
}

fn decimal(text: &str) -> Float {
    Float::with_val(BITS, Float::parse(text).expect("a decimal"))
}

/// The error for a value that is no number, or that no point can meet.
fn refused(name: &str, value: &Float, wanted: &str) -> Error {
    Error::InvalidArgument(format!("{name} is {value:.6e}, but must be {wanted}"))
}

impl SolverOptions {
    /// Refuses thresholds that no point can be below.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the first of them.
    pub(crate) fn check(&self) -> Result<()> {
        let thresholds = [
            ("dualityGapThreshold", &self.duality_gap_threshold),
            ("primalErrorThreshold", &self.primal_error_threshold),
            ("dualErrorThreshold", &self.dual_error_threshold),
        ];
        if let Some((name, value)) = thresholds.into_iter().find(|(_, value)| value.is_nan() || **value <= 0) {
            return Err(refused(name, value, "above 0"));
        }
        let infeasibility = &self.infeasibility_threshold;
        match infeasibility.is_nan() || *infeasibility < 0 {
            true => Err(refused("infeasibilityThreshold", infeasibility, "at least 0 (0 never ends a run)")),
            false => Ok(()),
        }
    }

    /// The defaults for programs of this form.
    pub fn new(form: Form) -> SolverOptions {
        let sdpa = form == Form::Sdpa;
        let scale = decimal(if sdpa { "1e4" } else { "1e20" });
        SolverOptions {
            find_primal_feasible: false,
            find_dual_feasible: false,
            detect_primal_feasible_jump: false,
            detect_dual_feasible_jump: false,
            max_iterations: 500,
            max_runtime: u64::MAX,
            duality_gap_threshold: decimal("1e-30"),
            primal_error_threshold: decimal("1e-30"),
            dual_error_threshold: decimal("1e-30"),
            initial_matrix_scale_primal: scale.clone(),
            initial_matrix_scale_dual: scale,
            feasible_centering_parameter: decimal("0.1"),
            infeasible_centering_parameter: decimal("0.3"),
            step_length_reduction: decimal(if sdpa { "0.9" } else { "0.7" }),
            min_primal_step: Float::new(BITS),
            min_dual_step: Float::new(BITS),
            max_complementarity: decimal("1e100"),
            infeasibility_threshold: if sdpa { decimal("1e-20") } else { Float::new(BITS) },
            lower_bound: None,
            upper_bound: None,
            ramp: true,
            measures_centre: true,
        }
    }
}
