//! Safe calls of the C sources that are compiled for this machine.
//!
//! A driver of a control must make the calls in the kernel's order (tcp_input.c):
//!
//! 1. `init` once, when the connection has its first RTT sample or the socket option is set.
//! 2. For each acknowledgement, after `snd_una`, `packets_out`, `delivered`, `srtt_us`, `rtt_min` and
//!    `tcp_mstamp` are up to date (tcp_ack): `pkts_acked`; then loss detection, which may change the state of recovery;
//!    then `cong_control` with the rate sample for rate-based controls, in every state, or `cong_avoid` for other
//!    controls, outside recovery only. In `Cwr` and `Recovery`, proportional rate reduction (RFC 6937) sets the
//!    window of other controls.
//! 3. On entering `Cwr` or `Recovery` (tcp_init_cwnd_reduction): `prior_cwnd = snd_cwnd`, `snd_ssthresh =
//!    ssthresh()`, then `set_state`. On leaving (tcp_end_cwnd_reduction): `snd_cwnd = snd_ssthresh` for
//!    controls that are not rate-based, `cwnd_event(CompleteCwr)`, `set_state(Open)`.
//! 4. On a timeout (tcp_enter_loss): `prior_cwnd`, `snd_ssthresh = ssthresh()`, `cwnd_event(Loss)`,
//!    `snd_cwnd = in flight + 1`, `snd_cwnd_cnt = 0`, then `set_state(Loss)`.
//! 5. When a reduction turns out to be needless: `snd_cwnd = undo_cwnd()`, and `snd_ssthresh` gets its earlier value.
//!    The simulator never undoes a reduction.
//! 6. `cwnd_event(TxStart)` when a packet is sent while none is in flight; `CwndRestart` after an idle time.

use std::ffi::c_void;
use std::fmt;

use crate::algorithms::CONTROLS;
use crate::control::Control;
use crate::ops::{CongestionOps, PacketCountCallback};
use crate::sock::{AckSample, CaState, CwndEvent, RateSample, Sock};

/// The error for a control that cannot run on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlRefusal {
    pub name: &'static str,
    /// The missing feature, and the remedy.
    pub reason: &'static str,
}

impl fmt::Display for ControlRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot run on this connection: {}", self.name, self.reason)
    }
}

impl std::error::Error for ControlRefusal {}

/// The reason why a control that judges one-way delays is refused if there are no TCP timestamps.
pub(crate) const NEEDS_TIMESTAMPS: &str = "it infers congestion from one-way delays, which only TCP timestamps \
                                           give; turn net.ipv4.tcp_timestamps on at both ends";

/// A congestion control compiled for this machine. All state is in the [`Sock`], so one `NativeControl` can be used
/// for any number of connections, on any threads.
#[derive(Debug, Clone, Copy)]
pub struct NativeControl {
    row: &'static Control,
}

/// Returns the control called `name` (with or without `ls_`); `None` if there is no such control.
pub fn native(name: &str) -> Option<NativeControl> {
    let row = CONTROLS.iter().find(|row| row.name == name || row.kernel_name == name)?;
    Some(NativeControl { row })
}

