//! The page of an explanation in a real browser: light, dark, and on a phone. The pictures stay in the
//! target folder's `tmp/`, to be looked at.

#[path = "support/chromium.rs"]
mod chromium;
#[path = "support/explained.rs"]
mod explained;

use std::path::Path;

use chromium::{DARK, LIGHT};
use landspeed_report::explain_html;

/// A page around the page: the page's own policy forbids every script, so one outside of it measures.
const HARNESS: &str = r#"<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<body style="margin:0"><iframe id="page" width="WIDTH" height="1200" style="border:0" srcdoc="PAGE"></iframe>
<pre id="result"></pre><script>
document.getElementById("page").onload = event => {
  const doc = event.target.contentDocument, all = (where, what) => [...where.querySelectorAll(what)];
  const box = element => element.getBoundingClientRect();
  const seen = (svg, marks) => { const b = box(svg); return marks.map(box).filter(m =>
    m.width > .3 && m.left >= b.left - 1 && m.right <= b.right + 1 && m.top >= b.top - 1 && m.bottom <= b.bottom + 1).length; };
  const chart = name => doc.querySelector(`svg[data-chart="${name}"]`);
  const flames = all(doc, "svg[data-chart^=flame]");
  const collide = (row, first, second) => { const [a, b] = [row.querySelector(first), row.querySelector(second)];
    return a && b && box(a).right > box(b).left && box(a).bottom > box(b).top && box(b).bottom > box(a).top; };
  document.getElementById("result").textContent = JSON.stringify({
    bars: seen(chart("cost"), all(chart("cost"), "rect.bar[data-class]")), barsSaid: Number(chart("cost").dataset.points),
    frames: flames.map(f => seen(f, all(f, "svg.frame"))), framesSaid: flames.map(f => Number(f.dataset.points)),
    own: flames.map(f => all(f, "svg.frame rect.own").map(r => box(r).width).reduce((a, b) => a + b, 0) / box(f).width),
    hops: seen(chart("hops"), all(chart("hops"), ".p50 .percentile")), stairs: seen(chart("limits"), all(chart("limits"), ".tip")),
    retransmits: all(chart("window"), ".retransmit").length, tracks: all(chart("window"), ".track").length,
    collisions: all(doc, ".rows .row").filter(row => collide(row, ".name", ".value")).map(row => row.textContent),
    width: doc.documentElement.scrollWidth, charts: all(doc, "svg[data-chart]").length,
    paper: doc.defaultView.getComputedStyle(doc.body).backgroundColor,
  });
};
</script>"#;

#[test]
fn everything_measured_is_drawn_in_light_dark_and_on_a_phone() {
    let Some(browser) = chromium::find() else { return };
    let report = explained::sample();
    let page = explain_html(&report);
    let classes: usize =
        report.hosts.iter().map(|h| h.observed.cost.as_ref().map_or(0, |c| c.classes.len())).sum();
    let hops: usize = report.hosts.iter().map(|h| h.observed.path.as_ref().map_or(0, |p| p.hops.len())).sum();
    for (width, scheme, paper) in chromium::CASES {
        let seen = chromium::measure(&browser, (HARNESS, &page), width, scheme);
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
        assert_eq!(seen["paper"], paper, "{seen}");
        assert!(seen["width"].as_u64() <= Some(u64::from(width)), "the page scrolls sideways: {seen}");
    }
}

#[test]
fn pictures_are_taken_and_nothing_is_said_on_the_console() {
    let Some(browser) = chromium::find() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pages =
        [("full", explain_html(&explained::sample())), ("least", explain_html(&explained::minimal()))];
    let mut pictures = Vec::new();
    for (page, source) in pages {
        let file = folder.path().join(format!("{page}.html"));
        std::fs::write(&file, source).expect("a file in a folder of our own");
        for (name, size, scheme) in
            [("light", "1100,8200", LIGHT), ("dark", "1100,8200", DARK), ("phone", "500,12500", LIGHT)]
        {
            let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("explain-{page}-{name}.png"));
            let (shot, size) =
                (format!("--screenshot={}", picture.display()), format!("--window-size={size}"));
            let output = chromium::open(&browser, folder.path(), &file, &[scheme, &size, &shot]);
            assert_eq!(chromium::console(&output), Vec::<String>::new(), "{page} {name}");
            pictures.push(std::fs::read(&picture).expect("the picture"));
        }
    }
    assert!(pictures.iter().all(|png| png.starts_with(b"\x89PNG") && png.len() > 30_000));
    assert_ne!(pictures[0], pictures[1], "dark looks like light");
}
