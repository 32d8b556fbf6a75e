//! Differences between two readings of a host's conditions.

use landspeed_record::factor::MAX_VALUE_BYTES;
use landspeed_record::units::Nanos;
use landspeed_record::{ConditionChange, KnobState, Side};

use crate::host::changed_conditions;

/// Returns the differences between two readings of a host's conditions. The first reading was not made before the first
/// of these times, and the second not after the second time.
pub(super) fn condition_changes(
    side: Side,
    [since_ns, until_ns]: [Nanos; 2],
    [before, now]: [&[KnobState]; 2],
) -> impl Iterator<Item = ConditionChange> {
    changed_conditions(before, now).map(move |(before, after)| ConditionChange {
        side,
        knob: before.knob.clone(),
        before: value(before),
        after: value(after),
        since_ns,
        until_ns,
    })
}

/// Returns the value of a setting; `None` if the host could not read it, or if it is too long to be one.
fn value(state: &KnobState) -> Option<String> {
    state.value.clone().filter(|value| value.len() <= MAX_VALUE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::test_hosts::state;

    #[test]
    fn a_change_has_both_values_and_the_times_of_both_readings() {
        let readings = [
            [state("congestion-control", Some("cubic")), state("gro", Some("on")), state("rps", Some("0-3"))],
            [state("congestion-control", Some("bbr")), state("gro", None), state("rps", Some("0-3;0-3"))],
        ];
        let times = [Nanos::secs(30), Nanos::secs(60)];
        let [before, now] = &readings;
        let found: Vec<_> = condition_changes(Side::B, times, [before, now]).collect();
        let change = |knob: &str, before: &str, after: Option<&str>| ConditionChange {
            side: Side::B,
            knob: knob.to_owned(),
            before: Some(before.to_owned()),
            after: after.map(str::to_owned),
            since_ns: times[0],
            until_ns: times[1],
        };
        let bbr = change("congestion-control", "cubic", Some("bbr"));
        assert_eq!(found, [bbr, change("gro", "on", None)], "another spelling is no change");
        assert_eq!(condition_changes(Side::B, times, [now, now]).count(), 0);
        let long = [state("tso", Some(&"x".repeat(MAX_VALUE_BYTES + 1)))];
        let found: Vec<_> = condition_changes(Side::B, times, [&[state("tso", Some("on"))], &long]).collect();
        assert_eq!(found, [change("tso", "on", None)], "a stranger's value is bounded");
    }
}
