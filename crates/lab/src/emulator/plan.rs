//! The plan of a link: its parameters, with files read and units converted.

use std::sync::Arc;

use landspeed_record::units::{BitRate, Nanos};
use landspeed_stats::TrafficMix;

use super::error::WanSpecError;
use super::frame::LARGEST_PIECE;
use super::numbers::DROPS;
use super::spec::{DirectionSpec, DropList, LineSpeed, QueueSpec, WanSpec};
use super::trace::DeliveryTrace;

/// A bound on the packets and bytes that may wait, including the packet on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueBound {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// The plan of one direction.
#[derive(Debug, Clone)]
pub(super) struct DirectionPlan {
    /// The parameters as written.
    pub(super) direction: DirectionSpec,
    /// The mean rate, in bits of IP packets a second.
    pub(super) mean_bps: u64,
    /// The delivery trace that the line follows; `None` if the rate is fixed.
    pub(super) trace: Option<Arc<DeliveryTrace>>,
    pub(super) queue: QueueBound,
    pub(super) mark_above: Option<QueueBound>,
    /// The numbers of the packets to lose, ascending. Only packets with payload are counted.
    pub(super) drops: Vec<u64>,
    /// The delay from the line to the other end, without jitter.
    pub(super) delay: Nanos,
    /// Time by which packets of the second round trip arrive later; zero on the way back, and without a second round trip.
    pub(super) farther: Nanos,
    pub(super) seed: u64,
    /// Number of the direction: 0 from A to B, 1 from B to A. Each direction has its own random generators.
    pub(super) number: u64,
}

impl WanSpec {
    /// Returns the plans of both directions.
    ///
    /// # Errors
    /// Returns an error that names the file and the line if a file cannot be read or parsed.
    pub(super) fn plan(&self) -> Result<[DirectionPlan; 2], WanSpecError> {
        Ok([self.plan_direction(0)?, self.plan_direction(1)?])
    }

    /// Checks that the files that the parameters name can be read and parsed.
    ///
    /// # Errors
    /// Returns an error that names the file and the line.
    pub fn check(&self) -> Result<(), WanSpecError> {
        self.plan().map(drop)
    }

    fn plan_direction(&self, number: usize) -> Result<DirectionPlan, WanSpecError> {
        let direction = self.directions[number].clone();
        let (mean_bps, trace) = match &direction.speed {
            LineSpeed::Rate(bps) => (*bps, None),
            LineSpeed::Trace(file) => {
                let trace = DeliveryTrace::load(file)?;
                (trace.mean_bps(), Some(Arc::new(trace)))
            }
        };
        let drops = match &direction.drop_list {
            DropList::Numbers(numbers) => numbers.clone(),
            DropList::File(file) => DROPS.read(file)?,
        };
        let bound = |queue: QueueSpec, bytes: Option<u64>| QueueBound {
            packets: if let QueueSpec::Packets(packets) = queue { packets.into() } else { u64::MAX },
            bytes: bytes.unwrap_or(u64::MAX),
        };
        Ok(DirectionPlan {
            queue: bound(direction.queue, direction.queue.room(mean_bps, self.rtt)),
            mark_above: direction.mark_above.map(|queue| bound(queue, queue.bytes(mean_bps, self.rtt))),
            delay: Nanos(self.rtt.0 / 2),
            farther: if number == 0 { self.farther() } else { Nanos(0) },
            seed: self.seed,
            number: number as u64,
            mean_bps,
            trace,
            drops,
            direction,
        })
    }
}

impl DirectionPlan {
    /// Returns true if the queue's bound or the marking threshold is in packets.
    pub(super) fn counts_packets(&self) -> bool {
        [Some(self.queue), self.mark_above].into_iter().flatten().any(|bound| bound.packets < u64::MAX)
    }

    /// Returns the cross traffic of the direction.
    pub(super) fn cross(&self) -> TrafficMix {
        let DirectionSpec { cross, cross_on, cross_off, cross_short, .. } = &self.direction;
        TrafficMix {
            load_bps: BitRate(self.mean_bps as f64 * cross.as_f64()),
            on_ns: *cross_on,
            off_ns: *cross_off,
            short: cross_short.as_f64(),
        }
    }

    /// Returns the largest number of bytes of IP packets that leave the line within any interval of this length.
    pub(super) fn most_bytes_within(&self, time: Nanos) -> u128 {
        match &self.trace {
            Some(trace) => trace.most_bytes_within(time).into(),
            None => u128::from(self.mean_bps) * u128::from(time.0) / 8_000_000_000,
        }
    }

    /// Returns the memory that the queue needs, in bytes of IP packets. If the queue counts packets, they are assumed
    /// to be at most jumbo frames. For larger packets there may be no memory. Their drops are counted as overrun, which
    /// is a fault of the link itself.
    fn queue_memory(&self) -> u64 {
        const JUMBO: u64 = 9_018;
        match self.queue.bytes {
            u64::MAX => {
                self.queue.packets * self.direction.drop_above.map_or(JUMBO, |size| size.0.min(JUMBO))
            }
            bytes => bytes,
        }
    }

    /// Returns the sizes of the main ring and of the ring of frames that arrive later, in bytes. Both have a quarter and
    /// four large frames more than the IP packets need, because frames have more headers, and because some bytes at the
    /// end of a ring stay unused.
    pub(super) fn memory(&self) -> (usize, usize) {
        // Four times the share, because random events cluster.
        let bunched = |share: f64| (share * 4.0).min(1.0);
        let doubled = 1.0 + bunched(self.direction.duplicate.as_f64());
        let room = |bytes: u128| {
            usize::try_from((bytes as f64 * doubled) as u128 * 5 / 4).unwrap_or(usize::MAX / 8)
                + 4 * LARGEST_PIECE
        };
        let queue = u128::from(self.queue_memory());
        let delay = self.delay + self.direction.jitter;
        let main = room(self.most_bytes_within(delay) + queue);
        let (later, share) = match (self.farther, self.direction.reorder) {
            (Nanos(0), share) if share.is_zero() => return (main, 0),
            (Nanos(0), share) => (self.direction.reorder_delay, bunched(share.as_f64())),
            (farther, _) => (farther, 1.0),
        };
        let all = self.most_bytes_within(delay + later) + queue;
        (main, room((all as f64 * share) as u128))
    }
}
