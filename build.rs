//! Links OpenBLAS when the feature `blas` is on, and compiles the kernels of devices for the host.
//!
//! `OPENBLAS_LIB_DIR` names a folder to search first.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo:rerun-if-env-changed=OPENBLAS_LIB_DIR");
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_BLAS").is_some() {
        if let Ok(dir) = env::var("OPENBLAS_LIB_DIR") {
            println!("cargo:rustc-link-search=native={dir}");
        }
        println!("cargo:rustc-link-lib=dylib=openblas");
    }
    compile_device_kernels();
}

/// The kernels of devices, compiled as C: what the software device runs.
fn compile_device_kernels() {
    let folder = Path::new("src/kernels/device/cu");
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).expect("the folder of the kernels").flatten();
    let is_kernel = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "cu");
    let mut files = entries.map(|entry| entry.path()).filter(is_kernel).collect::<Vec<_>>();
    files.sort();
    let mut build = cc::Build::new();
    // Files that end in `.cu` are no C to the compiler unless it is told so.
    build.flag("-xc").flag("-std=c11").opt_level(3).warnings(true).extra_warnings(true);
    build.files(files).compile("sunzi_device_kernels");
}
