//! Reports of calls: time by phase, memory, kernel, devices.
//!
//! In one process all forms of a verb with options return a report: `verb_with` together with the result
//! ([`Outcome`](crate::Outcome)), `verb_into` for a result in the caller's memory. Seconds are wall-clock seconds
//! unless a field states otherwise, and `planned_bytes` are the bytes that the plan allows, including the result and
//! excluding the operands. Reports implement `Serialize` of the crate serde.
//!
//! ```
//! use sunzi::{Context, GemmOptions, Matrix};
//! let ctx = Context::new()?;
//! let a = Matrix::identity(20, 256)?;
//! let report = sunzi::gemm_with(&ctx, &a, &a, 256, &GemmOptions::new())?.report;
//! assert_eq!((report.operation, report.rows, report.cols), ("gemm", 20, 20));
//! assert!(report.planned_bytes >= Matrix::bytes_for(20, 20, 256));
//! println!("{} on {} threads in {} s", report.kernel, report.threads, report.seconds);
//! # Ok::<(), sunzi::Error>(())
//! ```

pub use crate::ops::device::{DeviceReport, DeviceSeconds};
pub use crate::ops::{
    BatchReport, CholeskyReport, EigenvalueReport, LuReport, RefineReport, SolveReport, VectorReport,
};
pub use crate::ops::{Path, Phases, Report, Span, TaskKind, TaskTimes};
