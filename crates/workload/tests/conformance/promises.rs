//! The promises, and how each is checked.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Instant;

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{EndpointOutcome, Headline, SnmpCounts, TrialSpec, decode};
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{TRANSPORTS, Transport};
use landspeed_workload::{CancelFlag, ClientPlan, DataPort, Error, NullWatch};

use crate::mostly::mostly;
use crate::trial::{
    EndResult, KEY, SEEN, SOON, TrialLength, V4, WorkloadSubject, hold, meddled, outcomes, soon, succeeded,
    text, trial, variations,
};

pub(crate) type PromiseCheck = fn(&dyn WorkloadSubject, &dyn Transport) -> Result<(), String>;

/// What keeps a promise: the flows too, or the workload whatever its flows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromiseKeeper {
    Flows,
    Workload,
}

/// What every workload promises.
pub(crate) static PROMISES: &[(&str, PromiseKeeper, PromiseCheck)] = &[
    ("a peer that never comes is an error", PromiseKeeper::Flows, awaits_its_peer),
    ("names and parameters are in order", PromiseKeeper::Workload, in_order),
    ("its flows take transports of the table", PromiseKeeper::Flows, takes_transports),
    ("both ends have an outcome", PromiseKeeper::Flows, has_outcomes),
    ("an outcome is read back as it was written", PromiseKeeper::Workload, is_read_back),
    ("each headline is a figure of one end", PromiseKeeper::Workload, has_headlines),
    ("it says how long its window can be open", PromiseKeeper::Workload, lasts),
    ("it is watched once, in order", PromiseKeeper::Workload, is_watched),
    ("it can be cancelled, and leaves no thread", PromiseKeeper::Flows, can_be_cancelled),
    ("a peer that goes is an error", PromiseKeeper::Flows, needs_its_peer),
    ("values that make no sense open nothing", PromiseKeeper::Workload, refuses),
];

/// Returns true if a promise is checked over this transport. What the workload alone keeps is checked over the row beneath one
/// that encrypts another row's stream.
pub(crate) fn is_checked(keeper: PromiseKeeper, transport: &dyn Transport) -> bool {
    keeper == PromiseKeeper::Flows || transport.encrypts().is_none_or(|beneath| beneath == transport.name())
}

/// How much longer than announced a window may be open, because threads run late.
const LATE: Nanos = Nanos::millis(300);

fn in_order(row: &dyn WorkloadSubject, transport: &dyn Transport) -> Result<(), String> {
    let runner = row.runner();
    let is_line = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
    hold(landspeed_workload::named(runner.name()).is_ok(), "it is not found by its name")?;
    hold(is_line(runner.describe()), "it is not described in one line")?;
    let mut names = BTreeSet::new();
    for parameter in runner.parameters() {
        hold(names.insert(parameter.name), format!("two parameters are called {}", parameter.name))?;
        hold(is_line(parameter.about), format!("{} is not described in one line", parameter.name))?;
        for datagrams in [false, true] {
            parameter.check(parameter.default_over(datagrams)).map_err(text)?;
        }
    }
    let mut names = BTreeSet::new();
    for headline in runner.headlines() {
        hold(names.insert(headline.name), format!("two headlines are called {}", headline.name))?;
        hold(is_line(headline.about), format!("{} is not described in one line", headline.name))?;
    }
    trial(row, transport, TrialLength::Short).map(drop)
}

fn takes_transports(row: &dyn WorkloadSubject, transport: &dyn Transport) -> Result<(), String> {
    let taken = row.transports(&trial(row, transport, TrialLength::Short)?);
    let known = |name: &String| TRANSPORTS.iter().any(|row| row.name() == name);
    hold(taken.iter().all(known) && taken.iter().any(|name| name == transport.name()), format!("{taken:?}"))
}

/// How often a check may fail for which a busy machine can give the threads too little processor time.
const MOST_FAILED: u32 = 10;

/// Checks the outcomes. On a busy machine a window can pass in which neither end ran.
fn has_outcomes(row: &dyn WorkloadSubject, transport: &dyn Transport) -> Result<(), String> {
    variations(row, trial(row, transport, TrialLength::Short)?).iter().try_for_each(|spec| {
        mostly(MOST_FAILED, || {
            let ends = outcomes(row, spec)?;
            is_whole(row, &ends).map_err(|why| format!("{why}: {ends:?}"))
        })
    })
}

