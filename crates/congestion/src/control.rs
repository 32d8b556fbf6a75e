//! What is known of a congestion control.

use crate::native::Ops;

/// One congestion control: a row of [`crate::CONTROLS`].
#[derive(Debug)]
pub struct Control {
    /// The name in landspeed: the folder and the C source, without a prefix.
    pub name: &'static str,
    /// The name for `TCP_CONGESTION`. Ours begin with `ls_`, so that they clash with none of the kernel's.
    pub kernel_name: &'static str,
    /// The name in the literature.
    pub title: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// Its constants, each with its place in the source.
    pub parameters: &'static [Parameter],
    /// Where our code departs from the source, and why; empty where it does not.
    pub departures: &'static [&'static str],
    /// It judges one-way delays and so works only where both ends send TCP timestamps.
    pub needs_timestamps: bool,
    /// It sets its own window and pacing rate: drive it by `cong_control`, not by `cong_avoid`.
    pub is_rate_based: bool,
    /// Compiled for BPF; none for the kernel's own controls, whose source here is for the simulator.
    pub(crate) object: Option<&'static [u8]>,
    pub(crate) ops: &'static Ops,
}

impl Control {
    /// The kernel has it: ours is for the simulator only and is never loaded.
    pub fn is_kernels(&self) -> bool {
        self.object.is_none()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    pub symbol: &'static str,
    /// Its value, with the unit.
    pub value: &'static str,
    /// The section, equation or table that gives it.
    pub from: &'static str,
}
