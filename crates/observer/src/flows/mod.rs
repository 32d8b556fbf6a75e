//! Flows as the kernel shows them, whoever made them: queues, buffers, drops and TCP_INFO of each socket, and the
//! backlogs of the listening sockets behind them.
//!
//! Everything comes from sock_diag in the network namespace of the thread that opens the window. At each sample the
//! sockets that are known are asked for one by one, which costs microseconds however many sockets the host has.
//! Only where new flows may join (an address, a process) are all sockets listed now and then.

mod listeners;
mod pace;
mod state;
mod track;
mod window;

use landspeed_netlink::{Ports, SockDiag, SocketKind};
use landspeed_record::{FlowWatch, ListenerWatch, Observations, SocketState, TcpState};
use landspeed_units::{Bytes, Nanos};

use crate::figures::{mean, of};
use crate::{Error, Headline, Observer, Runs, Scene, Watch};
use window::Window;

/// What a reader looks at first.
static HEADLINES: &[Headline] = &[
    Headline {
        name: "flows",
        about: "sockets that were seen",
        of: |seen| of(seen, |flows: &Vec<FlowWatch>| Some(flows.len() as u64)),
    },
    Headline {
        name: "retransmitted segments",
        about: "by all flows within the window",
        of: |seen| {
            of(seen, |flows: &Vec<FlowWatch>| {
                Some(grown(flows, |at| at.tcp.as_ref().map_or(0, |tcp| tcp.retransmitted_segments)))
            })
        },
    },
    Headline {
        name: "drops",
        about: "packets that the sockets dropped within the window",
        of: |seen| of(seen, |flows: &Vec<FlowWatch>| Some(grown(flows, |at| at.drops))),
    },
    Headline {
        name: "round trip",
        about: "smoothed: the mean of the TCP flows at the end",
        of: |seen| of(seen, |flows: &Vec<FlowWatch>| mean(last(flows).map(|tcp| tcp.rtt_ns))),
    },
    Headline {
        name: "congestion window",
        about: "segments: the most of any TCP flow at the end",
        of: |seen| {
            of(seen, |flows: &Vec<FlowWatch>| last(flows).map(|tcp| u64::from(tcp.cwnd_segments)).max())
        },
    },
    Headline {
        name: "fullest receive queue",
        about: "bytes that waited for an application at a sample",
        of: |seen| of(seen, |flows: &Vec<FlowWatch>| most(flows, |at| at.receive_queue_bytes)),
    },
    Headline {
        name: "fullest send queue",
        about: "bytes written and not acknowledged at a sample",
        of: |seen| of(seen, |flows: &Vec<FlowWatch>| most(flows, |at| at.send_queue_bytes)),
    },
    Headline {
        name: "connections dropped",
        about: "by the listening sockets behind the flows",
        of: |seen| {
            of(seen, |all: &Vec<ListenerWatch>| {
                Some(all.iter().map(|one| one.drops).fold(0, u64::saturating_add))
            })
        },
    },
];

/// What a counter of each flow grew by, over all flows.
fn grown(flows: &[FlowWatch], counter: fn(&SocketState) -> u64) -> u64 {
    let ends = flows.iter().filter_map(|flow| Some((flow.samples.first()?, flow.samples.last()?)));
    ends.map(|(first, last)| counter(last).saturating_sub(counter(first))).fold(0, u64::saturating_add)
}

/// The TCP flows at the end.
fn last(flows: &[FlowWatch]) -> impl Iterator<Item = &TcpState> {
    flows.iter().filter_map(|flow| flow.samples.last()?.tcp.as_deref())
}

fn most(flows: &[FlowWatch], bytes: fn(&SocketState) -> Bytes) -> Option<Bytes> {
    flows.iter().flat_map(|flow| &flow.samples).map(bytes).max()
}

/// The row of the table.
pub(crate) struct Flows;

impl Observer for Flows {
    fn name(&self) -> &'static str {
        "flows"
    }

    fn about(&self) -> &'static str {
        "queues, buffers, drops and TCP_INFO of all flows of the target, and their listeners' backlogs"
    }

    fn cannot_see(&self) -> &'static [&'static str] {
        &[
            "what happens between two samples: each is the state at one moment, and a flow that comes and goes \
             between two is not seen at all",
            "which process holds another user's socket, unless it runs as root",
            "bytes and packets of UDP: its sockets count only drops, and their queues are memory with overhead",
            "the peers of an unconnected UDP socket: such a socket is found by its own end",
            "whether a flow is paced: the kernel computes a pacing rate for every flow",
            "sockets of other network namespaces, MPTCP as a whole (its subflows are TCP flows), and QUIC inside UDP",
        ]
    }

    fn runs(&self) -> Runs {
        Runs::Explaining
    }

    fn headlines(&self) -> &'static [Headline] {
        HEADLINES
    }

    fn can_run(&self) -> Result<(), String> {
        let listed = SockDiag::open().and_then(|diag| diag.list(SocketKind::TcpListener, Ports::default()));
        listed.map(drop).map_err(|error| match error.is_absent() {
            true => format!("{error}: this kernel lacks tcp_diag (CONFIG_INET_DIAG)"),
            false => error.to_string(),
        })
    }

    fn watch(&self, _link: &str) -> Box<dyn Watch> {
        Box::<FlowsWatch>::default()
    }
}

#[derive(Default)]
struct FlowsWatch {
    window: Option<Window>,
}

impl Watch for FlowsWatch {
    fn open(&mut self, scene: &Scene<'_>) -> Result<(), Error> {
        self.window = None;
        self.window = Some(Window::open(scene)?);
        Ok(())
    }

    fn sample(&mut self, _at: Nanos) -> Result<(), Error> {
        self.window.as_mut().map_or(Ok(()), Window::sample)
    }

    /// What was seen until then is told even where the last look fails.
    fn close(&mut self, seen: &mut Observations) -> Result<(), Error> {
        let Some(mut window) = self.window.take() else { return Ok(()) };
        let last = window.sample();
        window.tell(seen);
        last
    }
}
