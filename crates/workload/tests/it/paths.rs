//! Trials between the two hosts of a lab, each in its own network namespace.

use std::net::IpAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use landspeed_lab::topology::{Lab, LabHost};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{
    DatagramCounts, FigureValue, Headline, Observations, PathStall, SweepDatagrams, SweepPoint, TrialSpec,
    ZeroCopyCounts,
};
use landspeed_workload::staggered::{self, StaggeredDetails, StaggeredFlow};
use landspeed_workload::{Error, NullWatch, WatchTargets, WindowWatch, stream, sweep};

use crate::common::{EndResult, controlled, pingpong, set, spec, udp};
use crate::lab_hosts::{between, lab, run};

/// Returns two hosts joined by one link, on which the MSS of TCP over IPv4 is 4096: whole pages of payload. The
/// headers are 20 bytes of IP, 20 of TCP and 12 of timestamps.
fn joined(test: &str) -> Option<Lab> {
    let lab = lab(test, "lab:back-to-back")?;
    for host in lab.hosts() {
        run(&format!("ip -n {} link set {} mtu 4148", host.netns, host.device));
    }
    Some(lab)
}

fn hosts(lab: &Lab) -> (&LabHost, &LabHost) {
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    (a, b)
}

/// Returns both addresses of the server.
fn addresses(lab: &Lab) -> [IpAddr; 2] {
    let (_, b) = hosts(lab);
    [b.v4.into(), b.v6.into()]
}

fn over(lab: &Lab, spec: &TrialSpec, at: IpAddr) -> (EndResult, EndResult) {
    let (a, b) = hosts(lab);
    between([a, b], at, spec, &mut NullWatch)
}

#[test]
fn datagrams_cross_a_link_by_every_way() {
    let Some(lab) = joined("datagrams_cross_a_link_by_every_way") else { return };
    for (send, receive) in
        [("plain", "plain"), ("batch", "batch"), ("uring", "batch"), ("gso", "plain"), ("gso", "gro")]
    {
        // A sender of datagrams does not wait for its receiver, which on a busy machine may not run for a long time.
        let mut spec = udp(stream::spec(Nanos::millis(400)));
        set(&mut spec, &[("datagram-send", send), ("datagram-receive", receive)]);
        for at in addresses(&lab) {
            let (client, server) = over(&lab, &spec, at);
            let (client, server) = (client.expect("client"), server.expect("server"));
            let sent = &client.get::<Vec<DatagramCounts>>()[0];
            let came = &server.get::<Vec<DatagramCounts>>()[0];
            assert!(sent.sent > 0 && came.received > 0, "{send} to {receive}: {came:?}");
            assert_eq!((came.received_bytes.0, came.malformed), (came.received * 1472, 0), "{came:?}");
        }
    }
}

#[test]
fn large_datagrams_are_cut_into_fragments_and_small_ones_played_with() {
    let test = "large_datagrams_are_cut_into_fragments_and_small_ones_played_with";
    let Some(lab) = joined(test) else { return };
    let sizes_bytes = [32, 4068, 4120, 32_768].map(Bytes);
    let sweep = udp(sweep::spec(100, &sizes_bytes));
    let play = udp(pingpong(&sizes_bytes, Nanos::millis(250), "blocking"));
    for (spec, at) in [&sweep, &play].into_iter().flat_map(|spec| addresses(&lab).map(|at| (spec, at))) {
        let (client, server) = over(&lab, spec, at);
        let (client, server) = (client.expect("client"), server.expect("server"));
        for counts in &server.get::<SweepDatagrams>().0 {
            assert_eq!((counts.sent, counts.received + counts.lost), (100, 100), "{at}");
            assert!(counts.received > 0, "{at}: {counts:?}");
        }
        assert!(client.latency.iter().all(|histogram| histogram.count() > 0), "{at}");
        assert_eq!(server.get::<SweepDatagrams>().0.len() + client.latency.len(), 4);
    }
}

