//! Makes the runs of a study on the sockets of two hosts.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_agent::session::{Reply, Request};
use landspeed_analysis::disturbances;
use landspeed_analysis::wan::unfit;
use landspeed_lab::topology::{HostSet, PathLink, SECOND_RTT_DSCP};
use landspeed_record::factor::Domain;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{
    Cell, CongestionControls, Contest, ContestQuestion, Contestant, CpuUsage, DetailError, EndpointOutcome,
    FlowPlan, Line, RunFlow, RunSample, SenderPart, Settings, Study, StudyPath, StudyRun, TcpSample,
    Workload,
};
use landspeed_transport::settings::{TRANSPORT, table};
use landspeed_workload::staggered::{self, FlowProgressSample, StaggeredFlow};

use super::StudyRunner;
use crate::answers::RunCallbacks;
use crate::{Error, HostGroup, Pair, RunSpec, WatchOptions, buffers};

/// The largest number of samples of all flows of a run. At some 500 bytes per sample they fit into an agent's answer
/// (16 MiB).
const MOST_SAMPLES: u64 = 20_000;

/// Makes the runs of a study on a pair of hosts. The hosts keep the study's congestion controls and buffer limits until
/// they are restored.
pub(super) struct KernelStudyRunner<'a> {
    group: &'a mut HostGroup,
    hosts: &'a dyn HostSet,
    study: &'a Study,
    /// The kernel's names of congestion controls, by landspeed's names.
    kernel_names: BTreeMap<String, String>,
    /// Notes on the study's controls for a reader.
    notes: Vec<String>,
}

impl<'a> KernelStudyRunner<'a> {
    /// Creates the runner. The sender's agent loads the congestion controls of the study's contests.
    pub(super) fn prepare(
        group: &'a mut HostGroup,
        hosts: &'a dyn HostSet,
        study: &'a Study,
    ) -> Result<Self, Error> {
        let (kernel_names, notes) =
            load(&group.first(), study.contests.iter().flat_map(|contest| &contest.contestants))?;
        Ok(KernelStudyRunner { group, hosts, study, kernel_names, notes })
    }

    /// Returns the record's notes on controls that were replaced by others.
    pub(super) fn notes(&self) -> Vec<Line> {
        self.notes.iter().map(|text| Line::Note { text: text.clone() }).collect()
    }

    fn workload(&self, plans: &[FlowPlan]) -> Workload {
        let flow = |plan: &FlowPlan| StaggeredFlow {
            settings: self.settings(plan),
            enters_ns: plan.enters_ns,
            leaves_ns: plan.leaves_ns,
            data_bytes: plan.data_bytes,
        };
        let flows: Vec<StaggeredFlow> = plans.iter().map(flow).collect();
        staggered::spec(&flows, self.study.duration(), self.study.probe_ns)
    }

    /// Returns the settings of a flow: its contestant's, with the control under the kernel's name, and the mark by which
    /// the link knows packets of the second round trip.
    fn settings(&self, plan: &FlowPlan) -> Settings {
        let Contestant { control, settings } = parsed(&plan.contestant);
        let table = landspeed_transport::find(TRANSPORT.of(&settings)).map(table);
        let canonical = |(name, value): (String, String)| {
            let parsed = table.as_ref().and_then(|table| table.parse(&name, &value).ok());
            parsed.unwrap_or((name, value))
        };
        let kernel_name = control.and_then(|name| self.kernel_names.get(&name));
        let control = kernel_name.map(|name| ("socket-congestion".to_owned(), name.clone()));
        let room = udt_room(self.study, &settings);
        let mark = (plan.longer_ns > Nanos(0)).then(|| ("dscp".to_owned(), SECOND_RTT_DSCP.to_string()));
        room.into_iter().chain(settings.into_iter().map(canonical)).chain(control).chain(mark).collect()
    }

    /// Returns the study's time between samples, or a longer one if the samples of all flows would exceed the limit.
    fn interval(&self, plans: &[FlowPlan]) -> Nanos {
        let least = self.study.duration().0 * plans.len() as u64 / MOST_SAMPLES;
        self.study.sample_ns.max(Nanos(least))
    }
}

