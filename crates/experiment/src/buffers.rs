//! What may be in flight, set by the hosts' buffers.

use landspeed_record::{Cell, Settings};
use landspeed_units::Bytes;

/// What the kernel counts for a packet of a full window beyond its payload, where hosts hand over superpackets: a send
/// buffer of this many times the window holds one window.
const BOOKKEEPING: f64 = 1.1;

/// The send buffer that bounds what is in flight to `window`.
pub(crate) fn for_window(window: Bytes) -> Bytes {
    Bytes((window.0 as f64 * BOOKKEEPING) as u64)
}

/// Buffers that the kernel grows on demand up to `send` at A and `receive` at B (tcp(7), tcp_wmem and tcp_rmem).
pub(crate) fn cell(send: Bytes, receive: Bytes) -> Cell {
    let buffer = |knob: &str, initial: u32, most: Bytes| -> Settings {
        [(knob.to_owned(), format!("4096 {initial} {}", most.0))].into()
    };
    Cell {
        a: buffer("tcp-wmem", 16_384, send),
        b: buffer("tcp-rmem", 131_072, receive),
        flow: Settings::new(),
    }
}
