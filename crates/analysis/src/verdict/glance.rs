//! A summary of a flow as one end sees it, for a list of flows that is updated live.

use landspeed_record::FlowWatch;
use landspeed_record::units::BitRate;

use super::view::{EndRole, FlowView};

/// The share of the time, or of the samples, above which a limit is named.
const MOSTLY: f64 = 0.5;

/// The summary of a flow, for the direction in which more moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowSummary {
    pub rate: BitRate,
    /// The number of segments that were sent again.
    pub retransmits: u64,
    /// The limit of the flow, in a word or two, such as "send buffer"; empty if the samples do not show it.
    pub held_by: &'static str,
}

/// Returns the summary of a TCP flow; `None` where its samples have no TCP state.
pub fn glance(watch: &FlowWatch) -> Option<FlowSummary> {
    let flow = FlowView::of(watch);
    flow.last()?;
    let [sent, received] = [EndRole::Sender, EndRole::Receiver].map(|role| flow.moved(role));
    let moved = sent.max(received);
    Some(FlowSummary {
        rate: BitRate(8.0 * moved.0 as f64 / flow.span.as_secs_f64().max(1e-9)),
        retransmits: flow.delta(|tcp| tcp.retransmitted_segments),
        held_by: match () {
            () if moved.0 == 0 => "idle",
            () if received > sent => receiving(&flow),
            () => sending(&flow),
        },
    })
}

/// Returns what holds a receiving end back: the program, if data waits in the receive queue; otherwise the sender.
fn receiving(flow: &FlowView<'_>) -> &'static str {
    let part = flow.mean(|s| s.receive_queue_bytes.0 as f64 / s.receive_buffer_bytes.0.max(1) as f64);
    if part > MOSTLY / 2.0 { "slow reader" } else { "the sender" }
}

fn sending(flow: &FlowView<'_>) -> &'static str {
    match () {
        () if flow.clock(|tcp| tcp.rwnd_limited_ns) > MOSTLY => "peer's window",
        () if flow.clock(|tcp| tcp.sndbuf_limited_ns).max(flow.buffer_full()) > MOSTLY => "send buffer",
        () if flow.clock(|tcp| tcp.busy_ns) < MOSTLY => "application",
        () if flow.when(|tcp| tcp.ca_state > 0) > MOSTLY => "loss",
        () if flow.congestion_full() > MOSTLY => "congestion window",
        () => "",
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::{Bytes, Nanos};
    use landspeed_record::{FlowKey, IpProtocol, SocketState, TcpState};

    use super::*;

    fn flow(of: impl Fn(u64) -> TcpState) -> FlowWatch {
        let at = "192.0.2.1:1".parse().expect("an address");
        let sample = |second| SocketState {
            at_ns: Nanos::secs(second),
            tcp: Some(Box::new(of(second))),
            ..SocketState::default()
        };
        let key = FlowKey { protocol: IpProtocol::TCP, local: at, remote: at };
        FlowWatch { key, pid: None, congestion: String::new(), samples: (0..4).map(sample).collect() }
    }

    #[test]
    fn a_glance_shows_what_holds_a_flow_back() {
        let sends = |limit: fn(&mut TcpState, Nanos)| {
            let watch = flow(|second| {
                let mut tcp = TcpState { acked_bytes: Bytes(second * 125_000_000), ..TcpState::default() };
                tcp.busy_ns = Nanos::secs(second);
                limit(&mut tcp, Nanos::secs(second));
                tcp
            });
            let seen = glance(&watch).expect("TCP");
            assert_eq!(seen.rate, BitRate(1e9));
            seen.held_by
        };
        assert_eq!(sends(|tcp, time| tcp.rwnd_limited_ns = time), "peer's window");
        assert_eq!(sends(|tcp, time| tcp.sndbuf_limited_ns = time), "send buffer");
        assert_eq!(sends(|tcp, _| tcp.busy_ns = Nanos(0)), "application");
        assert_eq!(sends(|tcp, _| tcp.ca_state = 3), "loss");
        assert_eq!(glance(&flow(|_| TcpState::default())).expect("TCP").held_by, "idle");
        let takes = flow(|second| TcpState { received_bytes: Bytes(second), ..TcpState::default() });
        assert_eq!(glance(&takes).expect("TCP").held_by, "the sender");
    }
}
