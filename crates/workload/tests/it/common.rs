//! Runs both ends of a trial in one process, over loopback.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{EndpointOutcome, Settings, TrialSpec, Workload};
use landspeed_transport::settings::TRANSPORT;
use landspeed_workload::staggered::StaggeredFlow;
use landspeed_workload::{CancelFlag, ClientPlan, DataPort, Error, NullWatch, run_client, run_server};

/// The key of every test's session.
pub(crate) const KEY: [u8; 32] = [42; 32];
/// 127.0.0.1.
pub(crate) const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// ::1.
pub(crate) const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// Returns a ping-pong of these sizes, each for `time`.
pub(crate) fn pingpong(sizes: &[Bytes], time: Nanos, receiver: &str) -> Workload {
    let sizes: Vec<String> = sizes.iter().map(|size| size.0.to_string()).collect();
    landspeed_workload::pingpong::spec(&sizes.join(","), time).with("receiver", receiver)
}

/// Returns a trial of connections for `time`.
pub(crate) fn connect(time: Nanos) -> Workload {
    Workload::new("connect").with("time", time.exact())
}

/// Returns a flow that enters and leaves, with its own congestion control by the kernel's name.
pub(crate) fn controlled(congestion: &str) -> StaggeredFlow {
    let settings = [("socket-congestion".to_owned(), congestion.to_owned())].into();
    StaggeredFlow { settings, ..StaggeredFlow::default() }
}

/// Sets the trial's flow to these values.
pub(crate) fn set(spec: &mut TrialSpec, values: &[(&str, &str)]) {
    spec.flow.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
}

/// Returns a trial of `workload` over UDP, in datagrams that fill an Ethernet packet.
pub(crate) fn udp(workload: Workload) -> TrialSpec {
    let mut spec = spec(workload);
    set(&mut spec, &[("transport", "udp"), ("write-size", "1472")]);
    spec
}

/// Returns a short trial of `workload`.
pub(crate) fn spec(workload: Workload) -> TrialSpec {
    // Staggered flows count from their start.
    let warm_up = if workload.name == "staggered" { 0 } else { 20 };
    TrialSpec {
        workload,
        flow: Settings::new(),
        cores: vec![],
        warm_up_ns: Nanos::millis(warm_up),
        interval_ns: Nanos::millis(20),
        observers: vec![],
        progress_ns: Nanos(0),
        patience_ns: Nanos(0),
        program: None,
        link_threads: None,
    }
}

/// The result of one end.
pub(crate) type EndResult = Result<EndpointOutcome, Error>;

/// Runs both ends, and returns (client, server).
pub(crate) fn both(spec: &TrialSpec, at: IpAddr) -> (EndResult, EndResult) {
    both_until(spec, at, &CancelFlag::new())
}

/// Runs both ends until `cancel`.
pub(crate) fn both_until(spec: &TrialSpec, at: IpAddr, cancel: &CancelFlag) -> (EndResult, EndResult) {
    let port = DataPort::open(at, &[TRANSPORT.of(&spec.flow)], KEY).expect("a data port on loopback");
    both_on(spec, &port, (at, 0), cancel)
}

/// Runs both ends on an open port, from a source port.
pub(crate) fn both_on(
    spec: &TrialSpec,
    port: &DataPort,
    (at, source_port): (IpAddr, u16),
    cancel: &CancelFlag,
) -> (EndResult, EndResult) {
    let plan = ClientPlan { server: (at, port.port()).into(), source_port, key: KEY };
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| run_server(spec, port, &mut NullWatch, cancel));
        let client = run_client(spec, &plan, &mut NullWatch, cancel);
        (client, serving.join().expect("the server's end does not panic"))
    })
}

/// Returns both outcomes of a trial, which must succeed.
pub(crate) fn outcomes(spec: &TrialSpec, at: IpAddr) -> (EndpointOutcome, EndpointOutcome) {
    match both(spec, at) {
        (Ok(client), Ok(server)) => (client, server),
        // The end that failed first names the cause.
        (client, server) => panic!("client: {client:?}\nserver: {server:?}"),
    }
}
