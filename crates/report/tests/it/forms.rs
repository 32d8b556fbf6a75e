//! Tests of all forms of reports that need no browser.

use landspeed_record::units::Nanos;
use landspeed_record::{
    Cause, CompareReport, ConfirmationReport, CostFigure, Estimate, ExplainReport, Line, Record, Remedy,
    RemedyCommand, TuneSummary,
};
use landspeed_report::{DetailLevel, Document, OutputCapabilities, compare, explain, quoted, tune};

use crate::{markup, recorded};

const PLAIN: OutputCapabilities = OutputCapabilities::plain(80);
const WATCHED: OutputCapabilities = OutputCapabilities { terminal: true, ..OutputCapabilities::plain(100) };

#[test]
fn every_report_reads_well() {
    for kind in recorded::all() {
        let document = kind.document();
        let brief = document.text(WATCHED, DetailLevel::Brief);
        let full = document.text(PLAIN, DetailLevel::Full);
        // Bars are for terminals only.
        assert!(!full.contains(['█', '▏', '▁', '\u{1b}']), "{}: {full}", kind.name);
        insta::assert_snapshot!(format!("{}_watched", kind.name), brief);
        insta::assert_snapshot!(format!("{}_full", kind.name), full);
        insta::assert_snapshot!(format!("{}_csv", kind.name), tables(&document));
    }
}

#[test]
fn lines_keep_to_the_width_of_the_terminal() {
    for kind in recorded::all() {
        for (width, detail) in [
            (60, DetailLevel::Full),
            (80, DetailLevel::Brief),
            (120, DetailLevel::Full),
            (160, DetailLevel::Brief),
        ] {
            let shown = kind.document().text(OutputCapabilities { width, ..WATCHED }, detail);
            // Commands are never broken, so that they can be copied.
            let commands = |line: &&str| !line.contains("  landspeed ");
            let longest =
                shown.lines().filter(commands).max_by_key(|line| line.chars().count()).unwrap_or_default();
            assert!(longest.chars().count() <= usize::from(width), "{}: {longest}", kind.name);
            assert!(shown.lines().all(|line| line == line.trim_end()), "{}: spaces at the end", kind.name);
        }
    }
}

#[test]
fn without_utf_8_a_report_says_the_same_as_wide() {
    for kind in recorded::all() {
        let shown =
            |unicode| kind.document().text(OutputCapabilities { unicode, ..WATCHED }, DetailLevel::Full);
        let (ascii, unicode) = (shown(false), shown(true));
        assert!(ascii.is_ascii(), "{}", kind.name);
        let lost = |text: &str| text.matches('?').count();
        assert_eq!(lost(&ascii), lost(&unicode), "{}: a character has no spelling", kind.name);
        let widths = |text: &str| text.lines().map(|line| line.chars().count()).collect::<Vec<_>>();
        assert_eq!(widths(&ascii), widths(&unicode), "{}", kind.name);
    }
}

#[test]
fn an_explanation_fits_a_screen_or_two() {
    // Sizes are measured on request only, and few paths are an emulated link.
    let usual = ExplainReport { per_packet: vec![], answers: vec![], wan: None, ..recorded::explained() };
    let shown = explain(&usual).text(WATCHED, DetailLevel::Brief);
    assert!(shown.lines().count() <= 60, "{} lines:\n{shown}", shown.lines().count());
}

/// Panics unless `words` are on the page and on the terminal.
fn said(document: &Document, words: &str) {
    let page = document.page();
    markup::check_figures(&page);
    assert!(page.contains(words), "{words}: {page}");
    let shown = document.text(PLAIN, DetailLevel::Full);
    assert!(shown.contains(words), "{words}: {shown}");
}

#[test]
fn an_empty_report_is_still_a_report() {
    let empty = Record { cut_off: true, ..Record::default() };
    said(&explain(&ExplainReport::default()), "What holds it back is unknown");
    said(&compare(&CompareReport::default(), &empty), "No run of this study counts");
    let (mut summary, _) = recorded::tuned();
    summary.steps.clear();
    summary.gain = Default::default();
    said(&tune(&summary, &empty, "last"), "No step was measured");
}

