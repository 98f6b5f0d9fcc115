//! The Python package `sunzi`: the library's functions on numbers of mpmath, gmpy2, python-flint, NumPy and Python.
//!
//! A function checks its operands (`input`), determines the precision (`call`), runs without the interpreter's lock
//! (`call`), and gives the result the form of the operands (`output`). `matrix` and `factor` are the classes that stay
//! in Rust. `unsafe` is only in `native`.

mod answers;
mod argument;
mod arithmetic;
mod assign;
mod ball_factor;
mod balls;
mod batches;
mod call;
mod choices;
mod collector;
mod context;
mod decimals;
mod elementwise;
mod errors;
mod factor;
mod factors;
mod files;
mod functions;
mod general;
mod index;
mod input;
mod kind;
mod ldlt;
mod lu;
mod matrix;
mod matrix_object;
mod measures;
mod native;
mod output;
mod packages;
mod ranks;
mod runner;
mod sdp;
mod signals;
mod stack;
mod structured;
mod symmetric;
mod text;
mod vectors;
mod verification;
mod view;

use pyo3::prelude::*;
use pyo3::types::PyModule;

/// Names of the kernels that this machine supports, in the order of preference.
#[pyfunction]
fn kernels() -> Vec<&'static str> {
    sunzi::advanced::kernels::available().into_iter().map(|kernel| kernel.name()).collect()
}

/// The native half of the package.
#[pymodule(gil_used = true)]
fn _sunzi(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<context::Context>()?;
    module.add_class::<matrix_object::Matrix>()?;
    module.add_class::<factor::Cholesky>()?;
    module.add_class::<ldlt::Ldlt>()?;
    module.add_class::<lu::Lu>()?;
    module.add_class::<ranks::Ranks>()?;
    module.add_class::<ranks::RankFactor>()?;
    errors::register(module)?;
    module.add_function(wrap_pyfunction!(kernels, module)?)?;
    module.add_function(wrap_pyfunction!(functions::syrk, module)?)?;
    module.add_function(wrap_pyfunction!(structured::weighted_gram, module)?)?;
    module.add_function(wrap_pyfunction!(functions::gemm, module)?)?;
    module.add_function(wrap_pyfunction!(functions::trsm, module)?)?;
    module.add_function(wrap_pyfunction!(functions::cholesky, module)?)?;
    module.add_function(wrap_pyfunction!(functions::solve, module)?)?;
    module.add_function(wrap_pyfunction!(functions::log_det, module)?)?;
    module.add_function(wrap_pyfunction!(batches::batch, module)?)?;
    module.add_function(wrap_pyfunction!(vectors::gemv, module)?)?;
    module.add_function(wrap_pyfunction!(vectors::symv, module)?)?;
    module.add_function(wrap_pyfunction!(vectors::trmv, module)?)?;
    module.add_function(wrap_pyfunction!(vectors::trsv, module)?)?;
    module.add_function(wrap_pyfunction!(vectors::ger, module)?)?;
    module.add_function(wrap_pyfunction!(vectors::axpy, module)?)?;
    module.add_function(wrap_pyfunction!(vectors::dot, module)?)?;
    module.add_function(wrap_pyfunction!(vectors::nrm2, module)?)?;
    module.add_function(wrap_pyfunction!(structured::trmm, module)?)?;
    module.add_function(wrap_pyfunction!(structured::symm, module)?)?;
    module.add_function(wrap_pyfunction!(structured::syr2k, module)?)?;
    module.add_function(wrap_pyfunction!(structured::eigenvalue, module)?)?;
    module.add_function(wrap_pyfunction!(elementwise::elementwise, module)?)?;
    module.add_function(wrap_pyfunction!(stack::joined, module)?)?;
    module.add_function(wrap_pyfunction!(stack::line, module)?)?;
    module.add_function(wrap_pyfunction!(stack::restored, module)?)?;
    module.add_function(wrap_pyfunction!(factors::ldlt, module)?)?;
    module.add_function(wrap_pyfunction!(lu::lu, module)?)?;
    module.add_function(wrap_pyfunction!(factors::inverse, module)?)?;
    module.add_function(wrap_pyfunction!(factors::det, module)?)?;
    module.add_function(wrap_pyfunction!(factors::condition, module)?)?;
    module.add_function(wrap_pyfunction!(measures::norm, module)?)?;
    module.add_function(wrap_pyfunction!(measures::trace, module)?)?;
    module.add_function(wrap_pyfunction!(measures::diagonal, module)?)?;
    module.add_function(wrap_pyfunction!(sdp::sdp_solve, module)?)?;
    module.add_function(wrap_pyfunction!(sdp::sdp_solve_file, module)?)?;
    module.add_function(wrap_pyfunction!(verification::verify, module)?)?;
    module.add_function(wrap_pyfunction!(functions::plan, module)?)
}
