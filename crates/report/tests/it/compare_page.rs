//! The page of a study in a real browser: light, dark, and on a phone. The pictures stay in the target folder's `tmp/`,
//! to be looked at.

use crate::{chromium, recorded};

const MEASURES: &str = r#"
  const courses = all(doc, "svg[data-chart^=course]"), trade = chart("trade-offs"), names = all(trade, ".series-name");
  const overlap = (a, b) => box(a).left < box(b).right && box(b).left < box(a).right && box(a).top < box(b).bottom - 3 && box(b).top < box(a).bottom - 3;
  return {
    flows: courses.map(svg => inside(svg, all(svg, "path.flow"))), others: courses.map(svg => all(svg, "path.other").length),
    lines: courses.map(svg => inside(svg, all(svg, "path.rtt, path.queue"))),
    protocols: inside(trade, all(trade, ".line")),
    collisions: names.flatMap((a, i) => names.slice(i + 1).filter(b => overlap(a, b)).map(b => a.textContent + " and " + b.textContent)),
    met: all(doc, ".matrix td[class]").filter(cell => cell.textContent).length,
    wide: all(doc, "main *").filter(e => !e.closest(".scroll, pre") && box(e).right > doc.documentElement.clientWidth).map(e => e.tagName + "." + e.className),
  };"#;

fn page() -> String {
    let (report, record) = recorded::studied();
    landspeed_report::compare(&report, &record).page()
}

#[test]
fn everything_studied_is_drawn_in_light_dark_and_on_a_phone() {
    let Some(browser) = chromium::find() else { return };
    let page = page();
    for seen in chromium::look(&browser, &page, MEASURES) {
        assert_eq!(seen["flows"], serde_json::json!(vec![4; 3]), "a flow is drawn outside its chart: {seen}");
        assert_eq!(seen["others"], serde_json::json!(vec![2; 3]), "{seen}");
        assert_eq!(seen["lines"], serde_json::json!(vec![2; 3]), "round trip and queue: {seen}");
        assert_eq!(seen["protocols"], 3, "{seen}");
        assert_eq!(seen["collisions"], serde_json::json!([]), "names lie on each other");
        assert_eq!(seen["met"], 6, "three pairs, from both sides: {seen}");
        assert_eq!(seen["wide"], serde_json::json!([]), "wider than the page");
    }
}

#[test]
fn pictures_are_taken_and_nothing_is_said_on_the_console() {
    let Some(browser) = chromium::find() else { return };
    chromium::pictures(&browser, ("compare", &page()), [7600, 9500], 50_000);
}
