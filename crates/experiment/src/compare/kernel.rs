//! Runs of a study on the sockets of two hosts.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_analysis::wan::unfit;
use landspeed_record::{
    Cell, Contest, Contestant, Controls, CpuUsage, EndpointOutcome, FlowPlan, Misshapen, Question, RunFlow,
    RunSample, Settings, Study, StudyRun, TcpSample, Workload,
};
use landspeed_session::{Reply, Request};
use landspeed_topology::{Hosts, PathLink};
use landspeed_transport::settings::{TRANSPORT, table};
use landspeed_units::{Bytes, Nanos};
use landspeed_workload::staggered::{self, StaggeredFlow};

use super::Carrier;
use crate::{Error, Pair, Watching, buffers};

/// Samples of all flows of a run, at most: what one answer of an agent holds (16 MiB) at some 500 bytes a sample.
const MOST_SAMPLES: u64 = 20_000;

/// What buffers may grow to at least: the kernel's own default for receiving.
const LEAST_ROOM: Bytes = Bytes::mib(6);

/// Carries runs over a pair of hosts, which hold the congestion controls and the windows of the study until this is
/// put back.
pub(super) struct KernelRuns<'a> {
    pair: &'a mut Pair,
    hosts: &'a dyn Hosts,
    study: &'a Study,
    /// Name in landspeed to name in the kernel.
    kernel_names: BTreeMap<String, String>,
}

impl<'a> KernelRuns<'a> {
    /// Has the sender's agent load what the study's contests need.
    pub(super) fn prepare(pair: &'a mut Pair, hosts: &'a dyn Hosts, study: &'a Study) -> Result<Self, Error> {
        let kernel_names = load(pair, study.contests.iter().flat_map(|contest| &contest.contestants))?;
        Ok(KernelRuns { pair, hosts, study, kernel_names })
    }

    fn workload(&self, plans: &[FlowPlan]) -> Workload {
        let flow = |plan: &FlowPlan| StaggeredFlow {
            settings: self.settings(&plan.contestant),
            enters_ns: plan.enters_ns,
            leaves_ns: plan.leaves_ns,
            data_bytes: plan.data_bytes,
        };
        let flows: Vec<StaggeredFlow> = plans.iter().map(flow).collect();
        staggered::spec(&flows, self.study.duration(), self.study.probe_ns)
    }

    /// What a contestant's flows are set to, its control by its name in the kernel.
    fn settings(&self, contestant: &str) -> Settings {
        let Contestant { control, settings } = parsed(contestant);
        let table = landspeed_transport::find(TRANSPORT.of(&settings)).map(table);
        let canonical = |(name, value): (String, String)| {
            let parsed = table.as_ref().and_then(|table| table.parse(&name, &value).ok());
            parsed.unwrap_or((name, value))
        };
        let kernel_name = control.and_then(|name| self.kernel_names.get(&name));
        let control = kernel_name.map(|name| ("socket-congestion".to_owned(), name.clone()));
        settings.into_iter().map(canonical).chain(control).collect()
    }

    /// The study's time between samples, or a longer one where there are more flows than it was meant for.
    fn interval(&self, plans: &[FlowPlan]) -> Nanos {
        let least = self.study.duration().0 * plans.len() as u64 / MOST_SAMPLES;
        self.study.sample_ns.max(Nanos(least))
    }
}

impl Carrier for KernelRuns<'_> {
    fn run(
        &mut self,
        contest: &Contest,
        repeat: u32,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<StudyRun>, Error> {
        let plans = self.study.schedule(contest);
        if let Some(plan) = plans.iter().find(|plan| plan.longer_ns > Nanos(0)) {
            let longer = plan.longer_ns;
            return Err(Error::Other(format!(
                "{}: two hosts have one path between them, not a second one that is {longer} longer: add --simulate",
                contest.name
            )));
        }
        // A control of another program that was there may have gone with it since.
        self.kernel_names.extend(load(self.pair, contest.contestants.iter())?);
        let watching = Watching { interval: self.interval(&plans), ..Watching::default() };
        self.pair.set(&windows(self.study, contest))?;
        if let Some(link) = self.hosts.link() {
            link.mark();
        }
        let staggered = (self.workload(&plans), Nanos(0));
        let outcomes = self.pair.run_unless(staggered, &Settings::new(), &watching, stop)?;
        let Some([a, b]) = outcomes else { return Ok(None) };
        let mut run = StudyRun { contest: contest.name.clone(), repeat, ..self.seen(&plans, &[a, b])? };
        // Where the link was not the path that it was told to be, the run does not count.
        if let Some((link, queue)) = self.hosts.link().map(PathLink::since_mark) {
            (run.invalid, run.queue, run.link) = (unfit(&link), queue, Some(link));
        }
        Ok(Some(run))
    }
}

