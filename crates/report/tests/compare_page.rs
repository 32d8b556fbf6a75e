//! The page of a study in a real browser: light, dark, and on a phone. The pictures stay in the target folder's `tmp/`,
//! to be looked at.

#[path = "support/chromium.rs"]
mod chromium;
#[path = "support/studied.rs"]
mod studied;

use std::path::Path;

use chromium::{DARK, LIGHT};
use landspeed_analysis::compare;
use landspeed_record::Record;
use landspeed_report::compare_html;

/// A page around the page: the page's own policy forbids every script, so one outside of it measures.
const HARNESS: &str = r#"<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<body style="margin:0"><iframe id="page" width="WIDTH" height="1200" style="border:0" srcdoc="PAGE"></iframe>
<pre id="result"></pre><script>
document.getElementById("page").onload = event => {
  const doc = event.target.contentDocument, all = (where, what) => [...where.querySelectorAll(what)];
  const box = element => element.getBoundingClientRect();
  const inside = (svg, marks) => { const b = box(svg); return marks.map(box).filter(m =>
    m.width > .3 && m.left >= b.left - 1 && m.right <= b.right + 1 && m.top >= b.top - 1 && m.bottom <= b.bottom + 1).length; };
  const courses = all(doc, "svg[data-chart^=course]"), trade = doc.querySelector('svg[data-chart="trade-offs"]');
  const overlap = (a, b) => box(a).left < box(b).right && box(b).left < box(a).right && box(a).top < box(b).bottom - 3 && box(b).top < box(a).bottom - 3;
  const names = all(trade, ".series-name");
  document.getElementById("result").textContent = JSON.stringify({
    flows: courses.map(svg => inside(svg, all(svg, "path.flow"))), others: courses.map(svg => all(svg, "path.other").length),
    lines: courses.map(svg => inside(svg, all(svg, "path.rtt, path.queue"))),
    protocols: inside(trade, all(trade, ".line")), names: names.length,
    collisions: names.flatMap((a, i) => names.slice(i + 1).filter(b => overlap(a, b)).map(b => a.textContent + " and " + b.textContent)),
    met: all(doc, ".matrix td[class]").filter(cell => cell.textContent).length,
    wide: all(doc, "main *").filter(e => !e.closest(".scroll") && box(e).right > doc.documentElement.clientWidth).map(e => e.tagName + "." + e.className),
    width: doc.documentElement.scrollWidth, height: doc.documentElement.scrollHeight,
    paper: doc.defaultView.getComputedStyle(doc.body).backgroundColor,
  });
};
</script>"#;

fn page(record: &Record) -> String {
    compare_html(&compare(record, "/data/study.jsonl").expect("a study"), record)
}

#[test]
fn everything_studied_is_drawn_in_light_dark_and_on_a_phone() {
    let Some(browser) = chromium::find() else { return };
    let page = page(&studied::record());
    for (width, scheme, paper) in chromium::CASES {
        let seen = chromium::measure(&browser, (HARNESS, &page), width, scheme);
        assert_eq!(
            seen["flows"],
            serde_json::json!(vec![4; 10]),
            "a flow is drawn outside its chart: {seen}"
        );
        // The second repeat of Reno's does not count.
        assert_eq!(seen["others"], serde_json::json!([1, 2, 2, 2, 2, 2, 2, 2, 2, 2]), "{seen}");
        assert_eq!(seen["lines"], serde_json::json!(vec![2; 10]), "round trip and queue: {seen}");
        assert_eq!(seen["protocols"], 10, "{seen}");
        assert_eq!(seen["collisions"], serde_json::json!([]), "names lie on each other");
        assert_eq!(seen["met"], 10, "five pairs, from both sides: {seen}");
        assert_eq!(seen["paper"], paper, "{seen}");
        assert!(seen["width"].as_u64() <= Some(u64::from(width)), "the page scrolls sideways: {seen}");
    }
}

#[test]
fn pictures_are_taken_and_nothing_is_said_on_the_console() {
    let Some(browser) = chromium::find() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut pictures = Vec::new();
    for (name, source) in [("scaled", page(&studied::record())), ("full", page(&studied::full_size()))] {
        let file = folder.path().join(format!("{name}.html"));
        std::fs::write(&file, source).expect("a file in a folder of our own");
        for (how, size, scheme) in
            [("light", "1100,7600", LIGHT), ("dark", "1100,7600", DARK), ("phone", "500,9500", LIGHT)]
        {
            let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("compare-{name}-{how}.png"));
            let shot = format!("--screenshot={}", picture.display());
            let size = format!("--window-size={size}");
            let output = chromium::open(&browser, folder.path(), &file, &[scheme, &size, &shot]);
            assert_eq!(chromium::console(&output), Vec::<String>::new(), "{name} {how}");
            pictures.push(std::fs::read(&picture).expect("the picture"));
        }
    }
    assert!(pictures.iter().all(|png| png.starts_with(b"\x89PNG") && png.len() > 50_000));
    assert_ne!(pictures[0], pictures[1], "dark looks like light");
}
