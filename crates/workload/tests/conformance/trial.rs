//! Runs both ends of a trial over loopback, as callers use a row of the table.

use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::{Duration, Instant};

use landspeed_record::factor::{Domain, FactorDeclaration};
use landspeed_record::units::Nanos;
use landspeed_record::{EndpointOutcome, Observations, TrialSpec, Workload};
use landspeed_transport::{Delivery, Transport, settings};
use landspeed_workload::{
    CancelFlag, ClientPlan, DataPort, Error, WatchTargets, WindowWatch, WorkloadRunner,
};

pub(crate) const KEY: [u8; 32] = [9; 32];
pub(crate) const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// A time limit of far more than the promised second, because the machine may be busy, and far less than a long trial or the wait
/// for a peer takes.
pub(crate) const SOON: Duration = Duration::from_secs(10);
/// The time that both ends get to open their windows before one is cancelled. An end that is cancelled before it connects leaves
/// its peer waiting for a connection, for up to 30 s. `capacity` is still searching then, which costs the test this time.
const OPENS: Duration = Duration::from_secs(10);
/// What `WatchLog` observes, which the outcome must contain.
pub(crate) const SEEN: &str = "the window was closed";

/// The result of one end.
pub(crate) type EndResult = Result<EndpointOutcome, Error>;

/// A row of the table, and the entry points of both its ends.
pub(crate) trait WorkloadSubject: Sync {
    fn runner(&self) -> &dyn WorkloadRunner;

    fn client(
        &self,
        spec: &TrialSpec,
        plan: &ClientPlan,
        watch: &mut dyn WindowWatch,
        cancel: &CancelFlag,
    ) -> EndResult {
        landspeed_workload::run_client(spec, plan, watch, cancel)
    }

    fn server(
        &self,
        spec: &TrialSpec,
        port: &DataPort,
        watch: &mut dyn WindowWatch,
        cancel: &CancelFlag,
    ) -> EndResult {
        landspeed_workload::run_server(spec, port, watch, cancel)
    }

    fn transports(&self, spec: &TrialSpec) -> Vec<String> {
        landspeed_workload::transports(spec)
    }
}

impl WorkloadSubject for &'static dyn WorkloadRunner {
    fn runner(&self) -> &dyn WorkloadRunner {
        *self
    }
}

/// The length of a trial: hardly any time, or longer than any test waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrialLength {
    Short,
    Long,
}

impl TrialLength {
    /// Returns the value of a parameter: its default, unless it is a time or a count. The counts of a row without a
    /// time determine its length.
    fn of(self, parameter: &FactorDeclaration<'_>, (datagrams, timed): (bool, bool)) -> String {
        match (parameter.domain, self) {
            // `limit` only cuts trials that take too long.
            _ if parameter.name == "limit" => parameter.default_over(datagrams).to_owned(),
            // Content that takes several messages, and little time.
            _ if parameter.name == "bytes" => (4 << 20).to_string(),
            // A search ends once its bounds are this near: what it finds is not checked here.
            _ if parameter.name == "width" => "50%".to_owned(),
            // A rate at which that takes an hour.
            (Domain::Rate(..), TrialLength::Long) => "8000".to_owned(),
            // Longer than the least retransmission time-out (200 ms), for which a flow may wait on a busy machine.
            (Domain::Time(..), TrialLength::Short) => "500ms".to_owned(),
            (Domain::Time(..), TrialLength::Long) => "60s".to_owned(),
            (Domain::Int(_, most), TrialLength::Long) if !timed => most.to_string(),
            (Domain::Int(least, most), _) => 200.clamp(least, most).to_string(),
            _ => parameter.default_over(datagrams).to_owned(),
        }
    }
}

/// Returns a trial with the defaults of its row except for its length, and with a warm-up if the row takes one.
pub(crate) fn trial(
    row: &dyn WorkloadSubject,
    transport: &dyn Transport,
    length: TrialLength,
) -> Result<TrialSpec, String> {
    let flow = settings::defaults(transport);
    let datagrams = transport.about().delivery == Delivery::Datagrams;
    let timed =
        row.runner().parameters().iter().any(|parameter| matches!(parameter.domain, Domain::Time(..)));
    let value = |parameter: &FactorDeclaration<'_>| {
        (parameter.name.to_owned(), length.of(parameter, (datagrams, timed)))
    };
    let spec = TrialSpec {
        workload: Workload {
            name: row.runner().name().to_owned(),
            parameters: row.runner().parameters().iter().map(value).collect(),
            file: None,
        },
        flow,
        cores: vec![],
        warm_up_ns: Nanos::millis(100),
        interval_ns: if length == TrialLength::Short { Nanos::millis(50) } else { Nanos(0) },
        observers: vec![],
        progress_ns: Nanos(0),
        patience_ns: Nanos(0),
        program: None,
        link_threads: None,
    };
    let cold = TrialSpec { warm_up_ns: Nanos(0), ..spec.clone() };
    if row.runner().check(&spec).is_ok() {
        return Ok(spec);
    }
    row.runner().check(&cold).map(|()| cold).map_err(|error| error.to_string())
}

