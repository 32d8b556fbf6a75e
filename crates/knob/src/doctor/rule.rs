//! The data that rules examine, and the rules themselves.

use std::collections::BTreeMap;

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{HostFacts, KnobState, LinkFacts};

use super::{SettingFinding, Severity};
use crate::device::is_virtual;
use crate::persist::shown;

pub(super) struct DoctorRule {
    /// Name of the knob that would remove the finding; empty if there is none.
    pub(super) knob: &'static str,
    pub(super) source: &'static str,
    check: RuleCheck,
}

impl DoctorRule {
    pub(super) const fn new(
        knob: &'static str,
        source: &'static str,
        check: fn(&DoctorInput<'_>, &DoctorRule) -> Vec<SettingFinding>,
    ) -> DoctorRule {
        DoctorRule { knob, source, check: RuleCheck::Look(check) }
    }

    /// Reports a switch that is off for all or some of its members.
    pub(super) const fn off(
        knob: &'static str,
        severity: Severity,
        source: &'static str,
        what: &'static str,
    ) -> DoctorRule {
        DoctorRule { knob, source, check: RuleCheck::Off(severity, what) }
    }

    pub(super) fn finding(
        &self,
        severity: Severity,
        now: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> SettingFinding {
        let (what, remedy) = (what.into(), remedy.into());
        SettingFinding { severity, knob: self.knob, now: shown(now), what, source: self.source, remedy }
    }

    pub(super) fn findings(&self, input: &DoctorInput<'_>) -> Vec<SettingFinding> {
        match self.check {
            RuleCheck::Off(severity, what) => off(input, self, severity, what),
            RuleCheck::Look(look) => look(input, self),
        }
    }
}

enum RuleCheck {
    Off(Severity, &'static str),
    /// Returns the findings; most rules have at most one.
    Look(fn(&DoctorInput<'_>, &DoctorRule) -> Vec<SettingFinding>),
}

pub(super) struct DoctorInput<'a> {
    pub(super) facts: &'a HostFacts,
    pub(super) link: Option<&'a LinkFacts>,
    states: BTreeMap<&'a str, &'a KnobState>,
}

/// Assumed speed, in Mb/s, of a link that reports none: that of guests and most servers today.
const ASSUMED_MBPS: u64 = 10_000;

/// The lowest speed, in Mb/s, at which a host needs careful settings: 10 Gb/s, ESnet fasterdata's limit.
const FAST_MBPS: u64 = 10_000;

impl<'a> DoctorInput<'a> {
    pub(super) fn new(facts: &'a HostFacts, link: Option<&'a LinkFacts>, states: &'a [KnobState]) -> Self {
        DoctorInput { facts, link, states: states.iter().map(|state| (state.knob.as_str(), state)).collect() }
    }

    fn state(&self, knob: &str) -> Option<&'a KnobState> {
        debug_assert!(crate::find(knob).is_ok(), "{knob} is no knob");
        self.states.get(knob).copied()
    }

    pub(super) fn value(&self, knob: &str) -> Option<&'a str> {
        self.state(knob)?.value.as_deref()
    }

    pub(super) fn number(&self, knob: &str) -> Option<u64> {
        self.value(knob)?.parse().ok()
    }

    pub(super) fn most(&self, knob: &str) -> Option<u64> {
        self.state(knob)?.most
    }

    pub(super) fn can_turn(&self, knob: &str) -> bool {
        self.state(knob).is_some_and(|state| state.skip.is_none())
    }

    /// Returns the reported or assumed speed of the link, or `None` without a link.
    pub(super) fn speed(&self) -> Option<BitRate> {
        let mbps = self.link?.speed_mbps.unwrap_or(ASSUMED_MBPS);
        Some(BitRate(mbps as f64 * 1e6))
    }

    /// Returns the speed as text: "10 Gb/s", "10 Gb/s (assumed)".
    pub(super) fn speed_text(&self) -> String {
        let stated = self.link.is_some_and(|link| link.speed_mbps.is_some());
        let speed = self.speed().unwrap_or_default();
        if stated { speed.to_string() } else { format!("{speed} (assumed: the link states no speed)") }
    }

    pub(super) fn fast(&self) -> bool {
        self.link.is_some_and(|link| link.speed_mbps.is_some_and(|mbps| mbps >= FAST_MBPS))
    }

    /// Returns true if the link is hardware, or a guest's view of it, rather than a virtual device of the kernel.
    pub(super) fn physical(&self) -> bool {
        self.link.is_some_and(|link| !is_virtual(&link.driver))
    }

    /// Returns the bytes in flight that fill the link at this RTT (the BDP).
    pub(super) fn in_flight(&self, rtt: Nanos) -> Option<Bytes> {
        Some(Bytes((self.speed()?.0 / 8.0 * rtt.as_secs_f64()) as u64))
    }
}

/// Reports a switch that is off for all or some of its members.
pub(super) fn off(
    input: &DoctorInput<'_>,
    rule: &DoctorRule,
    severity: Severity,
    what: &str,
) -> Vec<SettingFinding> {
    match input.value(rule.knob) {
        Some(value) if value.split(';').any(|member| member == "off") && input.can_turn(rule.knob) => {
            vec![rule.finding(severity, value, what, format!("set {} to on", rule.knob))]
        }
        _ => Vec::new(),
    }
}
