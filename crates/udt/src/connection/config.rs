//! What a connection is given to begin with.

use landspeed_units::Nanos;

use crate::packet::SocketType;
use crate::rate::{CONTROLS, MakeControl};
use crate::seq::{Seq, SocketId};

/// What both directions of a connection begin with. The defaults are libudt's, where it has them.
#[derive(Debug, Clone)]
pub struct Config {
    /// A stream or messages. Both ends must agree.
    pub socket_type: SocketType,
    /// The largest packet, with the headers of IPv4 and UDP; the smaller one of both ends' counts.
    pub mss: u32,
    /// Whether a connector's requests are as large as the packets that they ask for: where a path drops such packets without a word, it
    /// asks for smaller ones after half a second (as RFC 8899 probes). A libudt listener answers no such request.
    pub probes_path: bool,
    /// Packets that the send buffer holds.
    pub send_buffer: u32,
    /// Packets that the receive buffer holds.
    pub receive_buffer: u32,
    /// How long a connector asks.
    pub connect_patience: Nanos,
    /// How long a peer may be silent at most. A peer that is alive sends keep-alives.
    pub silence: Nanos,
    /// How long [`Connection::close`] waits for what was written to arrive.
    pub linger: Nanos,
    /// What the rate allows in this time leaves at once, and twice as much at most after a late wake-up.
    pub catch_up: Nanos,
    /// Makes the congestion control.
    pub control: MakeControl,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            socket_type: SocketType::Stream,
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

/// What a connection takes from chance. All of it must be hard to guess: it is all that keeps a stranger out.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// Its identifier, of 31 bits, one of the connections on its UDP port.
    pub socket: SocketId,
    /// A connector's first sequence number. An accepted connection takes its peer's.
    pub first_seq: Seq,
    /// For the congestion control.
    pub seed: u64,
}
