//! Compiles the BPF programs that count bytes into `OUT_DIR`.

use std::path::Path;

const SOURCE: &str = "src/bytes/bytes.bpf.c";

fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rerun-if-changed=build.rs");
    landspeed_bpf_build::compile(Path::new(SOURCE), "bytes", &[]);
}
