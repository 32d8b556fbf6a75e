//! The settings of a host that decide figures.

use std::collections::BTreeMap;

use landspeed_agent::session::{PendingReply, Reply, Request};
use landspeed_knob as knob;
use landspeed_record::factor::Condition;
use landspeed_record::{HostFacts, KnobState, Settings};

use super::Host;
use super::differences::{differences, value_of};
use crate::Error;

impl Host {
    /// Asks for the settings of this host and of its link `device` that decide figures, without waiting for the answer.
    pub(crate) fn ask_conditions(&self, device: &str) -> Result<PendingReply, Error> {
        self.start(&Request::Conditions { device: device.to_owned() })
    }

    /// Returns the states in the answer to [`Host::ask_conditions`].
    pub(crate) fn answered_conditions(&self, answer: Result<Reply, Error>) -> Result<Vec<KnobState>, Error> {
        match answer? {
            Reply::Knobs { states } => Ok(states),
            _ => Err(self.unexpected("conditions")),
        }
    }

    /// Returns the facts of this host with the conditions in these states.
    pub(crate) fn facts_with(&self, states: &[KnobState]) -> HostFacts {
        HostFacts { conditions: conditions(states), ..self.facts.clone() }
    }

    /// Returns the line for a host that did not answer when it was asked for its conditions again.
    pub(crate) fn not_read_again(&self, why: &Error) -> String {
        format!("{}: conditions were not read again: {why}", self.name)
    }

    /// Returns a line for each knob that decides figures and whose value changed since the session began, in a run that
    /// changed none itself. If the host cannot tell, the line says so.
    pub(crate) fn moved(&self) -> Vec<String> {
        let now = match self.knobs() {
            Ok(now) => now,
            Err(error) => return vec![self.not_read_again(&error)],
        };
        changed_conditions(&self.states, &now)
            .map(|(before, after)| {
                format!(
                    "{}: another program changed {} from {} to {} during the run: the figures are of both",
                    self.name,
                    before.knob,
                    value_of(before),
                    value_of(after)
                )
            })
            .collect()
    }
}

/// Returns each knob that decides figures and whose value in `now` differs from that in `before`, as it was and as it is.
pub(crate) fn changed_conditions<'s>(
    before: &'s [KnobState],
    now: &'s [KnobState],
) -> impl Iterator<Item = (&'s KnobState, &'s KnobState)> {
    differences(before, now).filter(|(before, _)| condition_of(before).is_some())
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
