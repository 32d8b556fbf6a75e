//! The lines that a terminal in brief detail shows in place of the tables of an explanation.

use landspeed_record::units::{BitRate, Bytes, Nanos};

use super::cost::HostCost;
use super::hops::HopRow;
use super::stairs::LimitStaircase;
use super::window::{WindowBound, WindowHistory};
use crate::block::{List, ReportBlock, ReportSection, Visibility};
use crate::words::number;

/// Returns the section with a line on each table: the processor time of each host, the hop on which packets wait
/// longest, the windows, and the first limit above the flow.
pub(super) fn section(
    costs: &[HostCost<'_>],
    hops: &[HopRow],
    window: Option<&WindowHistory>,
    stairs: Option<&LimitStaircase>,
) -> Option<ReportSection> {
    let lines = costs.iter().map(HostCost::in_brief).chain([
        waiting(hops),
        window.and_then(windows),
        stairs.and_then(ceiling),
    ]);
    let items: Vec<_> = lines.flatten().map(Into::into).collect();
    let list = (!items.is_empty()).then(|| List { items, ..List::default() });
    let section = ReportSection::new("brief", "Also seen (--full shows the tables)");
    section.all(ReportBlock::only(Visibility::InBrief, list)).non_empty()
}

/// Returns the sentence on the hop with the longest median time.
fn waiting(rows: &[HopRow]) -> Option<String> {
    let (row, median) =
        rows.iter().filter_map(|row| Some((row, row.percentile(0.5)?))).max_by_key(|r| r.1)?;
    let (hop, _) = super::words::hop(row.hop);
    Some(format!("longest wait of packets: {hop} on {}, {} (median)", row.host, Nanos(median)))
}

/// Returns the sentence on the data in flight, its bounds, and what limited it.
fn windows(window: &WindowHistory) -> Option<String> {
    let median = |bound: WindowBound| {
        let track = window.tracks.iter().find(|track| track.bound == bound)?;
        Some(format!("{} {}", bound.name_and_class().0, Bytes(track.median() as u64)))
    };
    let bounds =
        [WindowBound::InFlight, WindowBound::Congestion, WindowBound::Peer].into_iter().filter_map(median);
    let bounds: Vec<String> = bounds.collect();
    (!bounds.is_empty()).then(|| {
        let limited = window.limited_by().map(|limited| format!("; {limited}")).unwrap_or_default();
        format!("{} (medians){limited}", bounds.join(", "))
    })
}

fn ceiling(stairs: &LimitStaircase) -> Option<String> {
    let step = stairs.ceiling()?;
    let over = step.over.map(|over| format!(", {}x the flow", number(over))).unwrap_or_default();
    Some(format!("first ceiling above the flow: {} {}{over}", step.name, BitRate(step.rate)))
}
