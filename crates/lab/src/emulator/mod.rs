//! Emulates a wide-area link between two network devices of one namespace: rate, delay, jitter, loss, reordering,
//! duplication and a bounded queue. Two threads of this process carry the frames. Loss and queueing are decided per
//! segment, not per superpacket.
//!
//! ```text
//!  link --> socket --> look --> fate of each segment --> line (a ring of bytes) --> socket --> link
//!           kernel's   frame,   path: size, queue,       and a second one for
//!           time       virtio   rate, loss, jitter       those held back
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `parameters` | every parameter: its name, values, default, how it is read and printed |
//! | `spec`, `text`, `value` | the parameters of a link, parsed and printed |
//! | `plan` | the parameters with files read and units converted |
//! | `numbers`, `trace` | files that parameters name |
//! | `path`, `pace`, `loss` | the fate of a segment: a state machine that gets the time as input |
//! | `ring` | memory for frames that are under way |
//! | `frame`, `ip`, `virtio`, `piece`, `split` | superpackets, segments cut out of them, ECN marks |
//! | `direction` | one direction, made of these: frames in, frames out; no sockets, no clocks |
//! | `socket`, `batch`, `clock`, `pump`, `threads` | the thread of a direction, and its system calls |
//! | `stats`, `samples`, `lateness` | what the link did, its queue over time, and its lateness |
//! | `link` | a running link, and the figures of each run |
//!
//! The threads belong to the process that started the link, and end with it, however it ends. The sockets receive only
//! frames of the two devices. The module `topology` creates those devices and their network namespace.
//!
//! Two threads can copy some Gb/s at MTU 1500 without segmentation offload. A higher rate cannot be emulated:
//! [`landspeed_record::WanStats`] then shows lateness and `missed_frames`. Read those values before you believe any
//! figures. A superpacket arrives when its last segment would, at most 1 ms after its first.

mod batch;
mod clock;
mod direction;
mod error;
mod frame;
mod ip;
mod lateness;
mod link;
mod loss;
mod numbers;
mod pace;
mod parameters;
mod path;
mod piece;
mod plan;
mod pump;
mod ring;
mod samples;
mod socket;
mod spec;
mod split;
mod stats;
mod text;
mod threads;
mod trace;
mod value;
mod virtio;

pub use error::{Error, WanSpecError};
use landspeed_kernel::netlink::in_throwaway;
pub use link::EmulatedLink;
pub use parameters::{Parameter, parameters};
use socket::PacketSocket;
pub use spec::WanSpec;

/// Checks that this user may carry frames on this machine, by opening a packet socket in a temporary namespace.
///
/// # Errors
/// Returns an error with the reason if this user may not.
pub(crate) fn can_carry() -> Result<(), String> {
    const LOOPBACK: u32 = 1;
    match in_throwaway(|| PacketSocket::receiving("lo", LOOPBACK)) {
        Err(e) => Err(format!("this kernel refuses a network namespace: {e}")),
        Ok(Err(e)) => Err(format!("a link in user space needs packet sockets (CAP_NET_RAW): {e}")),
        Ok(Ok(_)) => Ok(()),
    }
}
