//! Programs that are linked with the library find it by its name, wherever it lies.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librefrain_capture_memory.so");
}
