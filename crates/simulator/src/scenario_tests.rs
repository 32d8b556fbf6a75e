//! Tests of scenarios that are refused.

use landspeed_record::units::BitRate;
use landspeed_record::{Contest, Study};

use super::*;
use crate::{DurationLaw, LossSpec, TrafficSource, study_scenario};

fn study() -> SimulationScenario {
    study_scenario(&Study::paper(), &Contest { contestants: vec!["reno".into()], ..Contest::default() }, 0)
}

/// Returns a source that would never be on.
fn silent() -> TrafficSpec {
    let never = DurationLaw { mean_ns: Nanos(0), tail: None };
    let source = TrafficSource::OnOff { rate_bps: BitRate(1e6), on: never, off: never };
    TrafficSpec { source, packet_bytes: 1500, seed: 1 }
}

#[test]
fn an_impossible_scenario_is_refused_with_the_reason() {
    let wrong = |change: fn(&mut SimulationScenario)| {
        let mut scenario = study();
        change(&mut scenario);
        scenario.check().unwrap_err().to_string()
    };
    assert_eq!(study().check(), Ok(()));
    assert_eq!((simulates("udt"), simulates("default+transport=udt")), (Ok(()), Ok(())));
    assert!(wrong(|s| s.flows[2].contestant = "renault".into()).contains("flow 2"));
    assert!(wrong(|s| s.flows[0].contestant = "quic".into()).contains("the simulator has no quic"));
    assert!(wrong(|s| s.flows[0].contestant = "reno+nodelay=on".into()).contains("udt-congestion alone"));
    assert_eq!(simulates("udt+udt-congestion=daimd-steady"), Ok(()));
    assert!(wrong(|s| s.flows[0].contestant = "udt+udt-congestion=dime".into()).contains("daimd-freeze"));
    assert!(wrong(|s| s.flows[0].contestant = "default".into()).contains("no host"));
    assert!(wrong(|s| s.link.rate_bps = BitRate(0.0)).contains("rate of the line"));
    assert!(wrong(|s| s.link.rate_bps = BitRate(f64::NAN)).contains("rate of the line"));
    assert!(wrong(|s| s.link.loss = LossSpec::Chance { share: 1.5, seed: 0 }).contains("loss of the line"));
    assert!(wrong(|s| s.traffic = vec![silent()]).contains("source 0"));
    assert!(wrong(|s| s.sample_ns = Nanos(0)).contains("between samples"));
    assert!(wrong(|s| s.flows[1].mtu_bytes = 52).contains("MTU of flow 1"));
    let small =
        |s: &mut SimulationScenario| (s.flows[1].contestant, s.flows[1].mtu_bytes) = ("udt".into(), 75);
    assert!(wrong(small).contains("handshake"));
}
