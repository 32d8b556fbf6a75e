//! The page of an explanation in a real browser: light, dark, and on a phone. The pictures stay in the
//! target folder's `tmp/`, to be looked at.

#[path = "support/chromium.rs"]
mod chromium;
#[path = "support/explained.rs"]
mod explained;

use landspeed_record::{CostProfile, PathTrace};
use landspeed_report::explain_html;

const MEASURES: &str = r#"
  const flames = all(doc, "svg[data-chart^=flame]"), cost = chart("cost"), course = chart("window");
  const collide = (row, first, second) => { const [a, b] = [row.querySelector(first), row.querySelector(second)];
    return a && b && box(a).right > box(b).left && box(a).bottom > box(b).top && box(b).bottom > box(a).top; };
  return {
    bars: inside(cost, all(cost, "rect.bar[data-class]")), barsSaid: Number(cost.dataset.points),
    frames: flames.map(f => inside(f, all(f, "svg.frame"))), framesSaid: flames.map(f => Number(f.dataset.points)),
    own: flames.map(f => all(f, "svg.frame rect.own").map(r => box(r).width).reduce((a, b) => a + b, 0) / box(f).width),
    hops: inside(chart("hops"), all(chart("hops"), ".p50 .percentile")),
    stairs: inside(chart("limits"), all(chart("limits"), ".tip")),
    retransmits: all(course, ".retransmit").length, tracks: all(course, ".track").length,
    collisions: all(doc, ".rows .row").filter(row => collide(row, ".name", ".value")).map(row => row.textContent),
    charts: all(doc, "svg[data-chart]").length,
  };"#;

#[test]
fn everything_measured_is_drawn_in_light_dark_and_on_a_phone() {
    let Some(browser) = chromium::find() else { return };
    let report = explained::sample();
    let page = explain_html(&report);
    let classes: usize = report
        .hosts
        .iter()
        .map(|h| h.observed.get::<Option<CostProfile>>().as_ref().map_or(0, |c| c.classes.len()))
        .sum();
    let hops: usize = report
        .hosts
        .iter()
        .map(|h| h.observed.get::<Option<PathTrace>>().as_ref().map_or(0, |p| p.hops.len()))
        .sum();
    for seen in chromium::look(&browser, &page, MEASURES) {
        assert_eq!((&seen["bars"], &seen["barsSaid"]), (&classes.into(), &classes.into()), "{seen}");
        assert_eq!(seen["frames"], seen["framesSaid"], "a frame is drawn outside its graph: {seen}");
        assert!(seen["frames"][0].as_u64() > Some(20) && seen["frames"][1].as_u64() > Some(20), "{seen}");
        for own in seen["own"].as_array().expect("a share a graph") {
            let own = own.as_f64().expect("a share");
            assert!((0.97..=1.005).contains(&own), "coloured widths do not sum to all samples: {seen}");
        }
        assert_eq!(seen["hops"], hops, "{seen}");
        assert_eq!(seen["stairs"], report.staircase.len(), "{seen}");
        assert_eq!((&seen["tracks"], &seen["retransmits"]), (&4.into(), &2.into()), "{seen}");
        assert_eq!(seen["collisions"], serde_json::json!([]), "names run into values");
        assert_eq!(seen["charts"], 8, "{seen}");
    }
}

#[test]
fn pictures_are_taken_and_nothing_is_said_on_the_console() {
    let Some(browser) = chromium::find() else { return };
    for (name, report) in [("explain-full", explained::sample()), ("explain-least", explained::minimal())] {
        chromium::pictures(&browser, (name, &explain_html(&report)), [8200, 12500], 30_000);
    }
}
