//! The two ends of the flow: which host sends, from the bytes that moved, and how the flow's process spent its time
//! there.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{
    CostClass, CostProfile, FlowWatch, IpProtocol, LinkFacts, ProcessWatch, SnmpCounts, Throttling,
};

use super::flow::{EndRole, FlowView};
use super::host::{counter, settings};
use crate::fit::{samples_of_flow, share_of_links};
use crate::verdict::observations::{HostView, PathObservations};
use crate::verdict::words::{called, share};

/// Functions in which a thread waits for data to arrive (/proc/TID/wchan).
const FOR_DATA: &[&str] =
    &["recv", "wait_data", "wait_woken", "poll", "select", "skb_wait", "cqring", "accept"];
/// Functions in which a thread waits for room to write. Polling is not among them: on an idle flow a poller does not
/// wait for room, and elsewhere polling for room shows in the flow's own clocks.
const FOR_ROOM: &[&str] = &["wait_memory", "wait_woken", "sendmsg", "alloc_send"];
/// The place that is recorded for a running thread.
const RUNNING: &str = "running";
/// The place that is recorded for a sleeping thread whose kernel function is hidden.
const HIDDEN: &str = "asleep";

/// The share of the window that the thread must have run for the core's time to be attributed to it.
const ALONE: f64 = 0.7;

pub(crate) struct EndView<'a> {
    pub(crate) role: EndRole,
    pub(crate) host: &'a HostView<'a>,
    /// The flows, in descending order of the payload that they moved in the path's direction.
    pub(crate) flows: Vec<FlowView<'a>>,
    pub(crate) process: Option<&'a ProcessWatch>,
}

impl<'a> EndView<'a> {
    fn new(role: EndRole, host: &'a HostView<'a>) -> Self {
        let mut flows: Vec<FlowView<'a>> =
            host.seen.get::<Vec<FlowWatch>>().iter().map(FlowView::of).collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(weight(flow, role)));
        let pid = flows.first().and_then(|flow| flow.watch.pid);
        let processes = host.seen.get::<Vec<ProcessWatch>>();
        let named = processes.iter().find(|process| Some(process.pid) == pid);
        let process = named.or_else(|| processes.iter().max_by_key(|process| process.cpu_ns));
        EndView { role, host, flows, process }
    }

    /// Returns the flow that moved most.
    pub(crate) fn main(&self) -> Option<&FlowView<'a>> {
        self.flows.first()
    }

    /// Returns the host's name in a sentence, such as "host B" or "this host".
    pub(crate) fn name(&self) -> String {
        called(self.host.name)
    }

    /// Returns the bytes that the host's links moved in the path's direction.
    pub(crate) fn link_bytes(&self) -> Bytes {
        link_bytes(self.host, self.role)
    }

    /// Returns the mean size in bytes of the packets that the host's busiest link carried in the path's direction. It
    /// is the size of large packets if segmentation is left to the device.
    pub(crate) fn link_packet(&self) -> f64 {
        let links = self.host.links().iter().map(|link| match self.role {
            EndRole::Sender => (link.tx_bytes.0, link.tx_packets),
            EndRole::Receiver => (link.rx_bytes.0, link.rx_packets),
        });
        links.max().map_or(0.0, |(bytes, packets)| bytes as f64 / packets.max(1) as f64)
    }

    pub(crate) fn link_facts(&self) -> Option<&'a LinkFacts> {
        let name = settings(self.host).map(|settings| settings.link.as_str());
        let busiest = || {
            let by_bytes = self.host.links().iter().max_by_key(|link| link.rx_bytes + link.tx_bytes);
            by_bytes.map(|link| link.link.as_str())
        };
        let name = name.or_else(busiest)?;
        self.host.facts.links.iter().find(|link| link.name == name)
    }

    /// Returns the speed of the host's link, measured or else stated by the device; `None` if neither is known.
    pub(crate) fn link_speed(&self) -> Option<BitRate> {
        let measured = self.host.limits.and_then(|limits| limits.link_bps);
        let stated = || self.link_facts()?.speed_mbps.map(|mbps| BitRate(mbps as f64 * 1e6));
        measured.or_else(stated).filter(|speed| speed.0 > 0.0)
    }
}

/// Returns the key that ranks flows: payload moved, or, where none came through, payload sent.
fn weight(flow: &FlowView<'_>, role: EndRole) -> (Bytes, u64) {
    (flow.moved(role), flow.delta(|t| t.sent_bytes.0))
}