impl StudyRunner for KernelStudyRunner<'_> {
    fn run(
        &mut self,
        contest: &Contest,
        repeat: u32,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<StudyRun>, Error> {
        let plans = self.study.schedule(contest);
        reachable(&self.study.path, &plans)
            .map_err(|why| Error::Other(format!("{}: {why}", contest.name)))?;
        // A control that another program had loaded may have been unloaded since.
        let (kernel_names, _) = load(&self.group.first(), contest.contestants.iter())?;
        self.kernel_names.extend(kernel_names);
        let watching = WatchOptions { interval: self.interval(&plans), ..WatchOptions::default() };
        self.group.set(&windows(self.study, contest).with(&without(self.study)))?;
        if let Some(link) = self.hosts.link() {
            link.mark();
        }
        let staggered = RunSpec::new(self.workload(&plans), &Settings::new()).watched(watching);
        let callbacks = RunCallbacks { stop, on_progress: &|_, _| {} };
        let outcomes = self.group.first().run_until(&staggered, &callbacks)?;
        let Some([a, b]) = outcomes else { return Ok(None) };
        let mut run = StudyRun { contest: contest.name.clone(), repeat, ..self.seen(&plans, &[a, b])? };
        // If the link was not the path that was requested, the run does not count.
        if let Some((link, queue)) = self.hosts.link().map(PathLink::since_mark) {
            (run.invalid, run.queue, run.link) = (unfit(&link), queue, Some(link));
        }
        Ok(Some(run))
    }
}

impl KernelStudyRunner<'_> {
    fn seen(&self, plans: &[FlowPlan], ends: &[EndpointOutcome; 2]) -> Result<StudyRun, Error> {
        let sender = self.group.first().a;
        let misshapen = |why: DetailError| sender.misshapen(&why);
        let a = &ends[0];
        let [staggered, there] = [0, 1].map(|end| ends[end].details.read::<staggered::StaggeredDetails>());
        let (staggered, there) = (staggered.map_err(misshapen)?, there.map_err(misshapen)?);
        Ok(StudyRun {
            flows: flows(
                plans,
                &[EndSamples::of(a, staggered), EndSamples::of(&ends[1], there)],
                &staggered.flow_took_ns,
            ),
            probes: staggered.probes.clone(),
            probes_lost: staggered.probes_lost,
            sender_cpu_ns: Some(a.observed.get::<CpuUsage>().own()),
            sender_clock_hz: sender.facts.cpu_clock_hz,
            controls: a.observed.get::<CongestionControls>().0.clone(),
            disturbed: disturbances(&[self.group.first().ends(ends)]),
            ..StudyRun::default()
        })
    }
}

/// Makes the sender's host load the congestion controls of these contestants. Returns the kernel's name of each, by
/// landspeed's name, and the host's notes on them.
fn load<'a>(
    pair: &Pair<'_>,
    contestants: impl Iterator<Item = &'a String>,
) -> Result<(BTreeMap<String, String>, Vec<String>), Error> {
    let names: BTreeSet<String> = contestants.filter_map(|text| parsed(text).control).collect();
    let names: Vec<String> = names.into_iter().collect();
    match pair.a.call(&Request::Controls { names: names.clone() })? {
        Reply::Controls { ready, notes } if ready.len() == names.len() && notes.len() <= names.len() => {
            let notes = notes.into_iter().map(|note| format!("{}: {note}", pair.a.name)).collect();
            Ok((names.into_iter().zip(ready).collect(), notes))
        }
        _ => Err(pair.a.unexpected("controls")),
    }
}

/// Parses a contestant's text. Text that is no contestant, which a record may contain, becomes the name of an unknown
/// congestion control.
fn parsed(text: &str) -> Contestant {
    let unknown = || Contestant { control: Some(text.to_owned()), ..Contestant::default() };
    text.parse().unwrap_or_else(|_| unknown())
}

/// Returns an error if a flow has a longer round trip than the path has.
fn reachable(path: &StudyPath, plans: &[FlowPlan]) -> Result<(), String> {
    let has = |plan: &&FlowPlan| plan.longer_ns == Nanos(0) || path.longer_ns() == Some(plan.longer_ns);
    plans.iter().find(|plan| !has(plan)).map_or(Ok(()), |plan| {
        Err(format!("the path has no round trip that is {} longer: add --simulate", plan.longer_ns))
    })
}

/// Returns the buffer setting of a UDT flow: twice the bytes that path and queue hold, as in the simulator. No knob
/// sets UDT's own buffers, and smaller ones would limit UDT more than the kernel's buffers limit TCP. Returns `None`
/// for other transports, or if the default suffices. A contestant's own setting overrides it.
fn udt_room(study: &Study, settings: &Settings) -> Option<(String, String)> {
    const BUFFER: &str = "udt-buffer";
    // Only UDT has such a buffer.
    let table = landspeed_transport::find(TRANSPORT.of(settings)).map(table)?;
    let buffer = table.find(BUFFER).ok()?;
    let Domain::Bytes(_, most) = buffer.domain else { return None };
    let needed = Bytes(2 * study.path.most_under_way().0).min(Bytes(most));
    (needed > buffer.bytes(&Settings::new())).then(|| (BUFFER.to_owned(), needed.0.to_string()))
}

