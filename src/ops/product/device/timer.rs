//! Device seconds of the parts of a call, from events around them.

use crate::device::{Device, Event, Stream};
use crate::error::Result;
use serde::Serialize;

/// A part of a call whose device time is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimedPart {
    /// Conversion of digits to operand planes.
    ToResidues,
    /// Products of planes, with those reductions that do not overlap them.
    Product,
    /// Residues to integers.
    Reconstruct,
    /// Conversion of integers to big floats.
    Round,
}

/// Seconds measured by a device's clock, without copies and scaling, which overlap them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeviceSeconds {
    /// Conversion of digits to operand planes.
    pub to_residues: f64,
    /// Products of planes, with those reductions that do not overlap them.
    pub product: f64,
    /// Residues to integers.
    pub reconstruct: f64,
    /// Conversion of integers to big floats.
    pub round: f64,
    /// Time from the first copy to the device to the last copy from it.
    pub total: f64,
}

/// Intervals of the compute stream.
#[derive(Default)]
pub(super) struct Timer {
    open: Option<(TimedPart, Event)>,
    closed: Vec<(TimedPart, Event, Event)>,
    first: Option<Event>,
}

impl Timer {
    /// Begins with a call, whose first copies run on `stream`.
    pub fn begin(device: &dyn Device, stream: Stream) -> Result<Timer> {
        Ok(Timer { first: Some(device.record(stream)?), ..Timer::default() })
    }

    /// A part begins on the compute stream.
    pub fn start(&mut self, part: TimedPart, device: &dyn Device, compute: Stream) -> Result<()> {
        self.open = Some((part, device.record(compute)?));
        Ok(())
    }

    /// The part that began last ends.
    pub fn stop(&mut self, device: &dyn Device, compute: Stream) -> Result<()> {
        let (part, start) = self.open.take().expect("a part that began");
        self.closed.push((part, start, device.record(compute)?));
        Ok(())
    }

    /// Sums, once everything is done; the last copies run on `stream`.
    pub fn finish(&self, device: &dyn Device, stream: Stream) -> Result<DeviceSeconds> {
        let last = device.record(stream)?;
        device.synchronize(&last)?;
        let mut seconds = DeviceSeconds::default();
        if let Some(first) = &self.first {
            seconds.total = device.seconds_between(first, &last)?;
        }
        for (part, start, end) in &self.closed {
            let sum = match part {
                TimedPart::ToResidues => &mut seconds.to_residues,
                TimedPart::Product => &mut seconds.product,
                TimedPart::Reconstruct => &mut seconds.reconstruct,
                TimedPart::Round => &mut seconds.round,
            };
            *sum += device.seconds_between(start, end)?;
        }
        Ok(seconds)
    }
}
