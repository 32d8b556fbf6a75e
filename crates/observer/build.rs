//! Compiles the path tracer's BPF programs into `OUT_DIR`.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=src/path/bpf");
    println!("cargo:rerun-if-changed=build.rs");
    landspeed_bpf_build::compile(Path::new("src/path/bpf/path.bpf.c"), "path", &[]);
}
