//! Gives the shared library its name for the loader, which `make install` gives to the file as well.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsunzi.so.0");
    }
}
