//! Strangers, impatience, and peers that vanish.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{PathStall, Settings};
use landspeed_transport::{Patience, ReservedPort};
use landspeed_workload::staggered::{self, StaggeredFlow};
use landspeed_workload::{
    CancelFlag, ClientPlan, DataPort, Error, NullWatch, run_client, run_server, stream,
};

use crate::common::{KEY, V4, both_until, set, spec, udp};

/// Far more than the promised second, because the machine may be busy. The trials would take two minutes.
const SOON: Duration = Duration::from_secs(30);
const LONG: Nanos = Nanos::secs(120);

#[test]
fn flows_that_wait_or_have_gone_can_be_cancelled() {
    // One flow sends, one waits to enter, and one has left.
    let flows = [(0, 120_000), (60_000, 120_000), (0, 100)].map(staggered_flow);
    let spec = spec(staggered::spec(&flows, LONG, Nanos::millis(10)));
    let cancel = CancelFlag::new();
    std::thread::scope(|scope| {
        let trial = scope.spawn(|| both_until(&spec, V4, &cancel));
        std::thread::sleep(Duration::from_millis(200));
        cancel.cancel();
        let since = Instant::now();
        let (client, server) = trial.join().expect("no panic");
        for end in [client, server] {
            assert!(matches!(end, Err(Error::Cancelled | Error::PeerGone { .. })), "{end:?}");
        }
        assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    });
}

/// Returns a flow that enters and leaves at these times, in ms.
fn staggered_flow((enters, leaves): (u64, u64)) -> StaggeredFlow {
    StaggeredFlow {
        enters_ns: Nanos::millis(enters),
        leaves_ns: Nanos::millis(leaves),
        ..StaggeredFlow::default()
    }
}

/// Runs a server that proves itself on both flows, receives for a while and then is silent with all its sockets open,
/// as if its process were stopped, until `over`. Returns how many datagrams arrive at its full socket in one second, beginning
/// a second later.
fn falls_silent([data, signals]: [&dyn ReservedPort; 2], settings: &Settings, over: &CancelFlag) -> u64 {
    let mut data = data.listen(settings, &KEY).expect("it listens");
    let mut signals = signals.listen(&Settings::new(), &KEY).expect("it listens");
    let cancel = CancelFlag::new();
    let patience = Patience { until: Instant::now() + SOON, cancel: &cancel };
    let _signals = signals.accept(&patience).expect("the signal flow");
    let flow = data.accept(&patience).expect("the data flow");
    let until = Instant::now() + Duration::from_millis(200);
    let mut receiver = flow.receiver().expect("receives");
    while Instant::now() < until {
        let _ = receiver.receive(&mut [0; 65_536]);
    }
    drop(receiver);
    std::thread::sleep(Duration::from_secs(1));
    let dropped = || flow.datagrams().expect("it carries datagrams").overflowed;
    let before = dropped();
    std::thread::sleep(Duration::from_secs(1));
    let after = dropped();
    // The client gives up while all sockets are open.
    while !over.is_cancelled() && Instant::now() < patience.until {
        std::thread::sleep(Duration::from_millis(10));
    }
    after - before
}

#[test]
fn a_sender_holds_back_when_its_peer_falls_silent_and_keeps_its_figures() {
    let mut spec = udp(stream::spec(LONG));
    spec.patience_ns = Nanos::secs(3);
    let [udp, tcp] = ["udp", "tcp"].map(|name| landspeed_transport::find(name).expect("registered"));
    let signals = tcp.reserve((V4, 0).into()).expect("a port");
    let data = udp.reserve(signals.address()).expect("the same port");
    let plan = ClientPlan { server: signals.address(), source_port: 0, key: KEY };
    let over = CancelFlag::new();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| falls_silent([data.as_ref(), signals.as_ref()], &spec.flow, &over));
        let client = run_client(&spec, &plan, &mut NullWatch, &CancelFlag::new());
        over.cancel();
        let flood = serving.join().expect("no panic");
        let client = client.expect("what it measured until then");
        let broken = client.get::<PathStall>();
        assert!(broken.ended_run() && broken.waited_ns >= Nanos::secs(3), "{broken:?}");
        // A sender that slows down sends 20 datagrams a second, to detect when the peer answers again. A sender at full
        // rate sends 10,000 or more.
        assert!(flood < 200, "{flood} datagrams in a second to a peer that says nothing");
    });
}