/// The sender hands all to its socket at once, and then waits for the receiver.
#[test]
fn a_size_that_takes_longer_than_the_patience_to_arrive_is_whole() {
    let test = "a_size_that_takes_longer_than_the_patience_to_arrive_is_whole";
    let Some(lab) = joined(test) else { return };
    let (a, _) = hosts(&lab);
    let shaped = "root tbf rate 160kbit burst 20kb limit 2mb";
    run(&format!("tc -n {} qdisc replace dev {} {shaped}", a.netns, a.device));
    let mut spec = spec(sweep::within(Nanos::secs(60), 10, &[Bytes(20_000)]));
    (spec.warm_up_ns, spec.patience_ns) = (Nanos(0), Nanos::secs(4));
    set(&mut spec, &[("sndbuf", "212992")]);
    let (client, server) = over(&lab, &spec, addresses(&lab)[0]);
    client.expect("client");
    let server = server.expect("server");
    let point = &server.get::<Vec<SweepPoint>>()[0];
    assert_eq!(point.moved_bytes, Bytes(200_000));
    assert!(point.took_ns > Nanos::secs(4), "the link is not slow: {point:?}");
}

#[test]
fn segments_that_the_path_would_have_to_cut_are_refused_in_words() {
    let test = "segments_that_the_path_would_have_to_cut_are_refused_in_words";
    let Some(lab) = joined(test) else { return };
    let mut spec = udp(stream::spec(Nanos::millis(100)));
    set(&mut spec, &[("datagram-send", "gso"), ("write-size", "4121")]);
    for at in addresses(&lab) {
        let line = over(&lab, &spec, at).0.expect_err("4148 less 28 or 48 is the most").to_string();
        assert!(line.contains("do not fit the path") && line.contains("batch"), "{line}");
    }
}

/// The kernel may use lent memory in a queue after the call has returned: each datagram must still have its own header
/// when it leaves.
#[test]
fn datagrams_from_lent_memory_that_wait_in_a_queue_keep_their_headers() {
    let test = "datagrams_from_lent_memory_that_wait_in_a_queue_keep_their_headers";
    let Some(lab) = joined(test) else { return };
    let (a, _) = hosts(&lab);
    let shaped = "root tbf rate 400mbit burst 20kb limit 2mb";
    run(&format!("tc -n {} qdisc replace dev {} {shaped}", a.netns, a.device));
    for (way, at) in
        ["plain", "batch", "uring", "gso"].into_iter().flat_map(|way| addresses(&lab).map(|at| (way, at)))
    {
        let mut spec = udp(stream::spec(Nanos::millis(400)));
        set(&mut spec, &[("datagram-send", way), ("zerocopy-send", "on")]);
        let (client, server) = over(&lab, &spec, at);
        let (client, server) = (client.expect("client"), server.expect("server"));
        let came = &server.get::<Vec<DatagramCounts>>()[0];
        assert!(came.received > 0, "{way}: {came:?}");
        // Different cores may empty the queue in turn: some datagrams arrive out of order, but none with another's
        // number.
        assert_eq!((came.duplicated, came.malformed), (0, 0), "{way}: {came:?}");
        let sends = client.get::<ZeroCopyCounts>();
        assert!(sends.completions > 0, "{way}: {sends:?}");
    }
}

#[test]
fn payload_that_fills_pages_is_mapped() {
    let Some(lab) = joined("payload_that_fills_pages_is_mapped") else { return };
    let mut spec = spec(stream::spec(Nanos::millis(200)));
    // veth copies a zero-copy send into single pages; a plain send fills larger ones.
    set(&mut spec, &[("zerocopy-send", "on"), ("zerocopy-receive", "on")]);
    let (client, server) = over(&lab, &spec, addresses(&lab)[0]);
    client.expect("client");
    let server = server.expect("server");
    assert!(server.get::<ZeroCopyCounts>().mapped_bytes > Bytes(0), "{server:?}");
}

/// A watch that runs a command when the window opens.
struct CommandAtOpening {
    words: String,
    ran: Option<Instant>,
}

impl WindowWatch for CommandAtOpening {
    fn open(&mut self, _: &WatchTargets<'_>) {
        run(&self.words);
        self.ran = Some(Instant::now());
    }

