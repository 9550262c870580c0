//! A tracer of the replay finds `refrain_instead` in the executable.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=refrain_instead");
}
