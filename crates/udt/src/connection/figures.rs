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
    /// The number of data packets for which the receive buffer had no room.
    pub no_room: u64,
    /// The number of loss reports that were accepted.
    pub naks: u64,
    /// The number of timeouts after which packets were sent again because nothing was acknowledged for too long.
    pub timeouts: u64,
    /// The number of datagrams that were not valid packets, had impossible values, or brought nothing new.
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

/// The estimates of a connection's path, and the state of its congestion control.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathFigures {
    /// The sender's estimate of the round-trip time.
    pub round_trip: RoundTrip,
    /// The rate at which the peer receives packets; 0 if there is no estimate.
    pub arrival: UdtPacketRate,
    /// The path's capacity, which the peer estimates from packet pairs; 0 if there is no estimate.
    pub capacity: UdtPacketRate,
    /// The time between two packets, as the congestion control sets it; zero if only the window limits the sender.
    pub period: Nanos,
    /// The congestion window, in packets.
    pub window: u32,
    /// The number of packets in flight.
    pub flight: u32,
    /// The number of packets that are missing at this end.
    pub missing: u32,
}