/// Returns a cell whose buffers limit no flow, unless the contest or the path sets a window. The kernel grows buffers
/// on demand up to the path's [`StudyPath::buffer_bytes`] (tcp(7), tcp_rmem and tcp_wmem). A window is set by the
/// sender's buffer.
fn windows(study: &Study, contest: &Contest) -> Cell {
    let path = &study.path;
    let needed = path.buffer_bytes();
    let bound = match contest.question {
        ContestQuestion::Streams { window_bytes, .. } => Some(window_bytes),
        _ => path.window_bytes,
    };
    buffers::cell(bound.map_or(needed, buffers::for_window), needed)
}

/// Returns the settings of both hosts that turn off the mechanisms that the study leaves out. The sending host is
/// decisive. The other one is set too, because either may open the flows.
fn without(study: &Study) -> Cell {
    let settings_of = |part: &SenderPart| match part {
        SenderPart::Sack => [("sack", "off")].as_slice(),
        SenderPart::TailLossProbes => &[("tcp-early-retrans", "0")],
        SenderPart::Superpackets => &[("tso", "off"), ("gso", "off"), ("gro", "off")],
    };
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let settings: Settings = study.without.iter().flat_map(settings_of).map(owned).collect();
    Cell { a: settings.clone(), b: settings, flow: Settings::new() }
}

/// One end's samples of all flows: TCP_INFO of TCP flows, and the workload's own samples of other flows.
#[derive(Clone, Copy)]
struct EndSamples<'a> {
    tcp: &'a [TcpSample],
    others: &'a [FlowProgressSample],
}

/// One sample of one flow, at one end.
#[derive(Debug, Clone, Copy, PartialEq)]
struct EndSample {
    at_ns: Nanos,
    received_bytes: Bytes,
    /// `None` if the transport does not report it.
    cwnd_segments: Option<u32>,
    rtt_ns: Nanos,
    resent: u64,
}

impl<'a> EndSamples<'a> {
    fn of(end: &'a EndpointOutcome, staggered: &'a staggered::StaggeredDetails) -> Self {
        EndSamples { tcp: end.observed.get::<Vec<TcpSample>>(), others: &staggered.samples }
    }

    fn at(self, flow: u32) -> Vec<EndSample> {
        let tcp = self.tcp.iter().filter(|sample| sample.flow == flow).map(|sample| EndSample {
            at_ns: sample.at_ns,
            received_bytes: sample.received_bytes,
            cwnd_segments: Some(sample.cwnd_segments),
            rtt_ns: sample.rtt_ns,
            resent: sample.retransmits,
        });
        let others = self.others.iter().filter(|sample| sample.flow == flow).map(|sample| EndSample {
            at_ns: sample.at_ns,
            received_bytes: sample.received_bytes,
            cwnd_segments: None,
            rtt_ns: sample.rtt_ns.unwrap_or_default(),
            resent: sample.resent,
        });
        tcp.chain(others).collect()
    }
}

