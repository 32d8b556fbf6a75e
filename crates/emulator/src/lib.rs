//! A wide-area link: rate, delay, jitter, loss, reordering, duplication and a bounded queue between two links
//! of one network namespace. Two threads of this process carry it; they decide loss and queue by segment, not by
//! superpacket.
//!
//! ```text
//!  link --> socket --> look --> fate of each segment --> line (a ring of bytes) --> socket --> link
//!           kernel's   frame,   path: size, queue,       and a second one for
//!           time       virtio   rate, loss, jitter       those held back
//! ```
//!
//! | file | is |
//! |---|---|
//! | `parameters` | every parameter: its name, values, default, how it is read and printed |
//! | `spec`, `text`, `value` | what the link is to be, as written |
//! | `plan` | the same with files read and units worked out |
//! | `numbers`, `trace` | files that parameters name |
//! | `path`, `pace`, `loss` | what becomes of a segment: a state machine fed with times |
//! | `ring` | memory for frames that are under way |
//! | `frame`, `ip`, `virtio`, `piece`, `split` | superpackets, segments cut out of them, marks |
//! | `direction` | these joined: frames in, frames out; no sockets, no clocks |
//! | `socket`, `batch`, `clock`, `pump`, `threads` | the thread of a direction, and the kernel |
//! | `stats`, `samples`, `lateness` | what the link did, its queue over time, and how late it was |
//! | `link` | a link at work, and each run's own figures |
//!
//! The threads belong to the process that started the link and end with it, however it ends. The sockets see frames
//! of the two links only. Who makes those links and the network namespace is no matter here: crate `topology` does.
//!
//! What it is not: a rate beyond what two threads can copy (some Gb/s at MTU 1500 without segmentation
//! offload) shows in [`landspeed_record::WanStats`] as lateness and as `missed_frames`, and must be read before
//! figures are believed. A superpacket arrives when its last segment would, at most 1 ms after its first.

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
use landspeed_netlink::in_throwaway;
pub use link::Link;
pub use parameters::{Parameter, parameters};
use socket::Socket;
pub use spec::WanSpec;

/// Whether this user may carry frames here; otherwise why not. Asks the kernel, in a namespace that is
/// gone before this returns.
pub fn can_carry() -> Result<(), String> {
    const LOOPBACK: u32 = 1;
    match in_throwaway(|| Socket::receiving("lo", LOOPBACK)) {
        Err(e) => Err(format!("this kernel refuses a network namespace: {e}")),
        Ok(Err(e)) => Err(format!("a link in user space needs packet sockets (CAP_NET_RAW): {e}")),
        Ok(Ok(_)) => Ok(()),
    }
}
