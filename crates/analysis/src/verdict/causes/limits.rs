//! Judges of the limits that remain when nothing is wrong: a processor, a link, memory, a bus.

use landspeed_record::units::BitRate;
use landspeed_record::{Cause, Finding, MemoryKernel};

use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::thresholds::AT_LINK;
use crate::verdict::view::{EndView, VerdictView, WindowCause, settings};
use crate::verdict::words::percent;

/// The number of times that a byte crosses memory at one end: the device writes it, the copy reads and writes it.
const CROSSINGS: f64 = 3.0;

pub(super) fn cpu(view: &VerdictView<'_>) -> Option<Finding> {
    view.cpu.saturated().then(|| processor(view, 0.9))
}

/// The share of time from which the busiest processor is more than a guess, if nothing else is at its end.
const BUSY: f64 = 0.6;

fn processor(view: &VerdictView<'_>, confidence: f64) -> Finding {
    let (busiest, at) = (view.cpu.busiest, &view.cpu.at);
    let summary = match at.is_empty() {
        true => "nothing that was watched is at its end; a processor is the likeliest limit".to_owned(),
        false if busiest < BUSY => format!(
            "nothing that was watched is at its end: {at}, the busiest, is taken for {} of the time",
            percent(busiest)
        ),
        false => format!(
            "nothing holds it back but the processor: {at} is taken for {} of the time",
            percent(busiest)
        ),
    };
    let mut finding = found(Cause::CpuLimit, busiest.max(0.1), confidence, summary).at(at.as_str());
    for end in view.ends() {
        let ran = end.ran().map(|ran| {
            format!("the flow's busiest thread of {} ran for {} of the time", end.name(), percent(ran))
        });
        finding = finding.saw_if(ran);
    }
    let shows = view.window_limit.filter(|limit| limit.by == WindowCause::Processor);
    finding
        .saw_if(shows.map(|limit| {
            format!(
                "the window was closed for {} of the time because the receiver was busy, not small",
                percent(limit.share)
            )
        }))
        .saw_if(view.headroom().map(above))
        .try_knob("placement", "", "where the two ends' threads run decides what each byte costs")
        .try_knob("write-size", "", "larger writes and reads: fewer calls for a byte")
}

/// Describes how much more than the flow the link, the bus and loopback would carry; `room` is the ratio.
fn above(room: f64) -> String {
    if room > 1.05 {
        return format!("link, bus and loopback would carry {room:.1} times as much");
    }
    // The limits were measured before the flow began, on a busier machine or with other settings.
    "link, bus or loopback, measured alone, carried no more than this flow does: they do not tell how much more there is"
        .to_owned()
}

pub(super) fn link(view: &VerdictView<'_>) -> Option<Finding> {
    if let Some((end, speed)) = view.slowest_link().filter(|(_, speed)| view.goodput.0 >= AT_LINK * speed.0) {
        let used = view.goodput.0 / speed.0;
        let at =
            settings(end.host).map_or_else(|| end.name(), |s| format!("link {} of {}", s.link, end.name()));
        let summary = format!("nothing holds it back but the link: {} of {speed} are used", percent(used));
        let finding = found(Cause::LinkLimit, used, 0.95, summary).at(at);
        return Some(finding.saw(format!("goodput {} over a link of {speed}", view.goodput)));
    }
    super::bottleneck::slower_link(view).or_else(|| path(view))
}

