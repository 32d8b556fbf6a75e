//! Multipath TCP over two links, both of which carry data.
//!
//! ```text
//!   a 10.11.0.1 ---- 10.11.0.2 b
//!     10.12.0.1 ---- 10.12.0.2
//! ```

use std::process::Command;
use std::sync::mpsc;

use landspeed_record::{Amount, Headline, Settings, TrialSpec};
use landspeed_topology::{Namespace, with_namespace};
use landspeed_transport::find;
use landspeed_units::{Bytes, Nanos};
use landspeed_workload::{Cancel, ClientPlan, DataPort, Unwatched, run_client, run_server, stream};

const KEY: [u8; 32] = [11; 32];

fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status().expect("iproute2 is installed");
    assert!(status.success(), "ip {words}");
}

/// What a link has sent, as iproute2 tells.
fn sent_by(host: &str, link: &str) -> Bytes {
    let words = ["-n", host, "-s", "-j", "link", "show", link];
    let told = Command::new("ip").args(words).output().expect("iproute2 is installed").stdout;
    let told: serde_json::Value = serde_json::from_slice(&told).expect("JSON");
    Bytes(told[0]["stats64"]["tx"]["bytes"].as_u64().expect("a count"))
}

/// Both hosts, joined by two links that a shaper makes narrow, so that one alone does not carry everything.
fn joined() -> [Namespace; 2] {
    let name = |side| format!("lsmptcp{}{side}", std::process::id());
    let hosts = ["a", "b"].map(|side| Namespace::create(&name(side)).expect("a namespace"));
    let [a, b] = hosts.each_ref().map(Namespace::name);
    for link in [11, 12] {
        ip(&format!("-n {a} link add v{link} type veth peer name v{link} netns {b}"));
        for (end, host) in [(a, 1), (b, 2)] {
            ip(&format!("-n {end} addr add 10.{link}.0.{host}/24 dev v{link}"));
            ip(&format!("-n {end} link set v{link} up"));
            let tc = format!("-n {end} qdisc add dev v{link} root tbf rate 100mbit burst 64kb latency 50ms");
            assert!(Command::new("tc").args(tc.split(' ')).status().expect("tc is installed").success());
        }
    }
    for end in [a, b] {
        ip(&format!("-n {end} mptcp limits set subflow 2 add_addr_accepted 2"));
    }
    ip(&format!("-n {a} mptcp endpoint add 10.12.0.1 dev v12 subflow"));
    hosts
}

#[test]
fn both_links_carry_data() {
    let transport = find("mptcp").expect("it is in the table");
    let can_run = transport.can_run(&Settings::new());
    if !rustix::process::geteuid().is_root() || can_run.is_err() {
        println!("SKIP both_links_carry_data: root and Multipath TCP are needed: {can_run:?}");
        return;
    }
    let [a, b] = joined();
    let spec = TrialSpec {
        workload: stream::spec(Nanos::secs(1)),
        // A server that is not ready for it refuses a second subflow, and the kernel does not ask again: not all flows need one.
        flow: [("transport", "mptcp"), ("flows", "4")]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        cores: vec![],
        warm_up_ns: Nanos::millis(300),
        interval_ns: Nanos(0),
        observers: vec![],
    };
    let at = "10.11.0.2".parse().expect("an address");
    let (tell, port) = mpsc::channel();
    let cancel = Cancel::new();
    let (client, server) = std::thread::scope(|scope| {
        let (spec, cancel, a, b) = (&spec, &cancel, a.name(), b.name());
        let server = scope.spawn(move || {
            with_namespace(b, || {
                let data = DataPort::open(at, &["mptcp"], KEY).expect("a data port");
                tell.send(data.port()).expect("the client waits");
                run_server(spec, &data, &mut Unwatched, cancel)
            })
        });
        let client = scope.spawn(move || {
            let port = port.recv().expect("a port");
            let plan = ClientPlan { server: (at, port).into(), source_port: 0, key: KEY };
            with_namespace(a, || run_client(spec, &plan, &mut Unwatched, cancel))
        });
        (client.join().expect("no panic"), server.join().expect("no panic"))
    });
    let client = client.expect("its namespace").expect("client");
    let server = server.expect("its namespace").expect("server");
    assert!(server.received_bytes > Bytes(0));
    let printed = Headline::figures(transport.headlines(), &client).expect("readable");
    let figure =
        |name: &str| printed.iter().find(|figure| figure.name == name).map(|figure| figure.amount.clone());
    let Some(Amount::Count(subflows)) = figure("subflows") else { panic!("{printed:?}") };
    assert!((5..=8).contains(&subflows), "{printed:?}");
    for link in ["v11", "v12"] {
        let sent = sent_by(a.name(), link);
        assert!(sent > Bytes::mib(1), "{link} carried {sent} in over a second at 100 Mb/s");
    }
}
