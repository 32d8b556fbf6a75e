//! Observations as the kernel would show them, built by hand: first a healthy path, then the effect of each fault of
//! `faults` on its sockets, counters and processors. The figures come from the lab's hand measurements and from the
//! kernel's own rules, which the faults name.

use std::net::SocketAddr;

use landspeed_analysis::verdict::{FollowUps, HostView, PathObservations, judge};
use landspeed_record::units::{BitRate, Bytes, CpuNanos, Nanos};
use landspeed_record::{
    Cause, CoreCpuTime, CpuUsage, Detail, FlowKey, FlowWatch, HostFacts, HostLimits, IpProtocol,
    LinkCounters, LinkSettings, Observations, PacedStream, PathCapacity, ProcessWatch, QdiscWatch, Settings,
    SnmpCounts, SocketState, TcpState, Verdict,
};

/// The length of the window, and the number of samples in it.
pub(crate) const SPAN: Nanos = Nanos::secs(10);
pub(crate) const SAMPLES: usize = 21;
/// An ordinary MSS with timestamps, and the MTU.
pub(crate) const MSS: u64 = 1448;
pub(crate) const MTU: u64 = 1500;

/// The settings of a host if none of them are known.
static NOTHING: Settings = Settings::new();

/// A path with the observations on both hosts. A sends.
#[derive(Clone)]
pub(crate) struct WatchedPath {
    pub(crate) a: Observations,
    pub(crate) b: Observations,
    pub(crate) facts: [HostFacts; 2],
    pub(crate) limits: [Option<HostLimits>; 2],
    pub(crate) rtt: Nanos,
    /// The same stream at a lower pace.
    pub(crate) slower: Option<PacedStream>,
    /// The rate that the path carries, as a search found it.
    pub(crate) capacity: Option<PathCapacity>,
    /// The goodput from which the socket's counters are computed.
    pub(crate) rate: BitRate,
}

impl WatchedPath {
    /// Returns two hosts of a lab on one machine with two cores, 20 Gb/s, 50 us: both threads are busy throughout,
    /// windows are autotuned to megabytes, and the receiver's queue holds some of that.
    pub(crate) fn lan() -> WatchedPath {
        let mut path =
            WatchedPath::busy(BitRate(20e9), Nanos::micros(50), [0.8, 0.77], [[0.86, 0.35], [0.82, 0.05]]);
        path.sender(|at, socket, t| {
            socket.send_buffer_bytes = Bytes(4 << 20);
            // A busy pair of cores shows this: most data is acknowledged within the call that sends it, some segments
            // overtake each other, and packets wait for a core, not for the link.
            t.busy_ns = share_of(at, 0.8);
            t.cwnd_segments = 1500;
            t.unacked_segments = if nth(at).is_multiple_of(3) { 90 } else { 0 };
            (t.rtt_ns, t.min_rtt_ns) = (Nanos::micros(1_200), Some(Nanos::micros(3)));
            t.retransmitted_segments = (at * 450.0) as u64;
            t.duplicates_reported = (at * 200.0) as u64;
            t.reorderings_seen = (at * 300.0) as u64;
            t.peer_window_bytes = Bytes(1_500_000 + (at * 3e6) as u64 % 1_000_000);
            // Now and then the reader is late.
            t.rwnd_limited_ns = share_of(at, 0.2);
        });
        path.receiver(|_, socket, t| {
            socket.receive_queue_bytes = Bytes(900_000);
            socket.receive_buffer_bytes = Bytes(6 << 20);
            t.receive_window_bytes = Some(Bytes(2_000_000));
        });
        path
    }

