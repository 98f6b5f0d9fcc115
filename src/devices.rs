//! GPUs that calls run on, where the context has them ([`crate::ContextBuilder::devices`]).

#[doc(inline)]
pub use crate::device::{Device, cuda_devices, open_cuda};
