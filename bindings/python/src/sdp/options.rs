//! The choices of the solver, under SDPB's names.

use crate::argument::argument;
use crate::input::{Bits, scalar};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rug::Float;
use sunzi_sdp::SolverOptions;

/// Bits of numbers that are options.
const OPTION_BITS: u32 = 256;

/// Sets an option to the chosen value.
type Setting = Box<dyn FnOnce(&mut SolverOptions) + Send>;

/// The choices of a caller.
pub struct CallerChoices(Vec<Setting>);

/// The field that a name stands for.
enum Field {
    Flag(fn(&mut SolverOptions, bool)),
    Count(fn(&mut SolverOptions, u64)),
    Number(fn(&mut SolverOptions, Float)),
}

/// All names.
const FIELDS: &[(&str, Field)] = &[
    ("findPrimalFeasible", Field::Flag(|options, value| options.find_primal_feasible = value)),
    ("findDualFeasible", Field::Flag(|options, value| options.find_dual_feasible = value)),
    ("detectPrimalFeasibleJump", Field::Flag(|options, value| options.detect_primal_feasible_jump = value)),
    ("detectDualFeasibleJump", Field::Flag(|options, value| options.detect_dual_feasible_jump = value)),
    ("ramp", Field::Flag(|options, value| options.ramp = value)),
    ("maxIterations", Field::Count(|options, value| options.max_iterations = value)),
    ("maxRuntime", Field::Count(|options, value| options.max_runtime = value)),
    ("dualityGapThreshold", Field::Number(|options, value| options.duality_gap_threshold = value)),
    ("primalErrorThreshold", Field::Number(|options, value| options.primal_error_threshold = value)),
    ("dualErrorThreshold", Field::Number(|options, value| options.dual_error_threshold = value)),
    ("initialMatrixScalePrimal", Field::Number(|options, value| options.initial_matrix_scale_primal = value)),
    ("initialMatrixScaleDual", Field::Number(|options, value| options.initial_matrix_scale_dual = value)),
    ("feasibleCenteringParameter", Field::Number(|options, value| options.feasible_centering_parameter = value)),
    ("infeasibleCenteringParameter", Field::Number(|options, value| options.infeasible_centering_parameter = value)),
    ("stepLengthReduction", Field::Number(|options, value| options.step_length_reduction = value)),
    ("minPrimalStep", Field::Number(|options, value| options.min_primal_step = value)),
    ("minDualStep", Field::Number(|options, value| options.min_dual_step = value)),
    ("maxComplementarity", Field::Number(|options, value| options.max_complementarity = value)),
    ("infeasibilityThreshold", Field::Number(|options, value| options.infeasibility_threshold = value)),
    ("lowerBound", Field::Number(|options, value| options.lower_bound = Some(value))),
    ("upperBound", Field::Number(|options, value| options.upper_bound = Some(value))),
];

impl CallerChoices {
    /// Reads a dictionary of them.
    ///
    /// # Errors
    /// `TypeError` that lists the names for one that is unknown, and for values of a wrong type; `ValueError`.
    pub fn of(options: &Bound<'_, PyDict>) -> PyResult<CallerChoices> {
        let mut chosen = Vec::<Setting>::new();
        for (name, value) in options {
            let name = name.extract::<String>()?;
            let Some((known, field)) = FIELDS.iter().find(|(known, _)| *known == name) else {
                let names = FIELDS.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
                return Err(PyTypeError::new_err(format!("there is no option '{name}'; use one of {names}")));
            };
            if value.is_none() {
                continue;
            }
            match *field {
                Field::Flag(set) => {
                    let value = argument::<bool>(known, &value)?;
                    chosen.push(Box::new(move |options| set(options, value)));
                }
                Field::Count(set) => {
                    let value = argument::<u64>(known, &value)?;
                    chosen.push(Box::new(move |options| set(options, value)));
                }
                Field::Number(set) => {
                    let Some(value) = scalar(Some(&value), known, Bits::Round(OPTION_BITS))? else { continue };
                    chosen.push(Box::new(move |options| set(options, value)));
                }
            }
        }
        Ok(CallerChoices(chosen))
    }

    /// The options with these choices.
    pub fn apply(self, mut options: SolverOptions) -> SolverOptions {
        // It is not reported here.
        options.measures_centre = false;
        self.0.into_iter().for_each(|set| set(&mut options));
        options
    }
}
