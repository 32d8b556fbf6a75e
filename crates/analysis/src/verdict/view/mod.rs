//! The quantities that follow from the observations, computed once and shared by all judges.

mod cpu;
mod delivery;
mod end;
mod flow;
mod host;
mod loss;
mod offload;
mod path;
mod requests;
mod window;

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{FlowWatch, HostFacts, IpProtocol};

pub(super) use cpu::{CoreLoad, CpuLoad};
pub(super) use end::EndView;
pub(super) use flow::{EndRole, FlowView, TimeShares};
pub(super) use host::{counter, settings};
use loss::SenderLosses;
pub(super) use loss::{QueueView, ShaperView, queues};
pub(super) use offload::{MissingOffload, offloads_missing, summed, summing};
pub(super) use path::{PathLimit, PathLimitKind};
use requests::RequestTimes;
pub(super) use window::{SCALED, WindowCause, WindowLimit};

use super::observations::{FollowUps, PathObservations};
use super::staircase::ceiling;
use super::thresholds::{
    LOST_ON_RETURN, MOST_RATIO, PACKET_NS, RETURN_OVER_FORWARD, STANDING_NS, STANDING_RATIO, VIRTUAL_LINK,
};
use super::words::share;
use end::roles;

/// A path as judges see it. Nothing in it names a test or a lab.
pub struct VerdictView<'a> {
    /// The end that sends the data, if its host was watched.
    pub(super) sender: Option<EndView<'a>>,
    /// The end that receives the data, if its host was watched.
    pub(super) receiver: Option<EndView<'a>>,
    pub(super) goodput: BitRate,
    /// The round trip of the idle path.
    pub(super) rtt: Option<Nanos>,
    pub(super) window: Nanos,
    /// The use of the sender's time, over all its flows.
    pub(super) time: Option<TimeShares>,
    /// Losses and reordering as the sender saw them.
    pub(super) loss: SenderLosses,
    pub(super) cpu: CpuLoad,
    pub(super) shaped: Option<ShaperView<'a>>,
    /// The time that acknowledgements wait in a queue on the way back, if that is where the flow waits.
    pub(super) return_queue: Option<Nanos>,
    /// The path's limit, if the flow is at it.
    pub(super) path: Option<PathLimit>,
    /// The reason why the receive window is closed, if the window limits the flow.
    pub(super) window_limit: Option<WindowLimit>,
    /// The share of the round trip by which a receiver that reads late lengthens it.
    pub(super) late_reads: Option<f64>,
    /// The times of a request, if the flow carries requests and replies.
    pub(super) requests: Option<RequestTimes>,
    /// True if both hosts are one machine, whose processor time is counted once.
    pub(super) one_machine: bool,
    pub(super) follow_ups: FollowUps<'a>,
}

