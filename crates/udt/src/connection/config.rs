//! The configuration of a connection.

use landspeed_record::units::Nanos;

use crate::rate::{CONTROLS, RateControlFactory};
use crate::seq::{Seq, UdtSocketId};

/// The initial settings of both directions of a connection. The defaults are those of libudt, for settings that
/// libudt has.
#[derive(Debug, Clone)]
pub struct UdtConfig {
    /// The size of the largest packet in bytes, with the headers of IPv4 and UDP. The smaller value of the two ends
    /// applies.
    pub mss: u32,
    /// True if a connector's requests are as large as the packets that they propose. If a path silently drops such
    /// packets, the connector proposes smaller ones after half a second (as RFC 8899 probes). A libudt listener does
    /// not answer such requests.
    pub probes_path: bool,
    /// The size of the send buffer, in packets.
    pub send_buffer: u32,
    /// The size of the receive buffer, in packets.
    pub receive_buffer: u32,
    /// The time for which a connector waits for an answer to its requests.
    pub connect_patience: Nanos,
    /// The time after which a silent peer is given up. A peer that is alive sends keep-alives.
    pub silence: Nanos,
    /// The time for which [`Connection::close`](super::Connection::close) waits for the written data to arrive.
    pub linger: Nanos,
    /// The packets that the current rate allows within this time leave in one burst. After a late wake-up, a burst
    /// has up to twice as many packets.
    pub catch_up: Nanos,
    /// The constructor of the congestion control.
    pub control: RateControlFactory,
}

impl Default for UdtConfig {
    fn default() -> Self {
        UdtConfig {
            mss: 1500,
            probes_path: false,
            send_buffer: 8192,
            receive_buffer: 8192,
            connect_patience: Nanos::secs(3),
            silence: Nanos::secs(60),
            linger: Nanos::secs(180),
            catch_up: Nanos::millis(1),
            control: CONTROLS[0].1,
        }
    }
}

/// The random values of a connection. They must be hard to guess, because they alone protect the connection against
/// strangers.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionIdentity {
    /// The identifier of this end: 31 bits, not zero, and unique on its UDP port.
    pub socket: UdtSocketId,
    /// The first sequence number, if this end connects. An accepted connection uses that of its peer.
    pub first_seq: Seq,
    /// The seed of the congestion control.
    pub seed: u64,
}
