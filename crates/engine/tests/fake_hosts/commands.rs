//! The commands under test, each with little work.

use landspeed_agent::session::Session;
use landspeed_analysis::Metric;
use landspeed_engine::{
    Baseline, Error, ExplainOptions, Host, HostGroup, MeasureOptions, PathOptions, RecordSink, SizesEffort,
    SizesOptions, TrialTiming, TuneOptions, TunePlan, UserListener, WantedPath, begin, compare_on, explain,
    explain_sizes, flow, measure, plan, tune,
};
use landspeed_lab::topology::HostSet;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{
    Contest, ExplainReport, Line, RecordKind, RecordWriteError, RecordWriter, Study, WatchTarget,
};
use landspeed_transport::find;
use landspeed_workload::{pingpong, stream};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestedCommand {
    Tune,
    Explain,
    Sizes,
    Compare,
    Measure,
    /// With this many seconds.
    TuneFor(u64),
}

/// The commands beside `tune`.
pub(crate) const OTHERS: [TestedCommand; 4] =
    [TestedCommand::Explain, TestedCommand::Sizes, TestedCommand::Compare, TestedCommand::Measure];

/// A record that requests a stop after `most` lines.
pub(crate) struct LimitedRecord {
    pub(crate) writer: RecordWriter,
    pub(crate) written: usize,
    pub(crate) most: usize,
}

impl RecordSink for LimitedRecord {
    fn line(&mut self, line: &Line) -> Result<(), RecordWriteError> {
        self.written += 1;
        self.writer.write(line)
    }

    fn stop(&self) -> bool {
        self.written >= self.most
    }
}

/// Returns path options under which a path that is silent for a second counts as broken.
fn wishes() -> PathOptions {
    PathOptions { patience: Nanos::secs(1), ..PathOptions::default() }
}

/// Joins the hosts for a copy, or for another command. Returns the idle RTT of their path.
pub(crate) fn joined([a, b]: [Session; 2], is_for_copy: bool) -> Result<Nanos, Error> {
    let wishes = PathOptions { is_for_copy, ..wishes() };
    Ok(HostGroup::of_two(Host::probe(a)?, Host::probe(b)?, &wishes)?.rtt())
}

/// Joins the hosts and runs the command. Returns the settings that the command reports as not restored.
pub(crate) fn run(
    command: TestedCommand,
    [a, b]: [Session; 2],
    lines: &mut LimitedRecord,
) -> Result<Vec<String>, Error> {
    let mut group = HostGroup::of_two(Host::probe(a)?, Host::probe(b)?, &wishes())?;
    match command {
        TestedCommand::Tune => tuned(&mut group, lines, Nanos::secs(3)),
        TestedCommand::TuneFor(seconds) => tuned(&mut group, lines, Nanos::secs(seconds)),
        TestedCommand::Explain => explained(&group).map(|_| Vec::new()),
        TestedCommand::Sizes => sized(&mut group, lines),
        TestedCommand::Compare => compared(&mut group, lines),
        TestedCommand::Measure => {
            measure(&group, &measurement(stream::spec(TIME)), &|_, _, _| {}).map(|_| Vec::new())
        }
    }
}

const TIME: Nanos = Nanos::millis(1);

fn text() -> String {
    "fake hosts".to_owned()
}

/// Joins the hosts and plans a tuning run, as `tune --dry-run` does.
pub(crate) fn planned([a, b]: [Session; 2]) -> Result<TunePlan, Error> {
    let group = HostGroup::of_two(Host::probe(a)?, Host::probe(b)?, &wishes())?;
    plan(&group, &mut tuning(Nanos::secs(3)))
}

fn tuning(budget: Nanos) -> TuneOptions {
    TuneOptions {
        program: None,
        held: landspeed_record::Settings::new(),
        goal: Metric::Rate,
        transport: find("tcp").expect("there is one"),
        baseline: Baseline::Found,
        budget,
        only: vec!["mtu".into(), "gro".into()],
        skip: Vec::new(),
        explain: true,
        against: None,
        confirm_for: None,
        in_lab: true,
        seed: 7,
        topology: text(),
        command: text(),
        started: text(),
        record: text(),
    }
}

