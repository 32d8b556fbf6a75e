//! The report of `landspeed tune --record-run`.

use std::collections::BTreeSet;

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{ExpectationKind, LabRecovery, RecordRunFigures, RecordRunReport};

use crate::block::{
    Document, DocumentHead, List, ParagraphStyle, ReportBlock, ReportSection, ReportTable, StyledText,
    TableCell,
};
use crate::words::{number, quoted_hosts, unrestored};
use crate::{conditions, gauges, safe};

/// The claims of the papers' ledger that a record run over the paper's path holds its figures against, and how. Those about
/// the window need a lab that loses a segment.
pub const RECORD_RUN_CLAIMS: [(&str, ExpectationKind); 6] = [
    ("feng.wan.rate", ExpectationKind::Number),
    ("feng.wan.efficiency", ExpectationKind::Number),
    ("feng.wan.metric", ExpectationKind::Number),
    ("feng.abs.tb_hour", ExpectationKind::Number),
    ("feng.aimd.increase", ExpectationKind::Number),
    ("feng.aimd.decrease", ExpectationKind::Number),
];

/// The path of the paper's record.
const PAPERS_RATE: BitRate = BitRate(2.5e9);
const PAPERS_RTT: Nanos = Nanos::millis(180);
const TERABYTE_BITS: f64 = 8e12;
/// The share by which the rate and the round trip of another path may differ from those of the paper's.
const SAME_PATH: f64 = 0.1;

/// Returns the report of a record run as a document.
pub fn record_run(run: &RecordRunReport) -> Document {
    let names = [
        "window",
        "payload",
        "of the path",
        "bit-metres/s",
        "sent again",
        "at the start",
        "RTT",
        "queue drops",
    ];
    let table = ReportTable::figures("The runs", &names)
        .row(row("capped at", &run.capped))
        .row(row("not capped", &run.uncapped));
    let bad = |text: String| ReportBlock::Paragraph(ParagraphStyle::Bad, text.into());
    let unfit =
        [("capped", &run.capped), ("not capped", &run.uncapped)].into_iter().flat_map(|(name, figures)| {
            figures.unfit.iter().map(move |why| format!("does not count ({name}): {}", safe(why)))
        });
    let left = unrestored(run.restore_outcome().state());
    let section = ReportSection::new("runs", "")
        .with(table)
        .with(ReportBlock::text(format!(
            "headers leave {} of the path's rate at most",
            percent(run.capped.ceiling)
        )))
        .all(papers(run).map(ReportBlock::text))
        .all(recovery(run).into_iter().map(ReportBlock::text))
        .all(unfit.chain(left).map(bad))
        .with(ReportBlock::Commands(vec![("next:".into(), next(run))]));
    let notes = run.notes.iter().map(|note| safe(note).into()).collect::<Vec<StyledText>>();
    let notes = ReportSection::new("restored", "put back").with(List { items: notes, ..List::default() });
    let facts = [
        format!("path {}", run.path_rate_bps),
        format!("round trip {}", run.path.rtt_ns),
        format!("holds {}", run.bdp_bytes),
        format!("MTU {}", run.mtu_bytes),
    ];
    let hosts = [("A", &run.host_a), ("B", &run.host_b)];
    let head = DocumentHead {
        kind: "record run",
        title: format!("record run on {}", run.topology).into(),
        facts: facts.map(StyledText::from).into(),
        remarks: conditions::remarks(&run.path)
            .into_iter()
            .chain(conditions::lines(&hosts, &BTreeSet::new()))
            .collect(),
        ..DocumentHead::default()
    };
    let notes = (!run.notes.is_empty()).then_some(notes);
    let sections =
        [section].into_iter().chain(notes).chain(conditions::section(&hosts).non_empty()).collect();
    Document { head, sections, gauges: gauges::of_record_run(run), ..Document::default() }
}

/// Returns the command to run next: the same run if this one does not count, otherwise an explanation of what holds the
/// path back.
fn next(run: &RecordRunReport) -> String {
    match run.capped.unfit.is_empty() {
        true => format!("landspeed explain {}   # what holds the path back", quoted_hosts(&run.topology)),
        false => format!("{}   # on a quieter machine", run.command),
    }
}

fn row(name: &str, figures: &RecordRunFigures) -> [TableCell; 8] {
    let window = figures.window_bytes.map_or_else(|| name.to_owned(), |bytes| format!("{name} {bytes}"));
    let start = figures.retransmits_in_all.saturating_sub(figures.retransmits);
    [
        window.into(),
        figures.rate_bps.into(),
        TableCell::number(figures.efficiency, percent(figures.efficiency)),
        figures.bit_metres_per_s.map(|value| TableCell::number(value, format!("{value:.3e}"))).into(),
        figures.retransmits.into(),
        start.into(),
        figures.rtt_ns.into(),
        figures.link.as_ref().map(|link| link.a_to_b.queue_drops).into(),
    ]
}

