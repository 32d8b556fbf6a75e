//! Compiles every congestion control twice from the same C source: for this machine, into a library, and for BPF,
//! into `OUT_DIR`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const ALGORITHMS: &str = "src/algorithms";

/// What the kernel has itself is built for the simulator only.
const KERNELS: &[&str] = &["bbr", "cubic", "reno"];

/// Sequence numbers and clocks wrap in signed arithmetic too, and no compiler may reckon that they do not.
const WRAPS: &str = "-fwrapv";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=c");
    println!("cargo:rerun-if-changed={ALGORITHMS}");
    let names = names();
    native(&names);
    for name in names.iter().filter(|name| !KERNELS.contains(&name.as_str())) {
        bpf(name);
    }
}

/// The folders of `src/algorithms`.
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

fn bpf(name: &str) {
    let of = |name: &str| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let object = PathBuf::from(of("OUT_DIR")).join(format!("{name}.bpf.o"));
    let arch = match of("CARGO_CFG_TARGET_ARCH").to_string_lossy().as_ref() {
        "x86_64" => "x86".to_owned(),
        "aarch64" => "arm64".to_owned(),
        other => other.to_owned(),
    };
    // -g gives the types for CO-RE; v3 has 32-bit jumps and arithmetic (Linux 5.1).
    let mut clang = Command::new("clang");
    clang.args(["--target=bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-fno-stack-protector", WRAPS]);
    // Set by libbpf-sys: where it installed its own headers.
    clang.arg(format!("-D__TARGET_ARCH_{arch}")).arg("-I").arg(of("DEP_BPF_INCLUDE"));
    clang.args(["-I", "c", "-I", ALGORITHMS]).arg("-c").arg(source(name)).arg("-o").arg(object);
    match clang.status() {
        Ok(status) => assert!(status.success(), "clang cannot compile {name}: {status}"),
        Err(error) => {
            panic!("cannot run clang, which compiles BPF programs ({error}); `make setup` installs it")
        }
    }
}
