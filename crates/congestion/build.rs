//! Compiles every congestion control twice from the same C source: for this machine, into a library, and for BPF,
//! into `OUT_DIR`.

use std::path::{Path, PathBuf};

const ALGORITHMS: &str = "src/algorithms";

/// The controls that the kernel has itself. They are compiled for the simulator only.
const KERNELS: &[&str] = &["bbr", "cubic", "reno"];

/// The compiler flag that makes signed overflow wrap, as arithmetic with sequence numbers and clocks needs.
const WRAPS: &str = "-fwrapv";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=c");
    println!("cargo:rerun-if-changed={ALGORITHMS}");
    let names = names();
    native(&names);
    for name in names.iter().filter(|name| !KERNELS.contains(&name.as_str())) {
        landspeed_bpf_build::compile(&source(name), name, &[WRAPS, "-I", "c", "-I", ALGORITHMS]);
    }
}

/// Returns the names of the folders of `src/algorithms`.
fn names() -> Vec<String> {
    let entries = std::fs::read_dir(ALGORITHMS).unwrap_or_else(|e| panic!("cannot list {ALGORITHMS}: {e}"));
    let folders = entries.filter_map(Result::ok).filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.filter_map(|folder| folder.file_name().into_string().ok()).collect();
    names.sort();
    names
}

fn source(name: &str) -> PathBuf {
    Path::new(ALGORITHMS).join(name).join(name).with_extension("c")
}

fn native(names: &[String]) {
    let mut native = cc::Build::new();
    native.include("c").include(ALGORITHMS).std("gnu11").opt_level(2).warnings_into_errors(true);
    native.flag(WRAPS).files(names.iter().map(|name| source(name))).compile("landspeed_congestion");
}
