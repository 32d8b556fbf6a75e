//! A run that the controller gives up.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use landspeed_agent::Agent;
use landspeed_record::{Role, TrialSpec};
use landspeed_session::{Handler, Reply, Request, SessionKey};
use landspeed_transport::settings::with;
use landspeed_units::Nanos;
use landspeed_workload::pingpong;

fn run(role: Role, port: u16, key: &SessionKey) -> Request {
    let spec = TrialSpec {
        workload: pingpong::one_byte(Nanos::millis(20)),
        flow: with(&[]),
        cores: Vec::new(),
        warm_up_ns: Nanos(0),
        interval_ns: Nanos(0),
        observers: Vec::new(),
    };
    let at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    Request::Run { role, at, source_port: 0, key: key.clone(), spec: Box::new(spec) }
}

#[test]
fn a_server_to_which_nobody_comes_gives_up_when_told_and_is_free_for_the_next() {
    let (agent, key) = (Agent::new(false), SessionKey::random());
    let (address, transports) = (Ipv4Addr::LOCALHOST.into(), vec!["tcp".to_owned()]);
    let listen = Request::Listen { address, transports, key: key.clone() };
    let Reply::Listening { port } = agent.handle(listen) else { panic!("no port") };
    let serve = || {
        let (agent, request) = (Arc::clone(&agent), run(Role::Server, port, &key));
        std::thread::spawn(move || agent.handle(request))
    };
    let began = Instant::now();
    let alone = serve();
    std::thread::sleep(Duration::from_millis(300));
    assert!(!alone.is_finished(), "it waits");
    assert_eq!(agent.handle(Request::Cancel {}), Reply::Done {});
    let answer = alone.join().unwrap();
    assert!(matches!(answer, Reply::Failed { .. }), "{answer:?}");
    assert!(began.elapsed() < Duration::from_secs(8), "its own patience is ten seconds");

    let server = serve();
    let client = agent.handle(run(Role::Client, port, &key));
    assert!(matches!(client, Reply::Outcome { .. }), "{client:?}");
    assert!(matches!(server.join().unwrap(), Reply::Outcome { .. }));
}
