//! The page in a real browser: light, dark, and on a phone. The pictures stay in the target folder's
//! `tmp/`, to be looked at.

use landspeed_report::tune;

use crate::{chromium, recorded};

const MEASURES: &str = r#"
  const ladder = chart("ladder"), marks = all(ladder, "g.point .mark");
  return {
    points: all(ladder, "g.point[data-step]").length, said: Number(ladder.dataset.points),
    inside: inside(ladder, marks.filter(mark => box(mark).width > 2)),
    across: new Set(marks.map(mark => Math.round(box(mark).left))).size, charts: all(doc, "svg[data-chart]").length,
  };"#;

fn page() -> (String, usize) {
    let (summary, record) = recorded::tuned();
    let measured = summary.steps.iter().filter(|step| step.rate.is_some()).count();
    (tune(&summary, &record).page(), measured)
}

#[test]
fn every_measured_step_is_a_point_in_light_dark_and_on_a_phone() {
    let Some(browser) = chromium::find() else { return };
    let (page, measured) = page();
    for seen in chromium::look(&browser, &page, MEASURES) {
        assert_eq!(seen["points"], measured, "{seen}");
        assert_eq!(seen["said"], measured, "{seen}");
        assert_eq!(seen["inside"], measured, "a mark is drawn outside its chart: {seen}");
        assert!(seen["across"].as_u64() > Some(1), "the marks do not lie at their ratios: {seen}");
        assert_eq!(seen["charts"], 6, "{seen}");
    }
}

#[test]
fn pictures_are_taken_and_nothing_is_said_on_the_console() {
    let Some(browser) = chromium::find() else { return };
    chromium::pictures(&browser, ("page", &page().0), [7000, 12000], 50_000);
}

#[test]
fn a_message_on_the_console_would_be_noticed() {
    let Some(browser) = chromium::find() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("bad.html");
    let bad = page().0.replace("</main>", "<img src=\"http://127.0.0.1:9/x.png\"></main>");
    std::fs::write(&file, bad).expect("a file in a folder of our own");
    let output = chromium::open(&browser, folder.path(), &file, &["--dump-dom"]);
    let said = chromium::console(&output).join("\n");
    assert!(said.contains("Content Security Policy"), "the policy let a request out: {said}");
}
