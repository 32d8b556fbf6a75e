//! Watches existing flows of any program: the queues, buffers, drops and TCP_INFO of each socket, and the backlogs of
//! the listening sockets that accepted the flows.
//!
//! All data is from sock_diag in the network namespace of the thread that opens the window. Each sample requests the
//! known sockets one by one, which takes microseconds even if the host has many other sockets. If the target is an
//! address or a process, new flows may appear, so all sockets are listed from time to time.

mod listeners;
mod state;
mod track;
mod window;

use landspeed_kernel::netlink::{PortFilter, SockDiag, SocketKind};
use landspeed_record::units::Bytes;
use landspeed_record::{FlowWatch, ListenerWatch, SocketState, TcpState};

use crate::figures::{headlines, mean, total};
use crate::window::windows;
use crate::{Observer, RunPolicy};
use window::WatchedFlows;

/// Returns the growth of a counter within the window, summed over all flows.
fn grown(flows: &[FlowWatch], counter: fn(&SocketState) -> u64) -> u64 {
    let ends = flows.iter().filter_map(|flow| Some((flow.samples.first()?, flow.samples.last()?)));
    total(ends.map(|(first, last)| counter(last).saturating_sub(counter(first))))
}

/// Returns the state of each TCP flow at its last sample.
fn last(flows: &[FlowWatch]) -> impl Iterator<Item = &TcpState> {
    flows.iter().filter_map(|flow| flow.samples.last()?.tcp.as_deref())
}

fn most(flows: &[FlowWatch], bytes: fn(&SocketState) -> Bytes) -> Option<Bytes> {
    flows.iter().flat_map(|flow| &flow.samples).map(bytes).max()
}

pub(crate) static FLOWS: Observer = Observer {
    name: "flows",
    about: "queues, buffers, drops and TCP_INFO of all flows of the target, and their listeners' backlogs",
    cannot_see: &[
        "what happens between two samples: each is the state at one moment, and a flow that comes and goes \
         between two is not seen at all",
        "which process holds another user's socket, unless it runs as root",
        "bytes and packets of UDP: its sockets count only drops, and their queues are memory with overhead",
        "the peers of an unconnected UDP socket: such a socket is found by its own end",
        "whether a flow is paced: the kernel computes a pacing rate for every flow",
        "sockets of other network namespaces, MPTCP as a whole (its subflows are TCP flows), and QUIC inside UDP",
    ],
    runs: RunPolicy::Explaining,
    own_sockets_only: false,
    kernel: &[],
    headlines: headlines! {
        flows: Vec<FlowWatch> => {
            "flows", "sockets that were seen": Some(flows.len() as u64);
            "retransmitted segments", "by all flows within the window":
                Some(grown(flows, |at| at.tcp.as_ref().map_or(0, |tcp| tcp.retransmitted_segments)));
            "drops", "packets that the sockets dropped within the window": Some(grown(flows, |at| at.drops));
            "round trip", "smoothed: the mean of the TCP flows at the end": mean(last(flows).map(|tcp| tcp.rtt_ns));
            "congestion window", "segments: the most of any TCP flow at the end":
                last(flows).map(|tcp| u64::from(tcp.cwnd_segments)).max();
            "fullest receive queue", "bytes that waited for an application at a sample":
                most(flows, |at| at.receive_queue_bytes);
            "fullest send queue", "bytes written and not acknowledged at a sample":
                most(flows, |at| at.send_queue_bytes);
        }
        listeners: Vec<ListenerWatch> => {
            "connections dropped", "by the listening sockets behind the flows":
                Some(total(listeners.iter().map(|one| one.drops)));
        }
    },
    can_run: || {
        let listed =
            SockDiag::open().and_then(|diag| diag.list(SocketKind::TcpListener, PortFilter::default()));
        listed.map(drop).map_err(|error| match error.is_absent() {
            true => format!("{error}: this kernel lacks tcp_diag (CONFIG_INET_DIAG)"),
            false => error.to_string(),
        })
    },
    watch: |_| windows(WatchedFlows::open),
};
