//! A run that the controller cancels.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use landspeed_agent::Agent;
use landspeed_agent::session::{Reply, Request, RequestHandler, SessionKey};
use landspeed_record::Role;
use landspeed_record::units::Nanos;
use landspeed_workload::pingpong;

use common::{listen, run};

/// Returns true if a socket of IPv4 listens on the port: state 0A (proc_net_tcp(5)). A run that has not begun does not
/// listen, and a cancellation does not end it.
fn is_listening(port: u16) -> bool {
    let sockets = std::fs::read_to_string("/proc/net/tcp").expect("the sockets here");
    sockets.contains(&format!(":{port:04X} 00000000:0000 0A "))
}

#[test]
fn a_server_without_a_client_gives_up_when_cancelled_and_is_free_for_the_next() {
    let (agent, key) = (Agent::new(false), SessionKey::random());
    let port = listen(&agent, &key);
    let run = |role| {
        let mut request = run(role, port, &key, pingpong::one_byte(Nanos::millis(20)));
        if let Request::Run { spec, .. } = &mut request {
            spec.patience_ns = Nanos::secs(600);
        }
        request
    };
    let serve = || {
        let (agent, request) = (Arc::clone(&agent), run(Role::Server));
        std::thread::spawn(move || agent.handle(request))
    };
    let began = Instant::now();
    let alone = serve();
    while !is_listening(port) {
        assert!(began.elapsed() < Duration::from_secs(60) && !alone.is_finished(), "the run does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(!alone.is_finished(), "it waits");
    assert_eq!(agent.handle(Request::Cancel {}), Reply::Done {});
    let answer = alone.join().unwrap();
    assert!(matches!(answer, Reply::Failed { .. }), "{answer:?}");
    assert!(began.elapsed() < Duration::from_secs(120), "its own patience is ten minutes");

    let server = serve();
    let client = agent.handle(run(Role::Client));
    assert!(matches!(client, Reply::Outcome { .. }), "{client:?}");
    assert!(matches!(server.join().unwrap(), Reply::Outcome { .. }));
}
