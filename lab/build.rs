//! Links what the baselines need: OpenBLAS when the feature `blas` is on, or when FLINT was built with it; ScaLAPACK
//! when the feature `scalapack` is on.
//!
//! `OPENBLAS_LIB_DIR` names a folder to search first; `SCALAPACK_LIB` names the library where it has another name than
//! Debian's for Open MPI.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo:rerun-if-env-changed=OPENBLAS_LIB_DIR");
    println!("cargo:rerun-if-env-changed=SCALAPACK_LIB");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(flint_blas)");
    let flint_blas = flint_uses_blas();
    if flint_blas {
        println!("cargo:rustc-cfg=flint_blas");
    }
    if flint_blas || env::var_os("CARGO_FEATURE_BLAS").is_some() {
        if let Ok(dir) = env::var("OPENBLAS_LIB_DIR") {
            println!("cargo:rustc-link-search=native={dir}");
        }
        println!("cargo:rustc-link-lib=dylib=openblas");
    }
    if env::var_os("CARGO_FEATURE_SCALAPACK").is_some() {
        let name = env::var("SCALAPACK_LIB").unwrap_or_else(|_| "scalapack-openmpi".into());
        println!("cargo:rustc-link-lib=dylib={name}");
    }
}

/// Whether the FLINT that flint3-sys built calls BLAS, as its own header says.
fn flint_uses_blas() -> bool {
    let Some(folder) = env::var_os("DEP_FLINT_INCLUDE_DIR") else {
        return false;
    };
    let header = Path::new(&folder).join("flint").join("flint-config.h");
    let text = fs::read_to_string(header).unwrap_or_default();
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("#define") && words.next() == Some("FLINT_USES_BLAS")
    })
}
