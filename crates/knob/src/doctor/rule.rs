//! The rules of the doctor, and the data that they examine.

use std::collections::BTreeMap;

use landspeed_record::factor::SystemSetting;
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{HostFacts, KnobState, LinkFacts};

use super::finding::{SettingFinding, Severity};
use super::path::DoctorPath;
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

    /// Returns a rule that reports the on/off knob `knob` if it is off. A knob with several members (queues, features,
    /// processors) counts as off if any of them is. A knob that cannot be written is not reported.
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
        let now = shown(now);
        SettingFinding { severity, knob: self.knob, now, what, source: self.source, remedy, command: None }
    }

    pub(super) fn findings(&self, input: &DoctorInput<'_>) -> Vec<SettingFinding> {
        match self.check {
            RuleCheck::Off(severity, what) => off(input, self, severity, what),
            RuleCheck::Look(look) => look(input, self),
        }
    }
}

impl SettingFinding {
    /// Adds the shell command that sets the rule's knob to `value`.
    pub(super) fn set_to(self, input: &DoctorInput<'_>, value: &str) -> SettingFinding {
        SettingFinding { command: command(self.knob, input, value), ..self }
    }
}

/// Returns the shell command that sets `knob` to `value`, for a knob of a link on the link of `input`. Returns `None`
/// if there is no such command, or if the link's name has a character that a shell could interpret.
fn command(knob: &str, input: &DoctorInput<'_>, value: &str) -> Option<String> {
    let system = &crate::find(knob).ok()?.factor.system;
    let device = input.link.map_or("lo", |link| link.name.as_str());
    // The link's name becomes a word of the command, and the kernel allows nearly any character in it.
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let [_, set] = system.commands(device).filter(|_| device.chars().all(is_word))?;
    let value = match (system, value) {
        (SystemSetting::Sysctl(_), "on") => "1".to_owned(),
        (SystemSetting::Sysctl(_), "off") => "0".to_owned(),
        (_, value) if value.contains(' ') => format!("\"{value}\""),
        (_, value) => value.to_owned(),
    };
    Some(set.replace("VALUE", &value))
}

enum RuleCheck {
    Off(Severity, &'static str),
    /// A function that returns the rule's findings, usually none or one.
    Look(fn(&DoctorInput<'_>, &DoctorRule) -> Vec<SettingFinding>),
}

pub(super) struct DoctorInput<'a> {
    pub(super) facts: &'a HostFacts,
    pub(super) link: Option<&'a LinkFacts>,
    states: BTreeMap<&'a str, &'a KnobState>,
    path: DoctorPath,
}

/// Assumed speed, in Mb/s, of a link that reports none. Guests and most servers today have this speed.
const ASSUMED_MBPS: u64 = 10_000;

/// The lowest speed, in Mb/s, of a fast link. ESnet fasterdata gives tuning advice for hosts of 10 Gb/s and more.
const FAST_MBPS: u64 = 10_000;

impl<'a> DoctorInput<'a> {
    pub(super) fn new(
        facts: &'a HostFacts,
        link: Option<&'a LinkFacts>,
        states: &'a [KnobState],
        path: DoctorPath,
    ) -> Self {
        let states = states.iter().map(|state| (state.knob.as_str(), state)).collect();
        DoctorInput { facts, link, states, path }
    }

    /// Returns the RTT of the path; `None` if it is not known.
    pub(super) fn rtt(&self) -> Option<Nanos> {
        self.path.rtt
    }

    /// Returns true if the rate of the path or the speed of the link is known. Otherwise [`DoctorInput::speed`] returns
    /// an assumed speed.
    pub(super) fn speed_is_known(&self) -> bool {
        self.path.rate.is_some() || self.link.is_some_and(|link| link.speed_mbps.is_some())
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

    /// Returns the rate of the path if it is known, and otherwise the reported or assumed speed of the link. Returns
    /// `None` if there is no link either.
    pub(super) fn speed(&self) -> Option<BitRate> {
        if let Some(rate) = self.path.rate {
            return Some(rate);
        }
        let mbps = self.link?.speed_mbps.unwrap_or(ASSUMED_MBPS);
        Some(BitRate(mbps as f64 * 1e6))
    }

    /// Returns the speed as text: "10 Gb/s", or "10 Gb/s (assumed: the link states no speed)".
    pub(super) fn speed_text(&self) -> String {
        let speed = self.speed().unwrap_or_default();
        if self.speed_is_known() {
            speed.to_string()
        } else {
            format!("{speed} (assumed: the link states no speed)")
        }
    }

    pub(super) fn fast(&self) -> bool {
        self.speed_is_known() && self.speed().is_some_and(|speed| speed.0 >= FAST_MBPS as f64 * 1e6)
    }

    /// Returns true if the link is hardware or the network device of a virtual machine. Returns false for a virtual
    /// device of the kernel, such as a bridge, and without a link.
    pub(super) fn physical(&self) -> bool {
        self.link.is_some_and(|link| !is_virtual(&link.driver))
    }

    /// Returns the BDP: the bytes in flight that fill the path or the link at this RTT. Returns `None` if there is no
    /// speed.
    pub(super) fn in_flight(&self, rtt: Nanos) -> Option<Bytes> {
        Some(Bytes((self.speed()?.0 / 8.0 * rtt.as_secs_f64()) as u64))
    }
}

/// Reports the rule's on/off knob if it is off and can be written. A knob with several members (queues, features,
/// processors) counts as off if any of them is.
pub(super) fn off(
    input: &DoctorInput<'_>,
    rule: &DoctorRule,
    severity: Severity,
    what: &str,
) -> Vec<SettingFinding> {
    match input.value(rule.knob) {
        Some(value) if value.split(';').any(|member| member == "off") && input.can_turn(rule.knob) => {
            let remedy = format!("set {} to on", rule.knob);
            vec![rule.finding(severity, value, what, remedy).set_to(input, "on")]
        }
        _ => Vec::new(),
    }
}
