//! Healthy paths, each with another limit.

use landspeed_lab::faults::{FaultScenario, Traffic};
use landspeed_record::units::{BitRate, Bytes, Nanos};

pub(super) struct HealthyPath {
    pub(super) name: &'static str,
    make: fn(&mut FaultScenario),
}

impl HealthyPath {
    pub(super) fn scenario(&self) -> FaultScenario {
        let mut scenario = FaultScenario::default();
        (self.make)(&mut scenario);
        scenario
    }
}

pub(super) const CLEAN: &[HealthyPath] = &[
    HealthyPath { name: "two hosts", make: |_| {} },
    HealthyPath { name: "MTU 9000, large buffers", make: tuned },
    HealthyPath { name: "200M, 20 ms", make: |scenario| far(scenario, "20ms") },
    HealthyPath { name: "200M, 20 ms, BBR", make: by_bbr },
    HealthyPath { name: "200M, 1 ms", make: |scenario| far(scenario, "1ms") },
    HealthyPath { name: "a switch of four hosts", make: |scenario| scenario.switch = Some(4) },
    HealthyPath { name: "requests and replies", make: |scenario| scenario.traffic = requests() },
    HealthyPath { name: "datagrams, 100 Mb/s", make: |scenario| scenario.traffic = datagrams() },
];

fn requests() -> Traffic {
    Traffic::Requests { part: Bytes(100), parts: 1, rest_every: u32::MAX }
}

fn datagrams() -> Traffic {
    Traffic::Datagrams {
        size: Bytes(1400),
        rate: Some(BitRate(100e6)),
        receive_buffer: None,
        read_pause: Nanos(0),
        reads_between: 1,
    }
}

fn tuned(scenario: &mut FaultScenario) {
    for host in [&mut scenario.a, &mut scenario.b] {
        for (knob, value) in [
            ("mtu", "9000"),
            ("tcp-rmem", "4096 1048576 67108864"),
            ("tcp-wmem", "4096 1048576 67108864"),
            ("txqueuelen", "10000"),
        ] {
            host.insert(knob.into(), value.into());
        }
    }
}

fn by_bbr(scenario: &mut FaultScenario) {
    far(scenario, "20ms");
    if let Traffic::Stream { control, .. } = &mut scenario.traffic {
        *control = "bbr".to_owned();
    }
}

fn far(scenario: &mut FaultScenario, rtt: &str) {
    let link = [("rate", "200M"), ("rtt", rtt), ("queue", "1bdp")];
    scenario.wan = Some(link.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_different_paths_that_can_be_made() {
        let said: std::collections::BTreeSet<String> =
            CLEAN.iter().map(|clean| format!("{:?}", clean.scenario())).collect();
        assert_eq!(said.len(), CLEAN.len());
        for clean in CLEAN {
            let scenario = clean.scenario();
            assert!(landspeed_lab::topology::find(&[scenario.topology()]).is_ok(), "{}", clean.name);
            for (name, value) in scenario.a.iter().chain(&scenario.b) {
                assert_eq!(landspeed_knob::check(name, value).map_err(|e| e.to_string()), Ok(()));
            }
        }
    }
}
