//! Differences between two readings of a host's knobs.

use std::collections::BTreeMap;

use landspeed_knob as knob;
use landspeed_record::KnobState;

/// Returns each knob of both readings whose value differs between `before` and `now`, with both states.
pub(super) fn differences<'s>(
    before: &'s [KnobState],
    now: &'s [KnobState],
) -> impl Iterator<Item = (&'s KnobState, &'s KnobState)> {
    let now: BTreeMap<&str, &KnobState> = now.iter().map(|state| (state.knob.as_str(), state)).collect();
    let both = move |before: &'s KnobState| Some((before, *now.get(before.knob.as_str())?));
    before.iter().filter_map(both).filter(|(before, after)| !reads_same(before, after))
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
