//! Trials over loopback in which one agent has both ends.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use landspeed_agent::Agent;
use landspeed_agent::session::{Reply, Request, RequestHandler, SessionKey};
use landspeed_record::units::Nanos;
use landspeed_record::{Role, Settings, TrialSpec, Workload};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Opens a data port and returns its number.
pub(crate) fn listen(agent: &Agent, key: &SessionKey) -> u16 {
    let transports = vec!["tcp".to_owned()];
    let at = SocketAddr::new(HERE, 0);
    match agent.handle(Request::Listen { at, within: None, transports, key: key.clone() }) {
        Reply::Listening { port } => port,
        other => panic!("{other:?}"),
    }
}

/// Returns the request for one end of a trial.
pub(crate) fn run(role: Role, port: u16, key: &SessionKey, workload: Workload) -> Request {
    let spec = TrialSpec {
        workload,
        flow: Settings::new(),
        cores: vec![],
        warm_up_ns: Nanos::millis(20),
        interval_ns: Nanos::millis(20),
        observers: vec![],
        progress_ns: Nanos(0),
        patience_ns: Nanos(0),
        program: None,
        link_threads: None,
    };
    let at = SocketAddr::new(HERE, port);
    Request::Run { role, at, source_port: 0, key: key.clone(), link: String::new(), spec: Box::new(spec) }
}