fn tuned(group: &mut HostGroup, lines: &mut LimitedRecord, budget: Nanos) -> Result<Vec<String>, Error> {
    let mut options = tuning(budget);
    let mut plan = plan(group, &mut options)?;
    // The hosts answer without delay, whatever is requested.
    plan.timing = TrialTiming { warm_up: TIME, stream: TIME, ping: TIME, set_up: Nanos(0), fine: false };
    let summary = tune(group, plan, &options, lines)?;
    Ok(if summary.restored { Vec::new() } else { summary.restored_notes })
}

fn explained(group: &HostGroup) -> Result<ExplainReport, Error> {
    let options = ExplainOptions {
        program: None,
        target: WatchTarget::Workload,
        time: TIME,
        flow: flow(find("tcp").expect("there is one"), &[].into())?,
        limits: true,
        capacity: false,
        trace: true,
        topology: text(),
        command: text(),
        started: text(),
    };
    explain(group, &options, &mut |_| {})
}

fn sized(group: &mut HostGroup, lines: &LimitedRecord) -> Result<Vec<String>, Error> {
    let effort = SizesEffort {
        sizes: vec![Bytes(64), Bytes(1024)],
        steps: vec![1],
        rounds: 1,
        window: TIME,
        profiled: TIME,
        blocks: 1,
    };
    let options = SizesOptions { flow: [].into(), may_turn: true, seed: 7, effort };
    let mut listener = UserListener { progress: &mut |_| {}, stop: &|| lines.stop() };
    explain_sizes(group, &options, &mut listener, &mut ExplainReport::default()).map(|()| Vec::new())
}

#[derive(Debug)]
struct EmptyHosts;

impl HostSet for EmptyHosts {
    fn hosts(&self) -> &[landspeed_lab::topology::TopologyHost] {
        &[]
    }

    fn label(&self) -> String {
        text()
    }

    fn is_lab(&self) -> bool {
        true
    }
}

fn compared(group: &mut HostGroup, lines: &mut LimitedRecord) -> Result<Vec<String>, Error> {
    let contest =
        |name: &str| Contest { name: name.into(), contestants: vec![name.into()], ..Contest::default() };
    let contests = ["reno", "cubic"].map(contest).to_vec();
    let study = Study { contests, repeats: 2, ..Study::paper().scaled(0.0001) };
    begin(&study, &RecordKind::STUDY.header("fake hosts", "fake hosts"), lines)?;
    compare_on(group, &EmptyHosts, (&study, &[].into()), lines).map(|()| Vec::new())
}

pub(crate) fn measurement(workload: landspeed_record::Workload) -> MeasureOptions {
    MeasureOptions {
        over_time: false,
        workload,
        flow: [].into(),
        warm_up: TIME,
        watch: vec!["tcp-info".into()],
        interval: landspeed_record::units::Nanos(0),
        topology: text(),
        command: text(),
        started: text(),
    }
}

/// Runs `measure pingpong --fan in`, in which every client exchanges messages with the hub.
pub(crate) fn fan(clients: Vec<Session>, hub: Session) -> Result<landspeed_record::MeasureReport, Error> {
    let hub_place = clients.len();
    let hosts = clients.into_iter().chain([hub]).map(Host::probe).collect::<Result<Vec<_>, Error>>()?;
    let wanted = |client| WantedPath { ends: [client, hub_place], options: wishes() };
    let (group, missing) = HostGroup::join(hosts, &(0..hub_place).map(wanted).collect::<Vec<_>>())?;
    missing.into_iter().next().map_or(Ok(()), |missing| Err(missing.error))?;
    measure(&group, &measurement(pingpong::one_byte(TIME)), &|_, _, _| {})
}
