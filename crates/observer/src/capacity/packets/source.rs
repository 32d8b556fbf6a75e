//! A source of packets of one size, and the counts of what it has sent.

use std::io;

/// The packets of one or several bursts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BurstCounts {
    /// The number of packets on the link, after a device has segmented the buffers.
    pub(super) packets: u64,
    /// The number of buffers passed to the device layer. It is smaller than `packets` if a buffer holds several
    /// packets.
    pub(super) buffers: u64,
}

/// A sender of packets of one size.
pub(super) trait PacketSource {
    /// Sends some packets, for at most a few milliseconds, and returns their number.
    fn burst(&mut self) -> io::Result<BurstCounts>;
}
