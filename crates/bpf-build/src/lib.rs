//! Compiles BPF objects from C sources with clang, for build scripts.
//!
//! This crate has no dependencies. The alternative, libbpf-cargo, would add forty crates to the build and build libbpf
//! twice (docs/decisions/0008).

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles `source` into `OUT_DIR/NAME.bpf.o`, with the additional clang arguments `more`. The crate whose build
/// script calls this function must depend on libbpf-sys, because libbpf-sys passes the path of libbpf's headers to the
/// build scripts of the crates that depend on it.
///
/// # Panics
/// Panics if clang is missing or rejects the source, so that the build ends with clang's message.
pub fn compile(source: &Path, name: &str, more: &[&str]) {
    let object = PathBuf::from(of("OUT_DIR")).join(format!("{name}.bpf.o"));
    let arch = match of("CARGO_CFG_TARGET_ARCH").to_string_lossy().as_ref() {
        "x86_64" => "x86".to_owned(),
        "aarch64" => "arm64".to_owned(),
        other => other.to_owned(),
    };
    // -g emits the types that maps and CO-RE need; v3 has 32-bit jumps and arithmetic (Linux 5.1).
    let mut clang = Command::new("clang");
    clang.args(["--target=bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-fno-stack-protector"]);
    // libbpf-sys sets DEP_BPF_INCLUDE to the folder in which it installed its headers.
    clang.arg(format!("-D__TARGET_ARCH_{arch}")).arg("-I").arg(of("DEP_BPF_INCLUDE"));
    clang.args(more).arg("-c").arg(source).arg("-o").arg(object);
    match clang.status() {
        Ok(status) => assert!(status.success(), "clang cannot compile {}: {status}", source.display()),
        Err(error) => {
            panic!("cannot run clang, which compiles BPF programs ({error}); `make setup` installs it")
        }
    }
}

/// Returns the environment variable `name` of this build script, or panics if cargo did not set it. Cargo sets
/// `DEP_BPF_INCLUDE` only for a crate that depends on libbpf-sys directly.
fn of(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("cargo did not set {name}"))
}
