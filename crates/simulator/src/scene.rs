//! The scene of cottrell-2005: senders, windows and a path of 2004 that lost packets and carried the traffic of others.
//!
//! The paper does not print the path's rate below the hosts' 1 Gb/s, its queue, its losses and its other traffic. They
//! are free parameters within [`SCENE_2004`], and a [`SceneSetting`] is one choice of all of them. The paper fixes the
//! rest: the round trip, the hosts' windows of 16 MB (section II.B), the sender of Linux 2.4 (section II.B), four
//! flows.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{Contest, Study, StudyPath, StudyRun};
use landspeed_stats::{Random, TrafficMix, TrafficSpec};

use crate::features::{LossDetection, SenderFeatures};
use crate::link::LinkSpec;
use crate::loss::LossSpec;
use crate::scenario::{FlowSpec, SimulationError, SimulationScenario};
use crate::study::{OTHERS, run_of, study_scenario};

/// The round trip from SLAC to CERN (section IV.A).
const RTT: Nanos = Nanos::millis(164);
/// The window that iperf asked for (section II.B: 16384 KB).
const WINDOW: Bytes = Bytes::kib(16_384);
/// The first window of Linux 2.4 with segments of 1448 bytes (tcp_init_cwnd, RFC 2414).
const FIRST_WINDOW: u32 = 3;

/// A free parameter of the family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SceneRange {
    pub name: &'static str,
    pub unit: &'static str,
    pub least: f64,
    pub most: f64,
    /// True if the parameter is drawn evenly by its logarithm, false if by itself.
    pub is_log: bool,
}

const fn linear(name: &'static str, unit: &'static str, least: f64, most: f64) -> SceneRange {
    SceneRange { name, unit, least, most, is_log: false }
}

const fn logarithmic(name: &'static str, unit: &'static str, least: f64, most: f64) -> SceneRange {
    SceneRange { name, unit, least, most, is_log: true }
}

/// The rates that the path may have, each as likely: an OC-12 of the research networks, and the hosts' own.
pub const SCENE_RATES: [BitRate; 2] = [BitRate(622e6), BitRate(1e9)];

/// The family of scenes: the free parameters beside the rate, and their ranges. They were committed before any run.
pub const SCENE_2004: [SceneRange; 7] = [
    logarithmic("queue", "bandwidth-delay products", 0.01, 1.0),
    logarithmic("loss", "packets lost for one sent", 1e-8, 1e-5),
    logarithmic("burst of losses", "packets", 1.0, 100.0),
    linear("load of others", "of the rate", 0.0, 0.6),
    logarithmic("time on of a source", "s", 0.02, 20.0),
    logarithmic("time off over time on", "", 0.5, 8.0),
    linear("short flows' part of the load", "", 0.0, 0.5),
];

/// One setting of the family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SceneSetting {
    pub rate_bps: BitRate,
    /// The values of [`SCENE_2004`], in its order.
    pub values: [f64; SCENE_2004.len()],
}

/// The parts that can be left out of a scene, to see the effect of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SceneWithout {
    /// Nothing: the scene as it is.
    #[default]
    Nothing,
    /// The traffic of others.
    Traffic,
    /// Losses of the line. The queue still drops packets.
    Loss,
    /// Forward acknowledgement.
    Fack,
    /// Selective acknowledgements.
    Sack,
    /// All old features of the sender: it becomes today's sender.
    OldSender,
}

impl SceneSetting {
    /// Returns setting `number` of an even sample of the family: a Halton sequence (Numerische Mathematik 2, 1960),
    /// which fills the family evenly at any length, shifted by a random vector of `seed` (Cranley and Patterson, SIAM
    /// Journal on Numerical Analysis 13, 1976).
    pub fn draw(seed: u64, number: u32) -> SceneSetting {
        const PRIMES: [u32; 1 + SCENE_2004.len()] = [2, 3, 5, 7, 11, 13, 17, 19];
        let mut random = Random::new(seed);
        let even = PRIMES.map(|base| (radical_inverse(number + 1, base) + random.uniform()).fract());
        let mut values = [0.0; SCENE_2004.len()];
        for ((value, range), at) in values.iter_mut().zip(&SCENE_2004).zip(&even[1..]) {
            *value = range.at(*at);
        }
        SceneSetting { rate_bps: SCENE_RATES[(even[0] * SCENE_RATES.len() as f64) as usize], values }
    }