/// Judges the narrowest link of the path, which is not a link of either host: the sender fills a queue there.
fn path(view: &VerdictView<'_>) -> Option<Finding> {
    let queued = view.standing_queue().filter(|_| view.path.is_none() && view.late_reads.is_none())?;
    let flow = view.sender.as_ref()?.main()?;
    if view.cpu.saturated()
        || view.shaped.is_some()
        || view.network_time() < 0.5
        || super::path::stalled(flow)
    {
        return None;
    }
    // A queue in front of a busy processor lengthens the round trip too, but leaves the window unused. A sender with
    // a model of the path (BBR) never fills its window.
    let full = flow.congestion_full();
    if flow.all_sent() >= 0.5 {
        return None; // TCP had sent everything that it was given, so the application is the limit.
    }
    if full < 0.5 && !flow.has_path_model() {
        return None;
    }
    let summary = format!("nothing holds it back but the path: its narrowest link carries {}", view.goodput);
    let finding = found(Cause::LinkLimit, view.network_time(), 0.8, summary).at("the path");
    let loss = &view.loss;
    Some(
        finding
            .saw(format!(
                "there is a standing queue on the path: the round trip is {queued:.1} times the idle one"
            ))
            .saw(format!("the sender keeps its congestion window full in {} of the samples", percent(full)))
            .saw(format!(
                "{:.0} of {:.0} segments were lost as the queue overflowed",
                loss.on_path(),
                loss.sent
            )),
    )
}

pub(super) fn memory(view: &VerdictView<'_>) -> Option<Finding> {
    let copies = |end: &EndView<'_>| {
        let rates = end.host.limits?.memory.iter().filter(|rate| rate.kernel == MemoryKernel::Copy);
        rates.map(|rate| rate.best_bps.0).max_by(f64::total_cmp).filter(|rate| *rate > 0.0)
    };
    let (end, most) =
        view.ends().filter_map(|end| Some((end, copies(end)?))).min_by(|a, b| a.1.total_cmp(&b.1))?;
    let both = if view.one_machine { 2.0 } else { 1.0 };
    let used = CROSSINGS * both * view.goodput.0 / most;
    if used < AT_LINK {
        return None;
    }
    let summary =
        format!("nothing holds it back but memory: {} of its bandwidth is used", percent(used.min(1.0)));
    let finding = found(Cause::MemoryLimit, used, 0.7, summary).at(end.name());
    Some(finding.saw(format!(
        "each byte crosses memory about {:.0} times; all cores copy {}",
        CROSSINGS * both,
        BitRate(most)
    )))
}

pub(super) fn bus(view: &VerdictView<'_>) -> Option<Finding> {
    let buses = view.ends().filter_map(|end| Some((end, end.host.limits?.pcie.as_ref()?)));
    let rated = buses.filter(|(_, pcie)| pcie.rate_bps.0 > 0.0);
    let (end, pcie) = rated.min_by(|a, b| a.1.rate_bps.0.total_cmp(&b.1.rate_bps.0))?;
    let used = view.goodput.0 / pcie.rate_bps.0;
    if used < AT_LINK {
        return None;
    }
    let summary =
        format!("nothing holds it back but the bus: {} of {} are used", percent(used), pcie.rate_bps);
    let finding = found(Cause::BusLimit, used, 0.9, summary).at(end.name());
    let slot =
        (pcie.width < pcie.most_width || pcie.speed_transfers < pcie.most_speed_transfers).then(|| {
            format!(
                "it runs {} of {} lanes, {:.1} of {:.1} GT/s",
                pcie.width,
                pcie.most_width,
                pcie.speed_transfers / 1e9,
                pcie.most_speed_transfers / 1e9
            )
        });
    Some(finding.saw_if(slot.clone()).ask(match slot {
        Some(_) => "put the device into a slot that it can use fully",
        None => "a device with more lanes, or two of them",
    }))
}

/// Returns the limit that the flow is closest to, if it reaches none.
pub(in crate::verdict) fn nearest(view: &VerdictView<'_>) -> Finding {
    let link =
        view.ends().filter_map(EndView::link_speed).map(|speed| view.goodput.0 / speed.0).fold(0.0, f64::max);
    if link > view.cpu.busiest {
        let summary = format!(
            "nothing that was watched is at its end; the link is nearest, {} of it used",
            percent(link)
        );
        return found(Cause::LinkLimit, link, 0.3, summary).saw(format!("goodput {}", view.goodput));
    }
    let sure = if view.cpu.busiest >= BUSY { 0.6 } else { 0.3 };
    processor(view, sure)
}
