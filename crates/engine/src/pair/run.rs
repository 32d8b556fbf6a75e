//! Runs workloads over a pair.

use std::time::Duration;

use landspeed_agent::session::{Reply, Request, is_link_local};
use landspeed_analysis::fallback;
use landspeed_record::units::Nanos;
use landspeed_record::{
    DetailError, EndpointOutcome, PathStall, Program, Role, Settings, Side, TrialProgress, TrialSpec,
    Workload,
};
use landspeed_transport::settings::{PLACEMENT, TRANSPORT, with};
use landspeed_workload::{find, lasts, pingpong, transports};

use super::data_path::ProgramHosts;
use super::{Pair, RunSpec};
use crate::answers::{RunCallbacks, both};
use crate::cores::cores;
use crate::pace::limit_of;
use crate::{Error, Host};

/// How long to wait for the answers of both ends of a run, in addition to the time of the run itself.
const ANSWER: Duration = Duration::from_secs(30);
/// The number of phases of a run that may each wait for a silent path: the opening of its flows, their first data, and
/// the message that the peer's window is closed.
const PATIENT_PHASES: u32 = 3;

/// First source port of the pair's flows. Both arms of a block use the same ports, so that mechanisms such as RSS treat
/// them alike. It is below the default ephemeral range (32768 and up), so that no other program gets one of the ports
/// between two trials.
const SOURCE_PORT: u16 = 20_000;

impl Pair<'_> {
    /// Runs a workload over the path with the current settings. Returns the outcomes of A and of B.
    pub fn run(&self, run: &RunSpec) -> Result<[EndpointOutcome; 2], Error> {
        self.run_followed(run, &|_, _| {})
    }

    /// Runs a workload over the path, and passes progress messages of both sides to `on_progress` at the interval of
    /// the run.
    pub(crate) fn run_followed(
        &self,
        run: &RunSpec,
        on_progress: &dyn Fn(Side, TrialProgress),
    ) -> Result<[EndpointOutcome; 2], Error> {
        let outcomes = self.run_until(run, &RunCallbacks { stop: &|| false, on_progress })?;
        outcomes.ok_or_else(|| Error::Other("a run ended early without a request to stop".into()))
    }

    /// Runs a workload over the path until it ends or the callback `stop` returns true. In that case it returns `None`,
    /// and the hosts continue until their sessions end.
    pub(crate) fn run_until(
        &self,
        run: &RunSpec,
        callbacks: &RunCallbacks<'_>,
    ) -> Result<Option<[EndpointOutcome; 2]>, Error> {
        let RunSpec { workload, flow, warm_up, watching } = run;
        let patience = if watching.patience == Nanos(0) { self.data.patience } else { watching.patience };
        let limit = Duration::from(lasts(workload, *warm_up) + *warm_up)
            + limit_of([self.a, self.b], ANSWER)
            + PATIENT_PHASES * Duration::from(patience);
        let links = Side::BOTH.map(|side| self.link(side));
        let [client, server] =
            cores(PLACEMENT.of(flow), (&self.a.facts, &links[0]), (&self.b.facts, &links[1]));
        let spec = |cores, role| TrialSpec {
            program: self.program(workload, role),
            workload: workload.clone(),
            flow: flow.clone(),
            cores,
            warm_up_ns: *warm_up,
            interval_ns: watching.interval,
            observers: watching.observers.clone(),
            progress_ns: watching.progress,
            patience_ns: patience,
            link_threads: self.a.link_threads,
        };
        self.carries_program(workload)?;
        let port = self.data.port(self.b, transports(&spec(Vec::new(), Role::Client)))?;
        let server = self.b.start(&self.request(Role::Server, port, spec(server, Role::Server)))?;
        let client = self.a.start(&self.request(Role::Client, port, spec(client, Role::Client)))?;
        let answers = both([self.a, self.b], [client, server], limit, callbacks)?;
        let Some([a, b]) = answers else { return Ok(None) };
        let ends = [outcome(self.a, a)?, outcome(self.b, b)?];
        [self.a, self.b].into_iter().zip(&ends).try_for_each(|(host, end)| is_as_asked(host, end))?;
        if !watching.keeps_broken {
            unbroken(&ends)?;
        }
        Ok(Some(ends))
    }

    /// Returns an error for a program over link-local addresses, because each host would have to write them
    /// differently.
    fn carries_program(&self, workload: &Workload) -> Result<(), Error> {
        let is_program = || find(workload).is_some_and(|runner| runner.application().is_some());
        if !is_link_local(&self.data.address.ip) || !is_program() {
            return Ok(());
        }
        let (host, what) =
            (self.b.name.clone(), "address that both hosts write alike, which a program needs".into());
        Err(Error::NoAddress { host, what, remedy: "add one beyond fe80:: to each end".into() })
    }

    /// Returns the program that the host with this role runs in a trial; `None` if the workload is landspeed's own. A
    /// service ends when a setting of the network namespace changes, because sockets inherit these settings when they
    /// are created.
    fn program(&self, workload: &Workload, role: Role) -> Option<Program> {
        let runner = find(workload)?;
        let application = runner.application()?;
        let (name, text) = (application.file_name().to_owned(), application.text.to_string());
        let ProgramHosts { hosts, other, token, epoch } = &self.data.program_hosts;
        let (host, number) = match role {
            Role::Client => (self.a, 1),
            Role::Server => (self.b, *other),
        };
        let epoch = epoch.lock();
        let epoch = match epoch.as_str() {
            "" => String::new(),
            block => format!("{block} {:?}", host.of_namespace()),
        };
        let (hosts, token) = (hosts.clone(), token.clone());
        Some(Program { name, text, hosts, number, other: *other, epoch, token })
    }

    fn request(&self, role: Role, port: u16, spec: TrialSpec) -> Request {
        let (at, side) = match role {
            Role::Client => (self.data.address.as_a_calls_it(port), Side::A),
            Role::Server => (self.data.address.as_b_calls_it(port), Side::B),
        };
        let (key, link) = (self.data.key.clone(), self.path.link(side).to_owned());
        Request::Run { role, at, source_port: SOURCE_PORT, key, link, spec: Box::new(spec) }
    }

    /// Measures the idle RTT of the path, the median RTT of messages of one byte, and returns the outcomes of both hosts too.
    pub(crate) fn idle(&self) -> Result<(Nanos, [EndpointOutcome; 2]), Error> {
        // An RTT over satellite is longer than the first duration. On a lossy path a byte and its retransmissions can
        // be lost for many seconds, because TCP doubles its timeout with each retransmission.
        for duration in [Nanos::millis(100), Nanos::secs(3), self.data.patience] {
            let ping = RunSpec::new(pingpong::one_byte(duration), &with(&[])).after(Nanos::millis(5));
            if let Some(seen) = with_median(self.run(&ping)?) {
                return Ok(seen);
            }
        }
        Err(Error::Other(format!("the path answered no ping-pong within {}", self.data.patience)))
    }
}

