//! The causes that can hold a flow back. The judges of causes with the same kind of evidence share a file, and its
//! first line says which causes they are.
//!
//! A new cause is a variant of [`Cause`], a judge and a row of [`CAUSES`]. `super::evidence` names what must have been
//! observed, `super::thresholds` holds the limits, and `super::advice` rewrites remedies for the flow of another
//! program. Where another cause sees the same effect (a drop at a host is also a loss of the path), the quantity in
//! `super::view` that both use says which cause is responsible. Two judges may share a guard instead: `slow_reader`
//! leaves a reader that waits for its disk (`EndView::blocked`) to `slow_disk`. [`RelievedLimit`] says how `super::order`
//! weighs the cause beside a path that is the limit.
//!
//! `tests/verdict/faults` has a path for most causes; nothing fails if a new cause has none. The limits of the path
//! are in `paths.rs` beside it, cases in which a cause must not be named in `main.rs`, and the causes of a path that
//! carries nothing in the tests of `stall.rs`.

mod bottleneck;
mod checksums;
mod competing;
mod connections;
mod datagrams;
mod host;
mod idle;
pub(super) mod limits;
mod offloads;
mod path;
mod placement;
mod processors;
mod programs;
mod requests;
mod softirq;
mod stall;
mod windows;

use landspeed_record::{Cause, Finding};

pub(super) use path::unexplained as unexplained_losses;
pub(super) use programs::turned_away;
pub use stall::stalls;

use super::evidence::{
    ANY_TCP, CORES, COUNTERS, Evidence, LIMITS, PROCESSES, QDISCS, RECEIVER_TCP, SENDER_TCP, SETTINGS,
};
use super::judge::{CauseJudge, RelievedLimit};
use super::view::VerdictView;