/// Checks that the outcomes of both ends match.
fn is_whole(row: &dyn WorkloadSubject, [client, server]: &[EndpointOutcome; 2]) -> Result<(), String> {
    for (sender, receiver) in [(client, server), (server, client)] {
        hold(sender.window_ns > Nanos(0), "a window took no time")?;
        hold(
            (sender.sent_bytes > Bytes(0)) == (receiver.received_bytes > Bytes(0)),
            "what one sends the other lacks",
        )?;
        let of_flows: Bytes = receiver.flow_bytes.iter().copied().sum();
        hold(receiver.flow_bytes.is_empty() || of_flows == receiver.received_bytes, "flows make no sum")?;
    }
    let came = client.received_bytes.0 + server.received_bytes.0 > 0;
    let printed = Headline::figures(row.runner().headlines(), client).map_err(text)?;
    hold(came || !client.latency.is_empty() || !printed.is_empty(), "nothing was measured")?;
    hold(server.latency.is_empty(), "the server has a latency")?;
    hold(client.latency.iter().all(|histogram| histogram.count() > 0), "a latency is of nothing")?;
    hold(
        client.latency.is_empty() || !row.runner().latency().is_empty(),
        "nothing says what its latency is of",
    )
}

fn is_read_back(row: &dyn WorkloadSubject, transport: &dyn Transport) -> Result<(), String> {
    for end in outcomes(row, &trial(row, transport, TrialLength::Short)?)? {
        let json = serde_json::to_vec(&end).map_err(text)?;
        let back: EndpointOutcome = decode(&json).map_err(text)?;
        let figures = |end| Headline::figures(row.runner().headlines(), end).map_err(text);
        let same = back == end && figures(&back)? == figures(&end)?;
        hold(same, format!("{end:?} is read as {back:?}"))?;
    }
    Ok(())
}

/// Figures that one trial cannot have both of: a search that a host limits has no capacity.
const INSTEAD: [(&str, &str); 4] = [
    ("capacity", "hosts reached"),
    ("in IP packets", "hosts reached"),
    ("not carried", "hosts reached"),
    ("hosts reached", "capacity"),
];

fn has_headlines(row: &dyn WorkloadSubject, transport: &dyn Transport) -> Result<(), String> {
    let spec = trial(row, transport, TrialLength::Short)?;
    let mut printed = BTreeSet::new();
    mostly(MOST_FAILED, || {
        for mut end in outcomes(row, &spec)? {
            // An observer adds these counters to a watched trial.
            end.observed.details.put(SnmpCounts::default());
            let figures = Headline::figures(row.runner().headlines(), &end).map_err(text)?;
            printed.extend(figures.into_iter().map(|figure| figure.name));
        }
        let is_printed = |name: &str| {
            let instead = |(own, other): &(&str, &str)| *own == name && printed.contains(*other);
            printed.contains(name) || INSTEAD.iter().any(instead)
        };
        let missing = row.runner().headlines().iter().find(|headline| !is_printed(headline.name));
        missing.map_or(Ok(()), |headline| Err(format!("{} is never printed", headline.name)))
    })
}

/// Checks the length of the window. The time for which a busy machine gave no processor to the threads that open and close both
/// windows does not count: an end closes its window late then, and so does its peer, which waits for it.
fn lasts(row: &dyn WorkloadSubject, transport: &dyn Transport) -> Result<(), String> {
    let spec = trial(row, transport, TrialLength::Short)?;
    let most = Nanos(row.runner().lasts(&spec.workload.parameters, spec.warm_up_ns).0 + LATE.0);
    mostly(MOST_FAILED, || {
        let (ends, logs, _) = meddled(row, &spec, |_, _| ())?;
        let [client, server] = succeeded(ends)?;
        let starved: Nanos = logs.iter().map(|log| log.starved).sum();
        let open = client.window_ns.max(server.window_ns).saturating_sub(starved);
        hold(open <= most, format!("its window was open for {open}, and {most} is the most"))
    })
}

fn is_watched(row: &dyn WorkloadSubject, transport: &dyn Transport) -> Result<(), String> {
    let (ends, logs, _) = meddled(row, &trial(row, transport, TrialLength::Short)?, |_, _| ())?;
    for (end, log) in ends.iter().zip(logs) {
        let calls =
            (log.calls.first(), log.calls.last(), log.calls.iter().filter(|call| **call != "sample").count());
        hold(calls == (Some(&"open"), Some(&"close"), 2), format!("{:?}", log.calls))?;
        hold(log.wrong.is_empty(), log.wrong.join("; "))?;
        let seen = end.as_ref().is_ok_and(|end| end.observed.unseen.iter().any(|line| line == SEEN));
        hold(seen, "what was seen is not in the outcome")?;
    }
    Ok(())
}