    /// Returns a path of 200 Mb/s and 20 ms with a queue of one bandwidth-delay product somewhere on it. CUBIC keeps
    /// that queue half full and overflows it now and then; processors idle.
    pub(crate) fn wan() -> WatchedPath {
        let mut path =
            WatchedPath::busy(BitRate(190e6), Nanos::millis(20), [0.05, 0.06], [[0.12, 0.03], [0.10, 0.03]]);
        path.sender(|at, socket, t| {
            socket.send_buffer_bytes = Bytes(4 << 20);
            t.cwnd_segments = 500 + (at * 2000.0) as u32 % 180;
            t.unacked_segments = t.cwnd_segments - 4;
            t.not_sent_bytes = Bytes(1 << 20);
            t.rtt_ns = Nanos::millis(30);
            t.retransmitted_segments = (at * 3.0) as u64 * 40;
            t.ssthresh_segments = 480;
        });
        path.count_a("TcpExt.TCPSackRecovery", 3);
        path
    }

    /// Returns two hosts between which a flow carries `rate`, with time to spare everywhere.
    pub(crate) fn quiet(rate: BitRate, rtt: Nanos) -> WatchedPath {
        let facts = |name: &str| HostFacts {
            hostname: name.into(),
            kernel: "6.18.0".into(),
            boot_id: "one".into(),
            cpus: 2,
            numa_nodes: 1,
            ..HostFacts::default()
        };
        let host = |local, remote, pid| {
            Observations::default()
                .with(CpuUsage { window_ns: SPAN, ..CpuUsage::default() })
                .with(vec![flow(local, remote, pid)])
                .with(vec![process(pid)])
                .with(vec![settings()])
                .with(vec![QdiscWatch {
                    link: "eth0".into(),
                    kind: "noqueue".into(),
                    ..QdiscWatch::default()
                }])
                .with(vec![LinkCounters { link: "eth0".into(), ..LinkCounters::default() }])
                .with(SnmpCounts([("Tcp.OutSegs".to_owned(), 1000)].into()))
        };
        let mut path = WatchedPath {
            a: host("10.0.0.1:40000", "10.0.0.2:5201", 100),
            b: host("10.0.0.2:5201", "10.0.0.1:40000", 200),
            facts: [facts("h0"), facts("h1")],
            limits: [None, None],
            rtt,
            slower: None,
            capacity: None,
            rate,
        };
        path.carry(rate);
        path.threads([0.3, 0.3]);
        path.cores([[0.4, 0.1], [0.4, 0.05]]);
        path.waits(["sk_stream_wait_memory", "wait_woken"]);
        path
    }

    /// Returns two hosts between which a flow carries `rate`, with the given load of threads and cores.
    pub(crate) fn busy(rate: BitRate, rtt: Nanos, threads: [f64; 2], cores: [[f64; 2]; 2]) -> WatchedPath {
        let mut path = WatchedPath::quiet(rate, rtt);
        path.threads(threads);
        path.cores(cores);
        path
    }

    /// Sets the counters to those of a flow at `rate`, always in flight, with full segments.
    pub(crate) fn carry(&mut self, rate: BitRate) {
        let (bytes, rtt) = (rate.0 * SPAN.as_secs_f64() / 8.0, self.rtt);
        self.rate = rate;
        let held = (rate.0 * rtt.as_secs_f64() / 8.0 / MSS as f64).ceil() as u32;
        self.sender(|at, socket, t| {
            socket.send_buffer_bytes = Bytes(2 << 20);
            t.acked_bytes = Bytes((bytes * at) as u64);
            t.sent_bytes = t.acked_bytes;
            t.data_segments_sent = t.acked_bytes.0 / MSS;
            t.segments_received = t.data_segments_sent / 2;
            t.busy_ns = share_of(at, 1.0);
            (t.rtt_ns, t.min_rtt_ns) = (rtt, Some(rtt));
            (t.cwnd_segments, t.unacked_segments) = (held * 2, held);
        });
        self.receiver(|at, socket, t| {
            socket.receive_buffer_bytes = Bytes(4 << 20);
            t.received_bytes = Bytes((bytes * at) as u64);
            t.data_segments_received = t.received_bytes.0 / MSS;
            t.receive_window_bytes = Some(Bytes(2 << 20));
            t.receive_rtt_ns = Some(rtt);
        });
        let (bytes, packets) = (Bytes(bytes as u64), (bytes / 30_000.0) as u64);
        let [a, b] = [&mut self.a, &mut self.b].map(first::<LinkCounters>);
        (a.tx_bytes, b.rx_bytes) = (bytes, bytes);
        (a.tx_packets, b.rx_packets) = (packets, packets);
    }

