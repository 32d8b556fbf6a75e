//! Differences between two readings of a host's knobs.

use landspeed_knob as knob;
use landspeed_record::KnobState;

/// Returns each knob whose value differs between `before` and `now`, with both states. Both have the same knobs.
pub(super) fn differences<'s>(
    before: &'s [KnobState],
    now: &'s [KnobState],
) -> impl Iterator<Item = (&'s KnobState, &'s KnobState)> {
    before.iter().zip(now).filter(|(before, after)| !reads_same(before, after))
}

/// Formats the value of a knob.
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
