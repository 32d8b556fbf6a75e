//! The table of congestion controls. Each algorithm has a folder.

/// Returns a reference to the table of callbacks that `LS_CONTROL` defines in a control's C source.
macro_rules! source {
    ($name:ident) => {{
        unsafe extern "C" {
            static $name: crate::ops::CongestionOps;
        }
        // SAFETY: the control's C source defines this constant, with the layout of `CongestionOps`.
        unsafe { &$name }
    }};
}

/// Returns the bytes of the object file of a control compiled for BPF.
macro_rules! bpf {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))
    };
}

mod africa;
mod bbr;
mod bic;
mod cubic;
mod fast;
mod highspeed;
mod hstcp_lp;
mod htcp;
mod ltcp;
mod reno;
mod scalable;
mod veno;
mod westwood;

use crate::Control;

/// All congestion controls: those of the PFLDnet study, the two that it names as future work, later ones, and the
/// kernel's own.
pub static CONTROLS: &[&Control] = &[
    &highspeed::CONTROL,
    &scalable::CONTROL,
    &htcp::CONTROL,
    &bic::CONTROL,
    &fast::CONTROL,
    &ltcp::CONTROL,
    &hstcp_lp::CONTROL,
    &westwood::CONTROL,
    &africa::CONTROL,
    &veno::CONTROL,
    &reno::CONTROL,
    &cubic::CONTROL,
    &bbr::CONTROL,
];
