//! The description of a congestion control.

use crate::native::CongestionOps;

/// One congestion control: a row of [`crate::CONTROLS`].
#[derive(Debug)]
pub struct Control {
    /// The name in landspeed, such as "bic". The folder and the C source have the same name. It never begins with
    /// `ls_`.
    pub name: &'static str,
    /// The name for `TCP_CONGESTION`. Ours begin with `ls_`, so that they do not clash with the kernel's.
    pub kernel_name: &'static str,
    /// The name in the literature.
    pub title: &'static str,
    /// The name in tables: the usual short form of the title.
    pub short: &'static str,
    /// One sentence about what the control does.
    pub about: &'static str,
    /// The publication.
    pub source: &'static str,
    /// The control's constants, each with its place in the source.
    pub parameters: &'static [ControlParameter],
    /// Where and why our code departs from the source; empty if it does not.
    pub departures: &'static [&'static str],
    /// True if the control judges one-way delays and so works only if both ends send TCP timestamps.
    pub needs_timestamps: bool,
    /// True if the control sets its own window and pacing rate: call its `cong_control`, not its `cong_avoid`.
    pub is_rate_based: bool,
    /// The control compiled for BPF; `None` for the kernel's own controls, whose source here is for the simulator.
    pub(crate) object: Option<&'static [u8]>,
    pub(crate) ops: &'static CongestionOps,
}

impl Control {
    /// Returns true if the kernel has this control itself. The C source here is then for the simulator only and is
    /// never loaded.
    pub fn is_kernels(&self) -> bool {
        self.object.is_none()
    }
}

/// A constant of a control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlParameter {
    pub symbol: &'static str,
    /// The value, with the unit.
    pub value: &'static str,
    /// The section, equation or table of the source that gives it.
    pub from: &'static str,
}
