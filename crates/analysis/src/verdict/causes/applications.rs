//! Programs that do not keep up, by their own choice.

use landspeed_record::{Cause, Finding};

use crate::verdict::judge::{Telling, found};
use crate::verdict::thresholds::{NOTABLE, SATURATED};
use crate::verdict::view::{End, HeldBy, View, counter};
use crate::verdict::words::{percent, share, shown};

pub(super) fn slow_reader(view: &View<'_>) -> Option<Finding> {
    let limit = view.window_limit.filter(|limit| limit.by == HeldBy::Reader)?;
    let end = view.receiver.as_ref()?;
    let confidence = if end.process.is_some() { 0.95 } else { 0.7 };
    let summary = format!("{} reads more slowly than data arrives", program(end));
    let finding = found(Cause::SlowReader, limit.share, confidence, summary).at(end.name());
    let zero = counter(end.host, "TcpExt.TCPToZeroWindowAdv");
    let finding = finding
        .saw_if(limit.queue.map(|queue| format!("the receive queue was {} full on average", percent(queue))))
        .saw(format!("so the window was closed to the sender for {} of the time", percent(limit.share)))
        .saw_if(
            (zero > 0).then(|| format!("the receiver closed its window {zero} times (TCPToZeroWindowAdv)")),
        )
        .saw_if(instead(end));
    let finding = finding
        .try_knob("read-size", "", "read more in each call")
        .ask("find out what the reading program waits for: a larger buffer would only fill as well");
    Some(finding.expect(view.won_back(limit.share)))
}

pub(super) fn slow_writer(view: &View<'_>) -> Option<Finding> {
    let end = view.sender.as_ref()?;
    let flow = end.main()?;
    let time = view.time?;
    let kept_out = flow.when(|t| t.unacked_segments > 0) > 0.0 || super::backlog::overflows(view);
    if flow.delta(|t| t.sent_bytes.0) == 0 && kept_out {
        return None; // Nothing gets through: that the writer waits is no wonder.
    }
    // On a long path data is always in flight; then it is the sender's own word that counts.
    let starved = flow.when(|t| t.app_limited && t.not_sent_bytes.0 == 0) * time.rest;
    let mut weight = time.idle.max(starved);
    let hurried = end.wanted_cpu().is_some_and(|wanted| wanted >= SATURATED) && !end.computes();
    let waits_for_room = end.elsewhere().is_some_and(|away| away < NOTABLE) && !end.computes();
    if hurried || (end.process.is_some() && waits_for_room) {
        return None;
    }
    if !end.computes() {
        weight = weight.min(1.0 - end.wanted_cpu().unwrap_or(0.0));
    }
    if weight < NOTABLE {
        return None;
    }
    let confidence = if end.process.is_some() { 0.9 } else { 0.7 };
    let summary = format!("{} writes more slowly than the path would take it", program(end));
    let finding = found(Cause::SlowWriter, weight, confidence, summary).at(end.name());
    let finding = finding
        .saw(format!("nothing was in flight and nothing waited for {} of the time", percent(time.idle)))
        .saw_if((starved > 0.0).then(|| {
            format!(
                "TCP had nothing more to send in {} of the samples (app_limited)",
                percent(share(starved))
            )
        }))
        .saw_if(instead(end));
    let finding =
        finding.ask("find out what the writing program waits for: its disk, its peer, a timer, a lock");
    Some(finding.expect(view.won_back(weight)))
}

/// "iperf3 (pid 4711)", or "the program".
fn program(end: &End<'_>) -> String {
    match end.process {
        Some(process) if process.pid > 0 => format!("{} (pid {})", shown(&process.name), process.pid),
        _ => "the program".to_owned(),
    }
}

/// What its busiest thread does.
fn instead(end: &End<'_>) -> Option<String> {
    let ran = end.ran()?;
    let seen = end.mostly_in().map(|(place, share)| {
        let place = match place {
            "running" | "asleep" | "stopped" => place.to_owned(),
            function => format!("in {}", shown(function)),
        };
        format!(", was found {place} in {} of the samples", percent(share))
    });
    Some(format!("its busiest thread ran for {} of the time{}", percent(ran), seen.unwrap_or_default()))
}
