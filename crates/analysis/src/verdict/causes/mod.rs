//! The causes that can hold a flow back; those that share their evidence share a file.

mod datagrams;
pub(super) mod limits;
mod path;
mod processors;
mod programs;
mod stall;
mod windows;

use landspeed_record::{Cause, Finding};

pub(super) use programs::backlog_overflows;
pub use stall::stalls;

use super::judge::CauseJudge;
use super::judge::EvidenceKind::{
    self, AnyTcp, Cores, Counters, Limits, Processes, Qdiscs, ReceiverTcp, SenderTcp, Settings,
};
use super::view::VerdictView;

type JudgeFunction = fn(&VerdictView<'_>) -> Option<Finding>;

/// The table of all causes, with the evidence of each judge. Its order does not matter, because findings are ordered
/// by weight.
#[rustfmt::skip]
pub const CAUSES: [CauseJudge; 32] = [
    // The time that the sender waited for the peer's window, the window's size, and how full the receive queue was.
    row(Cause::ReceiveBuffer, &[AnyTcp], windows::receive_buffer, windows::receive_buffer_next),
    // Windows at the end of their scale, or large ones on a path that holds more.
    row(Cause::WindowBelowBdp, &[AnyTcp], windows::window_below_bdp, windows::unscaled_next),
    // A window of few segments, and the part of it that whole segments leave unused.
    row(Cause::WindowAlignment, &[AnyTcp], windows::window_alignment, windows::alignment_next),
    // The time in which everything written was sent and the send buffer was full.
    row(Cause::SendBuffer, &[SenderTcp], windows::send_buffer, windows::send_buffer_next),
    // A closed window with a full receive queue behind it, and what the reading thread does instead.
    row(Cause::SlowReader, &[ReceiverTcp], programs::slow_reader, unseen),
    // The time with nothing in flight and nothing written, and what the writing thread does instead.
    row(Cause::SlowWriter, &[SenderTcp], programs::slow_writer, unseen),
    // How full segments are, and the sender's processor time for a byte.
    row(Cause::TinyWrites, &[SenderTcp], programs::tiny_writes, unseen),
    // Less than a segment that waits behind another small one, and acknowledgements that a timer sent.
    row(Cause::NagleDelayedAck, &[AnyTcp], programs::nagle, unseen),
    // The rate at which packets left a queueing discipline against its configured rate.
    row(Cause::RateLimit, &[Qdiscs], path::rate_limit, path::rate_limit_next),
    // Packets that a queueing discipline dropped, and how long its queue became.
    row(Cause::QdiscDrops, &[Qdiscs], path::qdisc_drops, unseen),
    // Retransmissions that no queue of the sender explains, on a path without a standing queue.
    row(Cause::RandomLoss, &[SenderTcp], |view| path::lossy(view, false), |view| path::lossy_next(view, false)),
    // The number of losses that each recovery repairs.
    row(Cause::BurstLoss, &[SenderTcp], |view| path::lossy(view, true), |view| path::lossy_next(view, true)),
    // Reordering that the sender saw, and retransmissions of segments that the peer already had.
    row(Cause::Reordering, &[SenderTcp], path::reordering, unseen),
    // A full congestion window, or a pacing rate below it, without loss, queue or load.
    row(Cause::CongestionControl, &[SenderTcp], path::congestion_control, path::congestion_control_next),
    // A flow that stalls on full-sized segments, the kernel's own probing, and the MTUs of both ends.
    row(Cause::MtuBlackHole, &[], path::mtu_black_hole, unseen),
    // A packet that vanishes whole and arrives in pieces.
    row(Cause::IcmpBlocked, &[], |view| stall::icmp_blocked(view.probe?), unseen),
    // Packets that the sender cuts and that vanish, while whole ones arrive.
    row(Cause::FragmentsDropped, &[], |view| stall::fragments_dropped(view.probe?), unseen),
    // Packets of every size that vanish, or did for long.
    row(Cause::PathDown, &[], |view| stall::path_down(view.probe?), unseen),
    // Segmentation and receive offloads that are off, where a processor is full.
    row(Cause::OffloadsOff, &[Settings, Cores], processors::offloads_off, processors::offloads_off_next),
    // Checksum offload that is off, where a processor is full, and the cost of the checksums.
    row(Cause::SoftwareChecksum, &[Settings, Cores], processors::software_checksum, processors::software_checksum_next),
    // A full core with much of its time in interrupts, and idle cores beside it.
    row(Cause::SoftirqCore, &[Cores], processors::softirq_core, unseen),
    // The time in which the flow's threads were ready and had no core, and what other programs ran in that time.
    row(Cause::CompetingLoad, &[Processes, Cores], processors::competing, unseen),
    // The cores that threads may run on, the idle cores, and the NUMA node of the link.
    row(Cause::Placement, &[Processes, Cores], processors::placement, unseen),
    // The time that the hypervisor gave to other guests.
    row(Cause::Steal, &[Cores], processors::steal, unseen),
    // The clock of a full processor against its highest clock, and the governor.
    row(Cause::CpuFrequency, &[Limits, Cores], processors::low_clock, unseen),
    // Fragments that were made and reassembled, and those that could not be.
    row(Cause::Fragmentation, &[Counters], datagrams::fragmentation, unseen),
    // Datagrams that found their socket's buffer full.
    row(Cause::UdpReceiveBuffer, &[Counters], datagrams::udp_receive_buffer, unseen),
    // Connections that were dropped because the backlog was full.
    row(Cause::ListenBacklog, &[Counters], programs::listen_backlog, unseen),
    // The busiest thread or core that carries the flow.
    row(Cause::CpuLimit, &[Cores], limits::cpu, unseen),
    // Goodput against the link's speed, and a standing queue on the path.
    row(Cause::LinkLimit, &[], limits::link, unseen),
    // The bytes that cross memory against what all cores copy.
    row(Cause::MemoryLimit, &[Limits], limits::memory, unseen),
    // Goodput against the rate of the device's PCI Express link.
    row(Cause::BusLimit, &[Limits], limits::bus, unseen),
];

const fn row(
    cause: Cause,
    needs: &'static [EvidenceKind],
    judge: JudgeFunction,
    next: JudgeFunction,
) -> CauseJudge {
    CauseJudge { cause, needs, judge, next }
}

/// Returns nothing, for a cause that leaves no evidence while it costs nothing.
fn unseen(_: &VerdictView<'_>) -> Option<Finding> {
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
