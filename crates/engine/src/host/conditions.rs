//! The settings of a host that decide figures.

use std::collections::BTreeMap;

use landspeed_knob as knob;
use landspeed_record::factor::Condition;
use landspeed_record::{KnobState, Settings};

use super::Host;
use super::differences::value_of;

impl Host {
    /// Returns a line for each knob that decides figures and whose value changed since the session began, in a run that
    /// changed none itself. If the host cannot tell, the line says so.
    pub(crate) fn moved(&self) -> Vec<String> {
        let now = match self.knobs() {
            Ok(now) => now,
            Err(error) => return vec![format!("{}: conditions were not read again: {error}", self.name)],
        };
        self.differences(&now)
            .filter(|(before, _)| condition_of(before).is_some())
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
