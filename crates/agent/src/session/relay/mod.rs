//! Connections that the controller relays from one agent to another, where neither host reaches the other
//! (docs/decisions/0080-how-ends-meet.md).
//!
//! | module | content |
//! |---|---|
//! | `wire` | what is relayed, as frames of a session |
//! | `credit` | how much an end may send |
//! | `end` | an agent's end: an entry, a port on loopback; or an exit, the address at which a copy listens |
//! | `connection` | a relayed connection at an agent's end |
//! | `bridge` | the controller: passes frames from one session to the other, and bounds them |
//! | `meter` | what that costs the thread of a session |
//!
//! Each connection to the entry of one agent becomes a connection of the other agent to its exit. An agent connects to
//! nothing but the exit that its own copy has set. The bytes travel in frames between the other messages of both sessions,
//! which go first. An end sends at most [`WINDOW`] of a connection that the other end has not taken, so that a connection
//! whose receiver is slow holds up no other one, and costs the controller no more than that.

mod bridge;
mod connection;
mod credit;
mod end;
mod meter;
mod wire;

pub use bridge::RelayBridge;
pub(crate) use bridge::RelayPlace;
pub use end::{RelayEnd, RelayEntry, RelayExit};
pub(crate) use meter::RelayMeter;
pub use meter::RelaySpent;
pub(crate) use wire::{RELAY_LIMIT, RelayFrame, relayed_length};

/// The largest cost of what an end has sent on a connection, and the other end has not taken. Four connections fill 400
/// Mb/s over 40 ms.
const WINDOW: usize = 512 * 1024;
/// The largest number of bytes in a frame. Other messages of a session wait for one frame at most.
const CHUNK: usize = 64 * 1024;
/// The cost of a frame beside its bytes, so that many small frames are bounded too.
const FRAME_COST: usize = 256;
/// The largest number of connections that are relayed at a time: those of a copy, and as many that have broken and whose
/// end is still under way.
const MOST: usize = 128;
/// The number of frames that may wait to be sent in one session: what the windows of all connections hold, and as many
/// that say what was taken.
const QUEUE: usize = 2 * MOST * (WINDOW / FRAME_COST);
/// The largest number of bytes that may wait to be sent in one session: what the windows of all connections hold, and as much
/// of connections that have ended.
const ROOM: usize = 2 * MOST * WINDOW;

/// Returns the cost of a frame with this number of bytes.
fn cost(bytes: usize) -> usize {
    bytes + FRAME_COST
}
