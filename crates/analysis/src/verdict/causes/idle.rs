//! The judge of programs that send in bursts.

use landspeed_record::{Cause, Finding, TcpState};

use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::thresholds::{CWND_FULL, FALLEN, FEW_FALLS, NOTABLE};
use crate::verdict::view::{FlowView, VerdictView};
use crate::verdict::words::percent;

/// Judges a window that falls after pauses (tcp_cwnd_restart in net/ipv4/tcp_output.c, RFC 2861) and must grow again in
/// each burst.
pub(super) fn idle_restart(view: &VerdictView<'_>) -> Option<Finding> {
    // The pauses of a program that a quota stops end with the quota.
    let end = view.sender.as_ref().filter(|end| end.quota() < NOTABLE)?;
    let flow = end.main()?;
    let (falls, highest) = (falls(flow), flow.most(|t| u64::from(t.cwnd_segments))?);
    let regrows = |t: &TcpState| {
        let full = f64::from(t.unacked_segments) >= CWND_FULL * f64::from(t.cwnd_segments);
        t.ca_state == 0 && t.unacked_segments > 0 && full && f64::from(t.cwnd_segments) < FALLEN * highest
    };
    let weight = flow.when(regrows);
    if falls < FEW_FALLS || weight < NOTABLE || view.standing_queue().is_some() {
        return None;
    }
    let summary = "each pause of the program makes TCP begin its next burst with a small window";
    Some(
        found(Cause::IdleRestart, weight, 0.85, summary)
            .at(end.name())
            .saw(format!("the window fell {falls} times while nothing was in flight and nothing was lost"))
            .saw(format!(
                "it was full, and below {} of the {highest:.0} segments that it had before, in {} of the samples",
                percent(FALLEN),
                percent(weight)
            ))
            .saw_if(view.rtt.map(|rtt| format!("it doubles once a round trip of {rtt}")))
            // Each burst ends before the next pause does, so the goodput stays what the program offers.
            .try_knob("slow-start-after-idle", "off", "keep the window over pauses: each burst ends sooner"),
    )
}

/// Returns the number of times that the window fell from one sample to the next without a loss, after a sample in which
/// nothing was in flight and nothing waited.
fn falls(flow: &FlowView<'_>) -> usize {
    let states: Vec<&TcpState> = flow.states().collect();
    let fell = |pair: &&[&TcpState]| {
        let (before, after) = (pair[0], pair[1]);
        let lossless = after.retransmitted_segments == before.retransmitted_segments
            && before.ca_state == 0
            && after.ca_state == 0;
        let rested = before.unacked_segments == 0 && before.not_sent_bytes.0 == 0;
        let smaller = f64::from(after.cwnd_segments) < FALLEN * f64::from(before.cwnd_segments);
        lossless && rested && smaller
    };
    states.windows(2).filter(fell).count()
}

/// Returns true if the window falls after the program's pauses, so that more than the pauses holds the flow back.
pub(super) fn restarts(view: &VerdictView<'_>) -> bool {
    idle_restart(view).is_some()
}