fn can_be_cancelled(row: &dyn WorkloadSubject, transport: &dyn Transport) -> Result<(), String> {
    let name = &unique_name();
    thread::scope(|scope| {
        let alone = || -> Result<(), String> {
            for spec in variations(row, trial(row, transport, TrialLength::Long)?) {
                let (ends, _, took) = meddled(row, &spec, |ours, theirs| {
                    ours.cancel();
                    theirs.cancel();
                })?;
                hold(took < SOON, format!("it took {took:?}"))?;
                for end in ends {
                    let ended = matches!(end, Err(Error::Cancelled | Error::PeerGone { .. }));
                    hold(ended, format!("{end:?}"))?;
                }
            }
            Ok(())
        };
        let named = thread::Builder::new().name(name.clone()).spawn_scoped(scope, alone);
        named.expect("a thread").join().expect("no panic")
    })?;
    hold(soon(|| of_that_name(name) == 0), format!("{} threads are left", of_that_name(name)))
}

/// Returns a new thread name. Threads inherit the name of the thread that starts them, which distinguishes them from
/// those of other tests.
fn unique_name() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    format!("promise-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn of_that_name(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let comm = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    comm.filter(|comm| comm.trim() == name).count()
}

fn needs_its_peer(row: &dyn WorkloadSubject, transport: &dyn Transport) -> Result<(), String> {
    for spec in variations(row, trial(row, transport, TrialLength::Long)?) {
        for gone in [0, 1] {
            let (mut ends, _, took) = meddled(row, &spec, |ours, theirs| [ours, theirs][gone].cancel())?;
            hold(took < SOON, format!("it took {took:?}"))?;
            ends.rotate_left(gone);
            let is_right = matches!(ends, [Err(Error::Cancelled), Err(Error::PeerGone { .. })]);
            hold(is_right, format!("{ends:?}"))?;
        }
    }
    Ok(())
}

fn awaits_its_peer(row: &dyn WorkloadSubject, transport: &dyn Transport) -> Result<(), String> {
    let spec = trial(row, transport, TrialLength::Short)?;
    let [silent, port] = [(); 2].map(|()| DataPort::open(V4, &[transport.name()], KEY).expect("ports"));
    let plan = ClientPlan { server: (V4, silent.port()).into(), source_port: 0, key: KEY };
    let cancel = CancelFlag::new();
    thread::scope(|scope| {
        let calling = scope.spawn(|| row.client(&spec, &plan, &mut NullWatch, &cancel));
        let served = row.server(&spec, &port, &mut NullWatch, &cancel);
        for end in [calling.join().expect("no panic"), served] {
            let says = |error: &Error| error.to_string().contains("--patience waits longer");
            let is_right = matches!(&end, Err(error @ Error::Unanswered { .. }) if says(error));
            hold(is_right, format!("{end:?}"))?;
        }
        Ok(())
    })
}

/// Values that no parameter has.
const SENSELESS: [&str; 4] = ["", "-1", "\u{1b}[31m", "99999999999999999999999"];

fn refuses(row: &dyn WorkloadSubject, transport: &dyn Transport) -> Result<(), String> {
    let spec = trial(row, transport, TrialLength::Short)?;
    let names = row.runner().parameters().into_iter().map(|parameter| parameter.name);
    for (name, value) in names.chain(["no-such"]).flat_map(|name| SENSELESS.map(|value| (name, value))) {
        let bad = TrialSpec { workload: spec.workload.clone().with(name, value), ..spec.clone() };
        is_refused(row, &bad).map_err(|why| format!("{name}={}: {why}", value.escape_default()))?;
    }
    Ok(())
}

fn is_refused(row: &dyn WorkloadSubject, spec: &TrialSpec) -> Result<(), String> {
    let here = TcpListener::bind((V4, 0)).expect("loopback");
    here.set_nonblocking(true).expect("a socket");
    let plan = ClientPlan { server: here.local_addr().expect("bound"), source_port: 0, key: KEY };
    let port = DataPort::open(V4, &[TRANSPORT.of(&spec.flow)], KEY).map_err(text)?;
    let (cancel, begun) = (CancelFlag::new(), Instant::now());
    let refused =
        |end: EndResult| hold(matches!(end, Err(Error::Spec { .. } | Error::Setting(_))), format!("{end:?}"));
    refused(row.client(spec, &plan, &mut NullWatch, &cancel))?;
    hold(here.accept().is_err(), "the client called")?;
    refused(row.server(spec, &port, &mut NullWatch, &cancel))?;
    hold(begun.elapsed() < SOON, "the server listened")
}
