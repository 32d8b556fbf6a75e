//! Paths that are silent for a while: a silence is measured, and does not end the trial.

use std::time::Duration;

use landspeed_lab::topology::LabHost;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{EndpointOutcome, PathStall, Silences, TrialSpec};
use landspeed_transport::settings::TRANSPORT;
use landspeed_workload::{NullWatch, stream};

use crate::common::{set, spec};
use crate::lab_hosts::{between, lab, run};

fn streaming(transport: &str, time: Nanos) -> TrialSpec {
    let mut spec = spec(stream::spec(time));
    set(&mut spec, &[("transport", transport), ("write-size", "1472")]);
    spec
}

/// Runs both ends of a trial between two hosts, and returns their outcomes.
fn outcomes([a, b]: [&LabHost; 2], spec: &TrialSpec) -> [EndpointOutcome; 2] {
    let (client, server) = between([a, b], b.v4.into(), spec, &mut NullWatch);
    [client.expect("client"), server.expect("server")]
}

#[test]
fn a_link_that_is_down_for_a_while_is_a_silence_of_every_transport() {
    let Some(lab) = lab("a_link_that_is_down_for_a_while", "lab:back-to-back") else { return };
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    let each = ["tcp", "udp", "udt", "quic"].map(|transport| streaming(transport, Nanos::secs(6)));
    let seen: Vec<_> = std::thread::scope(|scope| {
        let trials: Vec<_> = each.iter().map(|spec| scope.spawn(move || outcomes([a, b], spec))).collect();
        // All of them send by then, also on a busy machine.
        std::thread::sleep(Duration::from_millis(2_500));
        run(&format!("ip -n {} link set {} down", b.netns, b.device));
        std::thread::sleep(Duration::from_millis(1_500));
        run(&format!("ip -n {} link set {} up", b.netns, b.device));
        trials.into_iter().map(|trial| trial.join().expect("no panic")).collect()
    });
    for (spec, [client, server]) in each.iter().zip(seen) {
        let name = TRANSPORT.of(&spec.flow);
        let silences = server.get::<Silences>();
        assert!(
            !client.get::<PathStall>().ended_run() && !server.get::<PathStall>().ended_run(),
            "{name}: it is whole"
        );
        assert!(server.received_bytes > Bytes::kib(64), "{name}: {}", server.received_bytes);
        assert!(silences.longest() >= Nanos::millis(1_300), "{name}: {silences:?}");
        assert!(silences.total() < server.window_ns, "{name}: {silences:?}");
    }
}

#[test]
fn lossy_long_paths_give_a_figure_each_time() {
    let word = "lab:wan:rate=20M,rtt=200ms,loss=5%";
    let Some(lab) = lab("lossy_long_paths_give_a_figure_each_time", word) else { return };
    let [a, b, ..] = lab.hosts() else { panic!("two hosts") };
    let stream = streaming("tcp", Nanos::secs(3));
    let seen: Vec<_> = std::thread::scope(|scope| {
        let trials: Vec<_> = (0..4).map(|_| scope.spawn(|| outcomes([a, b], &stream))).collect();
        trials.into_iter().map(|trial| trial.join().expect("no panic")).collect()
    });
    for [client, server] in seen {
        assert!(
            !client.get::<PathStall>().ended_run() && server.received_bytes > Bytes(0),
            "{:?}",
            client.details
        );
    }
}

#[test]
fn a_slow_link_is_no_silent_one() {
    let Some(lab) = lab("a_slow_link_is_no_silent_one", "lab:back-to-back") else { return };
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    for host in [a, b] {
        // A full packet takes 1.25 s.
        let shaper = "root tbf rate 9600bit burst 1600 limit 15000";
        run(&format!("tc -n {} qdisc replace dev {} {shaper}", host.netns, host.device));
        run(&format!("ip netns exec {} ethtool -K {} tso off gso off", host.netns, host.device));
    }
    let [client, server] = outcomes([a, b], &streaming("tcp", Nanos::secs(5)));
    assert!(
        !client.get::<PathStall>().ended_run() && server.received_bytes > Bytes(0),
        "{:?}",
        server.details
    );
    assert_eq!(server.get::<Silences>().total(), Nanos(0), "it is as usual");
}