#[test]
fn waiting_for_a_peer_that_never_comes_can_be_cancelled() {
    let port = DataPort::open(V4, &["tcp"], KEY).expect("a data port");
    let (long, cancel) = (spec(stream::spec(LONG)), CancelFlag::new());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run_server(&long, &port, &mut NullWatch, &cancel));
        cancel.cancel();
        assert!(matches!(waiting.join().expect("no panic"), Err(Error::Cancelled)));
    });
}

#[test]
fn strangers_are_turned_away_while_the_trial_goes_on() {
    let port = DataPort::open(V4, &["tcp"], KEY).expect("a data port");
    let server = (V4, port.port()).into();
    let short = spec(stream::spec(Nanos::millis(50)).with("reverse", "on"));
    let plan = ClientPlan { server, source_port: 0, key: KEY };
    let wrong = ClientPlan { key: [0; 32], ..plan.clone() };
    let cancel = CancelFlag::new();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| run_server(&short, &port, &mut NullWatch, &cancel));
        let mut silent = connect(&plan);
        let mut loud = connect(&plan);
        loud.write_all(&[0; 4096]).expect("it babbles");
        let refused = run_client(&short, &wrong, &mut NullWatch, &cancel).expect_err("not its session");
        assert!(refused.to_string().contains("does not hold this session's key"), "{refused}");
        let client = run_client(&short, &plan, &mut NullWatch, &cancel).expect("the real one runs");
        assert!(client.received_bytes > Bytes(0));
        serving.join().expect("no panic").expect("the server's end");
        for stranger in [&mut silent, &mut loud] {
            assert!(!matches!(stranger.read(&mut [0; 1]), Ok(1..)), "no byte of traffic for strangers");
        }
    });
}

#[test]
fn a_flood_of_connections_fails_no_trial() {
    let port = DataPort::open(V4, &["tcp"], KEY).expect("a data port");
    let plan = ClientPlan { server: (V4, port.port()).into(), source_port: 0, key: KEY };
    // Long enough that three threads that flood cannot use all of the processor's time.
    let mut short = spec(stream::spec(Nanos::millis(500)));
    set(&mut short, &[("flows", "64")]);
    let (cancel, over) = (CancelFlag::new(), CancelFlag::new());
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| run_server(&short, &port, &mut NullWatch, &cancel));
        let first = connect(&plan);
        for _ in 0..3 {
            scope.spawn(|| flood(&plan, &over));
        }
        // The flood has begun by then.
        std::thread::sleep(Duration::from_millis(100));
        let client = run_client(&short, &plan, &mut NullWatch, &cancel);
        let server = serving.join().expect("no panic");
        over.cancel();
        client.expect("the client's end");
        let server = server.expect("the server's end");
        assert!(server.received_bytes > Bytes(0));
        assert!(server.strangers > 64, "{} strangers", server.strangers);
        drop(first);
    });
}

/// Connects up to 10,000 times and sends nothing; two hundred connections stay open.
fn flood(plan: &ClientPlan, over: &CancelFlag) {
    let mut held = std::collections::VecDeque::new();
    for _ in 0..10_000 {
        if over.is_cancelled() {
            return;
        }
        held.extend(TcpStream::connect_timeout(&plan.server, Duration::from_millis(100)));
        held.drain(..held.len().saturating_sub(200));
    }
}

/// Connects as soon as the server listens.
fn connect(plan: &ClientPlan) -> TcpStream {
    for _ in 0..2000 {
        if let Ok(stream) = TcpStream::connect(plan.server) {
            return stream;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("nobody listens on {}", plan.server);
}
