//! What calls report of themselves: time by phase, memory, kernel, devices.

pub use crate::ops::device::{DeviceReport, DeviceSeconds};
pub use crate::ops::{BatchReport, CholeskyReport, EigenvalueReport, RefineReport, SolveReport, VectorReport};
pub use crate::ops::{Path, Phases, Report, Span, TaskKind, TaskTimes};
