//! What a connection has counted, and what it knows of its path.

use landspeed_units::{Bytes, Nanos};

use crate::history::{PacketRate, RoundTrip};
use crate::receiver::Arrival;

/// What a connection has counted, in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// New data packets that were sent.
    pub sent: u64,
    /// Data packets that were sent again.
    pub sent_again: u64,
    /// Data packets that arrived for the first time.
    pub received: u64,
    /// Data packets that had arrived before.
    pub received_again: u64,
    /// Data packets that there was no room for.
    pub no_room: u64,
    /// Loss reports that were believed.
    pub naks: u64,
    /// Times that nothing was acknowledged for too long.
    pub timeouts: u64,
    /// Datagrams that were no packet, or named what cannot be.
    pub ignored: u64,
}

/// What the peer has acknowledged since the connection's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Data packets.
    pub packets: u64,
    /// Their payload.
    pub bytes: Bytes,
    /// Whether that is all that was written.
    pub is_all: bool,
}

impl Counts {
    pub(super) fn count(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::New => self.received += 1,
            Arrival::Again => self.received_again += 1,
            Arrival::Beyond => self.no_room += 1,
        }
    }
}

/// What a connection knows of its path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathFigures {
    /// The round trip, as the sender knows it.
    pub round_trip: RoundTrip,
    /// How fast the peer receives packets.
    pub arrival: PacketRate,
    /// How fast the path could carry them, by packet pairs.
    pub capacity: PacketRate,
    /// The time from one packet to the next.
    pub period: Nanos,
    /// The congestion window.
    pub window: u32,
    /// Packets under way.
    pub flight: u32,
    /// Packets that are missing on this side.
    pub missing: u32,
}