/// Returns the outcomes of a ping-pong with the median of its round trips; `None` if it counted none.
pub(crate) fn with_median(ends: [EndpointOutcome; 2]) -> Option<(Nanos, [EndpointOutcome; 2])> {
    let median = ends[0].latency.first().and_then(|size| size.percentile(0.5))?;
    Some((median, ends))
}

/// Returns the flow settings with which the idle RTT of a cell is probed: its transport and placement, without its
/// other settings.
pub(crate) fn ping_flow(flow: &Settings) -> Settings {
    with(&[(&TRANSPORT, TRANSPORT.of(flow)), (&PLACEMENT, PLACEMENT.of(flow))])
}

/// Returns an error if the path of a run broke or carried nothing, because none of its figures is complete.
fn unbroken(ends: &[EndpointOutcome; 2]) -> Result<(), Error> {
    let broken = ends.iter().map(|end| end.get::<PathStall>()).find(|broken| broken.ended_run());
    broken.map_or(Ok(()), |broken| Err(Error::Silent { waited: broken.waited_ns }))
}

/// Returns the outcome in the answer of a host to a run.
pub(crate) fn outcome(host: &Host, reply: Reply) -> Result<EndpointOutcome, Error> {
    match reply {
        Reply::Outcome { outcome } => match misread(&outcome) {
            Some(why) => Err(host.misshapen(why)),
            None => Ok(*outcome),
        },
        _ => Err(host.unexpected("run")),
    }
}

/// Returns an error if the flows of a trial were of another kind than requested, because its results would have a wrong
/// name.
fn is_as_asked(host: &Host, end: &EndpointOutcome) -> Result<(), Error> {
    let (host, found) = (host.name.clone(), fallback::another(end));
    found.map_or(Ok(()), |found| Err(Error::FellBack { host, line: found.line.clone() }))
}

/// Returns the reason if a figure of a known kind could not be read; otherwise `None`. Such an outcome is not used for
/// any decision.
fn misread(outcome: &EndpointOutcome) -> Option<&String> {
    outcome.observed.unseen.iter().find(|line| DetailError::is_in(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_with_a_figure_that_cannot_be_read_is_noticed() {
        let sent = |outcome: &str| match landspeed_record::decode(outcome.as_bytes()) {
            Ok(outcome) => misread(&outcome).cloned(),
            Err(error) => panic!("{error}"),
        };
        let odd = r#"{"observed":{"cpu":{"workload_ns":7},"hologram":[],"unseen":["cost: not allowed"]},"mptcp":[]}"#;
        assert_eq!(sent(odd), None);
        let cpu = sent(r#"{"observed":{"cpu":{"workload_ns":"\u001b[2J"}}}"#).expect("a line");
        assert!(cpu.starts_with("cpu: ") && !cpu.contains('\u{1b}'), "{cpu}");
        assert!(sent(r#"{"sweep":{}}"#).expect("a line").starts_with("sweep: "));
    }
}