    fn sample(&mut self, _: Nanos) {}

    fn close(&mut self) -> Observations {
        Observations::default()
    }
}

#[test]
fn a_sender_whose_path_is_cut_stops() {
    let stream = stream::spec(Nanos::secs(120));
    let flow = |enters| StaggeredFlow {
        enters_ns: Nanos::secs(enters),
        leaves_ns: Nanos::secs(120),
        ..StaggeredFlow::default()
    };
    // A flow that has not entered yet, and a probe without an answer, must not hide the broken path.
    let idle = staggered::spec(&[flow(0), flow(60)], Nanos::secs(120), Nanos::millis(10));
    let over_quic = quic(stream.clone());
    let cases = [(spec(stream.clone()), true), (spec(idle), true), (udp(stream), false), (over_quic, false)];
    for (mut spec, is_told) in cases {
        spec.patience_ns = Nanos::millis(1_500);
        let Some(lab) = joined("a_sender_whose_path_is_cut_stops") else { return };
        let (a, b) = hosts(&lab);
        let words = if is_told {
            format!("ip -n {} link set {} down", a.netns, a.device)
        } else {
            // UDP would get an error if its own link were down; from a black hole it gets none.
            let unknown = "lladdr 02:00:00:00:00:99 nud permanent";
            format!("ip -n {} neigh replace {} {unknown} dev {}", a.netns, b.v4, a.device)
        };
        let mut watch = CommandAtOpening { words, ran: None };
        let (client, server) = between([a, b], b.v4.into(), &spec, &mut watch);
        if spec.workload.name == "stream" {
            // Both ends keep what they measured until then.
            for end in [client, server] {
                let end = end.expect("figures");
                assert!(end.get::<PathStall>().ended_run(), "{:?}", end.details);
            }
        } else {
            assert!(matches!(client, Err(Error::PathBroke(_))), "{client:?}");
            assert!(matches!(server, Err(Error::Cancelled)), "{server:?}");
        }
        let took = watch.ran.expect("the window opened").elapsed();
        assert!(took < Duration::from_secs(60), "long before the end of its two minutes: {took:?}");
    }
}

/// Returns a trial of `workload` over QUIC.
fn quic(workload: landspeed_record::Workload) -> TrialSpec {
    let mut spec = spec(workload);
    set(&mut spec, &[("transport", "quic")]);
    spec
}

/// Slow start overruns the queue: thousands of packets are lost in one burst, with gaps between them.
#[test]
fn quic_fills_a_long_path() {
    let path = "lab:wan:rate=300M,rtt=180ms,queue=0.5bdp";
    let Some(lab) = lab("quic_fills_a_long_path", path) else { return };
    let mut spec = quic(stream::spec(Nanos::secs(6)));
    spec.warm_up_ns = Nanos::secs(4);
    let overruns = || {
        let (client, server) = over(&lab, &spec, addresses(&lab)[0]);
        let (client, server) = (client.expect("client"), server.expect("server"));
        let details = serde_json::to_value(&client.details).expect("JSON");
        assert!(server.received_bytes > Bytes::mib(10), "{:?}, {details}", server.received_bytes);
        details["quic"][0]["lost_packets"].as_u64() > Some(1024)
    };
    // Beside other programs a sender may not get as far as the queue's end.
    assert!((0..3).any(|_| overruns()), "slow start did not overrun the queue");
}

