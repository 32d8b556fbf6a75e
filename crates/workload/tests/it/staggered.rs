//! Flows that enter and leave: what is sent when, the probe's results, and the end.

use std::collections::BTreeSet;

use landspeed_observer::{WatchSubject, Watcher, observer};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{EndpointOutcome, Observations, TcpSample, TrialSpec};
use landspeed_workload::staggered::{self, StaggeredFlow};
use landspeed_workload::{
    CancelFlag, ClientPlan, DataPort, WatchTargets, WindowWatch, run_client, run_server,
};
use rustix::net::sockopt::tcp_congestion;

use crate::common::{KEY, V4, V6, both, both_on, controlled, outcomes, spec};

/// For how long each of the most flows stays, in ms, run by run, until each has had a turn. On a busy machine a flow may leave
/// before its thread has had one.
const STAYS: [u64; 5] = [400, 800, 1_600, 3_200, 6_400];

fn flow(congestion: &str, enters: u64, leaves: u64) -> StaggeredFlow {
    StaggeredFlow {
        enters_ns: Nanos::millis(enters),
        leaves_ns: Nanos::millis(leaves),
        ..controlled(congestion)
    }
}

fn planned(flows: Vec<StaggeredFlow>, millis: u64) -> TrialSpec {
    spec(staggered::spec(&flows, Nanos::millis(millis), Nanos::millis(20)))
}

/// A watch of TCP_INFO as an agent has it, and of the flows' congestion controls.
struct TcpWatch {
    watcher: Watcher,
    controls: Vec<String>,
}

impl TcpWatch {
    fn new() -> Self {
        let row = observer("tcp-info").expect("it is in the table");
        TcpWatch { watcher: Watcher::with(&[row], "lo"), controls: Vec::new() }
    }
}

impl WindowWatch for TcpWatch {
    fn open(&mut self, ends: &WatchTargets<'_>) {
        self.controls = ends.sockets.iter().map(|(_, socket)| tcp_congestion(socket).expect("TCP")).collect();
        self.watcher.open(&WatchSubject {
            threads: ends.threads,
            sockets: ends.sockets,
            ..WatchSubject::default()
        });
        self.watcher.sample(Nanos(0));
    }

    fn sample(&mut self, at: Nanos) {
        self.watcher.sample(at);
    }

    fn close(&mut self) -> Observations {
        self.watcher.close()
    }
}

/// The outcome of one end, and its flows' congestion controls.
type WatchedOutcome = (EndpointOutcome, Vec<String>);

/// Runs both ends with their flows watched.
fn watched(spec: &TrialSpec) -> (WatchedOutcome, WatchedOutcome) {
    let port = DataPort::open(V4, &["tcp"], KEY).expect("a data port");
    let plan = ClientPlan { server: (V4, port.port()).into(), source_port: 0, key: KEY };
    let cancel = CancelFlag::new();
    let (mut here, mut there) = (TcpWatch::new(), TcpWatch::new());
    let (client, server) = std::thread::scope(|scope| {
        let serving = scope.spawn(|| run_server(spec, &port, &mut there, &cancel));
        let client = run_client(spec, &plan, &mut here, &cancel);
        (client, serving.join().expect("no panic"))
    });
    match (client, server) {
        (Ok(client), Ok(server)) => ((client, here.controls), (server, there.controls)),
        (client, server) => panic!("client: {client:?}\nserver: {server:?}"),
    }
}

fn of(end: &EndpointOutcome, flow: u32) -> Vec<&TcpSample> {
    end.observed.get::<Vec<TcpSample>>().iter().filter(|sample| sample.flow == flow).collect()
}

/// Returns true if the host has reno and cubic; prints why if not.
fn can(test: &str) -> bool {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let names = std::fs::read_to_string(path).unwrap_or_default();
    let both = ["reno", "cubic"].iter().all(|name| names.split_whitespace().any(|known| known == *name));
    if !both {
        println!("SKIP {test}: this kernel offers {}", names.trim());
    }
    both
}

#[test]
fn flows_enter_and_leave_each_with_its_own_control() {
    if !can("flows_enter_and_leave_each_with_its_own_control") {
        return;
    }
    // A busy machine may keep a flow, or what samples it, from a processor for some tenths of a second.
    let spec = planned(vec![flow("reno", 0, 3000), flow("cubic", 900, 2100)], 3000);
    let ((client, here), (server, there)) = watched(&spec);
    assert_eq!((here, there), (vec!["reno".into(), "cubic".into()], vec!["reno".into(), "cubic".into()]));
    assert_eq!((&client.not_as_asked, &server.not_as_asked), (&vec![], &vec![]));
    assert_eq!(server.flow_bytes.iter().copied().sum::<Bytes>(), server.received_bytes);
    assert!(client.sent_bytes >= server.received_bytes, "what a flow had not sent when it left is dropped");
    assert!(server.flow_bytes.iter().all(|&bytes| bytes > Bytes::mib(1)), "{:?}", server.flow_bytes);
    assert!(client.window_ns >= Nanos::millis(2900), "{}", client.window_ns);

    // The flows must be in the order of the plan, even if a busy machine shifts its times: the first alone, both, the
    // first alone.
    let grew = |flow| -> Vec<bool> {
        let samples = of(&server, flow);
        samples.windows(2).map(|pair| pair[1].received_bytes > pair[0].received_bytes).collect()
    };
    let steps: Vec<(bool, bool)> = grew(0).into_iter().zip(grew(1)).collect();
    let entered = steps.iter().position(|step| step.1).expect("the second sends");
    let left = steps.iter().rposition(|step| step.1).expect("the second sends");
    assert!(steps[..entered].iter().any(|step| step.0), "{steps:?}");
    assert!(steps[left + 1..].iter().any(|step| step.0), "{steps:?}");
    // At the client, a flow that has left is not sampled any more.
    let last = |flow| of(&client, flow).last().expect("samples").at_ns;
    assert!(last(1) < last(0), "{} {}", last(1), last(0));
}

