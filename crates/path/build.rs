//! Compiles the BPF programs that count bytes into `OUT_DIR`; see docs/decisions/0008.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "src/bytes/bytes.bpf.c";

fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rerun-if-changed=build.rs");
    let of = |name: &str| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let object = PathBuf::from(of("OUT_DIR")).join("bytes.bpf.o");
    // Set by libbpf-sys: where it installed its own headers.
    let headers = of("DEP_BPF_INCLUDE");
    let arch = match of("CARGO_CFG_TARGET_ARCH").to_string_lossy().as_ref() {
        "x86_64" => "x86".to_owned(),
        "aarch64" => "arm64".to_owned(),
        other => other.to_owned(),
    };
    // -g gives the types of the maps; v3 has 32-bit jumps and arithmetic (Linux 5.1).
    let mut clang = Command::new("clang");
    clang.args(["--target=bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-fno-stack-protector"]);
    clang.arg(format!("-D__TARGET_ARCH_{arch}")).arg("-I").arg(headers);
    clang.args(["-c", SOURCE, "-o"]).arg(object);
    match clang.status() {
        Ok(status) => assert!(status.success(), "clang cannot compile {SOURCE}: {status}"),
        Err(error) => {
            panic!("cannot run clang, which compiles BPF programs ({error}); `make setup` installs it")
        }
    }
}