impl KernelRuns<'_> {
    fn seen(&self, plans: &[FlowPlan], ends: &[EndpointOutcome; 2]) -> Result<StudyRun, Error> {
        let misshapen = |why: Misshapen| self.pair.a.misshapen(&why);
        let a = &ends[0];
        let staggered: &staggered::Seen = a.details.read().map_err(misshapen)?;
        Ok(StudyRun {
            flows: flows(plans, ends, &staggered.flow_took_ns),
            probes: staggered.probes.clone(),
            probes_lost: staggered.probes_lost,
            sender_cpu_ns: Some(a.observed.get::<CpuUsage>().own()),
            sender_clock_hz: self.pair.a.facts.cpu_clock_hz,
            controls: a.observed.get::<Controls>().0.clone(),
            ..StudyRun::default()
        })
    }
}

/// Has the sender's host hold the controls of these contestants; their names in its kernel.
fn load<'a>(
    pair: &Pair,
    contestants: impl Iterator<Item = &'a String>,
) -> Result<BTreeMap<String, String>, Error> {
    let names: BTreeSet<String> = contestants.filter_map(|text| parsed(text).control).collect();
    let names: Vec<String> = names.into_iter().collect();
    match pair.a.call(&Request::Controls { names: names.clone() })? {
        Reply::Controls { ready } if ready.len() == names.len() => Ok(names.into_iter().zip(ready).collect()),
        _ => Err(pair.a.unexpected("controls")),
    }
}

/// A record may hold anything: what is no contestant is a control that there is not.
fn parsed(text: &str) -> Contestant {
    let unknown = || Contestant { control: Some(text.to_owned()), ..Contestant::default() };
    text.parse().unwrap_or_else(|_| unknown())
}

/// Windows that bound no flow, but for what the contest asks: the kernel grows buffers on demand up to four times what the
/// path and its queue hold, since it counts its own overhead in (tcp(7), tcp_rmem and tcp_wmem). What bounds a flow is its
/// sender's buffer.
fn windows(study: &Study, contest: &Contest) -> Cell {
    let path = &study.path;
    let needed = Bytes(4 * (path.bdp().0 + path.room().0)).max(LEAST_ROOM);
    let bound = match contest.question {
        Question::Streams { window_bytes, .. } => Some(window_bytes),
        _ => path.window_bytes,
    };
    buffers::cell(bound.map_or(needed, buffers::for_window), needed)
}

/// What was seen of each flow: goodput by the receiver's counters, the rest by the sender's.
fn flows(plans: &[FlowPlan], ends: &[EndpointOutcome; 2], took: &[Option<Nanos>]) -> Vec<RunFlow> {
    let flow = |(number, plan): (u32, &FlowPlan)| RunFlow {
        plan: plan.clone(),
        samples: if plan.data_bytes.is_some() { Vec::new() } else { samples(number, plan, ends) },
        took_ns: took.get(number as usize).copied().flatten(),
    };
    (0..).zip(plans).map(flow).collect()
}

fn samples(number: u32, plan: &FlowPlan, [sender, receiver]: &[EndpointOutcome; 2]) -> Vec<RunSample> {
    let of = |end: &EndpointOutcome| -> Vec<TcpSample> {
        let all = end.observed.get::<Vec<TcpSample>>();
        all.iter().filter(|sample| sample.flow == number).cloned().collect()
    };
    let (received, sent) = (of(receiver), of(sender));
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
        let flows = flows(&[plan], &[sender, receiver], &[]);
        let goodput: Vec<_> = flows[0].samples.iter().map(|s| s.goodput_bytes.0).collect();
        assert_eq!(goodput, [1000, 2000, 0]);
        let windows: Vec<_> = flows[0].samples.iter().map(|s| s.cwnd_segments).collect();
        assert_eq!(windows, [10, 20, 0], "it has left when the last was taken");
    }

    #[test]
    fn a_host_that_saw_nothing_gives_no_samples() {
        let ends = [outcome(&[]), outcome(&[])];
        assert!(flows(&[FlowPlan::default()], &ends, &[])[0].samples.is_empty());
    }
}
