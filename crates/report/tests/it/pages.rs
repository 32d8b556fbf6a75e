//! Tests of pages in a real browser: light, dark, and on a phone.

use landspeed_record::{ExplainedHost, PathTrace};
use landspeed_report::{compare, explain, tune};
use serde_json::json;

use crate::{chromium, recorded};

const TUNE: &str = r#"
  const ladder = chart("ladder"), marks = all(ladder, "g.point .mark");
  const levels = ["rate", "cost"].map(figure => chart("level-" + figure)), trials = chart("trials");
  return {
    points: all(ladder, "g.point[data-step]").length, said: Number(ladder.dataset.points),
    levels: levels.map(svg => inside(svg, all(svg, "g > .mark"))),
    trials: inside(trials, all(trials, ".incumbent circle, .candidate circle")), trialsSaid: Number(trials.dataset.points),
    inside: inside(ladder, marks.filter(mark => box(mark).width > 2)),
    across: new Set(marks.map(mark => Math.round(box(mark).left))).size, charts: all(doc, "svg[data-chart]").length,
  };"#;

const EXPLAIN: &str = r##"
  const flames = all(doc, "svg[data-chart^=flame]"), course = chart("window"), drawn = part => all(doc, part + " svg.drawn").length;
  return {
    layers: all(doc, "#cost tr[class^='c-']").length, hops: drawn("#hops"), limits: drawn("#limits"),
    frames: flames.map(f => inside(f, all(f, "svg.frame"))), framesSaid: flames.map(f => Number(f.dataset.points)),
    own: flames.map(f => all(f, "svg.frame rect.own").map(r => box(r).width).reduce((a, b) => a + b, 0) / box(f).width),
    retransmits: all(course, ".retransmit").length, tracks: all(course, ".track").length,
    charts: all(doc, "svg[data-chart]").length,
  };"##;

const COMPARE: &str = r#"
  const courses = all(doc, "svg[data-chart^=course]"), trade = chart("trade-offs"), names = all(trade, ".series-name");
  const overlap = (a, b) => box(a).left < box(b).right && box(b).left < box(a).right && box(a).top < box(b).bottom - 3 && box(b).top < box(a).bottom - 3;
  return {
    protocols: inside(trade, all(trade, ".line")),
    collisions: names.flatMap((a, i) => names.slice(i + 1).filter(b => overlap(a, b)).map(b => a.textContent + " and " + b.textContent)),
    flows: courses.map(svg => inside(svg, all(svg, "path.flow"))), others: courses.map(svg => all(svg, "path.other").length),
    lines: courses.map(svg => inside(svg, all(svg, "path.rtt, path.queue"))),
    met: all(doc, ".matrix td[class]").filter(cell => cell.textContent).length,
    wide: all(doc, "main *").filter(e => !e.closest(".scroll, pre") && box(e).right > doc.documentElement.clientWidth).map(e => e.tagName + "." + e.className),
  };"#;

#[test]
fn every_measured_step_is_a_point() {
    let Some(browser) = chromium::find() else { return };
    let (summary, record) = recorded::tuned();
    let measured = summary.steps.iter().filter(|step| step.rate.is_some()).count();
    for seen in chromium::look(&browser, &tune(&summary, &record, "last").page(), TUNE) {
        assert_eq!(seen["points"], measured, "{seen}");
        assert_eq!(seen["said"], measured, "{seen}");
        assert_eq!(seen["inside"], measured, "a mark is drawn outside its chart: {seen}");
        assert!(seen["across"].as_u64() > Some(1), "the marks do not lie at their ratios: {seen}");
        assert_eq!(seen["levels"], json!([measured, measured]), "{seen}");
        assert!(seen["trials"].as_u64() > Some(measured as u64), "{seen}");
        assert_eq!(seen["trials"], seen["trialsSaid"], "a trial is drawn outside its chart: {seen}");
        assert_eq!(seen["charts"], 7, "{seen}");
    }
}