    /// Returns the setting that the scene `name` has in `landspeed compare`.
    ///
    /// # Errors
    /// Returns an error if the simulator knows no such scene.
    pub fn of(name: &str) -> Result<SceneSetting, SimulationError> {
        match name {
            "2004" => Ok(SceneSetting::middle()),
            _ => Err(SimulationError::Figure {
                what: "the scene".to_owned(),
                value: name.to_owned(),
                must: "2004",
            }),
        }
    }

    /// Returns the middle of the family, with the lower rate.
    pub fn middle() -> SceneSetting {
        SceneSetting { rate_bps: SCENE_RATES[0], values: SCENE_2004.map(|range| range.at(0.5)) }
    }

    /// Returns the path of the setting, with the topology `name`.
    pub fn path(&self, name: &str) -> StudyPath {
        let path = StudyPath {
            rate_bps: self.rate_bps,
            rtt_ns: RTT,
            mtu_bytes: 1500,
            window_bytes: Some(WINDOW),
            topology: name.to_owned(),
            ..StudyPath::default()
        };
        StudyPath { queue_bytes: Some(Bytes((path.bdp().0 as f64 * self.values[0]) as u64)), ..path }
    }

    /// Changes a scenario of a study to this scene. `seed` is that of its losses and of its other traffic.
    pub fn apply(&self, scenario: &mut SimulationScenario, seed: u64, without: SceneWithout) {
        let mut random = Random::new(seed);
        let seed = random.draw();
        if without != SceneWithout::Loss {
            let [_, share, mean_packets, ..] = self.values;
            scenario.link.loss = LossSpec::Bursts { share, mean_packets, seed };
        }
        if without != SceneWithout::Traffic {
            scenario.traffic = self.traffic(&scenario.link, &mut random);
        }
        let features = without.features();
        for flow in &mut scenario.flows {
            let is_old = features != SenderFeatures::default();
            let first = if is_old { FIRST_WINDOW } else { FlowSpec::default().initial_window };
            (flow.features, flow.initial_window) = (features, first);
        }
    }

    fn traffic(&self, link: &LinkSpec, random: &mut Random) -> Vec<TrafficSpec> {
        let [.., load, on_s, off_ratio, short] = self.values;
        let nanos = |seconds: f64| Nanos((seconds * 1e9) as u64);
        let load_bps = BitRate(link.rate_bps.0 * load);
        TrafficMix { load_bps, on_ns: nanos(on_s), off_ns: nanos(on_s * off_ratio), short }.sources(random)
    }

    /// Returns the scenario of one run of a contest in this scene.
    pub fn scenario(
        &self,
        study: &Study,
        contest: &Contest,
        repeat: u32,
        without: SceneWithout,
    ) -> SimulationScenario {
        let mut scenario = study_scenario(study, contest, repeat);
        let seed = Random::stream(study.seed ^ OTHERS, u64::from(repeat)).draw();
        self.apply(&mut scenario, seed, without);
        scenario
    }

    /// Simulates one run of a contest in this scene.
    ///
    /// # Errors
    /// Returns an error if the simulator cannot run a contestant.
    pub fn run(
        &self,
        study: &Study,
        contest: &Contest,
        repeat: u32,
        without: SceneWithout,
    ) -> Result<StudyRun, SimulationError> {
        run_of(study, contest, repeat, &self.scenario(study, contest, repeat, without))
    }
}

impl SceneWithout {
    fn features(self) -> SenderFeatures {
        let old = SenderFeatures::LINUX_2_4;
        match self {
            SceneWithout::Fack => SenderFeatures { detection: LossDetection::Head, ..old },
            SceneWithout::Sack => SenderFeatures { sack: false, ..old },
            SceneWithout::OldSender => SenderFeatures::default(),
            SceneWithout::Nothing | SceneWithout::Traffic | SceneWithout::Loss => old,
        }
    }
}