#[test]
fn figures_that_no_measurement_gives_are_not_drawn() {
    let mut report = recorded::explained();
    for bad in [f64::NAN, f64::INFINITY, -1.0, 1e308] {
        report.goodput_bps.0 = bad;
        report.verdict[0].confidence = bad;
        report.verdict[0].weight = bad;
        report.staircase.iter_mut().for_each(|step| step.rate_bps.0 = bad);
        let figure = CostFigure { share: bad, ns_per_byte: Some(bad), ns_per_packet: Some(bad) };
        report.hosts[0].cost.insert("copy".into(), figure);
        markup::check_figures(&explain(&report).page());
        explain(&report).text(WATCHED, DetailLevel::Full);
    }
    let (mut summary, record) = recorded::tuned();
    for bad in [(f64::NAN, -1.0, f64::INFINITY), (1e300, 1e-300, 1e301)] {
        summary
            .steps
            .iter_mut()
            .for_each(|s| s.rate = Some(Estimate { ratio: bad.0, low: bad.1, high: bad.2 }));
        markup::check_figures(&tune(&summary, &record, "last").page());
    }
}

fn text(summary: &TuneSummary) -> String {
    tune(summary, &recorded::tuned().1, &quoted(&summary.record))
        .text(OutputCapabilities { width: 120, ..PLAIN }, DetailLevel::Brief)
}

#[test]
fn warnings_about_a_run_are_prominent_in_every_form() {
    let (mut summary, record) = recorded::tuned();
    summary.void = Some("a placebo was kept".into());
    summary.restored = false;
    summary.record = "$(reboot)'".to_owned();
    let shown = text(&summary);
    assert!(shown.starts_with("RESULT   no gain proven, the run does not count ("), "{shown}");
    assert!(shown.contains("✗ Does not count: a placebo was kept\n"), "{shown}");
    assert!(shown.contains("✗ NOT everything was restored: "), "{shown}");
    assert!(shown.contains(r"landspeed show '$(reboot)'\'''"), "{shown}");
    let page = tune(&summary, &record, "last").page();
    assert!(page.contains("a placebo was kept") && page.contains("✗ NOT everything was restored: "));
}

#[test]
fn what_another_program_changed_is_not_called_a_failure() {
    let (mut summary, record) = recorded::tuned();
    (summary.restored, summary.left) = (false, true);
    let shown = text(&summary);
    let page = tune(&summary, &record, "last").page();
    for form in [shown, page] {
        assert!(form.contains("✗ What another program changed meanwhile was left: all others"), "{form}");
        assert!(!form.contains("run “landspeed undo”") && !form.contains("NOT everything"), "{form}");
    }
}

#[test]
fn a_host_that_was_lost_is_not_said_to_be_changed() {
    let (mut summary, record) = recorded::tuned();
    (summary.restored, summary.unknown) = (false, true);
    let shown = text(&summary);
    let page = tune(&summary, &record, "last").page();
    for form in [shown, page] {
        assert!(form.contains("guardian of a lost host does it; “landspeed undo HOST” confirms"), "{form}");
        assert!(!form.contains("NOT everything") && !form.contains("Not everything"), "{form}");
    }
}

#[test]
fn unconfirmed_steps_are_marked_in_every_form() {
    let (mut summary, record) = recorded::tuned();
    let step = summary.steps.iter_mut().find(|step| step.kept).expect("a step that was kept");
    step.confirmed = Some(false);
    let name = format!("{}={}", step.knob, step.value);
    let shown = text(&summary);
    let row = shown.lines().find(|line| line.starts_with("KEPT ")).expect("the step");
    assert!(row.ends_with("not confirmed"), "{shown}");
    let full =
        tune(&summary, &record, "last").text(OutputCapabilities { width: 120, ..PLAIN }, DetailLevel::Full);
    let row = full.lines().find(|line| line.contains("! not confirmed")).expect("the step");
    assert!(row.starts_with(&name), "{full}");
    let page = tune(&summary, &record, "last").page();
    for said in ["1 of them not confirmed", "! not confirmed", "kept, not confirmed", "(not confirmed)"] {
        assert!(page.contains(said), "{said} is missing");
    }
}