/// Returns each flow's samples: goodput by the receiver's counters, and all other values by the sender's.
fn flows(plans: &[FlowPlan], ends: &[EndSamples<'_>; 2], took: &[Option<Nanos>]) -> Vec<RunFlow> {
    let flow = |(number, plan): (u32, &FlowPlan)| RunFlow {
        plan: plan.clone(),
        samples: if plan.data_bytes.is_some() { Vec::new() } else { samples(number, plan, *ends) },
        took_ns: took.get(number as usize).copied().flatten(),
    };
    (0..).zip(plans).map(flow).collect()
}

fn samples(number: u32, plan: &FlowPlan, ends: [EndSamples<'_>; 2]) -> Vec<RunSample> {
    let [sent, received] = ends.map(|end| end.at(number));
    let mut before = Bytes(0);
    let mut nearest = 0;
    let mut found = Vec::with_capacity(received.len());
    for sample in &received {
        while nearest + 1 < sent.len() && nearer(&sent[nearest + 1], &sent[nearest], sample.at_ns) {
            nearest += 1;
        }
        let here = sample.at_ns > plan.enters_ns && sample.at_ns <= plan.leaves_ns;
        let sender = sent.get(nearest);
        // A transport that reports no window has `None` here, also before its flow enters.
        let window = sender.map_or(sample.cwnd_segments, |sender| sender.cwnd_segments);
        found.push(RunSample {
            at_ns: sample.at_ns,
            goodput_bytes: Bytes(sample.received_bytes.0.saturating_sub(before.0)),
            cwnd_segments: window.map(|window| if here && sender.is_some() { window } else { 0 }),
            rtt_ns: sender.map_or(Nanos(0), |sender| sender.rtt_ns),
            retransmits: sender.map_or(0, |sender| sender.resent),
        });
        before = before.max(sample.received_bytes);
    }
    found
}

fn nearer(one: &EndSample, other: &EndSample, at: Nanos) -> bool {
    one.at_ns.0.abs_diff(at.0) < other.at_ns.0.abs_diff(at.0)
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;

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

    fn end_samples(tcp: &[TcpSample]) -> EndSamples<'_> {
        EndSamples { tcp, others: &[] }
    }

    #[test]
    fn goodput_is_the_receivers_and_the_window_the_senders() {
        let plan = FlowPlan { leaves_ns: Nanos::millis(250), ..FlowPlan::default() };
        let receiver =
            [sample(0, 100, 1000, 0), sample(1, 100, 7, 0), sample(0, 200, 3000, 0), sample(0, 300, 3000, 0)];
        let sender = [sample(0, 90, 0, 10), sample(0, 195, 0, 20), sample(0, 310, 0, 30)];
        let flows = flows(&[plan], &[end_samples(&sender), end_samples(&receiver)], &[]);
        let goodput: Vec<_> = flows[0].samples.iter().map(|s| s.goodput_bytes.0).collect();
        assert_eq!(goodput, [1000, 2000, 0]);
        let windows: Vec<_> = flows[0].samples.iter().map(|s| s.cwnd_segments).collect();
        assert_eq!(windows, [10, 20, 0].map(Some), "it has left when the last was taken");
    }

    #[test]
    fn a_host_that_saw_nothing_gives_no_samples() {
        let ends = [end_samples(&[]), end_samples(&[])];
        assert!(flows(&[FlowPlan::default()], &ends, &[])[0].samples.is_empty());
    }

    #[test]
    fn a_flow_without_tcp_info_lacks_only_its_window() {
        let at = |ms: u64| FlowProgressSample { at_ns: Nanos::millis(ms), ..FlowProgressSample::default() };
        let received =
            [100, 200].map(|ms| FlowProgressSample { received_bytes: Bytes(ms * 10), flow: 1, ..at(ms) });
        let sent = [FlowProgressSample { rtt_ns: Some(Nanos(7)), resent: 3, flow: 1, ..at(110) }];
        let ends = [EndSamples { tcp: &[], others: &sent }, EndSamples { tcp: &[], others: &received }];
        let plans = [FlowPlan::default(), FlowPlan { leaves_ns: Nanos::secs(1), ..FlowPlan::default() }];
        let flows = flows(&plans, &ends, &[]);
        let sample = |ms, goodput| RunSample {
            at_ns: Nanos::millis(ms),
            goodput_bytes: Bytes(goodput),
            cwnd_segments: None,
            rtt_ns: Nanos(7),
            retransmits: 3,
        };
        assert_eq!(flows[1].samples, [sample(100, 1000), sample(200, 1000)]);
        assert!(flows[0].samples.is_empty());
    }

    /// An unknown name or value of a knob would end a study at its first run.
    #[test]
    fn knobs_leave_out_parts_of_a_sender() {
        let study = Study {
            without: [SenderPart::Sack, SenderPart::TailLossProbes, SenderPart::Superpackets].into(),
            ..Study::default()
        };
        let cell = without(&study);
        assert_eq!((cell.a.len(), &cell.a), (5, &cell.b));
        for (name, value) in &cell.a {
            let knob = landspeed_knob::find(name).expect("a knob");
            assert_eq!(knob.factor.domain.check(value), Ok(()), "{name}={value}");
        }
    }

    #[test]
    fn a_flow_has_a_round_trip_that_the_path_has() {
        let plans = [0, 120].map(|ms| FlowPlan { longer_ns: Nanos::millis(ms), ..FlowPlan::default() });
        let path = |second: Option<u64>| StudyPath {
            rtt_ns: Nanos::millis(40),
            second_rtt_ns: second.map(Nanos::millis),
            ..StudyPath::default()
        };
        assert_eq!(reachable(&path(Some(160)), &plans), Ok(()));
        assert_eq!(reachable(&path(None), &plans[..1]), Ok(()), "all flows have the path's");
        for other in [None, Some(200)] {
            let refused = reachable(&path(other), &plans).expect_err("it has another one");
            assert!(refused.contains("120 ms longer"), "{refused}");
        }
    }

    #[test]
    fn udt_is_asked_for_as_a_transport_and_a_control_as_tcps() {
        let udt = parsed("udt");
        assert_eq!((&udt.control, TRANSPORT.of(&udt.settings)), (&None, "udt"));
        let room = |rate| {
            let path =
                StudyPath { rate_bps: BitRate(rate), rtt_ns: Nanos::millis(100), ..StudyPath::default() };
            udt_room(&Study { path, ..Study::default() }, &udt.settings).map(|(_, bytes)| bytes)
        };
        assert_eq!((room(1e8), room(1e10).as_deref()), (None, Some("250000000")));
        let cubic = parsed("cubic");
        assert_eq!(TRANSPORT.of(&cubic.settings), cubic.transport());
    }
}
