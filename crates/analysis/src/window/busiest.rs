//! Chooses the connections to compare with the window model.

use landspeed_record::units::Nanos;
use landspeed_record::{FlowWatch, FlowWindow, IpProtocol, Observations};

use super::levels::{WatchedEnds, difference};
use super::live::{check, turned};

/// A host whose connections were watched.
#[derive(Debug, Clone, Copy)]
pub struct WatchedHost<'a> {
    /// The output of `uname -r`, empty where unknown.
    pub kernel: &'a str,
    pub seen: &'a Observations,
}

/// One end of a connection, and its host's kernel.
#[derive(Clone, Copy)]
struct WatchedEnd<'a> {
    watch: &'a FlowWatch,
    kernel: &'a str,
}

/// Returns at most `most` TCP connections, those that moved the most bytes first, each compared with the window model.
/// The two ends of a connection may be on different hosts or on the same host.
pub fn busiest(hosts: &[WatchedHost<'_>], idle_rtt: Option<Nanos>, most: usize) -> Vec<FlowWindow> {
    let ends: Vec<WatchedEnd<'_>> = hosts.iter().flat_map(ends_on).collect();
    let mut flows: Vec<FlowWindow> = ends
        .iter()
        .filter_map(|end| {
            let peer = ends.iter().find(|other| other.watch.key == turned(end.watch.key));
            check(&joined(*end, peer.copied(), idle_rtt)?)
        })
        .filter(|flow| flow.moved_bytes.0 > 0)
        .collect();
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.moved_bytes));
    flows.truncate(most);
    flows
}

fn ends_on<'a>(host: &WatchedHost<'a>) -> Vec<WatchedEnd<'a>> {
    let tcp = host.seen.get::<Vec<FlowWatch>>().iter().filter(|watch| watch.key.protocol == IpProtocol::TCP);
    tcp.map(|watch| WatchedEnd { watch, kernel: host.kernel }).collect()
}

/// Returns the connection of `end`, with its other end `peer`, if `end` sends or has no watched peer. So a connection
/// of two watched ends is returned for one of them only: the end that sent more.
fn joined<'a>(
    end: WatchedEnd<'a>,
    peer: Option<WatchedEnd<'a>>,
    idle_rtt: Option<Nanos>,
) -> Option<WatchedEnds<'a>> {
    let sent = difference(end.watch, |tcp| tcp.acked_bytes).0;
    let received = difference(end.watch, |tcp| tcp.received_bytes).0;
    // Of two ends that sent equally much, only one is returned.
    let is_first = peer.is_none() || end.watch.key.local <= end.watch.key.remote;
    if sent > received || (sent == received && is_first) {
        let kernel = peer.map_or("", |peer| peer.kernel);
        let receiver = peer.map(|peer| peer.watch);
        return Some(WatchedEnds { sender: Some(end.watch), receiver, receiver_kernel: kernel, idle_rtt });
    }
    let alone = peer.is_none();
    alone.then_some(WatchedEnds {
        sender: None,
        receiver: Some(end.watch),
        receiver_kernel: end.kernel,
        idle_rtt,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_record::units::Bytes;
    use landspeed_record::{FlowKey, SocketState, TcpState, WindowRule};

    /// Returns an end at `local` that moves `sent` and `received` bytes within a second.
    fn end(local: u16, remote: u16, sent: u64, received: u64) -> FlowWatch {
        let at = |port| format!("10.0.0.1:{port}").parse().unwrap();
        let state = |n: u64| SocketState {
            at_ns: Nanos::secs(n),
            receive_buffer_bytes: Bytes(131_072),
            tcp: Some(Box::new(TcpState {
                acked_bytes: Bytes(n * sent),
                received_bytes: Bytes(n * received),
                peer_window_bytes: Bytes(65_536),
                receive_window_bytes: Some(Bytes(65_536)),
                receive_mss_bytes: Bytes(1448),
                send_mss_bytes: Bytes(1448),
                min_rtt_ns: Some(Nanos::millis(1)),
                ..TcpState::default()
            })),
            ..SocketState::default()
        };
        FlowWatch {
            key: FlowKey { protocol: IpProtocol::TCP, local: at(local), remote: at(remote) },
            pid: None,
            congestion: String::new(),
            samples: vec![state(0), state(1)],
        }
    }

    fn host(flows: Vec<FlowWatch>) -> Observations {
        Observations::default().with(flows)
    }

    fn ports(flow: &FlowWindow) -> [u16; 2] {
        [flow.key.local.port(), flow.key.remote.port()]
    }

    #[test]
    fn both_ends_of_a_flow_are_one_and_the_busiest_is_first() {
        let a = host(vec![end(1, 2, 1_000, 0), end(3, 4, 9_000, 10), end(5, 6, 0, 0)]);
        let b = host(vec![end(2, 1, 0, 1_000), end(4, 3, 10, 9_000)]);
        let hosts = [&a, &b].map(|seen| WatchedHost { kernel: "6.18.0", seen });
        let found = busiest(&hosts, None, 3);
        assert_eq!(
            found.iter().map(ports).collect::<Vec<_>>(),
            [[3, 4], [1, 2]],
            "an idle flow says nothing"
        );
        assert!(found.iter().all(|flow| flow.rules.iter().any(|f| f.rule == WindowRule::UsableBuffer)));
        assert_eq!(busiest(&hosts, None, 1).len(), 1);
    }

    #[test]
    fn one_host_alone_sees_its_sent_and_received_flows() {
        let seen = host(vec![end(1, 2, 1_000, 0), end(7, 8, 0, 5_000)]);
        let found = busiest(&[WatchedHost { kernel: "", seen: &seen }], None, 9);
        assert_eq!(found.iter().map(ports).collect::<Vec<_>>(), [[8, 7], [1, 2]], "as the senders see them");
    }

    #[test]
    fn a_flow_within_a_host_has_both_its_ends_there() {
        let seen = host(vec![end(1, 2, 1_000, 0), end(2, 1, 0, 1_000)]);
        let found = busiest(&[WatchedHost { kernel: "", seen: &seen }], None, 9);
        assert_eq!(found.iter().map(ports).collect::<Vec<_>>(), [[1, 2]]);
    }
}
