//! Links OpenBLAS when the feature `blas` is on, compiles the kernels of devices for the host, and copies kernels for
//! the tests that run them on a model of their instructions.
//!
//! `OPENBLAS_LIB_DIR` names a folder to search first.

use std::path::{Path, PathBuf};
use std::{env, fs};

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
    copy_kernels_for_the_model();
    copy_lanes_for_avx2();
}

/// The kernels that `src/kernels/on_model` includes in tests: on a model of the instructions that they are written in.
fn copy_kernels_for_the_model() {
    let to = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo names it")).join("on_model");
    for (from, name) in [("src/kernels/x86_64/ifma52", "ifma52"), ("src/kernels/digit_sums", "digit_sums")] {
        println!("cargo:rerun-if-changed={from}");
        copy_for_the_model(Path::new(from), &to.join(name));
    }
    fs::write(to.join("kernels.rs"), "pub mod digit_sums;\npub mod ifma52;\n").expect("the folder is written to");
}

/// Copies a folder of kernels; lines keep their numbers.
fn copy_for_the_model(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the folder is written to");
    for entry in fs::read_dir(from).expect("the folder of the kernel").flatten() {
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_for_the_model(&path, &copy);
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        let text = text
            .replace("std::arch::x86_64", "crate::kernels::on_model::avx512")
            .replace("crate::kernels::x86_64::", "crate::kernels::on_model::")
            .replace("target_arch = \"x86_64\"", "test");
        let is_native = |line: &&str| line.trim_start().starts_with("#[target_feature(");
        let lines = text.lines().map(|line| if is_native(&line) { "" } else { line });
        fs::write(copy, lines.flat_map(|line| [line, "\n"]).collect::<String>()).expect("the folder is written to");
    }
}

/// The kernels of eight problems side by side that `src/kernels/x86_64/on_avx2` includes: on vectors of its own, with
/// its own products of digits and its own ways from limbs to digits and back.
fn copy_lanes_for_avx2() {
    let from = Path::new("src/kernels/x86_64/ifma52");
    let to = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo names it")).join("on_avx2");
    let lanes = ["mod", "factor", "numbers", "pivots", "products", "remainder", "solve", "tests"];
    let lanes = lanes.map(|name| format!("problem_lanes/{name}.rs"));
    let others = ["row_lanes/round.rs", "factor/weights.rs"].map(str::to_string);
    for file in lanes.iter().chain(&others) {
        let (path, copy) = (from.join(file), to.join(file));
        println!("cargo:rerun-if-changed={}", path.display());
        let mut text = fs::read_to_string(&path).expect("a source file");
        for own in ["columns", "cut", "sums"] {
            text = text.replace(&format!("\nmod {own};"), &format!("\nuse crate::kernels::x86_64::on_avx2::{own};"));
        }
        let text = text
            .replace("std::arch::x86_64", "crate::kernels::x86_64::on_avx2::vectors")
            .replace("crate::kernels::x86_64::cpu", "crate::kernels::x86_64::on_avx2::cpu")
            .replace("crate::kernels::x86_64::ifma52::", "crate::kernels::x86_64::on_avx2::");
        let is_native = |line: &str| line.trim_start().starts_with("#[target_feature(");
        let lines =
            text.lines().map(|line| if is_native(line) { "#[target_feature(enable = \"avx2,fma\")]" } else { line });
        fs::create_dir_all(copy.parent().expect("a folder")).expect("the folder is written to");
        fs::write(copy, lines.flat_map(|line| [line, "\n"]).collect::<String>()).expect("the folder is written to");
    }
    let rooms = "mod factor;\npub mod problem_lanes;\nmod row_lanes;\n";
    fs::write(to.join("kernels.rs"), rooms).expect("the folder is written to");
    fs::write(to.join("factor/mod.rs"), "#[allow(dead_code)] // the rest is for other kernels\npub mod weights;\n")
        .expect("the folder is written to");
    let own = "use super::problem_lanes::numbers::{DIGIT_BITS, MASK, load, store};\npub mod round;\n";
    fs::write(to.join("row_lanes/mod.rs"), own).expect("the folder is written to");
}

/// The kernels of devices, compiled as C: what the software device runs.
fn compile_device_kernels() {
    let folder = Path::new("src/kernels/device/cu");
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).expect("the folder of the kernels").flatten();
    let is_kernel = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "cu");
    let mut files = entries.map(|entry| entry.path()).filter(is_kernel).collect::<Vec<_>>();
    files.sort();
    let mut build = cc::Build::new();
    // Files that end in `.cu` are no C to the compiler unless it is told so.
    build.flag("-xc").flag("-std=c11").opt_level(3).warnings(true).extra_warnings(true);
    build.files(files).compile("sunzi_device_kernels");
}
