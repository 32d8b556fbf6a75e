//! What a link will do: its parameters, with files read and units worked out.

use std::sync::Arc;

use landspeed_units::Nanos;

use super::error::WanSpecError;
use super::frame::LARGEST_PIECE;
use super::numbers::DROPS;
use super::spec::{DropList, Queue, Speed, WanSpec, Way};
use super::trace::Trace;

/// What may wait, the packet on the line included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// One direction.
#[derive(Debug, Clone)]
pub(super) struct WayPlan {
    /// As it was written.
    pub(super) way: Way,
    /// Bits of IP packets a second, over time.
    pub(super) mean_bps: u64,
    /// When these may leave, where the rate is not fixed.
    pub(super) trace: Option<Arc<Trace>>,
    pub(super) queue: Room,
    pub(super) mark_above: Option<Room>,
    /// Numbers of packets with payload that are lost, ascending.
    pub(super) drops: Vec<u64>,
    /// Time from the line to the other end.
    pub(super) delay: Nanos,
    pub(super) seed: u64,
    /// 0 from A to B, 1 back: each has chance of its own.
    pub(super) number: u64,
}

impl WanSpec {
    /// Both directions.
    ///
    /// # Errors
    /// A file that cannot be read, or that says nothing understandable: names the file and the line.
    pub(super) fn plan(&self) -> Result<[WayPlan; 2], WanSpecError> {
        Ok([self.plan_way(0)?, self.plan_way(1)?])
    }

    /// Whether the files that it names can be read and understood; looks at them, and at nothing else.
    ///
    /// # Errors
    /// Names the file and the line.
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
    /// Whether a bound is in packets.
    pub(super) fn counts_packets(&self) -> bool {
        [Some(self.queue), self.mark_above].into_iter().flatten().any(|room| room.packets < u64::MAX)
    }

    /// Most bytes of IP packets that leave the line within any time of this length.
    pub(super) fn most_bytes_within(&self, time: Nanos) -> u128 {
        match &self.trace {
            Some(trace) => trace.most_bytes_within(time).into(),
            None => u128::from(self.mean_bps) * u128::from(time.0) / 8_000_000_000,
        }
    }

    /// Most bytes of IP packets that memory must be there for in front of the line. Packets that are counted are
    /// taken to be no larger than jumbo frames: larger ones would be dropped for want of memory, which is counted
    /// as the link's own fault.
    fn queue_memory(&self) -> u64 {
        const JUMBO: u64 = 9_018;
        match self.queue.bytes {
            u64::MAX => self.queue.packets * self.way.drop_above.map_or(JUMBO, |size| size.0.min(JUMBO)),
            bytes => bytes,
        }
    }

    /// Bytes of memory for frames, in the main line and among those held back. Frames take a little more room
    /// than their IP packets (their headers), and some is lost at the end of the ring.
    pub(super) fn memory(&self) -> (usize, usize) {
        // Four times their share: chance bunches them.
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
