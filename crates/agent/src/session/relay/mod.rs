//! Connections that the controller relays between two agents whose hosts cannot reach each other
//! (docs/decisions/0080-how-ends-meet.md).
//!
//! | module | content |
//! |---|---|
//! | `wire` | relayed messages as frames of a session |
//! | `credit` | flow control |
//! | `end` | an agent's end: an entry, a port on loopback; or an exit, the address at which a copy listens |
//! | `connection` | a relayed connection at an agent's end |
//! | `bridge` | the controller's part: passes frames from one session to the other, and limits what waits |
//! | `meter` | the cost of relaying for a session's thread |
//!
//! Each connection to the entry of one agent becomes a connection of the other agent to its exit. An agent connects
//! only to the exit that its own copy has set. The bytes travel in frames between the other messages of both sessions,
//! which have priority. On each connection, at most [`WINDOW`] is in flight between the two ends. A connection with a
//! slow receiver therefore delays no other connection, and takes no more than a window of the controller's memory.

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

/// The window of a connection: the largest cost of what an end has sent and the other end has not taken. Four
/// connections fill 400 Mb/s at an RTT of 40 ms.
const WINDOW: usize = 512 * 1024;
/// The largest number of bytes in a frame. Other messages of a session wait for one such frame at most.
const CHUNK: usize = 64 * 1024;
/// The cost of a frame in addition to its bytes, so that many small frames are limited too.
const FRAME_COST: usize = 256;
/// The largest number of relayed connections: those of a copy, and the same number again for broken connections that
/// are still ending.
const MOST: usize = 128;
/// The largest number of frames that may wait to be sent in one session: the windows of all connections, and the same
/// number of `Taken` messages.
const QUEUE: usize = 2 * MOST * (WINDOW / FRAME_COST);
/// The largest number of bytes that may wait to be sent in one session: the windows of all connections, and the same
/// amount for connections that have ended.
const ROOM: usize = 2 * MOST * WINDOW;

/// Returns the cost of a frame with this number of bytes.
fn cost(bytes: usize) -> usize {
    bytes + FRAME_COST
}