#[test]
fn flows_outlive_the_losses_of_a_long_path() {
    let path = "lab:wan:rate=50M,rtt=180ms,queue=0.5bdp";
    let Some(lab) = lab("flows_outlive_the_losses_of_a_long_path", path) else { return };
    let flow = |enters, leaves, data_bytes| StaggeredFlow {
        enters_ns: Nanos::secs(enters),
        leaves_ns: Nanos::secs(leaves),
        data_bytes,
        ..controlled("reno")
    };
    let flows = [flow(0, 8, None), flow(3, 6, None), flow(2, 8, Some(Bytes::kib(64)))];
    let workload = staggered::spec(&flows, Nanos::secs(8), Nanos::millis(100));
    let (client, server) = over(&lab, &spec(workload), addresses(&lab)[0]);
    let (client, server) = (client.expect("client"), server.expect("server"));
    // Slow start fills the queue and loses many packets in one burst, whose repair takes several round trips.
    assert!(server.flow_bytes.iter().all(|&bytes| bytes > Bytes(0)), "{server:?}");
    assert_eq!(server.flow_bytes[2], Bytes::kib(64));
    // Data that the first two had not sent when they left is dropped.
    assert!(client.sent_bytes > server.received_bytes, "{} {}", client.sent_bytes, server.received_bytes);
    let seen = client.get::<StaggeredDetails>();
    let took = seen.flow_took_ns[2].expect("it came to its end");
    assert!(took >= Nanos::millis(2 * 180), "an initial window is 15 KB: {took}");
    let least = seen.probes.iter().map(|probe| probe.rtt_ns).min().expect("probes");
    assert!(least >= Nanos::millis(179), "{least}");
}

/// Returns the bytes that a link has sent, as iproute2 reports.
fn sent_by(host: &LabHost, link: &str) -> Bytes {
    let words = ["-n", &host.netns, "-s", "-j", "link", "show", link];
    let output = Command::new("ip").args(words).output().expect("iproute2 is installed").stdout;
    let output: serde_json::Value = serde_json::from_slice(&output).expect("JSON");
    Bytes(output[0]["stats64"]["tx"]["bytes"].as_u64().expect("a count"))
}

/// Adds a second link between the hosts. A shaper narrows both, so that one alone does not carry everything.
fn add_second_link(lab: &Lab) {
    let (a, b) = hosts(lab);
    run(&format!("ip -n {} link add second type veth peer name second netns {}", a.netns, b.netns));
    for (host, number) in [(a, 1), (b, 2)] {
        run(&format!("ip -n {} addr add 10.12.0.{number}/24 dev second", host.netns));
        run(&format!("ip -n {} link set second up", host.netns));
        for link in [&host.device, "second"] {
            let shaper = "root tbf rate 100mbit burst 64kb latency 50ms";
            run(&format!("tc -n {} qdisc replace dev {link} {shaper}", host.netns));
        }
        run(&format!("ip -n {} mptcp limits set subflow 2 add_addr_accepted 2", host.netns));
    }
    run(&format!("ip -n {} mptcp endpoint add 10.12.0.1 dev second subflow", a.netns));
}

#[test]
fn multipath_tcp_carries_data_over_both_links() {
    let test = "multipath_tcp_carries_data_over_both_links";
    let transport = landspeed_transport::find("mptcp").expect("it is in the table");
    let mut spec = spec(stream::spec(Nanos::secs(1)));
    spec.warm_up_ns = Nanos::millis(300);
    set(&mut spec, &[("transport", "mptcp"), ("flows", "4")]);
    if let Err(reason) = transport.can_run(&spec.flow) {
        println!("SKIP {test}: {reason}");
        return;
    }
    let Some(lab) = lab(test, "lab:back-to-back") else { return };
    add_second_link(&lab);
    let subflows = || {
        let (client, server) = over(&lab, &spec, addresses(&lab)[0]);
        let (client, server) = (client.expect("client"), server.expect("server"));
        assert!(server.received_bytes > Bytes(0));
        let printed = Headline::figures(transport.about().headlines, &client).expect("readable");
        let subflows = printed.iter().find(|figure| figure.name == "subflows").expect("it is printed");
        subflows.amount.clone()
    };
    // A server that is not ready for a second subflow refuses it, and the kernel does not try again, so not all flows
    // need to have one. On a busy processor, all four of a run may be too early; new connections try again.
    let seen = (0..5).map(|_| subflows()).find(|seen| *seen != FigureValue::Count(4));
    assert!(matches!(seen, Some(FigureValue::Count(5..=8))), "{seen:?}");
    let (a, _) = hosts(&lab);
    for link in [&a.device, "second"] {
        let sent = sent_by(a, link);
        assert!(sent > Bytes::mib(1), "{link} carried {sent} in over a second at 100 Mb/s");
    }
}