#[test]
fn the_probe_comes_back_again_and_again() {
    for at in [V4, V6] {
        let (client, server) = outcomes(&planned(vec![flow("reno", 0, 300)], 300), at);
        let [client, server] = [&client, &server].map(|end| end.get::<staggered::StaggeredDetails>());
        let probes = &client.probes;
        assert!(probes.len() > 1, "{probes:?}");
        assert!(probes.iter().all(|probe| probe.rtt_ns > Nanos(0)), "{probes:?}");
        assert!(probes.windows(2).all(|two| two[0].at_ns < two[1].at_ns), "{probes:?}");
        assert!(server.probes.is_empty() && server.probes_lost == 0);
    }
    let mut silent = planned(vec![flow("reno", 0, 100)], 100);
    silent.workload = silent.workload.with("probe-every", "0s");
    assert_eq!(outcomes(&silent, V4).0.get::<staggered::StaggeredDetails>().probes, vec![]);
}

#[test]
fn a_flow_with_an_end_is_timed_and_arrives_whole() {
    let data = Bytes(3_000_001);
    let short = |enters| StaggeredFlow { data_bytes: Some(data), ..flow("reno", enters, 5000) };
    // The short ones share the machine with the others, and with other tests.
    let endless = flow("reno", 0, 2000);
    let never = StaggeredFlow { data_bytes: Some(Bytes(1 << 50)), ..flow("reno", 0, 1900) };
    let (client, server) = outcomes(&planned(vec![endless, short(0), short(100), never], 2000), V4);
    let took: Vec<_> =
        client.get::<staggered::StaggeredDetails>().flow_took_ns.iter().map(Option::is_some).collect();
    assert_eq!(took, [false, true, true, false]);
    assert!(
        client
            .get::<staggered::StaggeredDetails>()
            .flow_took_ns
            .iter()
            .flatten()
            .all(|&took| took > Nanos(0))
    );
    assert_eq!(server.flow_bytes[1..3], [data, data]);
    assert!(server.get::<staggered::StaggeredDetails>().flow_took_ns.is_empty());
}

#[test]
fn the_largest_number_of_flows_enters_and_leaves() {
    let mut silent: BTreeSet<usize> = (0..64).collect();
    for stays in STAYS {
        let flows = (0..64).map(|n| flow("reno", n * 5, n * 5 + stays)).collect();
        let (client, server) = outcomes(&planned(flows, stays + 350), V4);
        assert_eq!(server.flow_bytes.len(), 64);
        assert_eq!(server.flow_bytes.iter().copied().sum::<Bytes>(), server.received_bytes);
        assert!(
            client.sent_bytes >= server.received_bytes,
            "{} {}",
            client.sent_bytes,
            server.received_bytes
        );
        silent.retain(|flow| server.flow_bytes[*flow] == Bytes(0));
        if silent.is_empty() {
            return;
        }
    }
    panic!("these flows carried nothing in any run: {silent:?}");
}

#[test]
fn a_control_that_this_host_lacks_is_named() {
    let lacking = planned(vec![flow("reno", 0, 100), flow("no-such", 50, 100)], 100);
    let (client, server) = both(&lacking, V4);
    let error = client.expect_err("there is none").to_string();
    assert!(error.contains("asked for no-such") && error.contains("cc list"), "{error}");
    assert!(server.is_err(), "{server:?}");
}

/// Neither AF_UNIX nor a transport over UDP has TCP_INFO, so the workload samples such flows itself.
#[test]
fn flows_that_are_not_tcps_are_sampled_by_what_arrived() {
    let unix = |enters, leaves| StaggeredFlow {
        settings: [("transport".to_owned(), "unix".to_owned())].into(),
        enters_ns: Nanos::millis(enters),
        leaves_ns: Nanos::millis(leaves),
        data_bytes: None,
    };
    let tcp = StaggeredFlow { settings: [].into(), ..unix(0, 1000) };
    let port = DataPort::open(V4, &["tcp", "unix"], KEY).expect("a data port");
    // Long enough for several samples on a busy machine.
    let spec = planned(vec![unix(0, 1000), tcp, unix(300, 700)], 1000);
    let (Ok(client), Ok(server)) = both_on(&spec, &port, (V4, 0), &CancelFlag::new()) else {
        panic!("it runs")
    };
    let [client, server_seen] = [&client, &server].map(|end| end.get::<staggered::StaggeredDetails>());
    let received = |flow: u32| -> Vec<u64> {
        let samples = server_seen.samples.iter().filter(|sample| sample.flow == flow);
        samples.map(|sample| sample.received_bytes.0).collect()
    };
    assert!(received(0).len() > 2 && received(0).is_sorted(), "{:?}", received(0));
    assert!(received(0).last() > received(0).first(), "{:?}", received(0));
    assert_eq!(received(1), [0; 0], "TCP_INFO tells of it");
    assert!(received(2).last().is_some_and(|last| *last <= server.flow_bytes[2].0), "{:?}", received(2));
    assert!(client.samples.iter().all(|sample| sample.received_bytes == Bytes(0) && sample.flow != 1));
    assert!(client.samples.iter().any(|sample| sample.flow == 0));
}
