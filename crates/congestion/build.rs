//! Compiles every congestion control twice from the same C source: for this machine, into a library.

use std::path::{Path, PathBuf};

const ALGORITHMS: &str = "src/algorithms";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=c");
    println!("cargo:rerun-if-changed={ALGORITHMS}");
    let mut native = cc::Build::new();
    native.include("c").std("gnu11").opt_level(2).warnings_into_errors(true);
    // Sequence numbers and clocks wrap; so does the BPF machine.
    native.flag("-fwrapv");
    native.files(sources()).compile("landspeed_congestion");
}

/// `src/algorithms/NAME/NAME.c`, by name.
fn sources() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(ALGORITHMS).unwrap_or_else(|e| panic!("cannot list {ALGORITHMS}: {e}"));
    let folders = entries.filter_map(Result::ok).filter(|entry| entry.path().is_dir());
    let mut sources: Vec<_> = folders.map(|folder| source_in(&folder.path())).collect();
    sources.sort();
    sources
}

fn source_in(folder: &Path) -> PathBuf {
    let name = folder.file_name().expect("a folder has a name");
    folder.join(name).with_extension("c")
}
