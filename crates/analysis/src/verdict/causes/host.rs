//! Judges of resources that a host withholds from the flow's programs: processor time, its disk, memory for sockets.

use landspeed_record::units::Bytes;
use landspeed_record::{Cause, Finding, MemoryStalls, Throttling};

use super::programs::{instead, program, starves};
use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::sizing;
use crate::verdict::thresholds::{CUT_WINDOW, NOTABLE};
use crate::verdict::view::{EndView, VerdictView, WindowCause, counter};
use crate::verdict::words::{percent, shown};

pub(super) fn cpu_quota(view: &VerdictView<'_>) -> Option<Finding> {
    let end = view.ends().max_by(|a, b| a.quota().total_cmp(&b.quota()))?;
    let weight = end.quota();
    if weight < NOTABLE {
        return None;
    }
    let held = end.host.seen.get::<Throttling>();
    let allowed = held.allowed_ns.0 as f64 / held.period_ns.0 as f64;
    let group = if held.group.is_empty() { "its control group".to_owned() } else { shown(&held.group) };
    let may = match allowed.is_finite() && allowed > 0.0 {
        true => format!(": {group} may use {allowed:.2} processors"),
        false => format!(" of {group}"),
    };
    let summary = format!("a processor quota stops {}{may}", program(end));
    Some(
        found(Cause::CpuQuota, weight, 0.95, summary)
            .at(end.name())
            .saw(format!(
                "the group was stopped for {} in {}, summed over processors (cpu.stat)",
                held.quota_ns, held.window_ns
            ))
            .saw_when(
                held.period_ns.0 > 0,
                format!("it may run for {} of each {}", held.allowed_ns, held.period_ns),
            )
            .saw_if(end.ran().map(|ran| format!("its busiest thread ran for {} of the time", percent(ran))))
            .ask(format!(
                "raise the quota of {group}: CPUQuota= of its systemd unit, --cpus of its container, or cpu.max"
            ))
            .expect(view.won_back(weight)),
    )
}

/// The remedy for a sender that waits for its disk.
const READS_FASTER: &str =
    "a faster disk, larger reads ahead (blockdev --setra), or files that are in memory already";
/// The remedy for a receiver that waits for its disk.
const WRITES_FASTER: &str =
    "a faster disk, or a program that writes beside its reading and syncs less often (fsync, O_SYNC)";

/// Judges a sending or receiving program that waits for its disk.
pub(super) fn slow_disk(view: &VerdictView<'_>) -> Option<Finding> {
    let reads = view.sender.as_ref().filter(|end| end.blocked() >= NOTABLE).and_then(|end| {
        Some((end, starves(view)?.weight.min(end.blocked()), "what it sends is read from", READS_FASTER))
    });
    // A reader that waits either closes the window or, with a larger buffer, reads late.
    let limit = view.window_limit.filter(|limit| limit.by == WindowCause::Reader).map(|limit| limit.share);
    let late = limit.or(view.late_reads.filter(|late| *late >= NOTABLE));
    let writes =
        view.receiver.as_ref().filter(|end| end.blocked() >= NOTABLE).and_then(|end| {
            Some((end, late?.min(end.blocked()), "what arrives is written to", WRITES_FASTER))
        });
    let (end, weight, what, remedy) = reads.into_iter().chain(writes).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let who = end.blocked_process().map_or_else(|| program(end), |process| shown(&process.name));
    let summary = format!("{who} waits for a disk: {what} one that is slower than the path");
    Some(
        found(Cause::SlowDisk, weight, 0.85, summary)
            .at(end.name())
            .saw(format!(
                "its thread was found in an uninterruptible sleep in {} of the samples (state D)",
                percent(end.blocked())
            ))
            .saw_if(instead(end))
            .ask(remedy)
            .expect(view.won_back(weight)),
    )
}

