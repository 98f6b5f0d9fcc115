//! Links OpenBLAS when the feature `blas` is on; nothing else.
//!
//! `OPENBLAS_LIB_DIR` names a folder to search first.

fn main() {
    println!("cargo:rerun-if-env-changed=OPENBLAS_LIB_DIR");
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_BLAS").is_some() {
        if let Ok(dir) = std::env::var("OPENBLAS_LIB_DIR") {
            println!("cargo:rustc-link-search=native={dir}");
        }
        println!("cargo:rustc-link-lib=dylib=openblas");
    }
}
