//! The functions of the CUDA driver, cuBLAS and NVRTC that are called, looked up by name at run time.
//!
//! `cudarc` finds and opens the libraries and has the signatures, generated from the vendor's headers; every signature
//! below is compared with its own when this is compiled. Its functions are not called: they panic where a library or a
//! symbol is missing, and they return statuses as enums, which a newer library's unknown status would break.
//! All symbols are those that CUDA 12 and CUDA 13 share, so one build serves both.

use crate::error::{Error, Result};
use cudarc::{cublas, driver, nvrtc};
use std::ffi::{c_char, c_int, c_longlong, c_uchar, c_uint, c_void};
use std::sync::OnceLock;

pub(super) use cudarc::cublas::sys::{
    cublasComputeType_t, cublasDiagType_t, cublasFillMode_t, cublasGemmAlgo_t, cublasHandle_t, cublasMath_t,
    cublasOperation_t, cublasSideMode_t, cudaDataType, libraryPropertyType,
};
pub(super) use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction, CUmodule, CUstream, CUuuid,
};
pub(super) use cudarc::nvrtc::sys::nvrtcProgram;

/// Declares a struct of function pointers and how it is loaded. The functions of the first list return a status and
/// must have the parameters that `cudarc` has for the name on their right; those of the second list are taken as is.
macro_rules! table {
    (
        $(#[$doc:meta])* $table:ident from $module:ident, $title:literal;
        $status:ident { $($field:ident: $symbol:literal = $twin:ident($($argument:ty),* $(,)?);)* }
        plain { $($plain:ident: $plain_symbol:literal = ($($plain_argument:ty),*) -> $plain_result:ty;)* }
    ) => {
        $(#[$doc])*
        pub(super) struct $table {
            $(pub $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
            $(pub $plain: unsafe extern "C" fn($($plain_argument),*) -> $plain_result,)*
        }

        $(const _: unsafe fn($($argument),*) -> $module::sys::$status = $module::sys::$twin;)*

        impl $table {
            /// The table, loaded by the first call that finds the library.
            pub fn load() -> Result<&'static $table> {
                static LOADED: OnceLock<$table> = OnceLock::new();
                if let Some(table) = LOADED.get() {
                    return Ok(table);
                }
                // SAFETY: opening the vendor's library runs its initialisers, which have no preconditions; it is there
                // when `culib` is called, which would panic otherwise, and stays open for ever.
                let library = unsafe {
                    if !$module::sys::is_culib_present() {
                        return Err(absent($title));
                    }
                    $module::sys::culib()
                };
                let table = $table {
                    // SAFETY: the symbol has this signature, but for the status, an enum of four bytes in C.
                    $($field: *unsafe { library.get($symbol) }.map_err(|_| lacking($title, $symbol))?,)*
                    // SAFETY: as above, by the vendor's documentation.
                    $($plain: *unsafe { library.get($plain_symbol) }.map_err(|_| lacking($title, $plain_symbol))?,)*
                };
                Ok(LOADED.get_or_init(|| table))
            }
        }
    };
}

/// The error where a library is not found.
fn absent(title: &str) -> Error {
    let hint = match title {
        "CUDA driver" => "libcuda.so.1 was not found: this machine has no NVIDIA GPU, or its driver is not installed",
        _ => "install CUDA 12 or 13, with its libraries on the library search path (LD_LIBRARY_PATH)",
    };
    Error::NoDevice(format!("no {title}: {hint}"))
}

/// The error where a library is too old, or none of NVIDIA's.
fn lacking(title: &str, symbol: &[u8]) -> Error {
    let symbol = String::from_utf8_lossy(symbol);
    Error::NoDevice(format!("the installed {title} is too old: it has no {}", symbol.trim_end_matches('\0')))
}

table! {
    /// The driver. Streams, events, modules and contexts are opaque pointers.
    Driver from driver, "CUDA driver";
    CUresult {
        init: b"cuInit\0" = cuInit(c_uint);
        driver_get_version: b"cuDriverGetVersion\0" = cuDriverGetVersion(*mut c_int);
        device_get_count: b"cuDeviceGetCount\0" = cuDeviceGetCount(*mut c_int);
        device_get: b"cuDeviceGet\0" = cuDeviceGet(*mut CUdevice, c_int);
        device_get_name: b"cuDeviceGetName\0" = cuDeviceGetName(*mut c_char, c_int, CUdevice);
        device_total_mem: b"cuDeviceTotalMem_v2\0" = cuDeviceTotalMem_v2(*mut usize, CUdevice);
        device_get_attribute: b"cuDeviceGetAttribute\0" = cuDeviceGetAttribute(
            *mut c_int, CUdevice_attribute, CUdevice,
        );
        device_get_uuid: b"cuDeviceGetUuid_v2\0" = cuDeviceGetUuid_v2(*mut CUuuid, CUdevice);
        context_retain: b"cuDevicePrimaryCtxRetain\0" = cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
        context_release: b"cuDevicePrimaryCtxRelease_v2\0" = cuDevicePrimaryCtxRelease_v2(CUdevice);
        context_set_current: b"cuCtxSetCurrent\0" = cuCtxSetCurrent(CUcontext);
        context_synchronize: b"cuCtxSynchronize\0" = cuCtxSynchronize();
        mem_get_info: b"cuMemGetInfo_v2\0" = cuMemGetInfo_v2(*mut usize, *mut usize);
        mem_alloc: b"cuMemAlloc_v2\0" = cuMemAlloc_v2(*mut CUdeviceptr, usize);
        mem_free: b"cuMemFree_v2\0" = cuMemFree_v2(CUdeviceptr);
        mem_host_alloc: b"cuMemHostAlloc\0" = cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
        mem_free_host: b"cuMemFreeHost\0" = cuMemFreeHost(*mut c_void);
        copy_to_device: b"cuMemcpyHtoDAsync_v2\0" = cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
        copy_to_host: b"cuMemcpyDtoHAsync_v2\0" = cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
        copy_on_device: b"cuMemcpyDtoDAsync_v2\0" = cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream);
        set_bytes: b"cuMemsetD8Async\0" = cuMemsetD8Async(CUdeviceptr, c_uchar, usize, CUstream);
        set_rows: b"cuMemsetD2D8Async\0" = cuMemsetD2D8Async(CUdeviceptr, usize, c_uchar, usize, usize, CUstream);
        stream_create: b"cuStreamCreate\0" = cuStreamCreate(*mut CUstream, c_uint);
        stream_destroy: b"cuStreamDestroy_v2\0" = cuStreamDestroy_v2(CUstream);
        stream_query: b"cuStreamQuery\0" = cuStreamQuery(CUstream);
        stream_synchronize: b"cuStreamSynchronize\0" = cuStreamSynchronize(CUstream);
        stream_wait_event: b"cuStreamWaitEvent\0" = cuStreamWaitEvent(CUstream, CUevent, c_uint);
        event_create: b"cuEventCreate\0" = cuEventCreate(*mut CUevent, c_uint);
        event_destroy: b"cuEventDestroy_v2\0" = cuEventDestroy_v2(CUevent);
        event_record: b"cuEventRecord\0" = cuEventRecord(CUevent, CUstream);
        event_query: b"cuEventQuery\0" = cuEventQuery(CUevent);
        event_synchronize: b"cuEventSynchronize\0" = cuEventSynchronize(CUevent);
        // The name without a suffix is in every driver, the other one only since CUDA 12.8; both take the same
        // arguments.
        event_elapsed_time: b"cuEventElapsedTime\0" = cuEventElapsedTime_v2(*mut f32, CUevent, CUevent);
        module_load: b"cuModuleLoadData\0" = cuModuleLoadData(*mut CUmodule, *const c_void);
        module_unload: b"cuModuleUnload\0" = cuModuleUnload(CUmodule);
        module_get_function: b"cuModuleGetFunction\0" = cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
        launch_kernel: b"cuLaunchKernel\0" = cuLaunchKernel(
            CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void,
            *mut *mut c_void,
        );
    }
    plain {
        error_name: b"cuGetErrorName\0" = (c_int, *mut *const c_char) -> c_int;
        error_string: b"cuGetErrorString\0" = (c_int, *mut *const c_char) -> c_int;
    }
}

table! {
    /// cuBLAS.
    Blas from cublas, "cuBLAS library";
    cublasStatus_t {
        get_property: b"cublasGetProperty\0" = cublasGetProperty(libraryPropertyType, *mut c_int);
        create: b"cublasCreate_v2\0" = cublasCreate_v2(*mut cublasHandle_t);
        destroy: b"cublasDestroy_v2\0" = cublasDestroy_v2(cublasHandle_t);
        set_stream: b"cublasSetStream_v2\0" = cublasSetStream_v2(cublasHandle_t, cublas::sys::cudaStream_t);
        set_workspace: b"cublasSetWorkspace_v2\0" = cublasSetWorkspace_v2(cublasHandle_t, *mut c_void, usize);
        set_math_mode: b"cublasSetMathMode\0" = cublasSetMathMode(cublasHandle_t, cublasMath_t);
        dgemm: b"cublasDgemmStridedBatched\0" = cublasDgemmStridedBatched(
            cublasHandle_t, cublasOperation_t, cublasOperation_t, c_int, c_int, c_int, *const f64,
            *const f64, c_int, c_longlong, *const f64, c_int, c_longlong, *const f64, *mut f64, c_int, c_longlong,
            c_int,
        );
        gemm_ex: b"cublasGemmStridedBatchedEx\0" = cublasGemmStridedBatchedEx(
            cublasHandle_t, cublasOperation_t, cublasOperation_t, c_int, c_int, c_int, *const c_void,
            *const c_void, cudaDataType, c_int, c_longlong, *const c_void, cudaDataType, c_int, c_longlong,
            *const c_void, *mut c_void, cudaDataType, c_int, c_longlong, c_int, cublasComputeType_t, cublasGemmAlgo_t,
        );
        dtrsm: b"cublasDtrsm_v2\0" = cublasDtrsm_v2(
            cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, c_int, c_int,
            *const f64, *const f64, c_int, *mut f64, c_int,
        );
    }
    plain {
        status_name: b"cublasGetStatusName\0" = (c_int) -> *const c_char;
        status_string: b"cublasGetStatusString\0" = (c_int) -> *const c_char;
    }
}

table! {
    /// The compiler.
    Nvrtc from nvrtc, "NVRTC library";
    nvrtcResult {
        version: b"nvrtcVersion\0" = nvrtcVersion(*mut c_int, *mut c_int);
        architecture_count: b"nvrtcGetNumSupportedArchs\0" = nvrtcGetNumSupportedArchs(*mut c_int);
        architectures: b"nvrtcGetSupportedArchs\0" = nvrtcGetSupportedArchs(*mut c_int);
        create: b"nvrtcCreateProgram\0" = nvrtcCreateProgram(
            *mut nvrtcProgram, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char,
        );
        destroy: b"nvrtcDestroyProgram\0" = nvrtcDestroyProgram(*mut nvrtcProgram);
        compile: b"nvrtcCompileProgram\0" = nvrtcCompileProgram(nvrtcProgram, c_int, *const *const c_char);
        log_size: b"nvrtcGetProgramLogSize\0" = nvrtcGetProgramLogSize(nvrtcProgram, *mut usize);
        log: b"nvrtcGetProgramLog\0" = nvrtcGetProgramLog(nvrtcProgram, *mut c_char);
        cubin_size: b"nvrtcGetCUBINSize\0" = nvrtcGetCUBINSize(nvrtcProgram, *mut usize);
        cubin: b"nvrtcGetCUBIN\0" = nvrtcGetCUBIN(nvrtcProgram, *mut c_char);
        ptx_size: b"nvrtcGetPTXSize\0" = nvrtcGetPTXSize(nvrtcProgram, *mut usize);
        ptx: b"nvrtcGetPTX\0" = nvrtcGetPTX(nvrtcProgram, *mut c_char);
    }
    plain {
        error_string: b"nvrtcGetErrorString\0" = (c_int) -> *const c_char;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library that is found has every symbol of its table; one that is missing is an error that names it.
    #[test]
    fn what_is_found_is_complete() {
        let found: [(&str, Result<()>); 3] = [
            ("CUDA driver", Driver::load().map(drop)),
            ("cuBLAS", Blas::load().map(drop)),
            ("NVRTC", Nvrtc::load().map(drop)),
        ];
        for (title, result) in found {
            match result {
                Ok(()) => println!("{title}: complete"),
                Err(Error::NoDevice(message)) => {
                    println!("{message}");
                    assert!(message.starts_with(&format!("no {title}")), "{message}");
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}
