//! Shared parts of the lab tests: hosts that landspeed did not create, and their state as seen from outside.
//!
//! Everything here uses other tools (ip, ethtool, tc, sysctl, sshd), so that no test relies on landspeed's own reports.
#![allow(dead_code, unused_imports, unused_macros, reason = "each test file uses its part")]

pub(crate) mod bpf;
pub(crate) mod explained;
pub(crate) mod hosts;
#[path = "../../../../tests/mostly.rs"]
pub(crate) mod mostly;
pub(crate) mod ours;
pub(crate) mod schema;
pub(crate) mod snapshot;
pub(crate) mod terminal;

use std::fs::Permissions;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};

/// The binary under test.
pub(crate) const LANDSPEED: &str = env!("CARGO_BIN_EXE_landspeed");

/// Panics unless `landspeed-helpers`, which applications call, is beside the binary under test. Tests of the whole
/// workspace build it.
pub(crate) fn assert_helpers() {
    let helpers = std::path::Path::new(LANDSPEED).with_file_name("landspeed-helpers");
    assert!(helpers.exists(), "build it first: cargo build -p landspeed-helpers");
}

/// Ends a test, as skipped, if this process is not root.
macro_rules! needs_root {
    () => {
        if !$crate::support::root() {
            return;
        }
    };
}
pub(crate) use needs_root;

/// Ends a test, as skipped, if congestion controls cannot be loaded.
macro_rules! needs_controls {
    () => {
        if !$crate::support::loads_controls() {
            return;
        }
    };
}
pub(crate) use needs_controls;

/// Prints which test is skipped, and why.
pub(crate) fn skip(why: &str) {
    eprintln!("SKIP {}: {why}", std::thread::current().name().unwrap_or("a test"));
}

/// Returns true if this process is root; otherwise reports a skipped test.
pub(crate) fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip("needs root to make network namespaces");
    }
    root
}

/// Returns true if congestion controls can be loaded here; otherwise reports a skipped test.
pub(crate) fn loads_controls() -> bool {
    let (_, err) = text(&Command::new(LANDSPEED).args(["cc", "list"]).output().expect("landspeed runs"));
    let loads = root() && !err.contains("none can be loaded here");
    if !loads {
        skip(&err);
    }
    loads
}

/// Returns a pipe that takes no more until its reader has read.
pub(crate) fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut full) = std::io::pipe().expect("a pipe");
    let room = rustix::pipe::fcntl_getpipe_size(&full).expect("its size");
    full.write_all(&vec![b'.'; room]).expect("it has room for these");
    (reader, full)
}

/// A running `landspeed cc load`, killed on drop.
pub(crate) struct ControlHolder(pub(crate) Child);

impl ControlHolder {
    /// Loads `names`, and returns once all are reported as loaded.
    pub(crate) fn of(names: &[&str]) -> Self {
        let mut command = Command::new(LANDSPEED);
        command.args(["cc", "load"]).args(names).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("landspeed runs");
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        let holder = ControlHolder(child);
        for line in said.lines().take(names.len()) {
            let line = line.expect("a line");
            assert!(line.contains("is loaded"), "{line}");
        }
        holder
    }
}

impl Drop for ControlHolder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the names that `TCP_CONGESTION` accepts, as the kernel lists them.
pub(crate) fn controls_in_kernel() -> Vec<String> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let names = std::fs::read_to_string(path).expect("a Linux kernel");
    names.split_whitespace().map(str::to_owned).collect()
}

/// Returns a folder in which any user may write.
pub(crate) fn for_anybody() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("it is ours");
    folder
}

/// Runs a command to its end; panics with its output if it fails.
pub(crate) fn sh(command: &str) -> String {
    let output = output(command);
    assert!(
        output.status.success(),
        "{command}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn output(command: &str) -> Output {
    Command::new("bash").args(["-c", command]).output().expect("bash runs")
}

/// Returns standard output and standard error. The sentence on a busy machine is left out, because tests that run in
/// parallel make the machine busy.
pub(crate) fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), without_busy(&text(&output.stderr)))
}

/// Returns lines without the sentence on a busy machine.
pub(crate) fn without_busy(said: &str) -> String {
    said.split_inclusive('\n')
        .filter(|line| !line.contains(": the result will be about the scheduler"))
        .collect()
}
