//! The state of a control on this host: whether programs can choose it, and what holds it.

use std::path::PathBuf;

use super::pin;
use crate::control::Control;

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The state of a control on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadState {
    /// The kernel does not know the control.
    Absent,
    /// Programs can choose the control, because a process holds it or it is the kernel's own.
    Available,
    /// Programs can choose the control until it is unloaded, because the file at this path holds it.
    Kept(PathBuf),
}

impl LoadState {
    /// Returns the end of an error message: the holder of the control, and how to end it. It is empty if no process or
    /// file holds the control.
    pub(super) fn holder(&self) -> String {
        match self {
            LoadState::Absent => String::new(),
            LoadState::Available => {
                ": a running `landspeed cc load`, or an agent for its session, holds it; end that with Ctrl-C"
                    .to_owned()
            }
            LoadState::Kept(path) => {
                format!(": {} holds it; `landspeed cc unload` ends that", path.display())
            }
        }
    }
}

/// Returns the state of control `row` on this host.
pub fn state(row: &Control) -> LoadState {
    if let Some(path) = pin::path(row) {
        return LoadState::Kept(path);
    }
    let is_there = available().iter().any(|name| name == row.kernel_name);
    if is_there { LoadState::Available } else { LoadState::Absent }
}

/// Returns the names that `TCP_CONGESTION` accepts on this host now. The list is empty if it cannot be read from the
/// kernel.
pub fn available() -> Vec<String> {
    let names = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}
