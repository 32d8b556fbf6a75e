//! Which host sends, found from what moved.

use landspeed_record::{FlowWatch, LinkFacts, ProcessWatch, Protocol};
use landspeed_units::Bytes;

use super::{FlowView, counter};
use crate::verdict::scene::{HostView, Scene};
use crate::verdict::words::called;

/// Which way data goes at an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Sender,
    Receiver,
}

pub(crate) struct End<'a> {
    pub(crate) role: Role,
    pub(crate) host: &'a HostView<'a>,
    /// Flows by what they moved in the path's direction, most first.
    pub(crate) flows: Vec<FlowView<'a>>,
    pub(crate) process: Option<&'a ProcessWatch>,
}

impl<'a> End<'a> {
    fn new(role: Role, host: &'a HostView<'a>) -> Self {
        let mut flows: Vec<FlowView<'a>> =
            host.seen.get::<Vec<FlowWatch>>().iter().map(FlowView::of).collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(weight(flow, role)));
        let pid = flows.first().map_or(0, |flow| flow.watch.pid);
        let processes = host.seen.get::<Vec<ProcessWatch>>();
        let named = processes.iter().find(|process| process.pid == pid && pid != 0);
        let process = named.or_else(|| processes.iter().max_by_key(|process| process.cpu_ns));
        End { role, host, flows, process }
    }

    /// The flow that moved most.
    pub(crate) fn main(&self) -> Option<&FlowView<'a>> {
        self.flows.first()
    }

    /// "host B", "this host".
    pub(crate) fn name(&self) -> String {
        called(self.host.name)
    }

    /// What the host's links moved in the path's direction.
    pub(crate) fn link_bytes(&self) -> Bytes {
        link_bytes(self.host, self.role)
    }

    pub(crate) fn link_facts(&self) -> Option<&'a LinkFacts> {
        let name = super::settings(self.host).map(|settings| settings.link.as_str());
        let busiest = || {
            let by_bytes = self.host.links().iter().max_by_key(|link| link.rx_bytes + link.tx_bytes);
            by_bytes.map(|link| link.link.as_str())
        };
        let name = name.or_else(busiest)?;
        self.host.facts.links.iter().find(|link| link.name == name)
    }
}

/// What ranks flows: payload moved, or, where none came through, payload that was tried.
fn weight(flow: &FlowView<'_>, role: Role) -> (Bytes, u64) {
    (flow.moved(role), flow.delta(|t| t.sent_bytes.0))
}

fn link_bytes(host: &HostView<'_>, role: Role) -> Bytes {
    let links = host.links().iter();
    match role {
        Role::Sender => links.map(|link| link.tx_bytes).max().unwrap_or_default(),
        Role::Receiver => links.map(|link| link.rx_bytes).max().unwrap_or_default(),
    }
}

pub(super) fn roles<'a>(scene: &'a Scene<'a>) -> (Option<End<'a>>, Option<End<'a>>) {
    let a_sends = sends(&scene.a).or_else(|| scene.b.as_ref().and_then(sends).map(|b_sends| !b_sends));
    let end = |role, host| Some(End::new(role, host));
    let other = |role| scene.b.as_ref().map(|host| End::new(role, host));
    // Where nothing moved, the order is all there is.
    match a_sends.unwrap_or(true) {
        true => (end(Role::Sender, &scene.a), other(Role::Receiver)),
        false => (other(Role::Sender), end(Role::Receiver, &scene.a)),
    }
}

/// Whether more leaves a host than reaches it; `None` where nothing moved. Flows know best; datagrams are
/// counted by the namespace; the link also carries what is not the flow's.
fn sends(host: &HostView<'_>) -> Option<bool> {
    let flows: Vec<FlowView<'_>> = host.seen.get::<Vec<FlowWatch>>().iter().map(FlowView::of).collect();
    let sum = |role| flows.iter().map(|flow| flow.moved(role)).sum::<Bytes>().0;
    let tried = flows.iter().map(|flow| flow.delta(|t| t.sent_bytes.0)).fold(0, u64::saturating_add);
    let udp = flows.iter().any(|flow| flow.watch.key.protocol == Protocol::UDP);
    let count = |name| if udp || flows.is_empty() { counter(host, name) } else { 0 };
    let arrived = count("Udp.InDatagrams").saturating_add(count("Udp.RcvbufErrors"));
    let pairs = [
        (sum(Role::Sender), sum(Role::Receiver)),
        (tried, 0),
        (count("Udp.OutDatagrams"), arrived),
        (link_bytes(host, Role::Sender).0, link_bytes(host, Role::Receiver).0),
    ];
    pairs.into_iter().find(|(out, into)| out != into).map(|(out, into)| out > into)
}
