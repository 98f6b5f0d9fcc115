//! What `sunzi bench` is to time: operation, size, rivals, and which options belong to which operation.

use super::{Command, precision, size, window};
use crate::args::RawBench;
use sunzi::comm::window::WindowKind;
use sunzi::error::{Error, Result};
use sunzi_lab::baselines::Operation;
use sunzi_lab::bench::{Bench, BenchKernel};
use sunzi_lab::engine::check_reach;
use sunzi_lab::units::parse_count;

impl RawBench {
    /// Refuses the options of operations on big floats, for `what`, which has none of them.
    pub(super) fn refuse_extras(&self, what: &str) -> Result<()> {
        let extras = [
            ("--precision", self.precision.is_some()),
            ("--rivals", self.rivals.iter().any(|name| !name.is_empty())),
            ("--self-check", self.self_check),
            ("--memory-parts", !self.memory_parts.is_empty()),
            ("--window", window(&self.window)? != WindowKind::Auto),
        ];
        match extras.iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(Error::InvalidArgument(format!("{name} does not belong to {what}"))),
            None => Ok(()),
        }
    }

    pub(super) fn resolve(mut self) -> Result<Command> {
        let engine = std::mem::take(&mut self.engine).resolve()?;
        let runs = size("--runs", &self.runs)?;
        if !(1..=1000).contains(&runs) {
            return Err(Error::InvalidArgument(format!("--runs: {runs} runs: choose 1 to 1000")));
        }
        let given = |what: &str, text: &Option<String>, default: usize| match text {
            Some(text) => size(what, text),
            None => Ok(default),
        };
        let tile_rows = self.tile.as_deref().map(|text| size("--tile", text)).transpose()?;
        if tile_rows.is_some() && self.operation != "cholesky" {
            return Err(Error::InvalidArgument(format!("--tile belongs to cholesky, not to {}", self.operation)));
        }
        if self.double.is_chosen(&self.operation)? {
            return self.resolve_double(tile_rows, runs, engine);
        }
        if self.operation == "kernel" {
            engine.refuse_devices("a plane product to time (sunzi gpu-check times those of devices)")?;
            self.refuse_extras("kernel")?;
            let (rows, cols) = (given("--rows", &self.rows, 4096)?, given("--cols", &self.cols, 960)?);
            return Ok(Command::BenchKernel(BenchKernel { rows, cols, runs, engine }));
        }
        let operation = operation(&self.operation)?;
        let is_product = matches!(operation, Operation::Syrk | Operation::Gemm);
        if self.self_check && !is_product {
            return Err(Error::InvalidArgument(format!(
                "--self-check belongs to products, not to {}",
                operation.name()
            )));
        }
        let rows = given("--rows", &self.rows, if is_product { 4000 } else { 1000 })?;
        let cols = match operation {
            Operation::Syrk | Operation::Gemm => given("--cols", &self.cols, 1000)?,
            Operation::Cholesky | Operation::Trsm => given("--cols", &self.cols, rows)?,
            Operation::Solve => given("--cols", &self.cols, 1)?,
        };
        if operation == Operation::Cholesky && cols != rows {
            return Err(Error::InvalidArgument(format!("--cols: a matrix to factor is square, not {rows} x {cols}")));
        }
        let precision_bits = self.precision.as_deref().map_or(Ok(1024), |text| precision("--precision", text))?;
        check_reach(precision_bits, engine.kernel)?;
        let rivals = self.rivals.into_iter().filter(|name| !name.is_empty()).collect();
        let part = |text: &String| match parse_count("--memory-parts", text)? {
            0 => Err(Error::InvalidArgument("--memory-parts: 0 is no part: choose 1 or more".into())),
            part => Ok(part),
        };
        let memory_parts = self.memory_parts.iter().map(part).collect::<Result<Vec<_>>>()?;
        if !memory_parts.is_empty() && operation != Operation::Syrk {
            let message = format!("--memory-parts belongs to syrk, not to {}", operation.name());
            return Err(Error::InvalidArgument(message));
        }
        let (self_check, window) = (self.self_check, window(&self.window)?);
        Ok(Command::Bench(Bench {
            operation,
            rows,
            cols,
            precision_bits,
            rivals,
            runs,
            self_check,
            tile_rows,
            memory_parts,
            window,
            engine,
        }))
    }
}

fn operation(name: &str) -> Result<Operation> {
    let all = [Operation::Syrk, Operation::Gemm, Operation::Cholesky, Operation::Trsm, Operation::Solve];
    let names = all.map(Operation::name).join(", ");
    let found = all.into_iter().find(|operation| operation.name() == name);
    found.ok_or_else(|| Error::InvalidArgument(format!("unknown operation '{name}': choose one of {names}, kernel")))
}
