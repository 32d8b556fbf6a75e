//! The page of an explanation in a real browser: light, dark, and on a phone. The pictures stay in the
//! target folder's `tmp/`, to be looked at.

use landspeed_record::{CostProfile, ExplainedHost, PathTrace};
use landspeed_report::explain;

use crate::{chromium, recorded};

const MEASURES: &str = r#"
  const flames = all(doc, "svg[data-chart^=flame]"), cost = chart("cost"), course = chart("window");
  const collide = (row, first, second) => { const [a, b] = [row.querySelector(first), row.querySelector(second)];
    return a && b && box(a).right > box(b).left && box(a).bottom > box(b).top && box(b).bottom > box(a).top; };
  return {
    bars: inside(cost, all(cost, "rect.bar[data-class]")), barsSaid: Number(cost.dataset.points),
    frames: flames.map(f => inside(f, all(f, "svg.frame"))), framesSaid: flames.map(f => Number(f.dataset.points)),
    own: flames.map(f => all(f, "svg.frame rect.own").map(r => box(r).width).reduce((a, b) => a + b, 0) / box(f).width),
    hops: inside(chart("hops"), all(chart("hops"), ".p50 .percentile")),
    stairs: inside(chart("limits"), all(chart("limits"), ".tip, .step")), stairsSaid: Number(chart("limits").dataset.points),
    retransmits: all(course, ".retransmit").length, tracks: all(course, ".track").length,
    collisions: all(doc, ".rows .row").filter(row => collide(row, ".name", ".value")).map(row => row.textContent),
    charts: all(doc, "svg[data-chart]").length,
  };"#;

#[test]
fn everything_measured_is_drawn_in_light_dark_and_on_a_phone() {
    let Some(browser) = chromium::find() else { return };
    let report = recorded::explained();
    let page = explain(&report).page();
    let classes = |host: &ExplainedHost| {
        host.observed.get::<Option<CostProfile>>().as_ref().map_or(0, |c| c.classes.len())
    };
    let hops =
        |host: &ExplainedHost| host.observed.get::<Option<PathTrace>>().as_ref().map_or(0, |p| p.hops.len());
    let classes: usize = report.hosts.iter().map(classes).sum();
    let hops: usize = report.hosts.iter().map(hops).sum();
    for seen in chromium::look(&browser, &page, MEASURES) {
        assert_eq!((&seen["bars"], &seen["barsSaid"]), (&classes.into(), &classes.into()), "{seen}");
        assert_eq!(seen["frames"], seen["framesSaid"], "a frame is drawn outside its graph: {seen}");
        assert!(seen["frames"][0].as_u64() > Some(20) && seen["frames"][1].as_u64() > Some(20), "{seen}");
        for own in seen["own"].as_array().expect("a share a graph") {
            let own = own.as_f64().expect("a share");
            assert!((0.97..=1.005).contains(&own), "coloured widths do not sum to all samples: {seen}");
        }
        assert_eq!(seen["hops"], hops, "{seen}");
        assert_eq!(seen["stairs"], seen["stairsSaid"], "{seen}");
        assert_eq!(seen["tracks"], 4, "{seen}");
        assert!(seen["retransmits"].as_u64() > Some(0), "the path loses: {seen}");
        assert_eq!(seen["collisions"], serde_json::json!([]), "names run into values");
        assert_eq!(seen["charts"], page.matches(" data-chart=\"").count(), "{seen}");
    }
}

#[test]
fn pictures_are_taken_and_nothing_is_said_on_the_console() {
    let Some(browser) = chromium::find() else { return };
    for kind in
        recorded::all().iter().filter(|kind| ["explain", "sizes", "flow", "stream"].contains(&kind.name))
    {
        chromium::pictures(&browser, (kind.name, &kind.document().page()), [9000, 12500], 30_000);
    }
}