#[test]
fn unmeasured_figures_are_not_mentioned() {
    let (mut summary, mut record) = recorded::tuned();
    let (over_ns, gain) = (Nanos::secs(1_800), summary.gain);
    summary.confirmation = Some(ConfirmationReport { over_ns, blocks: 21, discarded: 1, gain, holds: false });
    let both = |summary: &TuneSummary, record: &Record| {
        let document = tune(summary, record, "last");
        document.text(PLAIN, DetailLevel::Full) + &document.page()
    };
    let all = both(&summary, &record);
    for said in ["NOT confirmed over 30 min", "under load", "What held the path back"] {
        assert!(all.contains(said), "{said} is missing");
    }
    // As in the record of a run with --no-explain, or of an older landspeed.
    (summary.confirmation, summary.expectations, summary.start.loaded_latency_ns) = (None, None, None);
    summary.steps.iter_mut().for_each(|step| step.advised = None);
    record.lines.retain(|line| !matches!(line, Line::Verdict(_)));
    let (text, _) = both(&summary, &record)
        .split_once("<section id=\"glossary\"")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .expect("words");
    for said in ["onfirmed over", "under load", "What held the path back", "id=\"verdicts\""] {
        assert!(!text.contains(said), "{said}");
    }
}

#[test]
fn a_study_that_does_not_count_says_so_first() {
    let (report, record) = recorded::studied();
    let report = CompareReport { void: Some("it is unfinished".into()), ..report };
    let shown = compare(&report, &record).text(PLAIN, DetailLevel::Brief);
    assert!(shown.starts_with("✗ This study does not count: it is unfinished\n"), "{shown}");
    let page = compare(&report, &record).page();
    let (before, _) = page.split_once("class=\"facts\"").expect("facts");
    assert!(before.contains("This study does not count: "));
}

/// Returns a recorded explanation whose first cause has a remedy with this command.
fn remedied(line: &str) -> ExplainReport {
    let command = RemedyCommand { host: "A".into(), line: line.into() };
    let remedy = Remedy {
        knob: "tcp-wmem".into(),
        value: "4096 16384 10000000".into(),
        what: "let the send buffer grow".into(),
        commands: vec![command],
        ..Remedy::default()
    };
    let json = recorded::all().into_iter().find(|kind| kind.name == "explain").expect("an explanation").json;
    let mut report: ExplainReport = serde_json::from_value(json).expect("an explanation");
    report.verdict[0].cause = Cause::SendBuffer;
    report.verdict[0].remedies = vec![remedy];
    report
}

#[test]
fn a_remedy_is_a_command_on_a_line_of_its_own() {
    let line = "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 10000000\"   # 500 Mb/s x 80.0 ms x 2";
    let shown = explain(&remedied(line)).text(PLAIN, DetailLevel::Brief);
    assert!(shown.lines().any(|shown| shown == format!("    on host A:  {line}")), "{shown}");
    assert!(shown.contains("- let the send buffer grow"), "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("next:  landspeed ")), "{shown}");
    assert!(explain(&remedied(line)).page().contains("tcp_wmem="), "on the page too");
    let shown = explain(&remedied("a\u{1b}[2J")).text(PLAIN, DetailLevel::Full);
    assert!(!shown.contains('\u{1b}'), "{shown}");
}

/// Returns the tables of a document as CSV, one below the other.
fn tables(document: &Document) -> String {
    let tables: Vec<String> = document.csv().into_iter().map(|table| table.text).collect();
    tables.join("\n").replace('\r', "")
}