impl<'a> VerdictView<'a> {
    pub(super) fn new(observations: &'a PathObservations<'a>) -> VerdictView<'a> {
        let (sender, receiver) = roles(observations);
        let one_machine = one_machine(observations);
        let window = window_of(observations);
        let goodput = goodput(observations, sender.as_ref(), receiver.as_ref());
        let main = sender.as_ref().and_then(EndView::main).or(receiver.as_ref().and_then(EndView::main));
        let rtt = observations.rtt.or_else(|| main.and_then(FlowView::min_rtt)).filter(|rtt| rtt.0 > 0);
        let mut view = VerdictView {
            time: sender.as_ref().and_then(|end| TimeShares::of(&end.flows)),
            loss: SenderLosses::of(sender.as_ref(), receiver.as_ref()),
            cpu: CpuLoad::of(sender.as_ref(), receiver.as_ref(), one_machine),
            shaped: loss::shaped(sender.as_ref(), receiver.as_ref()),
            return_queue: None,
            path: None,
            window_limit: None,
            late_reads: None,
            requests: None,
            sender,
            receiver,
            goodput,
            rtt,
            window,
            one_machine,
            follow_ups: observations.follow_ups,
        };
        view.return_queue = path::return_queue(&view);
        view.path = path::limit(&view);
        view.window_limit = window::limit(&view);
        view.late_reads = path::late_reads(&view);
        view.requests = requests::requests(&view);
        view
    }

    /// Returns an upper bound of the processor time that the packets of the busiest link took, as a share of the
    /// window.
    pub(super) fn packet_time(&self) -> f64 {
        let links = |end: &EndView<'_>| {
            let packets = end.host.links().iter().map(|link| link.rx_packets.saturating_add(link.tx_packets));
            packets.max().unwrap_or(0)
        };
        let packets = self.ends().map(links).max().unwrap_or(0) as f64;
        if self.window.0 == 0 { 0.0 } else { packets * PACKET_NS / self.window.0 as f64 }
    }

    /// Returns the ends that were watched, the sender first.
    pub(super) fn ends(&self) -> impl Iterator<Item = &EndView<'a>> {
        self.sender.iter().chain(&self.receiver)
    }

    /// Returns the end with the slower link, and the speed of that link; `None` if neither speed is known.
    pub(super) fn slowest_link(&self) -> Option<(&EndView<'a>, BitRate)> {
        let speeds = self.ends().filter_map(|end| Some((end, end.link_speed()?)));
        speeds.min_by(|a, b| a.1.0.total_cmp(&b.1.0))
    }

    /// Returns the sender's name, empty where it was not watched.
    pub(super) fn sending(&self) -> String {
        self.sender.as_ref().map_or_else(String::new, EndView::name)
    }

    pub(super) fn receiving(&self) -> String {
        self.receiver.as_ref().map_or_else(|| "the receiving host".to_owned(), EndView::name)
    }

    /// Returns the largest flow at the sender, or at the receiver where only that was watched.
    pub(super) fn main(&self) -> Option<&FlowView<'a>> {
        self.ends().find_map(EndView::main)
    }

    /// Returns true if the flow consists of datagrams.
    pub(super) fn is_udp(&self) -> bool {
        self.main().is_some_and(|flow| flow.watch.key.protocol == IpProtocol::UDP)
    }

    /// Returns the bytes that the path holds: its goodput times its idle round trip.
    pub(super) fn held_by_path(&self) -> Option<f64> {
        self.rtt.map(|rtt| self.goodput.0 * rtt.as_secs_f64() / 8.0)
    }

    /// Returns the ratio of the round trip under load to the idle one, if there is a standing queue on the path.
    pub(super) fn standing_queue(&self) -> Option<f64> {
        let (flow, idle) = (self.sender.as_ref()?.main()?, self.rtt?.0 as f64);
        let loaded = flow.median_tcp(|t| t.rtt_ns.0)?;
        // A single segment is acknowledged only when the receiver's timer expires (RFC 1122 section 4.2.3.2), which
        // is not a queue.
        if flow.median_tcp(|t| u64::from(t.unacked_segments))? == 1.0 {
            return None;
        }
        (loaded >= STANDING_RATIO * idle && loaded - idle >= STANDING_NS).then(|| loaded / idle)
    }

    /// Returns the share of the sender's time in which neither the application nor a window or buffer held it, but the
    /// network or the processor. 1 if TCP does not report it.
    pub(super) fn network_time(&self) -> f64 {
        self.time.map_or(1.0, |time| time.rest)
    }

    /// Returns the ratio of the lowest measured limit of the hosts to the present goodput; `None` if either is unknown.
    pub(super) fn headroom(&self) -> Option<f64> {
        let hosts = self.ends().filter_map(|end| end.host.limits);
        let lowest = hosts.filter_map(ceiling).map(|rate| rate.0).min_by(f64::total_cmp)?;
        (self.goodput.0 > 0.0).then(|| lowest / self.goodput.0)
    }

    /// Returns the part of the path's rate that the flow does not use, which is the most that a cause at an end can
    /// cost; 1 where the path is not the limit.
    pub(super) fn left_of_path(&self) -> f64 {
        self.path.as_ref().map_or(1.0, |path| share(1.0 - self.goodput.0 / path.level.rate))
    }

    /// Returns the share of acknowledgements that was lost, if it is notable and far larger than that of the data.
    pub(super) fn lost_on_return(&self) -> Option<f64> {
        let least = LOST_ON_RETURN.max(RETURN_OVER_FORWARD * self.loss.rate());
        self.loss.on_return.filter(|lost| *lost >= least)
    }

    /// Returns true if losses stay when the stream is paced below its rate, false if they vanish; `None` if that is not
    /// known.
    pub(super) fn losses_stay(&self) -> Option<bool> {
        path::losses_stay(self)
    }

    /// Returns the ratio to the present goodput if the share `weight` of the time is won back and nothing else limits.
    pub(super) fn won_back(&self, weight: f64) -> Option<f64> {
        Some(1.0 / (1.0 - share(weight).min(0.99)))
    }

    /// Returns the rate that the flow reaches if the share `weight` of its time is won back, at most that of the
    /// slowest link and [`MOST_RATIO`] times the present one.
    pub(super) fn reachable(&self, weight: f64) -> BitRate {
        let link = self.slowest_link().map_or(BitRate(VIRTUAL_LINK), |(_, rate)| rate).0;
        let gain = self.won_back(weight).unwrap_or(1.0).min(MOST_RATIO);
        BitRate((self.goodput.0 * gain).min(link.max(self.goodput.0)))
    }
}

fn one_machine(observations: &PathObservations<'_>) -> bool {
    let same = |a: &HostFacts, b: &HostFacts| !a.boot_id.is_empty() && a.boot_id == b.boot_id;
    observations.b.is_some_and(|b| same(observations.a.facts, b.facts))
}

/// Returns the time that the counters cover: that of the observers or, if there is none, the span of the longest flow.
fn window_of(observations: &PathObservations<'_>) -> Nanos {
    let hosts = || [Some(observations.a), observations.b].into_iter().flatten();
    let observed = hosts().map(|host| host.cpu().window_ns).max().unwrap_or_default();
    if observed.0 > 0 {
        return observed;
    }
    let spans = hosts()
        .flat_map(|host| host.seen.get::<Vec<FlowWatch>>().iter().map(|watch| FlowView::of(watch).span));
    spans.max().unwrap_or_default()
}

fn goodput(
    observations: &PathObservations<'_>,
    sender: Option<&EndView<'_>>,
    receiver: Option<&EndView<'_>>,
) -> BitRate {
    let sane = |rate: &BitRate| rate.0.is_finite() && rate.0 > 0.0;
    let of_flows =
        |end: &EndView<'_>| end.flows.iter().fold(BitRate(0.0), |sum, f| sum + f.moved(end.role).per(f.span));
    let of_link = |end: &EndView<'_>| end.link_bytes().per(end.host.cpu().window_ns);
    let ends = || receiver.into_iter().chain(sender);
    let rates = observations.goodput.into_iter().chain(ends().map(of_flows)).chain(ends().map(of_link));
    rates.into_iter().find(sane).unwrap_or_default()
}
