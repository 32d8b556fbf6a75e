//! How the knobs of a host differ from those at the start.

use landspeed_knob as knob;
use landspeed_record::KnobState;

use super::Host;

impl Host {
    /// Returns each knob whose value in `now` differs from that at the start, as it was and as it is.
    pub(super) fn differences<'s>(
        &'s self,
        now: &'s [KnobState],
    ) -> impl Iterator<Item = (&'s KnobState, &'s KnobState)> {
        self.states.iter().zip(now).filter(|(before, after)| !reads_same(before, after))
    }
}

/// Returns the value of a knob in words.
pub(super) fn value_of(state: &KnobState) -> &str {
    state.value.as_deref().unwrap_or("unreadable")
}

/// Returns true if a knob has the same value as before. The spelling may differ, such as one CPU list for all queues or
/// one for each.
pub(super) fn reads_same(before: &KnobState, after: &KnobState) -> bool {
    match (&before.value, &after.value, knob::find(&before.knob)) {
        (Some(one), Some(other), Ok(knob)) => knob.factor.domain.same(one, other),
        (one, other, _) => one == other,
    }
}
