//! The plan of a link: its parameters, with files read and units converted.

use std::sync::Arc;

use landspeed_units::Nanos;

use super::error::WanSpecError;
use super::frame::LARGEST_PIECE;
use super::numbers::DROPS;
use super::spec::{DropList, Queue, Speed, WanSpec, Way};
use super::trace::Trace;

/// A bound on what may wait, including the packet on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// The plan of one direction.
#[derive(Debug, Clone)]
pub(super) struct WayPlan {
    /// The parameters as written.
    pub(super) way: Way,
    /// The mean rate, in bits of IP packets a second.
    pub(super) mean_bps: u64,
    /// The times at which packets may leave, if the rate is not fixed.
    pub(super) trace: Option<Arc<Trace>>,
    pub(super) queue: Room,
    pub(super) mark_above: Option<Room>,
    /// The numbers of packets with payload that are lost, ascending.
    pub(super) drops: Vec<u64>,
    /// The time from the line to the other end.
    pub(super) delay: Nanos,
    pub(super) seed: u64,
    /// 0 from A to B, 1 back. Each direction has its own random generators.
    pub(super) number: u64,
}

impl WanSpec {
    /// Plans both directions.
    ///
    /// # Errors
    /// Returns an error that names the file and the line if a file cannot be read or parsed.
    pub(super) fn plan(&self) -> Result<[WayPlan; 2], WanSpecError> {
        Ok([self.plan_way(0)?, self.plan_way(1)?])
    }

    /// Checks that the files that the parameters name can be read and parsed. It reads nothing else.
    ///
    /// # Errors
    /// Returns an error that names the file and the line.
    pub fn check(&self) -> Result<(), WanSpecError> {
        self.plan().map(drop)
    }

    fn plan_way(&self, number: usize) -> Result<WayPlan, WanSpecError> {
        let way = self.ways[number].clone();
        let (mean_bps, trace) = match &way.speed {
            Speed::Rate(bps) => (*bps, None),
            Speed::Trace(file) => {
                let trace = Trace::load(file)?;
                (trace.mean_bps(), Some(Arc::new(trace)))
            }
        };
        let drops = match &way.drop_list {
            DropList::Numbers(numbers) => numbers.clone(),
            DropList::File(file) => DROPS.read(file)?,
        };
        let bound = |queue: Queue, bytes: Option<u64>| Room {
            packets: if let Queue::Packets(packets) = queue { packets.into() } else { u64::MAX },
            bytes: bytes.unwrap_or(u64::MAX),
        };
        Ok(WayPlan {
            queue: bound(way.queue, way.queue.room(mean_bps, self.rtt)),
            mark_above: way.mark_above.map(|queue| bound(queue, queue.bytes(mean_bps, self.rtt))),
            delay: Nanos(self.rtt.0 / 2),
            seed: self.seed,
            number: number as u64,
            mean_bps,
            trace,
            drops,
            way,
        })
    }
}

impl WayPlan {
    /// Returns true if a bound is in packets.
    pub(super) fn counts_packets(&self) -> bool {
        [Some(self.queue), self.mark_above].into_iter().flatten().any(|room| room.packets < u64::MAX)
    }

    /// Returns the most bytes of IP packets that leave the line within any interval of this length.
    pub(super) fn most_bytes_within(&self, time: Nanos) -> u128 {
        match &self.trace {
            Some(trace) => trace.most_bytes_within(time).into(),
            None => u128::from(self.mean_bps) * u128::from(time.0) / 8_000_000_000,
        }
    }

    /// Returns the bytes of IP packets that the queue needs memory for. Counted packets are assumed to be no larger
    /// than jumbo frames: larger ones may find no memory, and such a drop is counted as the link's own fault.
    fn queue_memory(&self) -> u64 {
        const JUMBO: u64 = 9_018;
        match self.queue.bytes {
            u64::MAX => self.queue.packets * self.way.drop_above.map_or(JUMBO, |size| size.0.min(JUMBO)),
            bytes => bytes,
        }
    }

    /// Returns the bytes of memory for the main ring and for the ring of held frames. Frames take a little more room
    /// than their IP packets (their headers), and some is lost at the end of the ring.
    pub(super) fn memory(&self) -> (usize, usize) {
        // Four times the share, because random events cluster.
        let bunched = |share: f64| (share * 4.0).min(1.0);
        let doubled = 1.0 + bunched(self.way.duplicate.as_f64());
        let room = |bytes: u128| {
            usize::try_from((bytes as f64 * doubled) as u128 * 5 / 4).unwrap_or(usize::MAX / 8)
                + 4 * LARGEST_PIECE
        };
        let queue = u128::from(self.queue_memory());
        let delay = self.delay + self.way.jitter;
        let main = room(self.most_bytes_within(delay) + queue);
        if self.way.reorder.is_zero() {
            return (main, 0);
        }
        let all = self.most_bytes_within(delay + self.way.reorder_delay) + queue;
        (main, room((all as f64 * bunched(self.way.reorder.as_f64())) as u128))
    }
}
