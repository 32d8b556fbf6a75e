//! Compiles the BPF programs that count bytes and look sockets up into `OUT_DIR`.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for (source, name) in [("src/bytes/bytes.bpf.c", "bytes"), ("src/local/ends.bpf.c", "ends")] {
        println!("cargo:rerun-if-changed={source}");
        landspeed_bpf_build::compile(Path::new(source), name, &[]);
    }
}