/// Returns the trial, and one for each other word that one of its parameters takes.
pub(crate) fn variations(row: &dyn WorkloadSubject, spec: TrialSpec) -> Vec<TrialSpec> {
    let mut all = vec![spec.clone()];
    for parameter in row.runner().parameters() {
        let words = match parameter.domain {
            Domain::Switch => &["on", "off"],
            Domain::OneOf(words) => words,
            _ => continue,
        };
        let others = words.iter().filter(|word| **word != parameter.default);
        all.extend(others.map(|word| TrialSpec {
            workload: spec.workload.clone().with(parameter.name, word),
            ..spec.clone()
        }));
    }
    all
}

/// Runs both ends, and calls `meddle` once both windows are open.
pub(crate) fn meddled(
    row: &dyn WorkloadSubject,
    spec: &TrialSpec,
    meddle: impl FnOnce(&CancelFlag, &CancelFlag),
) -> Result<([EndResult; 2], [WatchLog; 2], Duration), String> {
    let port = DataPort::open(V4, &row.transports(spec), KEY).map_err(text)?;
    let plan = ClientPlan { server: (V4, port.port()).into(), source_port: 0, key: KEY };
    let (ours, theirs) = (CancelFlag::new(), CancelFlag::new());
    let (mut here, mut there) = (WatchLog::default(), WatchLog::default());
    let opened = [here.opened.clone(), there.opened.clone()];
    let (ends, took) = thread::scope(|scope| {
        let calling = scope.spawn(|| row.client(spec, &plan, &mut here, &ours));
        let serving = scope.spawn(|| row.server(spec, &port, &mut there, &theirs));
        let both = || opened.iter().all(CancelFlag::is_cancelled);
        within(OPENS, || both() || calling.is_finished() && serving.is_finished());
        meddle(&ours, &theirs);
        let since = Instant::now();
        let ends = [calling, serving].map(|end| end.join().expect("no panic"));
        (ends, since.elapsed())
    });
    Ok((ends, [here, there], took))
}

/// Returns both outcomes of a trial, which must succeed.
pub(crate) fn outcomes(row: &dyn WorkloadSubject, spec: &TrialSpec) -> Result<[EndpointOutcome; 2], String> {
    succeeded(meddled(row, spec, |_, _| ())?.0)
}

/// Returns both outcomes, or an error with both ends' if one failed.
pub(crate) fn succeeded(ends: [EndResult; 2]) -> Result<[EndpointOutcome; 2], String> {
    match ends {
        [Ok(client), Ok(server)] => Ok([client, server]),
        // Which end failed first is not known, and that one names the cause.
        [client, server] => Err(format!("client: {client:?}; server: {server:?}")),
    }
}

/// A watch that records how it is called, and what is wrong.
#[derive(Debug, Default)]
pub(crate) struct WatchLog {
    pub(crate) calls: Vec<&'static str>,
    pub(crate) wrong: Vec<String>,
    /// How long the thread that opens and closes the window was kept waiting for a processor while it was open.
    pub(crate) starved: Nanos,
    opened: CancelFlag,
    threads: Vec<i32>,
    last: Nanos,
}

impl WatchLog {
    fn look_for_threads(&mut self) {
        let is_none = |thread: &&i32| !std::path::Path::new(&format!("/proc/self/task/{thread}")).exists();
        self.wrong
            .extend(self.threads.iter().filter(is_none).map(|thread| format!("thread {thread} is none")));
    }
}

/// Returns how long this thread has been ready to run and had no processor: the second number of its schedstat
/// (Documentation/scheduler/sched-stats.rst); zero on a kernel that does not count it.
fn starved() -> Nanos {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Nanos(counts.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or_default())
}

impl WindowWatch for WatchLog {
    fn open(&mut self, ends: &WatchTargets<'_>) {
        self.calls.push("open");
        self.threads = ends.threads.to_vec();
        self.look_for_threads();
        if self.threads.is_empty() {
            self.wrong.push("no thread works".to_owned());
        }
        let asked = ends.sockets.iter().map(|(_, socket)| rustix::net::sockopt::socket_type(socket));
        self.wrong.extend(asked.filter_map(|answer| Some(format!("no socket: {}", answer.err()?))));
        self.starved = starved();
        self.opened.cancel();
    }

    fn sample(&mut self, at: Nanos) {
        self.calls.push("sample");
        if at <= self.last {
            self.wrong.push(format!("sampled at {at} after {}", self.last));
        }
        self.last = at;
    }

    fn close(&mut self) -> Observations {
        self.starved = starved().saturating_sub(self.starved);
        self.calls.push("close");
        self.look_for_threads();
        Observations { unseen: vec![SEEN.to_owned()], ..Observations::default() }
    }
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Returns an error unless `holds`.
pub(crate) fn hold(holds: bool, why: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.into()) }
}

/// Waits for up to `SOON` until `holds` returns true.
pub(crate) fn soon(holds: impl FnMut() -> bool) -> bool {
    within(SOON, holds)
}

fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + limit;
    while !holds() {
        if Instant::now() > until {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}