/// Returns the paper's figures; `None` if the path is not the paper's.
fn papers(run: &RecordRunReport) -> Option<String> {
    let near = |ours: f64, papers: f64| (ours / papers - 1.0).abs() <= SAME_PATH;
    let is_papers = near(run.path_rate_bps.0, PAPERS_RATE.0)
        && near(run.path.rtt_ns.as_secs_f64(), PAPERS_RTT.as_secs_f64());
    is_papers.then(|| {
        format!(
            "Feng et al. (2003) had 2.38 Gb/s (95.2 % of 2.5 Gb/s; the 99 % that the paper prints fit the payload of OC-48c), \
             2.389e16 bit-metres/s over 10,037 km, and a terabyte in under an hour; at the capped run's rate one takes {} min",
            number(TERABYTE_BITS / run.capped.rate_bps.0 / 60.0)
        )
    })
}

fn recovery(run: &RecordRunReport) -> Vec<String> {
    let simulated =
        run.recovery.simulated_s.map_or_else(String::new, |s| format!(", {} s in the simulator", number(s)));
    let formula = format!(
        "one loss would cost Reno {} s to grow back by the formula (half the window, a segment a round trip){simulated}",
        number(run.recovery.formula_s)
    );
    let lab = run.recovery.lab.as_ref().map(|seen| in_lab(seen, run.path.rtt_ns));
    std::iter::once(formula).chain(lab).collect()
}

fn in_lab(seen: &LabRecovery, rtt: Nanos) -> String {
    let [window, least] = [seen.window_segments, seen.least_segments].map(f64::from);
    let said = match seen.back_s {
        Some(s) => format!(
            "a window of {window} segments fell to {least} ({:.2} of it) and was back after {} s, by {:.2} segments a round trip \
             (by the formula, from half of it and by one segment: {} s)",
            least / window.max(1.0),
            number(s),
            (window - least) * rtt.as_secs_f64() / s,
            number(seen.expected_s)
        ),
        None => "no window was seen to fall and come back".to_owned(),
    };
    let again = match seen.retransmits {
        2 => String::new(),
        other => format!("; {other} segments were sent again, not two"),
    };
    let unfit: String = seen.unfit.iter().map(|why| format!("; does not count: {}", safe(why))).collect();
    format!("on the lab's sockets {said}{again}{unfit}")
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::Bytes;

    use super::*;

    #[test]
    fn both_runs_and_what_a_loss_costs_are_said() {
        let capped = RecordRunFigures {
            window_bytes: Some(Bytes(84_375_000)),
            rate_bps: BitRate(2.4855e9),
            efficiency: 0.9942,
            bit_metres_per_s: Some(2.49e16),
            ..RecordRunFigures::default()
        };
        let uncapped = RecordRunFigures { retransmits: 5, retransmits_in_all: 693, ..capped.clone() };
        let run = RecordRunReport {
            topology: "lab:wan:rate=2500M\u{1b}[2J".into(),
            path_rate_bps: BitRate(2.5e9),
            path: landspeed_record::PathFacts { rtt_ns: Nanos::millis(180), ..Default::default() },
            capped,
            uncapped,
            recovery: landspeed_record::LossRecovery {
                formula_s: 567.0,
                simulated_s: Some(570.0),
                segment_bytes: Bytes(8928),
                lab: Some(landspeed_record::LabRecovery {
                    back_s: Some(571.0),
                    window_segments: 6277,
                    least_segments: 3138,
                    retransmits: 2,
                    expected_s: 565.0,
                    unfit: vec!["late\u{1b}".into()],
                }),
            },
            ..RecordRunReport::default()
        };
        let text = record_run(&run).text(crate::OutputCapabilities::plain(120), crate::DetailLevel::Brief);
        for words in [
            "99.42 %",
            "2.490e16",
            "688",
            "567 s",
            "570 s",
            "571 s",
            "6277 segments fell to 3138",
            "NOT everything",
            "180 ms",
            "2.38 Gb/s",
            "53.6",
            "0.50 of it",
            "0.99 segments",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains('\u{1b}'));
        assert!(crate::json(&run).contains("\"bit_metres_per_s\""));
        let short = landspeed_record::PathFacts { rtt_ns: Nanos::millis(20), ..Default::default() };
        assert_eq!(papers(&RecordRunReport { path: short, ..run }), None, "another path");
    }
}
