//! The table of callbacks by which a control's C source is called.

use std::ffi::c_char;
use std::fmt;

use crate::sock::{AckSample, RateSample, Sock};

pub(crate) type PacketCountCallback = unsafe extern "C" fn(*mut Sock) -> u32;

/// `struct tcp_congestion_ops` of `c/native.h`.
#[repr(C)]
pub(crate) struct CongestionOps {
    pub(crate) init: Option<unsafe extern "C" fn(*mut Sock)>,
    pub(crate) ssthresh: Option<PacketCountCallback>,
    pub(crate) cong_avoid: Option<unsafe extern "C" fn(*mut Sock, u32, u32)>,
    pub(crate) set_state: Option<unsafe extern "C" fn(*mut Sock, u8)>,
    pub(crate) cwnd_event: Option<unsafe extern "C" fn(*mut Sock, u32)>,
    pub(crate) pkts_acked: Option<unsafe extern "C" fn(*mut Sock, *const AckSample)>,
    pub(crate) min_tso_segs: Option<PacketCountCallback>,
    pub(crate) undo_cwnd: Option<PacketCountCallback>,
    pub(crate) cong_control: Option<unsafe extern "C" fn(*mut Sock, u32, i32, *const RateSample)>,
    flags: u32,
    name: [c_char; 16],
}

impl fmt::Debug for CongestionOps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CongestionOps").field("name", &self.name).finish_non_exhaustive()
    }
}
