//! Tests of `landspeed measure capacity` over a link with a known rate.

mod support;

use landspeed_record::{FigureValue, HOST_LIMITED, LIMITED_BY, MeasureReport};
use support::ours::TestHome;
use support::{needs_root, text};

fn figure(report: &MeasureReport, name: &str) -> Option<FigureValue> {
    let mut all = report.figures.iter().flat_map(|part| &part.figures);
    all.find(|figure| figure.name == name).map(|figure| figure.amount.clone())
}

#[test]
fn the_rate_of_a_link_is_found_or_a_host_is_named() {
    needs_root!();
    let place = TestHome::new();
    let args = ["measure", "capacity", "--json", "--trial", "250ms", "lab:wan:rate=50M,rtt=10ms,queue=10ms"];
    let output = place.landspeed(&args).output().expect("landspeed runs");
    let (out, err) = text(&output);
    assert!(output.status.success(), "{err}");
    let report: MeasureReport = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    let Some(FigureValue::Text(limited)) = figure(&report, LIMITED_BY) else { panic!("{report:?}") };
    // On a machine that runs other tests, a host may be the limit. The report must then name it, and no capacity.
    let is_of_host = limited.starts_with(HOST_LIMITED);
    assert_eq!(figure(&report, "capacity").is_none(), is_of_host, "{report:?}");
    let is_unfit = report.wan.as_ref().is_some_and(|wan| !wan.unfit.is_empty());
    match figure(&report, "in IP packets") {
        Some(FigureValue::RateBps(found)) => {
            assert!(is_unfit || (found.0 / 50e6 - 1.0).abs() <= 0.02, "{found}, limited by {limited}");
        }
        found => assert!(is_of_host, "{found:?}: {report:?}"),
    }
    assert!(report.streams[0].rate_bps.0 <= 50e6, "what arrived is no more than the link carries");
}

#[test]
fn a_stream_is_refused_with_the_remedy() {
    needs_root!();
    let place = TestHome::new();
    let output =
        place.landspeed(&["measure", "capacity", "--transport", "tcp"]).output().expect("landspeed runs");
    let (_, err) = text(&output);
    assert!(!output.status.success() && err.contains("capacity needs datagrams: use udp"), "{err}");
}
