//! The report of a wide-area link that is emulated between the hosts.

use landspeed_record::units::CpuNanos;
use landspeed_record::{DirectionStats, WanCarrier, WanReport};

use crate::block::{
    ParagraphStyle, ReportBlock, ReportSection, ReportTable, TableCell, TableColumn, Visibility,
};
use crate::safe;
use crate::words::grouped;

/// Returns the section with the link's counters, the verdict on its accuracy, and its processor time.
pub(crate) fn section(wan: &WanReport) -> ReportSection {
    let manner = if wan.unfit.is_empty() { ParagraphStyle::Aside } else { ParagraphStyle::Bad };
    let names =
        ["direction", "segments", "dropped", "most queued", "late: p50", "p99", "worst", "its thread"];
    let mut table = ReportTable::figures("The link by direction", &names)
        .captioned(title(wan))
        .row(row("A to B", &wan.link.a_to_b))
        .row(row("B to A", &wan.link.b_to_a));
    table.columns[2] = TableColumn::words(names[2]);
    ReportSection::new("wan", "The link between the hosts")
        .with(ReportBlock::Only(Visibility::OnTerminal, vec![ReportBlock::text(title(wan))]))
        .with(table)
        .all(verdict(wan).into_iter().map(|line| ReportBlock::Paragraph(manner, line.into())))
        .with(ReportBlock::aside(shared(wan)))
}

/// Returns the link's title: "the link lab:wan:rate=1G,rtt=20ms,queue=1bdp over 25.1 s, with room for 2.38 MiB in
/// its queue".
fn title(wan: &WanReport) -> String {
    let (spec, link) = (safe(&wan.link.spec), &wan.link);
    let packets = link.queue_packets.map(|packets| format!("{} packets", grouped(packets)));
    let room = packets.or_else(|| link.queue_bytes.map(|bytes| bytes.to_string()));
    let room = room.map_or(String::new(), |room| format!(", with room for {room} in its queue"));
    format!("the link lab:wan:{spec} over {}{room}", link.window_ns)
}

fn row(name: &str, direction: &DirectionStats) -> [TableCell; 8] {
    [
        name.into(),
        direction.arrived_segments.into(),
        dropped(direction).into(),
        direction.most_queued_bytes.into(),
        direction.late_p50_ns.into(),
        direction.late_p99_ns.into(),
        direction.late_max_ns.into(),
        direction.cpu_ns.into(),
    ]
}

/// Returns the numbers of dropped segments by cause, with the link's own faults last, then the numbers of reordered,
/// marked and duplicated segments, and of packets of cross traffic. Numbers of zero are left out.
fn dropped(direction: &DirectionStats) -> String {
    let causes = [
        ("queue", direction.queue_drops),
        ("loss", direction.loss_drops),
        ("size", direction.size_drops),
        ("the link's own", direction.faults()),
    ];
    let parts: Vec<String> =
        causes.into_iter().filter(|(_, n)| *n > 0).map(|(why, n)| format!("{why} {}", grouped(n))).collect();
    let parts = if parts.is_empty() { "none".to_owned() } else { parts.join(", ") };
    let others = [
        ("held back", direction.reordered_segments),
        ("marked", direction.marked_segments),
        ("doubled", direction.duplicated_segments),
        ("of cross traffic", direction.cross_packets),
    ];
    let others =
        others.into_iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("; {} {what}", grouped(n)));
    parts + &others.collect::<String>()
}

pub(crate) fn warning(wan: Option<&WanReport>) -> Option<&'static str> {
    let unfit = wan.is_some_and(|wan| !wan.unfit.is_empty());
    unfit
        .then_some("Do not rely on this: the link between the hosts was not the configured path (see there).")
}

/// Returns the lines on the link's accuracy: whether figures measured over it are valid, the reasons if they are not,
/// and the link's own notes.
pub(crate) fn verdict(wan: &WanReport) -> Vec<String> {
    let first = match (wan.unfit.is_empty(), wan.link.carrier) {
        (false, _) => {
            "The link was not the configured path, and figures that were measured over it do not hold for that path:"
        }
        (true, WanCarrier::Threads) => {
            "The link was on time and dropped nothing of its own: it was the configured path."
        }
        (true, WanCarrier::Netem) => "It is not known whether the link was the configured path.",
    };
    let mut lines = vec![first.to_owned()];
    lines.extend(wan.unfit.iter().chain(&wan.link.notes).map(|line| safe(line)));
    lines
}

/// Returns the sentence on which processors emulate the link, and on how much of their time is counted for neither
/// host.
pub(crate) fn shared(wan: &WanReport) -> String {
    if wan.link.carrier == WanCarrier::Netem {
        return "The kernel emulates it on the hosts' own processors, within their receive work (softirq)."
            .into();
    }
    let times = [wan.link.a_to_b.cpu_ns, wan.link.b_to_a.cpu_ns];
    let sum: CpuNanos = times.into_iter().flatten().sum();
    let took = if times.iter().all(Option::is_none) { "an unknown time".to_owned() } else { sum.to_string() };
    format!(
        "Its threads, ls-wan-ab and ls-wan-ba, share the processors with the hosts and do their receive work (softirq): \
         {took} of processor time, counted for neither host."
    )
}

#[cfg(test)]
mod tests {
    use landspeed_record::WanStats;
    use landspeed_record::units::Nanos;

    use super::*;

    #[test]
    fn drops_are_listed_by_cause_if_there_are_any() {
        let direction = DirectionStats { queue_drops: 12, missed_frames: 2, ..DirectionStats::default() };
        assert_eq!(dropped(&direction), "queue 12, the link's own 2");
        let direction = DirectionStats { reordered_segments: 5, ..DirectionStats::default() };
        assert_eq!(dropped(&direction), "none; 5 held back");
        let direction = DirectionStats { marked_segments: 7, duplicated_segments: 1, ..direction };
        assert_eq!(dropped(&direction), "none; 5 held back; 7 marked; 1 doubled");
        let link = WanStats { queue_packets: Some(1000), ..WanStats::default() };
        assert!(title(&WanReport { link, ..WanReport::default() }).contains("room for 1,000 packets"));
    }

    #[test]
    fn a_link_that_was_late_says_so_first() {
        let link = WanStats { rtt_ns: Nanos::millis(20), ..WanStats::default() };
        let late = WanReport { link, unfit: vec!["A to B: \u{1b}[2Jlate".into()] };
        let lines = verdict(&late);
        assert!(lines[0].contains("not the configured path") && !lines[1].contains('\u{1b}'), "{lines:?}");
        assert!(shared(&late).contains("an unknown time"));
        assert!(warning(Some(&late)).is_some());
        let mut unknown = WanReport::default();
        unknown.link.carrier = WanCarrier::Netem;
        assert!(verdict(&unknown)[0].contains("not known") && shared(&unknown).contains("kernel emulates"));
        assert_eq!((warning(Some(&WanReport::default())), warning(None)), (None, None));
    }
}
