//! The settings of a host that decide figures, and changes of its link that no setting makes.

use std::collections::BTreeMap;

use landspeed_agent::session::{PendingReply, Reply, Request};
use landspeed_knob as knob;
use landspeed_record::factor::Condition;
use landspeed_record::{CARRIER_CHANGES, HostFacts, KnobState, LINK_SPEED, Settings};

use super::Host;
use super::differences::{differences, value_of};
use crate::Error;

impl Host {
    /// Asks for the settings of this host and of its link `device` that decide figures, and for the link's speed and
    /// carrier, without waiting for the answer.
    pub(crate) fn ask_conditions(&self, device: &str) -> Result<PendingReply, Error> {
        self.start(&Request::Conditions { device: device.to_owned() })
    }

    /// Returns the states in the answer to [`Host::ask_conditions`].
    pub(crate) fn answered_conditions(&self, answer: Result<Reply, Error>) -> Result<Vec<KnobState>, Error> {
        self.answered_states(answer, "conditions")
    }

    /// Returns the facts of this host with the conditions in these states.
    pub(crate) fn facts_with(&self, states: &[KnobState]) -> HostFacts {
        HostFacts { conditions: conditions(states), ..self.facts.clone() }
    }

    /// Returns the line for a host that did not answer a repeated request for its conditions.
    pub(crate) fn not_read_again(&self, why: &Error) -> String {
        format!("{}: conditions were not read again: {why}", self.name)
    }

    /// Reads the conditions on the links of the data path, and waits for the answer.
    fn read_conditions(&self) -> Result<Vec<KnobState>, Error> {
        self.states_on_links(|device| Request::Conditions { device })
    }

    /// Returns a line for each condition that changed since [`Host::begin`]. The run must have restored its own changes
    /// before. If the host cannot answer, the line says so. Changes of the carrier are left out: the trials count them.
    pub(crate) fn moved(&self) -> Vec<String> {
        let now = match self.read_conditions() {
            Ok(now) => now,
            Err(error) => return vec![self.not_read_again(&error)],
        };
        [&self.states, &self.found_link]
            .into_iter()
            .flat_map(|before| changed_since_probe(before, &now))
            .filter(|(before, _)| before.knob != CARRIER_CHANGES)
            .map(|(before, after)| self.moved_line(before, after))
            .collect()
    }

    fn moved_line(&self, before: &KnobState, after: &KnobState) -> String {
        let (name, knob) = (&self.name, &before.knob);
        let what = if knob == LINK_SPEED {
            format!("{knob} changed")
        } else {
            format!("another program changed {knob}")
        };
        let [from, to] = [value_of(before), value_of(after)];
        format!("{name}: {what} from {from} to {to} during the run: the figures are of both")
    }
}

/// Returns each condition whose value differs between `before` and `now`, with both states.
pub(crate) fn changed_conditions<'s>(
    before: &'s [KnobState],
    now: &'s [KnobState],
) -> impl Iterator<Item = (&'s KnobState, &'s KnobState)> {
    differences(before, now)
        .filter(|(before, after)| condition_of(before).is_some() || is_change_of_link(before, after))
}

/// Returns the same for `probed`, which a probe of the knobs has read. A probe reads no value outside a knob's domain, such as
/// the MTU of loopback, and a reading of the conditions does: that is no change.
pub(super) fn changed_since_probe<'s>(
    probed: &'s [KnobState],
    now: &'s [KnobState],
) -> impl Iterator<Item = (&'s KnobState, &'s KnobState)> {
    changed_conditions(probed, now)
        .filter(|(before, after)| before.value.is_some() || !is_outside_domain(after))
}

/// Returns true for a state of the link with two known values. A link without a carrier has no speed.
fn is_change_of_link(before: &KnobState, after: &KnobState) -> bool {
    is_of_link(before) && before.value.is_some() && after.value.is_some()
}

/// Returns true for what changes of a link without a setting.
pub(super) fn is_of_link(state: &KnobState) -> bool {
    [LINK_SPEED, CARRIER_CHANGES].contains(&state.knob.as_str())
}

fn is_outside_domain(state: &KnobState) -> bool {
    let (Some(value), Ok(knob)) = (&state.value, knob::find(&state.knob)) else { return false };
    knob.factor.domain.check(value).is_err()
}

/// Returns the values of the knobs that decide figures, by the name of their condition.
pub(super) fn conditions(states: &[KnobState]) -> BTreeMap<String, Settings> {
    let mut conditions = BTreeMap::<String, Settings>::new();
    for state in states {
        if let (Some(condition), Some(value)) = (condition_of(state), &state.value) {
            let of_condition = conditions.entry(condition.name().to_owned()).or_default();
            of_condition.insert(state.knob.clone(), value.clone());
        }
    }
    conditions
}

/// Returns the condition that a knob decides, if it decides one.
fn condition_of(state: &KnobState) -> Option<Condition> {
    knob::find(&state.knob).ok()?.factor.decides
}
