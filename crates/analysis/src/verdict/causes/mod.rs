//! Causes that a flow can be held back by: one file each, or one for those that share their evidence.

mod applications;
mod backlog;
mod buffers;
mod checksum;
mod clock;
mod competing;
mod congestion;
mod datagrams;
pub(super) mod limits;
mod losses;
mod mtu;
mod nagle;
mod offloads;
mod queues;
mod reordering;
mod softirq;
mod tiny_writes;

use landspeed_record::{Cause, Finding};

use super::judge::Judge;
use super::need::Need::{
    self, AnyTcp, Cores, Counters, Limits, Processes, Qdiscs, ReceiverTcp, SenderTcp, Settings,
};
use super::next;
use super::view::View;

type Find = fn(&View<'_>) -> Option<Finding>;

/// The one table of causes, each with what its judge looks at. Its order decides nothing: findings are ordered by weight.
#[rustfmt::skip]
pub const CAUSES: [Judge; 29] = [
    // Time that the sender waited for the peer's window, its size, and how full the receive queue was.
    row(Cause::ReceiveBuffer, &[AnyTcp], buffers::receive_buffer, next::receive_buffer),
    // Windows at the end of their scale, or large ones on a path that holds more.
    row(Cause::WindowBelowBdp, &[AnyTcp], buffers::window_below_bdp, next::unscaled),
    // A window of few segments, and what whole segments leave unused of it.
    row(Cause::WindowAlignment, &[AnyTcp], buffers::window_alignment, next::alignment),
    // Time that all that was written was sent and the send buffer was full.
    row(Cause::SendBuffer, &[SenderTcp], buffers::send_buffer, next::send_buffer),
    // A closed window with a full receive queue behind it, and what the reading thread does instead.
    row(Cause::SlowReader, &[ReceiverTcp], applications::slow_reader, unseen),
    // Time with nothing in flight and nothing written, and what the writing thread does instead.
    row(Cause::SlowWriter, &[SenderTcp], applications::slow_writer, unseen),
    // How full segments are, and what the sender's processor does for a byte.
    row(Cause::TinyWrites, &[SenderTcp], tiny_writes::tiny_writes, unseen),
    // Less than a segment that waits behind another small one, and acknowledgements that a timer sent.
    row(Cause::NagleDelayedAck, &[AnyTcp], nagle::judge, unseen),
    // What left a queueing discipline against its configured rate.
    row(Cause::RateLimit, &[Qdiscs], queues::rate_limit, queues::rate_limit_next),
    // Packets that a queueing discipline dropped, and how long its queue became.
    row(Cause::QdiscDrops, &[Qdiscs], queues::qdisc_drops, unseen),
    // Retransmissions that no own queue explains, on a path without a standing queue.
    row(Cause::RandomLoss, &[SenderTcp], |view| losses::lossy(view, false), |view| losses::lossy_next(view, false)),
    // How many losses each recovery mends.
    row(Cause::BurstLoss, &[SenderTcp], |view| losses::lossy(view, true), |view| losses::lossy_next(view, true)),
    // Reordering that the sender saw, and retransmissions that the peer had already.
    row(Cause::Reordering, &[SenderTcp], reordering::judge, unseen),
    // A full congestion window, or a pacing rate below it, without loss, queue or load.
    row(Cause::CongestionControl, &[SenderTcp], congestion::judge, congestion::next),
    // A flow that stalls on full-sized segments, the kernel's own probing, and MTUs of both ends.
    row(Cause::MtuBlackHole, &[AnyTcp], mtu::judge, unseen),
    // Segmentation and receive offloads that are off, where a processor is full.
    row(Cause::OffloadsOff, &[Settings, Cores], offloads::judge, offloads::next),
    // Checksum offload that is off, where a processor is full, and what the sums cost.
    row(Cause::SoftwareChecksum, &[Settings, Cores], checksum::judge, checksum::next),
    // A full core with much of its time in interrupts, and cores beside it that idle.
    row(Cause::SoftirqCore, &[Cores], softirq::judge, unseen),
    // Time that the flow's threads were ready and had no core, and what others ran meanwhile.
    row(Cause::CompetingLoad, &[Processes, Cores], competing::competing, unseen),
    // The cores that threads may run on, those that idle, and the NUMA node of the link.
    row(Cause::Placement, &[Processes, Cores], competing::placement, unseen),
    // Time that the hypervisor gave to other guests.
    row(Cause::Steal, &[Cores], competing::steal, unseen),
    // The processor's clock against the most that it can, where it is full, and the governor.
    row(Cause::CpuFrequency, &[Limits, Cores], clock::judge, unseen),
    // Fragments that were made and put together, and those that could not be.
    row(Cause::Fragmentation, &[Counters], datagrams::fragmentation, unseen),
    // Datagrams that found their socket's buffer full.
    row(Cause::UdpReceiveBuffer, &[Counters], datagrams::udp_receive_buffer, unseen),
    // Connections dropped for a full backlog.
    row(Cause::ListenBacklog, &[Counters], backlog::judge, unseen),
    // The busiest thread or core that carries the flow.
    row(Cause::CpuLimit, &[Cores], limits::cpu, unseen),
    // Goodput against the link's speed, and a standing queue on the path.
    row(Cause::LinkLimit, &[], limits::link, unseen),
    // Bytes that cross memory against what all cores copy.
    row(Cause::MemoryLimit, &[Limits], limits::memory, unseen),
    // Goodput against what the device's PCI Express link carries.
    row(Cause::BusLimit, &[Limits], limits::bus, unseen),
];

const fn row(cause: Cause, needs: &'static [Need], judge: Find, next: Find) -> Judge {
    Judge { cause, needs, judge, next }
}

/// For a row that shows nothing of itself while it costs nothing.
fn unseen(_: &View<'_>) -> Option<Finding> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_cause_has_one_judge() {
        let causes: HashSet<_> = CAUSES.iter().map(|judge| judge.cause).collect();
        assert_eq!(causes.len(), CAUSES.len(), "a cause with two judges");
    }
}