/// Judges a host whose programs stall for want of memory.
pub(super) fn memory_shortage(view: &VerdictView<'_>) -> Option<Finding> {
    let stalls = |end: &EndView<'_>| *end.host.seen.get::<MemoryStalls>();
    let end = view.ends().max_by(|a, b| stalls(a).share().total_cmp(&stalls(b).share()))?;
    let (held, weight) = (stalls(end), stalls(end).share());
    if weight < NOTABLE {
        return None;
    }
    let summary =
        "the host is short of memory: programs wait until the kernel has freed pages or read them again";
    Some(
        found(Cause::MemoryShortage, weight, 0.8, summary)
            .at(end.name())
            .saw(format!("for {} of {} a task waited for memory and nothing else ran", held.full_ns, held.window_ns))
            .saw(format!("at least one task waited for {} (/proc/pressure/memory)", held.some_ns))
            .ask("find what holds the memory: `ps -eo rss,pid,comm --sort=-rss | head`; `vmstat 1` shows swapping")
            .expect(view.won_back(weight)),
    )
}

pub(super) fn tcp_memory(view: &VerdictView<'_>) -> Option<Finding> {
    let limit = view.window_limit.filter(|limit| limit.by == WindowCause::Memory)?;
    let end = view.receiver.as_ref()?;
    let entered = counter(end.host, "TcpExt.TCPMemoryPressures");
    let pruned = counter(end.host, "TcpExt.PruneCalled");
    let summary = "the machine's memory for TCP is used up, and receivers offer small windows";
    Some(
        found(Cause::TcpMemory, limit.share, 0.9, summary)
            .at(end.name())
            .saw(format!("it came under pressure {entered} times (TCPMemoryPressures)"))
            .saw_when(pruned > 0, format!("receive queues were pruned {pruned} times (PruneCalled)"))
            .saw(format!("the window was {} at most", Bytes(limit.window as u64)))
            .saw(format!("data waited for it for {} of the time", percent(limit.share)))
            .try_computed(
                "tcp-mem",
                Some(sizing::tcp_memory(end).unwrap_or_default()),
                "more memory for all of TCP's buffers together",
            )
            .ask("find the sockets that hold it: `ss -tmn` lists the memory of each"),
    )
}

/// Judges a receiver that drops segments for want of room. The kernel then offers two segments (tcp_clamp_window in
/// net/ipv4/tcp_input.c), which takes back what it promised. The sender may not resend what lies beyond them, and its
/// probe is the last segment in flight, so that it waits until its timer expires (tcp_send_loss_probe and
/// __tcp_retransmit_skb in tcp_output.c). The window grows again with what arrives, until the next drop
/// (docs/results/stalled.md).
pub(super) fn dropped_window(view: &VerdictView<'_>) -> Option<Finding> {
    let limit = view.window_limit.filter(|limit| limit.by == WindowCause::Dropped)?;
    let end = view.receiver.as_ref()?;
    let after = match limit.segments <= CUT_WINDOW {
        true => format!("offers {:.1} segments ever since", limit.segments),
        false => "takes its window back to two segments after each".to_owned(),
    };
    let summary = format!("the receiver dropped segments for want of room, and {after}");
    let timeouts = view.sender.as_ref().map_or(0, |sender| counter(sender.host, "TcpExt.TCPTimeouts"));
    Some(
        found(Cause::DroppedWindow, limit.share.min(limit.cut), 0.9, summary)
            .at(end.name())
            .saw(format!("its socket has dropped {} segments (sk_drops)", socket_drops(end)))
            .saw(format!("the window was two segments in {} of the samples", percent(limit.cut)))
            .saw(format!("it was {} at most", Bytes(limit.window as u64)))
            .saw_when(timeouts > 0, format!("the sender's timer expired {timeouts} times (TCPTimeouts)"))
            .saw(format!("data waited for the window for {} of the time", percent(limit.share)))
            .try_computed(
                "tcp-rmem",
                Some(sizing::room_for_packets(end)),
                "a buffer that may grow instead of dropping, with room for several of the largest packets",
            )
            .try_knob("rcvbuf", "0", "and no fixed buffer that keeps it small")
            .ask("then open the connection again: this one keeps its window"),
    )
}

/// Returns the number of segments that the main flow's socket dropped since it was opened.
fn socket_drops(end: &EndView<'_>) -> u64 {
    end.main().and_then(|flow| flow.watch.samples.last()).map_or(0, |sample| sample.drops)
}
