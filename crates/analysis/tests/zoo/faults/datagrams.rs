//! UDP.

use landspeed_record::{FlowWatch, Protocol};
use landspeed_units::{BitRate, Bytes, Nanos};

use super::between;
use crate::zoo::{Zoo, first};

/// UDP sockets have no TCP_INFO; counters and links tell.
fn datagrams(rate: f64) -> Zoo {
    let mut zoo = Zoo::quiet(BitRate(rate), Nanos::micros(50));
    for flow in [first::<FlowWatch>(&mut zoo.a), first::<FlowWatch>(&mut zoo.b)] {
        flow.key.protocol = Protocol::UDP;
        flow.congestion.clear();
        flow.samples.iter_mut().for_each(|sample| sample.tcp = None);
    }
    zoo
}

pub(crate) fn fragmentation(strength: f64) -> Zoo {
    let mut zoo = datagrams(4e9);
    let size = between(4000.0, 32_000.0, strength);
    let sent = (4e9 * 10.0 / 8.0 / size) as u64;
    let each = (size / 1480.0).ceil() as u64;
    zoo.threads([0.97, 0.9]);
    zoo.cores([[0.98, 0.4], [0.9, 0.1]]);
    zoo.count_a("Udp.OutDatagrams", sent);
    zoo.count_a("Ip.FragCreates", sent * each);
    zoo.count_b("Ip.ReasmReqds", sent * each);
    zoo.count_b("Ip.ReasmOKs", sent);
    zoo.count_b("Udp.InDatagrams", sent);
    zoo
}

/// The socket's drops and the namespace's counter say the same.
pub(crate) fn udp_receive_buffer(strength: f64) -> Zoo {
    let mut zoo = datagrams(300e6);
    let lost = between(0.1, 0.8, strength) * 250_000.0;
    zoo.threads([0.2, 0.1]);
    zoo.waits(["hrtimer_nanosleep", "hrtimer_nanosleep"]);
    zoo.count_a("Udp.OutDatagrams", 250_000);
    zoo.count_b("Udp.InDatagrams", 250_000 - lost as u64);
    zoo.count_b("Udp.RcvbufErrors", lost as u64);
    for (n, sample) in first::<FlowWatch>(&mut zoo.b).samples.iter_mut().enumerate() {
        sample.drops = (lost * n as f64 / 20.0) as u64;
        (sample.receive_memory_bytes, sample.receive_buffer_bytes) = (Bytes(15_000), Bytes(16_384));
    }
    zoo
}