    /// Changes every sample of the sender's socket. The first argument of `change` is the sample's time in the window,
    /// from 0 to 1.
    pub(crate) fn sender(&mut self, change: impl Fn(f64, &mut SocketState, &mut TcpState)) {
        each(first::<FlowWatch>(&mut self.a), change);
    }

    pub(crate) fn receiver(&mut self, change: impl Fn(f64, &mut SocketState, &mut TcpState)) {
        each(first::<FlowWatch>(&mut self.b), change);
    }

    /// Sets the share of the window in which each end's thread ran.
    pub(crate) fn threads(&mut self, ran: [f64; 2]) {
        for (seen, ran) in [&mut self.a, &mut self.b].into_iter().zip(ran) {
            let process = first::<ProcessWatch>(seen);
            process.busiest_thread_ns = CpuNanos(share_of(1.0, ran).0);
            process.cpu_ns = process.busiest_thread_ns;
        }
    }

    /// Sets the busy and softirq share of the machine's two cores.
    pub(crate) fn cores(&mut self, cores: [[f64; 2]; 2]) {
        let core = |number: usize, [busy, softirq]: [f64; 2]| CoreCpuTime {
            core: number as u32,
            user_ns: CpuNanos(share_of(1.0, 0.1 * (busy - softirq)).0),
            system_ns: CpuNanos(share_of(1.0, 0.9 * (busy - softirq)).0),
            softirq_ns: CpuNanos(share_of(1.0, softirq).0),
            idle_ns: CpuNanos(share_of(1.0, 1.0 - busy).0),
            ..CoreCpuTime::default()
        };
        for seen in [&mut self.a, &mut self.b] {
            seen.get_mut::<CpuUsage>().cores = vec![core(0, cores[0]), core(1, cores[1])];
        }
    }

    /// Sets the places where the threads sleep when they do not run, in half of the samples.
    pub(crate) fn waits(&mut self, places: [&str; 2]) {
        for (seen, place) in [&mut self.a, &mut self.b].into_iter().zip(places) {
            first::<ProcessWatch>(seen).waiting_in = [("running".into(), 10), (place.to_owned(), 10)].into();
        }
    }

    /// Turns these features of the sender's link off.
    pub(crate) fn turn_off(&mut self, features: &[&str]) {
        let own = &mut first::<LinkSettings>(&mut self.a).features;
        own.extend(features.iter().map(|name| ((*name).to_owned(), false)));
    }

    pub(crate) fn count_a(&mut self, name: &str, count: u64) {
        self.a.get_mut::<SnmpCounts>().0.insert(name.into(), count);
    }

    pub(crate) fn count_b(&mut self, name: &str, count: u64) {
        self.b.get_mut::<SnmpCounts>().0.insert(name.into(), count);
    }

    /// Returns the verdict with both ends, the sender first.
    pub(crate) fn verdict(&self) -> Verdict {
        judge(&PathObservations {
            a: self.host(0),
            b: Some(self.host(1)),
            rtt: Some(self.rtt),
            goodput: None,
            own: Some(&NOTHING),
            follow_ups: self.follow_ups(),
        })
    }

    /// Returns the verdict with the ends in the other order.
    pub(crate) fn turned(&self) -> Verdict {
        judge(&PathObservations {
            a: self.host(1),
            b: Some(self.host(0)),
            rtt: Some(self.rtt),
            goodput: None,
            own: Some(&NOTHING),
            follow_ups: self.follow_ups(),
        })
    }

    /// Returns the verdict from one end alone, without an idle round trip.
    pub(crate) fn from(&self, side: usize) -> Verdict {
        judge(&PathObservations {
            a: self.host(side),
            b: None,
            rtt: None,
            goodput: None,
            own: Some(&NOTHING),
            follow_ups: self.follow_ups(),
        })
    }

