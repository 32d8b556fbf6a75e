//! No control at all, for measurements.

use crate::native::Ops;
use crate::row::Row;

unsafe extern "C" {
    static ls_idle: Ops;
}

pub(super) static ROW: Row = Row {
    name: "idle",
    kernel_name: "ls_idle",
    title: "no control",
    about: "A window of 128 packets that stays, whatever is lost: what a call costs that does nothing.",
    source: "landspeed",
    parameters: &[],
    departures: &[],
    needs_timestamps: false,
    is_rate_based: false,
    object: Some(include_bytes!(concat!(env!("OUT_DIR"), "/idle.bpf.o"))),
    // SAFETY: idle.c defines it, a constant with the layout of `Ops`.
    ops: unsafe { &ls_idle },
};
