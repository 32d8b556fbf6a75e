//! Probing: reads the values of a host's knobs, and checks which of them can be changed, without changing any.

use landspeed_record::KnobState;

use crate::journal::in_initial_netns;
use crate::table::all;
use crate::{FactorScope, Knob, KnobLimits, KnobTarget};

/// Number of CAP_NET_ADMIN's bit in /proc/self/status (linux/capability.h).
const CAP_NET_ADMIN: u32 = 12;

/// The reason in [`KnobState::skip`] for a knob that the agent cannot change because it lacks CAP_NET_ADMIN.
pub const NOT_ROOT: &str = "not root (no CAP_NET_ADMIN): run landspeed with sudo";

/// Returns the state of every knob of the table at `target`: its value, its limits and, if it cannot be changed there,
/// the reason.
pub fn probe(target: &KnobTarget) -> Vec<KnobState> {
    all().map(|knob| knob.probe(target)).collect()
}

/// Returns the values of the knobs at `target` that decide figures. It reads nothing else, neither limits nor what can be changed,
/// and takes a small part of the processor time of [`probe`]. A value may be outside the knob's domain, as the MTU of loopback is.
pub fn conditions(target: &KnobTarget) -> Vec<KnobState> {
    let state = |knob: &Knob| KnobState {
        knob: knob.factor.name.into(),
        value: knob.setting.read(target).ok(),
        ..KnobState::default()
    };
    all().filter(|knob| knob.factor.decides.is_some()).map(state).collect()
}

impl Knob {
    /// Returns the knob's value and limits, and the reason if it cannot be changed here.
    pub fn probe(&self, target: &KnobTarget) -> KnobState {
        let mut state = KnobState { knob: self.factor.name.into(), ..KnobState::default() };
        match self.setting.read(target) {
            Ok(value) => match self.factor.domain.check(&value) {
                Ok(()) => state.value = Some(value),
                Err(expected) => state.skip = Some(outside(&value, &expected)),
            },
            Err(error) => state.skip = Some(error.to_string()),
        }
        if let Ok(limits) = self.setting.limits(target) {
            let KnobLimits { most, choices, members } = limits;
            (state.most, state.choices, state.members) = (most, choices, members);
        }
        if self.factor.scope == FactorScope::Host && !in_initial_netns() {
            state.skip = Some("it belongs to the whole machine, and this is a namespace of it".into());
        }
        if state.skip.is_none() {
            state.skip = match is_net_admin() {
                true => self.setting.can_write(target).err().map(|error| error.to_string()),
                false => Some(NOT_ROOT.into()),
            };
        }
        state
    }
}

fn outside(value: &str, expected: &str) -> String {
    let shown: String = value.chars().take(64).collect();
    format!(
        "it reads '{}', which could not be put back exactly (expected {expected})",
        shown.escape_default()
    )
}

fn is_net_admin() -> bool {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << CAP_NET_ADMIN) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_the_values_that_a_probe_finds() {
        let loopback = KnobTarget { device: "lo".to_owned() };
        let found = conditions(&loopback);
        let is_found = |name: &str| found.iter().any(|state| state.knob == name && state.value.is_some());
        assert!(is_found("timestamps") && is_found("mtu") && is_found("tso"), "{found:?}");
        for probed in probe(&loopback) {
            let here = found.iter().find(|state| state.knob == probed.knob);
            let (value, expected) = (here.and_then(|state| state.value.as_ref()), probed.value.as_ref());
            assert!(
                value.is_none() || expected.is_none() || value == expected,
                "{value:?} beside {probed:?}"
            );
        }
    }
}
