//! Judges of processors that do less than they could: stolen time, and a low clock.

use landspeed_record::{Cause, Finding};

use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::thresholds::{LOW_CLOCK, STOLEN};
use crate::verdict::view::VerdictView;
use crate::verdict::words::{percent, shown};

/// Judges time that the hypervisor gave to others.
pub(super) fn steal(view: &VerdictView<'_>) -> Option<Finding> {
    let all = view.ends().map(|end| (end, end.host.cpu().steal_share()));
    let (end, stolen) = all.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, stolen)| *stolen >= STOLEN)?;
    let summary = format!("the hypervisor gave {} of the processors' time to another guest", percent(stolen));
    let finding = found(Cause::Steal, stolen, 0.8, summary)
        .at(end.name())
        .saw(format!("stolen: {} of all cores' time over the window", percent(stolen)));
    Some(
        finding.ask("a quieter machine, or processors of its own: rates measured here are not to be trusted"),
    )
}

/// Judges the clock of a full processor.
pub(super) fn low_clock(view: &VerdictView<'_>) -> Option<Finding> {
    if !view.cpu.saturated() {
        return None;
    }
    let clocks = view.ends().filter_map(|end| {
        let limits = end.host.limits?;
        let (now, most) = limits.cpu_hz.zip(limits.most_cpu_hz)?;
        (now > 0.0 && most > 0.0).then_some((end, limits, now, most))
    });
    let (end, limits, now, most) = clocks.min_by(|a, b| (a.2 / a.3).total_cmp(&(b.2 / b.3)))?;
    if now >= LOW_CLOCK * most {
        return None;
    }
    let summary =
        format!("the processor of {} runs at {:.1} of {:.1} GHz", end.name(), now / 1e9, most / 1e9);
    let finding = found(Cause::CpuFrequency, 1.0 - now / most, 0.8, summary).at(end.name());
    let governor =
        (!limits.governor.is_empty()).then(|| format!("the governor is {}", shown(&limits.governor)));
    Some(
        finding
            .saw(format!("{} is taken for {} of the time", view.cpu.at, percent(view.cpu.busiest)))
            .saw(format!("its clock is at {} of what it can", percent(now / most)))
            .saw_if(governor)
            .try_knob("governor", "performance", "run at full clock under load")
            .ask("where there is no governor: power limits, heat, or the firmware's settings")
            .expect(Some(most / now)),
    )
}