fn blocked(process: &ProcessWatch) -> f64 {
    let all: f64 = process.waiting_in.values().map(|n| f64::from(*n)).sum();
    if all > 0.0 { share(f64::from(process.uninterruptible_samples) / all) } else { 0.0 }
}

fn link_bytes(host: &HostView<'_>, role: EndRole) -> Bytes {
    let links = host.links().iter();
    match role {
        EndRole::Sender => links.map(|link| link.tx_bytes).max().unwrap_or_default(),
        EndRole::Receiver => links.map(|link| link.rx_bytes).max().unwrap_or_default(),
    }
}

pub(super) fn roles<'a>(
    observations: &'a PathObservations<'a>,
) -> (Option<EndView<'a>>, Option<EndView<'a>>) {
    let a_sends =
        sends(&observations.a).or_else(|| observations.b.as_ref().and_then(sends).map(|b_sends| !b_sends));
    let end = |role, host| Some(EndView::new(role, host));
    let other = |role| observations.b.as_ref().map(|host| EndView::new(role, host));
    // Where nothing moved, the hosts' order decides.
    match a_sends.unwrap_or(true) {
        true => (end(EndRole::Sender, &observations.a), other(EndRole::Receiver)),
        false => (other(EndRole::Sender), end(EndRole::Receiver, &observations.a)),
    }
}

/// Returns true if more data leaves a host than reaches it; `None` if nothing moved. The flows' counts are the best
/// evidence, then the namespace's counts of datagrams, then those of the link, which also carries other traffic.
fn sends(host: &HostView<'_>) -> Option<bool> {
    let flows: Vec<FlowView<'_>> = host.seen.get::<Vec<FlowWatch>>().iter().map(FlowView::of).collect();
    let sum = |role| flows.iter().map(|flow| flow.moved(role)).sum::<Bytes>().0;
    let tried = flows.iter().map(|flow| flow.delta(|t| t.sent_bytes.0)).fold(0, u64::saturating_add);
    let udp = flows.iter().any(|flow| flow.watch.key.protocol == IpProtocol::UDP);
    let count = |name| if udp || flows.is_empty() { counter(host, name) } else { 0 };
    let arrived = count("Udp.InDatagrams").saturating_add(count("Udp.RcvbufErrors"));
    let pairs = [
        (sum(EndRole::Sender), sum(EndRole::Receiver)),
        (tried, 0),
        (count("Udp.OutDatagrams"), arrived),
        (link_bytes(host, EndRole::Sender).0, link_bytes(host, EndRole::Receiver).0),
    ];
    pairs.into_iter().find(|(out, into)| out != into).map(|(out, into)| out > into)
}

