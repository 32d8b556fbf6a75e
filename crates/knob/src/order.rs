//! The order in which several knobs of one host are changed.

use landspeed_record::Settings;

use crate::Knob;
use crate::table::all;

/// Returns the changes that lead from `now` to `wanted` on one host, in an order in which each takes effect. If a knob
/// needs a value of another knob, the other knob gets that value before the knob is changed, and loses it only after
/// the knob is changed. For example, TSO is switched on after checksums and off before them. A fixed interrupt delay is
/// set after adaptive coalescing is switched off, and restored before adaptive coalescing is switched on again.
/// Otherwise the order is that of the table.
///
/// A knob that `now` does not contain counts as changed. A name that is not in the table is left out.
pub fn in_order(now: &Settings, wanted: &Settings) -> Vec<(&'static str, String)> {
    let mut order = ChangeOrder { now, wanted, begun: Vec::new(), placed: Vec::new() };
    for knob in all() {
        order.place(knob);
    }
    let value = |name: &&'static str| (*name, wanted[*name].clone());
    order.placed.iter().map(value).collect()
}

struct ChangeOrder<'a> {
    now: &'a Settings,
    wanted: &'a Settings,
    begun: Vec<&'static str>,
    placed: Vec<&'static str>,
}

impl ChangeOrder<'_> {
    fn changes(&self, knob: &str) -> bool {
        self.wanted.get(knob).is_some_and(|value| self.now.get(knob) != Some(value))
    }

    /// Appends a knob after those that must be changed before it. Each knob is visited only once, so this ends even if
    /// needs form a cycle.
    fn place(&mut self, knob: &'static Knob) {
        let name = knob.factor.name;
        if !self.changes(name) || self.begun.contains(&name) {
            return;
        }
        self.begun.push(name);
        let wants = |(need, value): &(&str, &str)| self.wanted.get(*need).is_some_and(|v| v == value);
        let met: Vec<&str> =
            knob.factor.needs.iter().filter(|need| wants(need)).map(|(need, _)| *need).collect();
        // Knobs that need the value that this knob is about to lose.
        let lost = |other: &&Knob| {
            let loses = |(need, value): &(&str, &str)| *need == name && self.wanted[name] != *value;
            other.factor.needs.iter().any(loses)
        };
        let first: Vec<&'static Knob> =
            all().filter(|other| met.contains(&other.factor.name)).chain(all().filter(lost)).collect();
        for other in first {
            self.place(other);
        }
        self.placed.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn names(now: &[(&str, &str)], wanted: &[(&str, &str)]) -> Vec<&'static str> {
        in_order(&settings(now), &settings(wanted)).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn needs_come_first_and_go_last() {
        let off = [("tso", "off"), ("tx-checksum", "off"), ("scatter-gather", "off")];
        let on = [("tso", "on"), ("tx-checksum", "on"), ("scatter-gather", "on")];
        assert_eq!(names(&off, &on), ["tx-checksum", "scatter-gather", "tso"]);
        assert_eq!(names(&on, &off), ["tso", "tx-checksum", "scatter-gather"]);
    }

    #[test]
    fn a_fixed_delay_is_set_while_the_adaptive_one_is_off() {
        let adaptive = [("adaptive-rx", "on"), ("rx-usecs", "8")];
        let fixed = [("adaptive-rx", "off"), ("rx-usecs", "50")];
        assert_eq!(names(&adaptive, &fixed), ["adaptive-rx", "rx-usecs"]);
        assert_eq!(names(&fixed, &adaptive), ["rx-usecs", "adaptive-rx"]);
    }

    #[test]
    fn only_differing_knobs_are_turned_and_none_twice() {
        let now = [("mtu", "1500"), ("gro", "off")];
        assert_eq!(names(&now, &[("mtu", "1500"), ("gro", "on"), ("no-such", "1")]), ["gro"]);
        for value in ["on", "off"] {
            let everything: Vec<(&str, &str)> = all().map(|knob| (knob.factor.name, value)).collect();
            assert_eq!(names(&[], &everything).len(), everything.len());
        }
    }
}
