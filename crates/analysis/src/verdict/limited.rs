//! Names the limit of a measured stream, from the few figures of `landspeed measure`. `landspeed explain` watches more
//! and gives a verdict.

use landspeed_record::units::Nanos;
use landspeed_record::{HostCpu, MeasureReport, TcpFigure};

use super::thresholds::{NOTABLE, SATURATED, STANDING_NS, STANDING_RATIO};
use super::words::percent;

/// The limit of a stream, as far as `measure` sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamLimit {
    /// The receiver's window, for this share of the time.
    PeerWindow(f64),
    /// The send buffer, for this share of the time.
    SendBuffer(f64),
    /// A processor of the named host, whose threads ran for this share of the time.
    Processor(String, f64),
    /// A queue on the path, which adds this time to the least round trip.
    Queue(Nanos),
    /// Losses, without a queue: this many segments were sent again.
    Loss(u64),
    /// Something that these figures do not show.
    Unseen,
}

impl std::fmt::Display for StreamLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StreamLimit::PeerWindow(share) => {
                write!(f, "the receiver's window, which was full for {} of the time", percent(*share))
            }
            StreamLimit::SendBuffer(share) => {
                write!(f, "the send buffer, which had no room for more for {} of the time", percent(*share))
            }
            StreamLimit::Processor(host, share) => {
                write!(f, "a processor: the threads of {host} ran for {} of the time", percent(*share))
            }
            StreamLimit::Queue(added) => write!(f, "the path: a queue on it adds {added} to the round trip"),
            StreamLimit::Loss(segments) => {
                write!(f, "losses on the path: {segments} segments were sent again, and no queue was full")
            }
            StreamLimit::Unseen => f.write_str("nothing that these figures show"),
        }
    }
}

/// Returns the limit of the streams of the sender that `sent` describes. Of several limits it is the first in the order
/// of causation: the longer wait for a window or buffer, a processor, a queue, losses.
pub fn limited_by(report: &MeasureReport, sent: &TcpFigure) -> StreamLimit {
    let waits = [
        (sent.rwnd_limited, StreamLimit::PeerWindow(sent.rwnd_limited)),
        (sent.sndbuf_limited, StreamLimit::SendBuffer(sent.sndbuf_limited)),
    ];
    let waited = waits.into_iter().filter(|(share, _)| *share >= NOTABLE).max_by(|a, b| a.0.total_cmp(&b.0));
    waited
        .map(|(_, limit)| limit)
        .or_else(|| processor(report, sent.flows))
        .or_else(|| queue(sent))
        .or_else(|| (sent.retransmits > 0).then_some(StreamLimit::Loss(sent.retransmits)))
        .unwrap_or(StreamLimit::Unseen)
}

/// Returns the limit by the host whose threads were busiest, if they had no time left. Each flow has one thread.
fn processor(report: &MeasureReport, flows: u32) -> Option<StreamLimit> {
    let share = |cpu: &HostCpu| {
        let threads = f64::from(flows.clamp(1, cpu.cores.max(1)));
        let window = cpu.window_ns.as_secs_f64() * threads;
        if window > 0.0 { cpu.workload_ns.as_secs_f64() / window } else { 0.0 }
    };
    let busiest = report.cpu.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    let host = busiest.host.clone().unwrap_or_else(|| format!("host {}", busiest.side));
    Some(share(busiest))
        .filter(|busy| *busy >= SATURATED)
        .map(|busy| StreamLimit::Processor(host, busy.min(1.0)))
}

fn queue(sent: &TcpFigure) -> Option<StreamLimit> {
    let least = sent.min_rtt_ns.filter(|least| least.0 > 0)?;
    let added = sent.rtt_ns.0.saturating_sub(least.0) as f64;
    let is_standing = added >= STANDING_NS && sent.rtt_ns.0 as f64 >= STANDING_RATIO * least.0 as f64;
    is_standing.then_some(StreamLimit::Queue(Nanos(added as u64)))
}

#[cfg(test)]
mod tests {
    use landspeed_record::Side;
    use landspeed_record::units::CpuNanos;

    use super::*;

    fn report(ran: f64) -> MeasureReport {
        let none = CpuNanos(0);
        let cpu = HostCpu {
            side: Side::A,
            host: None,
            window_ns: Nanos::secs(10),
            cores: 2,
            user_ns: none,
            system_ns: none,
            irq_ns: none,
            softirq_ns: none,
            steal_ns: none,
            workload_ns: CpuNanos((ran * 1e10) as u64),
        };
        MeasureReport { cpu: vec![cpu], ..MeasureReport::default() }
    }

    fn quiet() -> TcpFigure {
        TcpFigure {
            sender: Side::A,
            between: None,
            flows: 1,
            retransmits: 0,
            rtt_ns: Nanos(0),
            min_rtt_ns: None,
            rwnd_limited: 0.0,
            sndbuf_limited: 0.0,
            congestion: Vec::new(),
        }
    }

    #[test]
    fn the_first_limit_in_the_order_of_causation_is_named() {
        let (rtt_ns, min_rtt_ns) = (Nanos::millis(31), Some(Nanos::millis(20)));
        let path = TcpFigure { rtt_ns, min_rtt_ns, retransmits: 7, ..quiet() };
        let windows = TcpFigure { rwnd_limited: 0.4, sndbuf_limited: 0.2, ..path.clone() };
        assert_eq!(limited_by(&report(0.1), &windows), StreamLimit::PeerWindow(0.4));
        assert_eq!(limited_by(&report(0.1), &path), StreamLimit::Queue(Nanos::millis(11)));
        let lossy = TcpFigure { retransmits: 7, ..quiet() };
        assert_eq!(limited_by(&report(0.1), &lossy), StreamLimit::Loss(7));
        assert!(matches!(limited_by(&report(0.9), &path), StreamLimit::Processor(..)));
        assert_eq!(limited_by(&report(0.1), &quiet()), StreamLimit::Unseen);
    }
}