impl SceneRange {
    /// Returns the value at the share `at` of the range.
    fn at(&self, at: f64) -> f64 {
        match self.is_log {
            true => self.least * ((self.most / self.least).ln() * at).exp(),
            false => self.least + (self.most - self.least) * at,
        }
    }
}

/// Returns the digits of `number` in `base`, mirrored at the point: from 0 to 1.
fn radical_inverse(mut number: u32, base: u32) -> f64 {
    let (mut inverse, mut place) = (0.0, 1.0 / f64::from(base));
    while number > 0 {
        inverse += f64::from(number % base) * place;
        number /= base;
        place /= f64::from(base);
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate;

    #[test]
    fn settings_are_drawn_evenly_from_the_whole_family() {
        let all: Vec<_> = (0..300).map(|number| SceneSetting::draw(1, number)).collect();
        let fast = all.iter().filter(|setting| setting.rate_bps == SCENE_RATES[1]).count();
        assert!((149..=151).contains(&fast), "{fast}");
        for (n, range) in SCENE_2004.iter().enumerate() {
            // A tenth of the range holds 30 settings. At each of its ends, each of the (at most three) digits of 300 in
            // a base up to 11 misses by a quarter of the base at most, and each of the two in a larger base too.
            let place = |value: f64| match range.is_log {
                true => (value / range.least).ln() / (range.most / range.least).ln(),
                false => (value - range.least) / (range.most - range.least),
            };
            let mut tenths = [0_i32; 10];
            for setting in &all {
                tenths[(place(setting.values[n]) * 10.0) as usize] += 1;
            }
            assert!(tenths.iter().all(|count| (count - 30).abs() <= 19), "{}: {tenths:?}", range.name);
        }
        assert_eq!(SceneSetting::draw(1, 7), all[7]);
        assert_ne!(SceneSetting::draw(2, 7), all[7]);
    }

    fn scenario(without: SceneWithout) -> SimulationScenario {
        let setting = SceneSetting::middle();
        let mut study = Study::paper().scaled(0.01);
        study.path = setting.path("2004");
        let contest = Contest { contestants: vec!["reno".into()], ..Contest::default() };
        setting.scenario(&study, &contest, 0, without)
    }

    #[test]
    fn a_scene_has_its_load_without_the_parts_that_are_left_out() {
        let scene = scenario(SceneWithout::Nothing);
        let load: f64 = scene.traffic.iter().map(|spec| spec.mean_rate().0).sum();
        assert!((load / (622e6 * 0.3) - 1.0).abs() < 1e-3, "{load}");
        assert!(scene.flows.iter().all(|flow| flow.features == SenderFeatures::LINUX_2_4
            && flow.receive_window_bytes == Some(WINDOW)
            && flow.initial_window == 3));
        assert!(scenario(SceneWithout::Traffic).traffic.is_empty());
        assert_eq!(scenario(SceneWithout::Loss).link.loss, LossSpec::None);
        assert!(!scenario(SceneWithout::Sack).flows[0].features.sack);
        assert_eq!(scenario(SceneWithout::OldSender).flows[0].features, SenderFeatures::default());
        // Leaving a part out changes nothing else.
        assert_eq!(scenario(SceneWithout::Fack).traffic, scene.traffic);
        assert_eq!(scenario(SceneWithout::Loss).traffic, scene.traffic);
        assert_eq!(scenario(SceneWithout::Traffic).link.loss, scene.link.loss);
    }

    #[test]
    fn every_setting_can_be_simulated() {
        for number in 0..20 {
            let setting = SceneSetting::draw(3, number);
            let mut study = Study::paper().scaled(0.001);
            study.path = setting.path("2004");
            let contest = Contest { contestants: vec!["reno".into()], ..Contest::default() };
            let scenario = setting.scenario(&study, &contest, 1, SceneWithout::Nothing);
            let outcome = simulate(&scenario).unwrap();
            assert!(outcome.flows.iter().all(crate::FlowOutcome::is_whole));
        }
    }
}
