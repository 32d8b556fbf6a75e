//! Probes a path that carried nothing: sends packets of several sizes, whole and in fragments, over proven flows.

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{
    DatagramCounts, EndpointOutcome, FragmentationPoint, LatencyHistogram, PathProbe, PathStall, ProbedSize,
    Settings, Side, SweepDatagrams, SweepPoint, Workload,
};
use landspeed_transport::settings::{TRANSPORT, with};
use landspeed_workload::{pingpong, sweep};

use crate::{Error, Pair, RunSpec, WatchOptions};

/// Sizes of IP packets in bytes that are typical MTUs of paths: tunnels, PPPoE, Ethernet, jumbo frames.
const SIZES: [u64; 22] = [
    128, 576, 1000, 1200, 1280, 1320, 1360, 1380, 1400, 1420, 1436, 1450, 1460, 1472, 1480, 1492, 1500, 2000,
    4000, 6000, 8000, 9000,
];
/// Number of packets of each size. If a path loses a fifth of its packets at random, all packets of a size are lost
/// once in about 3,000 times.
const EACH: u64 = 5;
/// The longest time for the packets of one size.
const LONGEST: Nanos = Nanos::secs(2);
/// How long the flows of the probe wait for a silent path.
const PATIENCE: Nanos = Nanos::secs(4);
/// Number of bytes by which a packet exceeds the link's MTU, so that the sender fragments it.
const BEYOND: Bytes = Bytes(1200);
/// Duration of a ping-pong, which replaces the datagrams if they cannot be sent.
const ROUNDS: Nanos = Nanos::millis(300);

/// Returns the state of the stalled flow if the path of a run broke or carried nothing; otherwise `None`.
pub(crate) fn broken(seen: &[EndpointOutcome; 2]) -> Option<PathStall> {
    let broken = seen.iter().map(|end| end.get::<PathStall>()).filter(|broken| broken.ended_run());
    broken.max_by_key(|broken| broken.timeouts).cloned()
}

/// Sends packets of several sizes over `pair`, and returns which of them arrived.
pub(crate) fn probe(pair: &Pair<'_>, stalled: PathStall) -> PathProbe {
    let mtu = Bytes(pair.link(Side::A).mtu_bytes.into());
    let mut probe = PathProbe { over: "UDP".to_owned(), mtu_bytes: mtu, stalled, ..PathProbe::default() };
    let headers = Bytes(if pair.is_ipv6() { 48 } else { 28 });
    let whole: Vec<Bytes> = SIZES.into_iter().map(Bytes).filter(|size| *size < mtu).chain([mtu]).collect();
    let pieces = [Bytes(SIZES[0]), mtu, mtu + BEYOND];
    for (dont, sizes) in [("on", &whole[..]), ("off", &pieces[..])] {
        match datagrams(pair, dont, sizes, headers) {
            Ok(sizes) => probe.sizes.extend(sizes.into_iter().map(|size| cut(size, dont, mtu))),
            Err(error) => {
                probe.failed.push(format!("datagrams could not be sent: {error}"));
                break;
            }
        }
    }
    if probe.sizes.is_empty() {
        messages(pair, &mut probe);
    }
    probe
}

/// Sends datagrams in IP packets of these sizes, and counts those that arrive. `dont` is the setting of
/// `dont-fragment`.
fn datagrams(pair: &Pair<'_>, dont: &str, sizes: &[Bytes], headers: Bytes) -> Result<Vec<ProbedSize>, Error> {
    let payloads: Vec<Bytes> = sizes.iter().map(|size| *size - headers).collect();
    let mut flow = with(&[(&TRANSPORT, "udp")]);
    flow.insert("dont-fragment".to_owned(), dont.to_owned());
    let [_, b] = run(pair, sweep::within(LONGEST, EACH, &payloads), &flow)?;
    let counts = &b.get::<SweepDatagrams>().0;
    let size = |(point, counts): (&SweepPoint, &DatagramCounts)| ProbedSize {
        packet_bytes: point.size_bytes + headers,
        cut: FragmentationPoint::Never,
        sent: counts.sent,
        arrived: counts.received,
    };
    Ok(b.get::<Vec<SweepPoint>>().iter().zip(counts).map(size).collect())
}

/// Returns `size` with the point at which packets of this size may be fragmented.
fn cut(size: ProbedSize, dont: &str, mtu: Bytes) -> ProbedSize {
    let cut = match dont {
        "on" => FragmentationPoint::Never,
        _ if size.packet_bytes > mtu => FragmentationPoint::AtOnce,
        _ => FragmentationPoint::OnTheWay,
    };
    ProbedSize { cut, ..size }
}

/// Sends messages over TCP, each of which fits into one packet, and adds the results to `probe`.
fn messages(pair: &Pair<'_>, probe: &mut PathProbe) {
    // IP, TCP and timestamps.
    let headers = Bytes(if pair.is_ipv6() { 72 } else { 52 });
    probe.over = "TCP".to_owned();
    for packet_bytes in [Bytes(SIZES[0]), Bytes(1200), probe.mtu_bytes] {
        let message = pingpong::spec(&(packet_bytes - headers).0.to_string(), ROUNDS);
        match run(pair, message, &with(&[])) {
            Ok([a, _]) => {
                let arrived = a.latency.iter().map(LatencyHistogram::count).sum::<u64>();
                probe.sizes.push(ProbedSize {
                    packet_bytes,
                    cut: FragmentationPoint::Never,
                    sent: arrived.max(1),
                    arrived,
                });
            }
            Err(error) if probe.sizes.is_empty() => {
                return probe.failed.push(format!("messages could not be sent: {error}"));
            }
            Err(_) => probe.sizes.push(ProbedSize { packet_bytes, sent: 1, ..ProbedSize::default() }),
        }
    }
}

fn run(pair: &Pair<'_>, workload: Workload, flow: &Settings) -> Result<[EndpointOutcome; 2], Error> {
    let watching = WatchOptions { patience: PATIENCE, keeps_broken: true, ..WatchOptions::default() };
    pair.run(&RunSpec::new(workload, flow).watched(watching))
}
