//! CUDA devices through `cudarc`, loaded at run time.
