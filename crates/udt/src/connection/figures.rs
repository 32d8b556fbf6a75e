//! The counts of a connection, and its estimates of the path.

use landspeed_record::units::{Bytes, Nanos};

use crate::history::UdtPacketRate;
use crate::receiver::DataArrival;
use crate::round_trip::RoundTrip;

/// The counts of a connection, in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCounts {
    /// New data packets sent.
    pub sent: u64,
    /// Data packets sent again.
    pub sent_again: u64,
    /// Data packets that arrived for the first time.
    pub received: u64,
    /// Data packets that had arrived before.
    pub received_again: u64,
    /// Data packets for which there was no room.
    pub no_room: u64,
    /// Loss reports accepted.
    pub naks: u64,
    /// Number of timeouts: nothing was acknowledged for too long.
    pub timeouts: u64,
    /// Datagrams that were not valid packets, or had impossible values.
    pub ignored: u64,
}

/// The data that the peer has acknowledged since the connection began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryProgress {
    /// Number of acknowledged data packets.
    pub packets: u64,
    /// The payload of the acknowledged data packets.
    pub bytes: Bytes,
    /// True if everything that was written is acknowledged.
    pub is_all: bool,
}

impl PacketCounts {
    pub(super) fn count(&mut self, arrival: DataArrival) {
        match arrival {
            DataArrival::New => self.received += 1,
            DataArrival::Again => self.received_again += 1,
            DataArrival::Beyond => self.no_room += 1,
        }
    }
}

/// The estimates and the state of a connection's path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathFigures {
    /// The sender's estimate of the round trip.
    pub round_trip: RoundTrip,
    /// The rate at which the peer receives packets.
    pub arrival: UdtPacketRate,
    /// The path's capacity, estimated by packet pairs.
    pub capacity: UdtPacketRate,
    /// The time between two packets.
    pub period: Nanos,
    /// The congestion window, in packets.
    pub window: u32,
    /// The packets in flight.
    pub flight: u32,
    /// The packets that are missing at this end.
    pub missing: u32,
}
