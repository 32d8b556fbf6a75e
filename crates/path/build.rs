//! Compiles two BPF programs into `OUT_DIR`: the one that counts bytes and the one that looks sockets up.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for (source, name) in [("src/bytes/bytes.bpf.c", "bytes"), ("src/local/ends.bpf.c", "ends")] {
        println!("cargo:rerun-if-changed={source}");
        landspeed_bpf_build::compile(Path::new(source), name, &[]);
    }
}
