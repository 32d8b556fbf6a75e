//! The result of `landspeed tune --record-run`.

use landspeed_record::{LabRecovery, RecordRun, RecordRunFigures};

use crate::output::{Output, Style, Tone};
use crate::words::number;
use crate::{safe, table};

/// The result as one JSON document over several lines, without a line break at the end.
pub fn record_run_json(run: &RecordRun) -> String {
    serde_json::to_string_pretty(run).expect("a report has string keys only")
}

/// The result for a terminal.
pub fn record_run_text(run: &RecordRun, output: Output) -> String {
    let style = Style { color: output.color };
    let mut lines = vec![style.paint(Tone::Strong, &safe(&format!("record run on {}", run.topology)))];
    lines.push(format!(
        "path {}, round trip {}, holds {}; MTU {}",
        run.path_rate_bps, run.path.rtt_ns, run.bdp_bytes, run.mtu_bytes
    ));
    let heads = [
        "window",
        "payload",
        "of the path",
        "bit-metres/s",
        "sent again",
        "at the start",
        "RTT",
        "queue drops",
    ];
    let rows = [row("capped at", &run.capped), row("not capped", &run.uncapped)];
    lines.push(String::new());
    lines.push(table(&heads, &rows, output.width));
    lines.push(String::new());
    lines.push(format!("headers leave {} of the path's rate at most", percent(run.capped.ceiling)));
    lines.push(recovery(run));
    for (name, figures) in [("capped", &run.capped), ("not capped", &run.uncapped)] {
        lines.extend(
            figures
                .unfit
                .iter()
                .map(|why| style.paint(Tone::Bad, &safe(&format!("does not count ({name}): {why}")))),
        );
    }
    if !run.restored {
        lines.push(style.paint(Tone::Bad, "NOT everything was put back: run `landspeed undo` there"));
    }
    if !run.notes.is_empty() {
        lines.push(format!(
            "put back:\n{}",
            run.notes.iter().map(|note| safe(note)).collect::<Vec<_>>().join("\n")
        ));
    }
    lines.join("\n")
}

fn row(name: &str, figures: &RecordRunFigures) -> Vec<String> {
    let window = figures.window_bytes.map_or_else(|| name.to_owned(), |bytes| format!("{name} {bytes}"));
    let start = figures.retransmits_in_all.saturating_sub(figures.retransmits);
    vec![
        window,
        figures.rate_bps.to_string(),
        percent(figures.efficiency),
        figures.bit_metres_per_s.map_or_else(|| "-".to_owned(), |value| format!("{value:.3e}")),
        figures.retransmits.to_string(),
        start.to_string(),
        figures.rtt_ns.to_string(),
        figures.link.as_ref().map_or_else(|| "-".to_owned(), |link| link.a_to_b.queue_drops.to_string()),
    ]
}

fn recovery(run: &RecordRun) -> String {
    let simulated =
        run.recovery.simulated_s.map_or_else(String::new, |s| format!(", {} s in the simulator", number(s)));
    let lab = run.recovery.lab.as_ref().map_or_else(String::new, in_lab);
    format!(
        "one loss would cost Reno {} s to grow back by the formula (half the window, a segment a round trip){simulated}{lab}",
        number(run.recovery.formula_s)
    )
}

fn in_lab(seen: &LabRecovery) -> String {
    let said = match seen.back_s {
        Some(s) => format!(
            "a window of {} segments fell to {} and was back after {} s (formula for that window: {} s)",
            seen.window_segments,
            seen.least_segments,
            number(s),
            number(seen.expected_s)
        ),
        None => "no window was seen to fall and come back".to_owned(),
    };
    let again = match seen.retransmits {
        2 => String::new(),
        other => format!("; {other} segments were sent again, not two"),
    };
    let unfit: String = seen.unfit.iter().map(|why| format!("; does not count: {}", safe(why))).collect();
    format!("\non the lab's sockets {said}{again}{unfit}")
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use landspeed_units::{BitRate, Bytes, Nanos};

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
        let run = RecordRun {
            topology: "lab:wan:rate=2500M\u{1b}[2J".into(),
            path_rate_bps: BitRate(2.5e9),
            path: landspeed_record::PathFacts { rtt_ns: Nanos::millis(180), ..Default::default() },
            capped,
            uncapped,
            recovery: landspeed_record::Recovery {
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
            ..RecordRun::default()
        };
        let text = record_run_text(&run, Output { terminal: false, width: 120, color: false });
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
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains('\u{1b}'));
        assert!(record_run_json(&run).contains("\"bit_metres_per_s\""));
    }
}
