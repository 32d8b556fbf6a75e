//! Compiles two BPF programs into `OUT_DIR`: `bytes` counts the bytes of sockets, and `ends` looks sockets up.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for (source, name) in [("src/bytes/bytes.bpf.c", "bytes"), ("src/local/ends.bpf.c", "ends")] {
        println!("cargo:rerun-if-changed={source}");
        landspeed_bpf_build::compile(Path::new(source), name, &[]);
    }
}
