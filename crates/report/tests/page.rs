//! The page in a real browser: light, dark, and on a phone. The pictures stay in the target folder's
//! `tmp/`, to be looked at.

#[path = "support/chromium.rs"]
mod chromium;
#[path = "support/sample.rs"]
mod sample;

use std::path::Path;

use chromium::{DARK, LIGHT};
use landspeed_report::html;

/// A page around the page: the page's own policy forbids every script, so one outside of it measures.
const HARNESS: &str = r#"<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<body style="margin:0"><iframe id="page" width="WIDTH" height="1200" style="border:0" srcdoc="PAGE"></iframe>
<pre id="result"></pre><script>
document.getElementById("page").onload = event => {
  const doc = event.target.contentDocument, ladder = doc.querySelector("svg[data-chart=ladder]");
  const marks = [...ladder.querySelectorAll("g.point .mark")].map(mark => mark.getBoundingClientRect());
  const box = ladder.getBoundingClientRect();
  document.getElementById("result").textContent = JSON.stringify({
    points: ladder.querySelectorAll("g.point[data-step]").length, said: Number(ladder.dataset.points),
    inside: marks.filter(m => m.width > 2 && m.left >= box.left && m.right <= box.right + 1 && m.bottom <= box.bottom).length,
    across: new Set(marks.map(m => Math.round(m.left))).size, width: doc.documentElement.scrollWidth,
    charts: doc.querySelectorAll("svg[data-chart]").length, paper: doc.defaultView.getComputedStyle(doc.body).backgroundColor,
  });
};
</script>"#;

fn page() -> (String, usize) {
    let (summary, record) = sample::sample();
    let measured = summary.steps.iter().filter(|step| step.rate.is_some()).count();
    (html::page(&summary, &record), measured)
}

#[test]
fn every_measured_step_is_a_point_in_light_dark_and_on_a_phone() {
    let Some(browser) = chromium::find() else { return };
    let (page, measured) = page();
    for (width, scheme, paper) in chromium::CASES {
        let seen = chromium::measure(&browser, (HARNESS, &page), width, scheme);
        assert_eq!(seen["points"], measured, "{seen}");
        assert_eq!(seen["said"], measured, "{seen}");
        assert_eq!(seen["inside"], measured, "a mark is drawn outside its chart: {seen}");
        assert!(seen["across"].as_u64() > Some(10), "the marks do not lie at their ratios: {seen}");
        assert_eq!(seen["charts"], 6, "{seen}");
        assert_eq!(seen["paper"], paper, "{seen}");
        assert!(seen["width"].as_u64() <= Some(u64::from(width)), "the page scrolls sideways: {seen}");
    }
}

#[test]
fn pictures_are_taken_and_nothing_is_said_on_the_console() {
    let Some(browser) = chromium::find() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("page.html");
    std::fs::write(&file, page().0).expect("a file in a folder of our own");
    let mut pictures = Vec::new();
    for (name, size, scheme) in
        [("light", "1100,7000", LIGHT), ("dark", "1100,7000", DARK), ("phone", "500,12000", LIGHT)]
    {
        let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{name}.png"));
        let (shot, size) = (format!("--screenshot={}", picture.display()), format!("--window-size={size}"));
        let output = chromium::open(&browser, folder.path(), &file, &[scheme, &size, &shot]);
        assert_eq!(chromium::console(&output), Vec::<String>::new(), "{name}");
        pictures.push(std::fs::read(&picture).expect("the picture"));
    }
    assert!(pictures.iter().all(|png| png.starts_with(b"\x89PNG") && png.len() > 50_000));
    assert_ne!(pictures[0], pictures[1], "dark looks like light");
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