#[test]
fn everything_explained_is_drawn() {
    let Some(browser) = chromium::find() else { return };
    let report = recorded::explained();
    let page = explain(&report).page();
    let hops =
        |host: &ExplainedHost| host.observed.get::<Option<PathTrace>>().as_ref().map_or(0, |p| p.hops.len());
    let hops: usize = report.hosts.iter().map(hops).sum();
    for seen in chromium::look(&browser, &page, EXPLAIN) {
        assert!(seen["layers"].as_u64() > Some(5), "{seen}");
        assert_eq!(seen["hops"], hops, "{seen}");
        assert!(seen["limits"].as_u64() > Some(4), "{seen}");
        assert_eq!(seen["frames"], seen["framesSaid"], "a frame is drawn outside its graph: {seen}");
        assert!(seen["frames"][0].as_u64() > Some(20) && seen["frames"][1].as_u64() > Some(20), "{seen}");
        for own in seen["own"].as_array().expect("a share a graph") {
            let own = own.as_f64().expect("a share");
            assert!((0.97..=1.005).contains(&own), "coloured widths do not sum to all samples: {seen}");
        }
        assert_eq!(seen["tracks"], 4, "{seen}");
        assert!(seen["retransmits"].as_u64() > Some(0), "the path loses: {seen}");
        assert_eq!(seen["charts"], page.matches(" data-chart=\"").count(), "{seen}");
    }
}

#[test]
fn everything_studied_is_drawn() {
    let Some(browser) = chromium::find() else { return };
    let (report, record) = recorded::studied();
    for seen in chromium::look(&browser, &compare(&report, &record).page(), COMPARE) {
        assert_eq!(seen["flows"], json!(vec![4; 3]), "a flow is drawn outside its chart: {seen}");
        assert_eq!(seen["others"], json!(vec![2; 3]), "{seen}");
        assert_eq!(seen["lines"], json!(vec![2; 3]), "round trip and queue: {seen}");
        assert_eq!(seen["protocols"], 3, "{seen}");
        assert_eq!(seen["collisions"], json!([]), "names lie on each other");
        assert_eq!(seen["met"], 6, "three pairs, from both sides: {seen}");
        assert_eq!(seen["wide"], json!([]), "wider than the page");
    }
}

/// Tests that all other pages fit the screen and write nothing to the console.
#[test]
fn other_pages_are_drawn_as_well() {
    let Some(browser) = chromium::find() else { return };
    for kind in recorded::all().iter().filter(|kind| ["sizes", "flow", "stream"].contains(&kind.name)) {
        chromium::look(&browser, &kind.document().page(), "return {};");
    }
}

/// Leaves pictures in the target folder's `tmp/` for inspection.
#[test]
fn pictures_are_taken_and_nothing_is_said_on_the_console() {
    let Some(browser) = chromium::find() else { return };
    let ((summary, record), (report, study)) = (recorded::tuned(), recorded::studied());
    let explained = explain(&recorded::explained()).page();
    for (name, page, heights) in [
        ("tune", tune(&summary, &record, "last").page(), [7000, 12000]),
        ("explain", explained, [6400, 8000]),
        ("compare", compare(&report, &study).page(), [7600, 9500]),
    ] {
        chromium::pictures(&browser, (name, &page), heights, 50_000);
    }
}

#[test]
fn a_message_on_the_console_would_be_noticed() {
    let Some(browser) = chromium::find() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("bad.html");
    let (summary, record) = recorded::tuned();
    let bad = tune(&summary, &record, "last").page();
    let bad = bad.replace("</main>", "<img src=\"http://127.0.0.1:9/x.png\"></main>");
    std::fs::write(&file, bad).expect("a file in a folder of our own");
    let output = chromium::open(&browser, folder.path(), &file, &["--dump-dom"]);
    let said = chromium::console(&output).join("\n");
    assert!(said.contains("Content Security Policy"), "the policy let a request out: {said}");
}