type JudgeFunction = fn(&VerdictView<'_>) -> Option<Finding>;

/// The table of all causes: the words that follow "held back by", the evidence that the judge needs, the judge, and
/// the judge of a cause that costs nothing now. Its order does not matter, because findings are ordered by weight.
#[rustfmt::skip]
pub static CAUSES: &[CauseJudge] = &[
    // The time that the sender waited for the peer's window, the window's size, and how full the receive queue was.
    fault(Cause::ReceiveBuffer, "a small receive buffer", &[ANY_TCP],
        windows::receive_buffer, windows::receive_buffer_next),
    // Windows at the end of their scale, or large ones on a path that holds more.
    fault(Cause::WindowBelowBdp, "a window smaller than the path holds", &[ANY_TCP],
        windows::window_below_bdp, windows::unscaled_next),
    // A window of few segments, and the part of it that whole segments leave unused.
    fault(Cause::WindowAlignment, "windows rounded to whole segments", &[ANY_TCP],
        windows::window_alignment, windows::alignment_next),
    // The time in which everything written was sent and the send buffer was full.
    fault(Cause::SendBuffer, "a small send buffer", &[SENDER_TCP],
        windows::send_buffer, windows::send_buffer_next),
    // A closed window with a full receive queue behind it, and what the reading thread does instead.
    fault(Cause::SlowReader, "an application that reads slowly", &[RECEIVER_TCP],
        programs::slow_reader, unseen),
    // The time with nothing in flight and nothing written, and what the writing thread does instead.
    fault(Cause::SlowWriter, "an application that writes slowly", &[SENDER_TCP],
        programs::slow_writer, unseen),
    // How full segments are, and the sender's processor time for a byte.
    of_cost(fault(Cause::TinyWrites, "tiny writes", &[SENDER_TCP], programs::tiny_writes, unseen)),
    // Less than a segment that waits behind another small one, and acknowledgements that a timer sent.
    fault(Cause::NagleDelayedAck, "Nagle waiting for delayed acknowledgements", &[ANY_TCP],
        programs::nagle, unseen),
    // The rate at which packets left a queueing discipline against its configured rate.
    on_path(fault(Cause::RateLimit, "a rate limit", &[QDISCS], path::rate_limit, path::rate_limit_next)),
    // Losses that vanish below a rate, and no time in a queue.
    on_path(fault(Cause::Policer, "a policer or a very short queue on the way", &[SENDER_TCP],
        bottleneck::policer, unseen)),
    // The time that a queue on the path adds, and the idle round trip.
    on_path(fault(Cause::Bufferbloat, "a queue on the way that makes everything late", &[SENDER_TCP],
        bottleneck::bufferbloat, unseen)),
    // The acknowledgements that one end sent and the other received, and how late they are.
    on_path(fault(Cause::ReturnPath, "losses or a slow link on the way back", &[SENDER_TCP, RECEIVER_TCP],
        bottleneck::return_path, unseen)),
    // Packets that a queueing discipline dropped, and how long its queue became.
    on_path(fault(Cause::QdiscDrops, "drops in a queueing discipline", &[QDISCS], path::qdisc_drops, unseen)),
    // Retransmissions that no queue of the sender explains, on a path without a standing queue.
    on_path(fault(Cause::RandomLoss, "random loss", &[SENDER_TCP],
        |view| path::lossy(view, false), |view| path::lossy_next(view, false))),
    // The number of losses that each recovery repairs.
    on_path(fault(Cause::BurstLoss, "loss in bursts", &[SENDER_TCP],
        |view| path::lossy(view, true), |view| path::lossy_next(view, true))),
    // Reordering that the sender saw, and retransmissions of segments that the peer already had.
    on_path(fault(Cause::Reordering, "reordering", &[SENDER_TCP], path::reordering, unseen)),
    // A full congestion window, or a pacing rate below a window per round trip, without loss, queue or load.
    fault(Cause::CongestionControl, "the congestion control", &[SENDER_TCP],
        path::congestion_control, path::congestion_control_next),
    // A flow that stalls on full-sized segments, the kernel's own probing, and the MTUs of both ends.
    on_path(fault(Cause::MtuBlackHole, "an MTU that the path does not carry", &[], path::mtu_black_hole, unseen)),
    // A packet that vanishes whole and arrives in pieces.
    on_path(fault(Cause::IcmpBlocked, "ICMP messages that do not arrive", &[],
        |view| stall::icmp_blocked(view.follow_ups.probe?), unseen)),
    // Packets that the sender cuts and that vanish, while whole ones arrive.
    on_path(fault(Cause::FragmentsDropped, "fragments that are dropped on the way", &[],
        |view| stall::fragments_dropped(view.follow_ups.probe?), unseen)),
    // Packets of every size that vanish, or did for long.
    on_path(fault(Cause::PathDown, "a path that was down", &[], |view| stall::path_down(view.follow_ups.probe?), unseen)),
    // Segmentation and receive offloads that are off, where a processor is full.
    of_cost(fault(Cause::OffloadsOff, "segmentation offloads that are off", &[SETTINGS, CORES],
        offloads::offloads_off, offloads::offloads_off_next)),
    // Checksum offload that is off, where a processor is full, and the cost of the checksums.
    of_cost(fault(Cause::SoftwareChecksum, "checksums computed in software", &[SETTINGS, CORES],
        checksums::software_checksum, checksums::software_checksum_next)),
    // A full core with much of its time in interrupts, and idle cores beside it.
    of_cost(fault(Cause::SoftirqCore, "a core full of softirq work", &[CORES], softirq::softirq_core, unseen)),
    // The time in which the flow's threads were ready and had no core, and what other programs ran in that time.
    fault(Cause::CompetingLoad, "other work on the same core", &[PROCESSES, CORES],
        competing::competing, unseen),
    // The cores that threads may run on, the idle cores, and the NUMA node of the link.
    fault(Cause::Placement, "work on the wrong cores", &[PROCESSES, CORES], placement::placement, unseen),
    // The time that the hypervisor gave to other guests.
    fault(Cause::Steal, "the hypervisor taking processor time", &[CORES], processors::steal, unseen),
    // The clock of a full processor against its highest clock, and the governor.
    of_cost(fault(Cause::CpuFrequency, "a processor below its clock", &[LIMITS, CORES],
        processors::low_clock, unseen)),
    // Fragments that were made and reassembled, and those that could not be.
    of_cost(fault(Cause::Fragmentation, "datagrams cut into fragments", &[COUNTERS],
        datagrams::fragmentation, unseen)),
    // Datagrams that found their socket's buffer full.
    fault(Cause::UdpReceiveBuffer, "a UDP receive buffer that overflows", &[COUNTERS],
        datagrams::udp_receive_buffer, unseen),
    // Connections that were dropped because the backlog was full.
    fault(Cause::ListenBacklog, "a listen backlog that overflows", &[COUNTERS],
        programs::listen_backlog, unseen),
    // The time for which the control group of the flow's process was stopped.
    fault(Cause::CpuQuota, "a processor quota", &[], host::cpu_quota, unseen),
    // A thread that waits uninterruptibly, while the flow waits for it.
    fault(Cause::SlowDisk, "a slow disk", &[PROCESSES], host::slow_disk, unseen),
    // The time in which nothing ran because a task waited for memory.
    fault(Cause::MemoryShortage, "a host that is short of memory", &[], host::memory_shortage, unseen),
    // Small windows while the kernel's account of TCP's memory is full.
    fault(Cause::TcpMemory, "the machine's memory for TCP", &[RECEIVER_TCP, COUNTERS], host::tcp_memory, unseen),
    // A window of two segments behind a socket that has dropped one.
    fault(Cause::DroppedWindow, "a window that a drop cut", &[RECEIVER_TCP], host::dropped_window, unseen),
    // Falls of the window without a loss, and the share of samples in which it is full and small.
    fault(Cause::IdleRestart, "slow start after each pause", &[SENDER_TCP], idle::idle_restart, unseen),
    // Packets of new connections that the tracking table had no room for.
    fault(Cause::Conntrack, "a full table of connection tracking", &[COUNTERS], connections::conntrack, unseen),
    // Handshakes that were answered without a place in the queue.
    fault(Cause::SynCookies, "a full queue of handshakes", &[COUNTERS], connections::syn_cookies, unseen),
    // The time of a request, less a round trip and the client's own.
    limit(Cause::RequestReply, "requests that wait for replies", &[ANY_TCP], requests::request_reply),
    // The busiest thread or core that carries the flow.
    limit(Cause::CpuLimit, "the processor", &[CORES], limits::cpu),
    // Goodput against the link's speed, and a standing queue on the path.
    on_path(limit(Cause::LinkLimit, "the link", &[], limits::link)),
    // The bytes that cross memory against what all cores copy.
    limit(Cause::MemoryLimit, "the memory's bandwidth", &[LIMITS], limits::memory),
    // Goodput against the rate of the device's PCI Express link.
    limit(Cause::BusLimit, "the bus", &[LIMITS], limits::bus),
];

const fn fault(
    cause: Cause,
    words: &'static str,
    needs: &'static [Evidence],
    judge: JudgeFunction,
    next: JudgeFunction,
) -> CauseJudge {
    CauseJudge { cause, words, is_limit: false, relieves: RelievedLimit::End, needs, judge, next }
}

/// Marks a cause that lies on the path, or in the queues in front of it.
const fn on_path(row: CauseJudge) -> CauseJudge {
    CauseJudge { relieves: RelievedLimit::Path, ..row }
}

/// Marks a cause whose remedies make a byte cost the processor less.
const fn of_cost(row: CauseJudge) -> CauseJudge {
    CauseJudge { relieves: RelievedLimit::Processor, ..row }
}

/// Returns the row of a limit, that is, of what remains when nothing is wrong.
const fn limit(
    cause: Cause,
    words: &'static str,
    needs: &'static [Evidence],
    judge: JudgeFunction,
) -> CauseJudge {
    CauseJudge { is_limit: true, ..fault(cause, words, needs, judge, unseen) }
}

/// Returns what the remedies of a cause relieve.
pub(super) fn relieves(cause: Cause) -> RelievedLimit {
    row(cause).map_or(RelievedLimit::End, |row| row.relieves)
}

fn row(cause: Cause) -> Option<&'static CauseJudge> {
    CAUSES.iter().find(|row| row.cause == cause)
}

/// Returns the name of a cause in words that follow "held back by".
pub fn cause(cause: Cause) -> &'static str {
    row(cause).map_or("another cause", |row| row.words)
}

/// Returns true if the cause is a limit, that is, what remains when nothing is wrong.
pub fn is_limit(cause: Cause) -> bool {
    row(cause).is_some_and(|row| row.is_limit)
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
    fn every_cause_has_one_row() {
        let causes: HashSet<_> = CAUSES.iter().map(|row| row.cause).collect();
        assert_eq!(causes.len(), CAUSES.len(), "a cause with two rows");
        // Serde lists the names of all causes, and the unknown one.
        let names = serde_json::from_str::<Cause>(r#""hologram""#).unwrap_err().to_string();
        assert_eq!(names.matches('`').count() / 2 - 1, CAUSES.len(), "a cause without a row: {names}");
    }
}
