//! Flows that enter and leave over a long path:
//!
//! ```text
//!   client, namespace a  ==== veth ====  lab:wan, 50 Mb/s, 180 ms  ==== veth ====  server, namespace b
//! ```

use std::net::IpAddr;
use std::sync::mpsc;

use crate::common::{End, KEY, spec};
use landspeed_record::TrialSpec;
use landspeed_topology::{Lab, find, with_namespace};
use landspeed_transport::settings::TRANSPORT;
use landspeed_units::{Bytes, Nanos};
use landspeed_workload::staggered::{self, Seen, StaggeredFlow};
use landspeed_workload::{Cancel, ClientPlan, DataPort, Unwatched, run_client, run_server};

const PATH: &str = "lab:wan:rate=50M,rtt=180ms,queue=0.5bdp";

/// Runs both ends on the hosts of `lab`.
fn over(lab: &Lab, spec: &TrialSpec) -> (End, End) {
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    let at: IpAddr = b.v4.into();
    let (tell, port) = mpsc::channel();
    let cancel = &Cancel::new();
    std::thread::scope(|scope| {
        let serving = scope.spawn(move || {
            with_namespace(&b.netns, move || {
                let data = DataPort::open(at, &[TRANSPORT.of(&spec.flow)], KEY).expect("a data port");
                tell.send(data.port()).expect("the client listens");
                run_server(spec, &data, &mut Unwatched, cancel)
            })
        });
        let client = with_namespace(&a.netns, move || {
            let server = (at, port.recv().expect("a port")).into();
            run_client(spec, &ClientPlan { server, source_port: 0, key: KEY }, &mut Unwatched, cancel)
        });
        let server = serving.join().expect("no panic");
        (client.expect("namespace a"), server.expect("namespace b"))
    })
}

#[test]
fn flows_outlive_the_losses_of_a_long_path() {
    let topology = find(&[PATH.to_owned()]).expect("a lab of this kind");
    if let Err(reason) = topology.can_run() {
        println!("SKIP flows_outlive_the_losses_of_a_long_path: {reason}");
        return;
    }
    let lab = Lab::open(PATH).expect("a lab");
    let flow = |enters, leaves, data_bytes| StaggeredFlow {
        enters_ns: Nanos::secs(enters),
        leaves_ns: Nanos::secs(leaves),
        data_bytes,
        ..StaggeredFlow::controlled("reno")
    };
    let flows = vec![flow(0, 8, None), flow(3, 6, None), flow(2, 8, Some(Bytes::kib(64)))];
    let workload = staggered::spec(&flows, Nanos::secs(8), Nanos::millis(100));
    let (client, server) = over(&lab, &spec(workload));
    let (client, server) = (client.expect("client"), server.expect("server"));
    // Slow start fills the queue and loses many packets at once: repairing them takes several round trips.
    assert!(server.flow_bytes.iter().all(|&bytes| bytes > Bytes(0)), "{server:?}");
    assert_eq!(server.flow_bytes[2], Bytes::kib(64));
    // What the first two had handed over and not sent when they left never came.
    assert!(client.sent_bytes > server.received_bytes, "{} {}", client.sent_bytes, server.received_bytes);
    let seen = client.get::<Seen>();
    let took = seen.flow_took_ns[2].expect("it came to its end");
    assert!(took >= Nanos::millis(2 * 180), "an initial window is 15 KB: {took}");
    let least = seen.probes.iter().map(|probe| probe.rtt_ns).min().expect("probes");
    assert!(least >= Nanos::millis(179), "{least}");
    println!(
        "{} probes, {} lost, the least {least}; 64 KiB took {took}",
        seen.probes.len(),
        seen.probes_lost
    );
    println!("received {:?}, sent {}", server.flow_bytes, client.sent_bytes);
}