    /// Returns the verdict on the flow of another program, on hosts with these settings.
    pub(crate) fn of_a_program(&self, set: &Settings) -> Verdict {
        let host = |side| HostView { set, ..self.host(side) };
        judge(&PathObservations {
            a: host(0),
            b: Some(host(1)),
            rtt: Some(self.rtt),
            goodput: None,
            own: None,
            follow_ups: self.follow_ups(),
        })
    }

    fn follow_ups(&self) -> FollowUps<'_> {
        FollowUps { probe: None, slower: self.slower.as_ref(), capacity: self.capacity.as_ref() }
    }

    fn host(&self, side: usize) -> HostView<'_> {
        let seen = [&self.a, &self.b][side];
        let name = ["A", "B"][side];
        HostView { name, facts: &self.facts[side], seen, limits: self.limits[side].as_ref(), set: &NOTHING }
    }
}

pub(crate) fn first<T>(seen: &mut Observations) -> &mut T
where
    Vec<T>: Detail,
{
    &mut seen.get_mut::<Vec<T>>()[0]
}

/// Returns the number of the sample at this moment.
pub(crate) fn nth(at: f64) -> u64 {
    (at * (SAMPLES - 1) as f64).round() as u64
}

fn each(flow: &mut FlowWatch, change: impl Fn(f64, &mut SocketState, &mut TcpState)) {
    for (n, sample) in flow.samples.iter_mut().enumerate() {
        let mut tcp = sample.tcp.take().unwrap_or_default();
        change(n as f64 / (SAMPLES - 1) as f64, sample, &mut tcp);
        sample.tcp = Some(tcp);
    }
}

/// Returns `share` of the part of the window that has passed at `at`.
pub(crate) fn share_of(at: f64, share: f64) -> Nanos {
    Nanos((SPAN.0 as f64 * at * share).round() as u64)
}

fn flow(local: &str, remote: &str, pid: u32) -> FlowWatch {
    let at = |n: usize| Nanos(SPAN.0 * n as u64 / (SAMPLES as u64 - 1));
    let tcp = TcpState {
        options: 7,
        peer_window_scale: 7,
        window_scale: 7,
        send_mss_bytes: Bytes(MSS),
        receive_mss_bytes: Bytes(MSS),
        advertised_mss_bytes: Bytes(MSS + 12),
        path_mtu_bytes: Bytes(MTU),
        peer_window_bytes: Bytes(2 << 20),
        ssthresh_segments: i32::MAX as u32,
        ato_ns: Nanos::millis(40),
        ..TcpState::default()
    };
    let sample = |n| SocketState { at_ns: at(n), tcp: Some(Box::new(tcp.clone())), ..SocketState::default() };
    let end = |text: &str| text.parse::<SocketAddr>().unwrap();
    FlowWatch {
        key: FlowKey { protocol: IpProtocol::TCP, local: end(local), remote: end(remote) },
        pid: Some(pid),
        congestion: "cubic".into(),
        samples: (0..SAMPLES).map(sample).collect(),
    }
}

fn process(pid: u32) -> ProcessWatch {
    let core = u32::from(pid == 200);
    ProcessWatch { pid, name: "app".into(), core, allowed_cores: vec![0, 1], ..ProcessWatch::default() }
}

/// Returns all offloads of a veth as it comes: receive offload is off there, because large packets pass whole.
fn settings() -> LinkSettings {
    let on = [
        "tx-checksum-ip-generic",
        "tx-scatter-gather",
        "tx-tcp-segmentation",
        "tx-generic-segmentation",
        "rx-checksum",
    ];
    let mut features: std::collections::BTreeMap<String, bool> =
        on.map(|name| (name.to_owned(), true)).into();
    features.insert("rx-gro".into(), false);
    LinkSettings {
        link: "eth0".into(),
        mtu_bytes: Bytes(MTU),
        tx_queue_packets: 1000,
        features,
        fixed: Vec::new(),
    }
}

pub(crate) fn causes(verdict: &Verdict) -> Vec<Cause> {
    verdict.findings.iter().map(|finding| finding.cause).collect()
}
