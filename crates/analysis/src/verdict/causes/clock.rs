//! Processors that run slowly.

use landspeed_record::{Cause, Finding};

use crate::verdict::judge::{Telling, found};
use crate::verdict::thresholds::LOW_CLOCK;
use crate::verdict::view::View;
use crate::verdict::words::{percent, shown};

pub(super) fn judge(view: &View<'_>) -> Option<Finding> {
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
    let finding = finding
        .saw(format!("{} is taken for {} of the time", view.cpu.at, percent(view.cpu.busiest)))
        .saw(format!("its clock is at {} of what it can", percent(now / most)))
        .saw_if(governor)
        .try_knob("governor", "performance", "run at full clock under load")
        .ask("where there is no governor: power limits, heat, or the firmware's settings");
    Some(finding.expect(Some(most / now)))
}
