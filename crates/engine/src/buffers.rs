//! Computes socket buffers that bound the bytes in flight.

use landspeed_record::units::Bytes;
use landspeed_record::{Cell, Settings};

/// Ratio of a send buffer to the window that fits into it. It covers the kernel's overhead for the packets of a full
/// window when hosts hand over superpackets.
const BOOKKEEPING: f64 = 1.1;

/// Returns the send buffer that limits the bytes in flight to `window`.
pub(crate) fn for_window(window: Bytes) -> Bytes {
    Bytes((window.0 as f64 * BOOKKEEPING) as u64)
}

/// Returns a cell with buffers that the kernel grows on demand up to `send` at A and `receive` at B (tcp(7), tcp_wmem
/// and tcp_rmem).
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
