//! GPUs that calls run on, if the context has some ([`crate::ContextBuilder::devices`]).
//!
//! [`cuda_devices`] lists the CUDA GPUs of the machine and [`open_cuda`] opens one. Both need the feature `cuda`, and
//! search for the driver and the libraries at run time; without feature, driver or GPU they return
//! [`Error::NoDevice`](crate::Error::NoDevice), which names the missing part. A context may have several devices, which
//! share the work of products and run the updates of factorisations; operations that a device does not support run on
//! the CPU. The bits of a result are the same with and without devices. docs/DEVICES.md lists what runs where.

#[doc(inline)]
pub use crate::device::{Device, DeviceAllocator, DeviceEvents, DeviceStatus, cuda_devices, open_cuda};