// SAFETY, for every call below: the C sources read and write only the connection and the sample that they are given,
// and both have the layout that the sources expect. The sources keep no pointer, never divide by zero, and have no
// state outside the connection (cc.h). So any `Sock` may be passed, whatever it holds.
impl NativeControl {
    pub fn row(self) -> &'static Control {
        self.row
    }

    /// Returns the control with another table of callbacks: from a different build of its source, or from a build of
    /// Linux's source. The memory of the control's description is never freed.
    ///
    /// # Safety
    /// `table` must point to a `struct tcp_congestion_ops` of `c/native.h` that lives as long as the program, and
    /// whose callbacks read and write nothing but the connection and the sample that they are given.
    pub unsafe fn with_table(self, table: *const c_void) -> Self {
        // SAFETY: the caller promises a valid table, and `CongestionOps` has that structure's layout.
        let ops = unsafe { &*table.cast::<CongestionOps>() };
        NativeControl { row: Box::leak(Box::new(Control { ops, ..*self.row })) }
    }

    /// Starts the control on a connection. Its private bytes are zeroed, as in the kernel, and then initialised.
    ///
    /// # Errors
    /// Returns an error if the control needs TCP timestamps and the connection has none.
    pub fn init(self, sk: &mut Sock) -> Result<(), ControlRefusal> {
        if self.row.needs_timestamps && !sk.has_timestamps() {
            return Err(ControlRefusal { name: self.row.name, reason: NEEDS_TIMESTAMPS });
        }
        sk.inner.icsk_ca_priv = Default::default();
        if let Some(init) = self.row.ops.init {
            // SAFETY: see above.
            unsafe { init(sk) }
        }
        Ok(())
    }

    /// Returns the new slow-start threshold, in packets, for a loss that has just been detected.
    pub fn ssthresh(self, sk: &mut Sock) -> u32 {
        self.ask(self.row.ops.ssthresh, sk).unwrap_or(sk.snd_ssthresh)
    }

    /// Reports to the control that `acked` packets were acknowledged outside recovery, up to sequence number `ack`.
    /// The control may let the window grow. Does nothing for rate-based controls.
    pub fn cong_avoid(self, sk: &mut Sock, ack: u32, acked: u32) {
        if let Some(call) = self.row.ops.cong_avoid {
            // SAFETY: see above.
            unsafe { call(sk, ack, acked) }
        }
    }

    /// Reports an acknowledgement to the control. It must be called in every state of recovery.
    pub fn pkts_acked(self, sk: &mut Sock, sample: &AckSample) {
        if let Some(call) = self.row.ops.pkts_acked {
            // SAFETY: see above.
            unsafe { call(sk, sample) }
        }
    }

    /// Changes the state of loss recovery. The control is called before [`Sock::ca_state`] changes, as in the
    /// kernel's tcp_set_ca_state.
    pub fn set_state(self, sk: &mut Sock, state: CaState) {
        if let Some(call) = self.row.ops.set_state {
            // SAFETY: see above.
            unsafe { call(sk, state as u8) }
        }
        sk.store_ca_state(state);
    }

    /// Reports an event to the control.
    pub fn cwnd_event(self, sk: &mut Sock, event: CwndEvent) {
        if let Some(call) = self.row.ops.cwnd_event {
            // SAFETY: see above.
            unsafe { call(sk, event as u32) }
        }
    }

    /// Returns the window, in packets, to restore after a reduction that turned out to be needless.
    pub fn undo_cwnd(self, sk: &mut Sock) -> u32 {
        self.ask(self.row.ops.undo_cwnd, sk).unwrap_or(sk.snd_cwnd)
    }

    /// Reports the rate sample of one acknowledgement, which ends at sequence number `ack`, to a rate-based control.
    /// The control sets its window and pacing rate. Does nothing for other controls. It must be called in every state
    /// of recovery.
    pub fn cong_control(self, sk: &mut Sock, ack: u32, sample: &RateSample) {
        if let Some(call) = self.row.ops.cong_control {
            // SAFETY: see above. The flags of tcp_input.c are 0, because none of our controls reads them.
            unsafe { call(sk, ack, 0, sample) }
        }
    }

    /// Returns the smallest number of packets in a burst: the control's value, or the kernel's default of two.
    pub fn min_tso_segs(self, sk: &mut Sock) -> u32 {
        self.ask(self.row.ops.min_tso_segs, sk).unwrap_or(2)
    }

    fn ask(self, call: Option<PacketCountCallback>, sk: &mut Sock) -> Option<u32> {
        // SAFETY: see above.
        call.map(|call| unsafe { call(sk) })
    }
}