impl EndView<'_> {
    fn window(&self) -> f64 {
        let watched = || self.flows.iter().map(|flow| flow.span).max().unwrap_or(Nanos(0));
        let window = self.host.cpu().window_ns;
        if window.0 > 0 { window.0 as f64 } else { watched().0 as f64 }
    }

    fn of_window(&self, time: impl Fn(&ProcessWatch) -> u64) -> Option<f64> {
        let window = self.window();
        self.process.filter(|_| window > 0.0).map(|process| time(process) as f64 / window)
    }

    /// Returns true if any data moved, or waited to. Sockets of datagrams count no data, so the counters of their
    /// namespace are used. If those were not read, such flows are assumed to carry data.
    pub(crate) fn carries(&self) -> bool {
        const DATAGRAMS: [&str; 5] = [
            "Udp.InDatagrams",
            "Udp.OutDatagrams",
            "Udp.RcvbufErrors",
            "Udp6.InDatagrams",
            "Udp6.OutDatagrams",
        ];
        let counted = self.host.seen.get::<SnmpCounts>();
        let datagrams = counted.0.is_empty() || DATAGRAMS.iter().any(|name| counter(self.host, name) > 0);
        self.flows.iter().any(|flow| if flow.last().is_some() { flow.carries() } else { datagrams })
    }

    /// Returns the share of the window for which a processor quota stopped the flow's process, 0 to 1.
    pub(crate) fn quota(&self) -> f64 {
        let held = self.host.seen.get::<Throttling>();
        held.quota_ns.share_of(held.window_ns)
    }

    /// Returns the number of bytes that arrived and were not read yet, the sum of the medians of all flows.
    pub(crate) fn unread(&self) -> f64 {
        self.flows.iter().filter_map(FlowView::unread).sum()
    }

    /// Returns the process with the largest share of uninterruptible waits. It need not be the one with the flow,
    /// because one process of a tree may read the disk for another that sends.
    pub(crate) fn blocked_process(&self) -> Option<&ProcessWatch> {
        let processes = self.host.seen.get::<Vec<ProcessWatch>>().iter();
        processes.max_by(|a, b| blocked(a).total_cmp(&blocked(b)))
    }

    /// Returns the share of the samples in which a process waited uninterruptibly, as for a disk; the largest of all
    /// watched processes.
    pub(crate) fn blocked(&self) -> f64 {
        self.blocked_process().map_or(0.0, blocked)
    }

    /// Returns the share of the window in which the busiest thread ran.
    pub(crate) fn ran(&self) -> Option<f64> {
        self.of_window(|process| process.busiest_thread_ns.0).map(share)
    }

    /// Returns the share of the window in which the busiest thread was ready and had no processor.
    pub(crate) fn waited_for_cpu(&self) -> Option<f64> {
        self.of_window(|process| process.waited_for_cpu_ns.0).map(share)
    }

    /// Returns the share of the window in which the busiest thread ran or was ready to run.
    pub(crate) fn wanted_cpu(&self) -> Option<f64> {
        self.ran().zip(self.waited_for_cpu()).map(|(ran, waited)| share(ran + waited))
    }

    /// Returns the share of the samples in which the busiest thread slept for something other than the flow or a
    /// processor: a timer, a disk, a lock. `None` where nothing was sampled.
    pub(crate) fn elsewhere(&self) -> Option<f64> {
        self.asleep_but_for(match self.role {
            EndRole::Sender => FOR_ROOM,
            EndRole::Receiver => FOR_DATA,
        })
    }

    /// Returns the share of the samples in which the busiest thread slept for something other than arriving data or a
    /// processor, whichever role the end has. `None` where nothing was sampled.
    pub(crate) fn elsewhere_than_for_data(&self) -> Option<f64> {
        self.asleep_but_for(FOR_DATA)
    }

    fn asleep_but_for(&self, for_flow: &[&str]) -> Option<f64> {
        let process = self.process?;
        let waits_for_flow = |place: &str| for_flow.iter().any(|name| place.contains(name));
        let sum = |counts: &dyn Fn(&str) -> bool| {
            let counted = process.waiting_in.iter().filter(|(place, _)| counts(place));
            counted.map(|(_, n)| f64::from(*n)).sum::<f64>()
        };
        let away = sum(&|place| place != RUNNING && place != HIDDEN && !waits_for_flow(place));
        let hidden = sum(&|place| place == HIDDEN);
        let known = sum(&|place| place != HIDDEN);
        // Where places are hidden, the known samples are mostly those of a running thread.
        (known > 0.0 && hidden <= known).then(|| away / known)
    }

    /// Returns the kernel function or state in which the busiest thread was found most often, with its share of the
    /// samples.
    pub(crate) fn mostly_in(&self) -> Option<(&str, f64)> {
        let waits = &self.process?.waiting_in;
        let all: f64 = waits.values().map(|n| f64::from(*n)).sum();
        let (place, most) = waits.iter().max_by_key(|(_, n)| **n)?;
        (all > 0.0).then(|| (place.as_str(), f64::from(*most) / all))
    }

    /// Returns the share of the flow's sampled time in `class`, 0 to 1; `None` where nothing was sampled.
    pub(crate) fn cost_share(&self, class: CostClass) -> Option<f64> {
        let profile = self.host.seen.get::<Option<CostProfile>>().as_ref()?;
        let samples = samples_of_flow(profile, share_of_links(self.host.seen));
        let all: f64 = samples.values().sum();
        (all > 0.0).then(|| samples.get(&class).copied().unwrap_or(0.0) / all)
    }

    /// Returns true if the busiest thread spends its time in code of the application and not of the kernel: by the
    /// cost profile, else by the classes of the core that it ran on, if it had that core for itself.
    pub(crate) fn computes(&self) -> bool {
        // A profile of the whole machine includes other programs.
        let scope =
            self.host.seen.get::<Option<CostProfile>>().as_ref().map_or("", |profile| profile.scope.as_str());
        let own = ["tasks", "process"].contains(&scope);
        if let Some(application) = self.cost_share(CostClass::Application).filter(|_| own) {
            return application > 0.5;
        }
        if self.ran().is_none_or(|ran| ran < ALONE) {
            return false;
        }
        let core = self.process.map(|process| process.core);
        let core = self.host.cpu().cores.iter().find(|c| Some(c.core) == core);
        core.is_some_and(|c| c.busy().0 > 0 && c.user_ns.0 as f64 > 0.6 * c.busy().0 as f64)
    }
}
