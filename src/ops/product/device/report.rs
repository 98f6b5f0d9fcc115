//! The work of a device in a call.

use crate::device::{DeviceKind, Traffic};
use crate::error::Result;
use crate::ops::product::device::lane::Lane;
use crate::ops::product::device::timer::DeviceSeconds;
use crate::plan::DeviceCut;
use serde::Serialize;

/// The work of one device in one call.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DeviceReport {
    /// Name of the device, as given by its maker.
    pub name: String,
    /// `cuda`, `soft` or `host`.
    pub kind: DeviceKind,
    /// Number of the device among the devices of its kind.
    pub index: usize,
    /// Moduli assigned to the device.
    pub moduli: usize,
    /// Operand planes assigned to the device.
    pub planes: usize,
    /// Columns of a strip, rows of a chunk, moduli of a batch, ...
    pub cut: DeviceCut,
    /// Bytes allocated on it.
    pub device_bytes: u64,
    /// Multiply-adds of residue planes, including those on padding and outside a triangle.
    pub multiply_adds: u64,
    /// Bytes copied to and from the device.
    pub traffic: Traffic,
    /// Its own time.
    pub seconds: DeviceSeconds,
    /// Number of ranks of the machine that share the device; 1 if only this process uses it.
    pub ranks: usize,
}

impl DeviceReport {
    /// Of a lane that is done.
    pub(super) fn new(lane: &Lane, before: &Traffic) -> Result<DeviceReport> {
        let description = lane.device.description();
        let seconds = lane.seconds()?;
        Ok(DeviceReport {
            name: description.name,
            kind: description.kind,
            index: description.index,
            moduli: lane.moduli.len(),
            planes: lane.engine.planes(lane.moduli.clone()).len(),
            cut: lane.cut,
            device_bytes: lane.bytes,
            multiply_adds: lane.multiply_adds,
            traffic: lane.device.traffic().since(before),
            seconds,
            ranks: lane.ranks,
        })
    }
}
