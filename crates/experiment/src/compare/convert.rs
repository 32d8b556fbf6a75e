//! From what two hosts saw to a run of a study.

use landspeed_analysis::wan::unfit;
use landspeed_record::{
    EndpointOutcome, FlowPlan, QueueSample, RunFlow, RunSample, StudyRun, TcpSample, WanStats,
};
use landspeed_units::{Bytes, Nanos};
use landspeed_workload::staggered::Seen;

pub(super) struct Ends<'a> {
    pub(super) sender: &'a EndpointOutcome,
    pub(super) receiver: &'a EndpointOutcome,
    /// What the workload at the sender saw beside.
    pub(super) staggered: &'a Seen,
}

/// What was seen of each flow: goodput by the receiver's counters, the rest by the sender's.
pub(super) fn flows(plans: &[FlowPlan], ends: &Ends<'_>) -> Vec<RunFlow> {
    let flow = |(number, plan): (u32, &FlowPlan)| RunFlow {
        plan: plan.clone(),
        samples: if plan.data_bytes.is_some() { Vec::new() } else { samples(number, plan, ends) },
        took_ns: ends.staggered.flow_took_ns.get(number as usize).copied().flatten(),
    };
    (0..).zip(plans).map(flow).collect()
}

fn samples(number: u32, plan: &FlowPlan, ends: &Ends<'_>) -> Vec<RunSample> {
    let of = |end: &EndpointOutcome| -> Vec<TcpSample> {
        let all = end.observed.get::<Vec<TcpSample>>();
        all.iter().filter(|sample| sample.flow == number).cloned().collect()
    };
    let (received, sent) = (of(ends.receiver), of(ends.sender));
    let mut before = Bytes(0);
    let mut nearest = 0;
    let mut found = Vec::with_capacity(received.len());
    for sample in &received {
        while nearest + 1 < sent.len() && nearer(&sent[nearest + 1], &sent[nearest], sample.at_ns) {
            nearest += 1;
        }
        let here = sample.at_ns > plan.enters_ns && sample.at_ns <= plan.leaves_ns;
        let sender = sent.get(nearest);
        found.push(RunSample {
            at_ns: sample.at_ns,
            goodput_bytes: Bytes(sample.received_bytes.0.saturating_sub(before.0)),
            cwnd_segments: sender.filter(|_| here).map_or(0, |sender| sender.cwnd_segments),
            rtt_ns: sender.map_or(Nanos(0), |sender| sender.rtt_ns),
            retransmits: sender.map_or(0, |sender| sender.retransmits),
        });
        before = before.max(sample.received_bytes);
    }
    found
}

fn nearer(one: &TcpSample, other: &TcpSample, at: Nanos) -> bool {
    one.at_ns.0.abs_diff(at.0) < other.at_ns.0.abs_diff(at.0)
}

/// The run with what the link did meanwhile, and with why it does not count where the link was not the path that it was
/// told to be.
pub(super) fn with_link(run: StudyRun, link: Option<(WanStats, Vec<QueueSample>)>) -> StudyRun {
    let Some((link, queue)) = link else { return run };
    StudyRun { invalid: unfit(&link), queue, link: Some(link), ..run }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(flow: u32, at_ms: u64, received: u64, cwnd: u32) -> TcpSample {
        TcpSample {
            flow,
            at_ns: Nanos::millis(at_ms),
            received_bytes: Bytes(received),
            cwnd_segments: cwnd,
            ..TcpSample::default()
        }
    }

    fn outcome(samples: &[TcpSample]) -> EndpointOutcome {
        let mut outcome = EndpointOutcome::default();
        outcome.observed.put(samples.to_vec());
        outcome
    }

    #[test]
    fn goodput_is_the_receivers_and_the_window_the_senders() {
        let plan = FlowPlan { leaves_ns: Nanos::millis(250), ..FlowPlan::default() };
        let receiver = outcome(&[
            sample(0, 100, 1000, 0),
            sample(1, 100, 7, 0),
            sample(0, 200, 3000, 0),
            sample(0, 300, 3000, 0),
        ]);
        let sender = outcome(&[sample(0, 90, 0, 10), sample(0, 195, 0, 20), sample(0, 310, 0, 30)]);
        let flows =
            flows(&[plan], &Ends { sender: &sender, receiver: &receiver, staggered: &Seen::default() });
        let goodput: Vec<_> = flows[0].samples.iter().map(|s| s.goodput_bytes.0).collect();
        assert_eq!(goodput, [1000, 2000, 0]);
        let windows: Vec<_> = flows[0].samples.iter().map(|s| s.cwnd_segments).collect();
        assert_eq!(windows, [10, 20, 0], "it has left when the last was taken");
    }

    #[test]
    fn a_host_that_saw_nothing_gives_no_samples() {
        let ends = Ends { sender: &outcome(&[]), receiver: &outcome(&[]), staggered: &Seen::default() };
        assert!(flows(&[FlowPlan::default()], &ends)[0].samples.is_empty());
    }
}
