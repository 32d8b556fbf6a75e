//! Detects flows of requests and replies, and divides the time of a request into its parts.

use landspeed_record::{IpProtocol, ListenerWatch};

use super::VerdictView;
use super::end::EndView;
use super::flow::FlowView;
use crate::verdict::thresholds::{FEW_EXCHANGES, MOST_BYTES_A_REQUEST, MOST_SEGMENTS_A_REPLY, POOL, SERIAL};
use crate::verdict::words::share;

/// The mean time of one request in ns, with its parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RequestTimes {
    /// The time from one request of a connection to the next.
    pub(crate) each: f64,
    /// The round trip of the idle path.
    pub(crate) network: f64,
    /// The time in which the asking program ran, was ready to run, or slept for something other than the flow. `None`
    /// if it was not watched, or asks on several connections.
    pub(crate) client: Option<f64>,
    /// The processor time of the answering program; `None` if it was not watched.
    pub(crate) server_ran: Option<f64>,
    pub(crate) exchanges: f64,
    pub(crate) connections: usize,
}

impl RequestTimes {
    /// Returns the part that is neither the network's nor the client's.
    pub(crate) fn server(&self) -> f64 {
        (self.each - self.network - self.client.unwrap_or(0.0)).max(0.0)
    }
}

/// Returns the times of a request, if the flows carry requests of which each waits for the reply to the one before.
pub(super) fn requests(view: &VerdictView<'_>) -> Option<RequestTimes> {
    let end = view.ends().find(|end| end.main().is_some_and(|flow| flow.last().is_some()))?;
    // Of a connection within the host both ends are watched.
    let seen_before = |at: usize, flow: &FlowView<'_>| {
        let key = flow.watch.key;
        let mut before = end.flows[..at].iter().map(|flow| flow.watch.key);
        before.any(|other| (other.local, other.remote) == (key.remote, key.local))
    };
    let once = end.flows.iter().enumerate().filter(|(at, flow)| !seen_before(*at, flow));
    let is_pool = end.flows.len() >= POOL;
    let asked: Vec<(f64, f64)> = once.filter_map(|(_, flow)| exchanges(flow, is_pool)).collect();
    let exchanges: f64 = asked.iter().map(|(count, _)| count).sum();
    let time: f64 = asked.iter().map(|(_, time)| time).sum();
    let each = time / exchanges;
    let network = view.rtt.map_or(0.0, |rtt| rtt.0 as f64);
    let main = end.main()?;
    // A window that is full, or a reader that is late, holds a stream and no request.
    let waits_for_room =
        main.congestion_full() >= 0.5 || view.window_limit.is_some() || view.late_reads.is_some();
    if exchanges < FEW_EXCHANGES
        || each < SERIAL * network
        || waits_for_room
        || !each.is_finite()
        || each <= 0.0
    {
        return None;
    }
    let network = network.min(each);
    let [client, server] = ends(view, main);
    let busy = client.filter(|_| asked.len() == 1).and_then(busy);
    let ran = server.and_then(|end| Some(end.process?.cpu_ns.0 as f64 / exchanges));
    Some(RequestTimes {
        each,
        network,
        client: busy.map(|busy| (busy * each).min(each - network)),
        server_ran: ran,
        exchanges,
        connections: asked.len(),
    })
}

/// Returns the number of requests of a flow and the time in which they were made, if it carries requests: data segments
/// in both directions, about as many. A small request and its reply are one segment each. On one connection of several
/// (`is_pool`), large messages count too, if nothing is in flight between them; a stream has one connection.
fn exchanges(flow: &FlowView<'_>, is_pool: bool) -> Option<(f64, f64)> {
    let (sent, received) =
        (flow.delta(|t| t.data_segments_sent) as f64, flow.delta(|t| t.data_segments_received) as f64);
    let (few, many) = (sent.min(received), sent.max(received));
    let tcp = flow.watch.key.protocol == IpProtocol::TCP;
    let bytes = flow.delta(|t| t.sent_bytes.0) as f64 + flow.delta(|t| t.received_bytes.0) as f64;
    let is_empty = flow.when(|t| t.unacked_segments == 0) >= 0.5;
    let in_turn = is_pool && is_empty && bytes <= MOST_BYTES_A_REQUEST * few;
    let alike = many <= MOST_SEGMENTS_A_REPLY * few;
    (tcp && few > 0.0 && (alike || in_turn)).then_some((few, flow.span.0 as f64))
}

/// Returns the end that sends requests and the end that replies; `None` for one that was not watched. The end that
/// replies listens on its port. If no listener was seen, it is the end with the lower port.
fn ends<'v, 'a>(view: &'v VerdictView<'a>, main: &FlowView<'_>) -> [Option<&'v EndView<'a>>; 2] {
    let key = main.watch.key;
    let port = |end: &EndView<'_>| end.main().map(|flow| flow.watch.key.local.port());
    let listens = |end: &EndView<'_>| {
        let listeners = end.host.seen.get::<Vec<ListenerWatch>>();
        port(end).is_some_and(|port| listeners.iter().any(|listener| listener.local.port() == port))
    };
    let lower = key.local.port().min(key.remote.port());
    let answers = |end: &&EndView<'_>| match view.ends().any(listens) {
        true => listens(end),
        false => port(end) == Some(lower),
    };
    [view.ends().find(|end| !answers(end)), view.ends().find(answers)]
}

/// Returns the share of time in which a program did not wait for the flow.
fn busy(end: &EndView<'_>) -> Option<f64> {
    let away = end.elsewhere_than_for_data().unwrap_or(0.0);
    Some(share(end.wanted_cpu()? + away))
}
