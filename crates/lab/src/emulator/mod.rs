//! Emulates a wide-area link between two network devices of one namespace: rate, delay, jitter, loss, reordering,
//! duplication and a bounded queue. Two threads of this process carry the frames. Loss and queueing are decided per
//! segment, not per superpacket (GSO).
//!
//! ```text
//!  link --> socket   --> parse  --> fate of each segment --> line (a ring of bytes) --> socket --> link
//!           kernel's     frame,     path: size, queue,       a second ring for
//!           timestamp    virtio     rate, loss, jitter       segments that arrive later
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `parameters` | every parameter: its name, values, default, how it is read and printed |
//! | `spec`, `text`, `value` | the parameters of a link, parsed and printed |
//! | `plan` | the parameters with files read and units converted |
//! | `numbers`, `trace` | files that parameters name |
//! | `path`, `pace`, `loss` | the fate of a segment: a state machine that gets the time as input |
//! | `ring` | memory for frames in flight |
//! | `frame`, `ip`, `virtio`, `piece`, `split` | superpackets, segments cut out of them, ECN marks |
//! | `direction` | one direction, built from the modules above; no sockets, no clocks |
//! | `socket`, `batch`, `clock`, `pump`, `threads` | the thread of a direction, and its system calls |
//! | `stats`, `samples`, `lateness` | counters, samples of the queue, and how late frames left |
//! | `link` | a running link, and the statistics of each run |
//!
//! The threads belong to the process that started the link. They end when that process ends, even if it is killed. The
//! sockets receive only frames of the two devices. The module `topology` creates those devices and their network
//! namespace.
//!
//! Two threads can copy a few Gb/s at MTU 1500 without segmentation offload. At a higher rate, frames leave late or are
//! missed. [`landspeed_record::WanStats`] reports both, as lateness and `missed_frames`: check these values before you
//! use a measurement. The segments of a superpacket that stay together arrive at the time of the last one, at most 1 ms
//! after the time of the first.

mod batch;
mod clock;
mod cross;
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
pub use spec::{SECOND_RTT_DSCP, WanSpec};

/// Checks that this user can open a packet socket in a new network namespace, as an emulated link needs.
///
/// # Errors
/// Returns the reason if the kernel refuses the namespace or the socket.
pub(crate) fn can_carry() -> Result<(), String> {
    const LOOPBACK: u32 = 1;
    match in_throwaway(|| PacketSocket::receiving("lo", LOOPBACK)) {
        Err(e) => Err(format!("this kernel refuses a network namespace: {e}")),
        Ok(Err(e)) => Err(format!("a link in user space needs packet sockets (CAP_NET_RAW): {e}")),
        Ok(Ok(_)) => Ok(()),
    }
}
