//! From the table to what a ladder may try: each proposal as one change, or why it is not tried.

use landspeed_record::{Candidate, Cell, HostFacts, KnobState, LinkFacts, Settings, Side};
use landspeed_units::Nanos;

use crate::{Error, Factor, On, Proposal, Scope, Table, View};

mod named;
mod placebo;

pub use placebo::Placebo;

/// A path with its hosts as probed: data flows from A, the sender, to B.
#[derive(Debug, Clone, Copy)]
pub struct PathView<'a> {
    pub sender: &'a HostFacts,
    pub receiver: &'a HostFacts,
    pub sender_link: &'a LinkFacts,
    pub receiver_link: &'a LinkFacts,
    pub sender_states: &'a [KnobState],
    pub receiver_states: &'a [KnobState],
    pub rtt: Nanos,
    /// Whether the path is of IPv6.
    pub ipv6: bool,
    /// Whether the hosts are namespaces of this machine, whose own settings are then left alone.
    pub in_lab: bool,
}

/// What the user narrows the choice to, by names of knobs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    pub only: &'a [String],
    pub skip: &'a [String],
}

impl PathView<'_> {
    fn states(&self, side: Side) -> &[KnobState] {
        match side {
            Side::A => self.sender_states,
            Side::B => self.receiver_states,
        }
    }

    fn state(&self, side: Side, knob: &str) -> Option<&KnobState> {
        self.states(side).iter().find(|state| state.knob == knob)
    }

    fn facts(&self, side: Side) -> &HostFacts {
        match side {
            Side::A => self.sender,
            Side::B => self.receiver,
        }
    }

    /// About how long a toggle takes on this path. What the table says of a device is the time in which hardware resets its
    /// link; a pair of virtual devices has none to reset.
    pub fn toggle(&self, factor: &Factor) -> Nanos {
        const AT_ONCE: Nanos = Nanos::millis(5);
        let links = [self.sender_link, self.receiver_link];
        let at_once = factor.scope == Scope::Device && links.iter().all(|link| link.driver == "veth");
        if at_once { factor.toggle.min(AT_ONCE) } else { factor.toggle }
    }

    /// Why a knob cannot be turned to a value on these hosts; `None` where it can.
    pub fn refuses(&self, factor: &Factor, on: &[Side], value: &str) -> Option<String> {
        self.obstacle(factor, on, "it").or_else(|| self.refusal(factor, on, value))
    }

    /// Why a knob cannot be turned on this path; `what` begins the sentence where a host is to blame.
    fn obstacle(&self, factor: &Factor, on: &[Side], what: &str) -> Option<String> {
        let name = factor.name;
        if self.in_lab && factor.scope == Scope::Host {
            return Some("shared by the whole machine, a lab does not touch it".into());
        }
        on.iter().find_map(|side| {
            let conflict = self.facts(*side).conflicts.iter().find(|c| c.knobs.iter().any(|k| k == name));
            if let Some(conflict) = conflict {
                let (program, pid) = (&conflict.program, conflict.pid);
                return Some(format!(
                    "{program} (pid {pid}) on {side} would turn {what} back: stop it first"
                ));
            }
            match self.state(*side, name) {
                None => Some(format!("host {side} does not know it: is its landspeed older?")),
                Some(state) => state.skip.as_ref().map(|reason| format!("host {side}: {reason}")),
            }
        })
    }

    /// Why a host says that it would not take a value.
    fn refusal(&self, factor: &Factor, on: &[Side], value: &str) -> Option<String> {
        if let Err(expected) = factor.domain.check(value) {
            return Some(format!("{value} is not {expected}"));
        }
        on.iter().find_map(|side| {
            let state = self.state(*side, factor.name)?;
            let number = value.parse::<u64>().ok();
            if let (Some(number), Some(most)) = (number, state.most)
                && number > most
            {
                return Some(format!("host {side} takes at most {most}"));
            }
            let offered = state.choices.is_empty() || state.choices.iter().any(|choice| choice == value);
            (!offered).then(|| format!("host {side} has no {value}: it offers {}", state.choices.join(", ")))
        })
    }

    /// All values of one side: those that can be turned as they stand in the cell, the rest as probed.
    fn settings(&self, side: Side, start: &Cell) -> Settings {
        let probed = self.states(side).iter();
        let mut settings: Settings =
            probed.filter_map(|state| Some((state.knob.clone(), state.value.clone()?))).collect();
        settings.extend(start.host(side).clone());
        settings
    }
}

/// The hosts that a knob is turned on.
fn sides(on: On) -> &'static [Side] {
    match on {
        On::Flow => &[],
        On::Sender => &[Side::A],
        On::Receiver => &[Side::B],
        On::Both => &Side::BOTH,
    }
}

/// The first of those with one and the same change: scatter-gather with checksums is checksums with
/// scatter-gather.
fn without_twins(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        let twin =
            kept.iter().any(|k| k.skip.is_none() && candidate.skip.is_none() && k.change == candidate.change);
        if !twin {
            kept.push(candidate);
        }
    }
    kept
}

/// What the factors of a table propose on a path from a cell. Pure.
pub struct Planner<'a> {
    table: &'a Table,
    path: &'a PathView<'a>,
    /// Sender's and flow's.
    settings: Settings,
    receiver: Settings,
}

impl<'a> Planner<'a> {
    pub fn new(table: &'a Table, path: &'a PathView<'a>, start: &Cell) -> Self {
        let mut settings = path.settings(Side::A, start);
        settings.extend(start.flow.clone());
        Planner { table, path, settings, receiver: path.settings(Side::B, start) }
    }

    /// Every change worth trying, in the order of the literature; those that cannot be tried, or cannot matter, are among
    /// them with the reason.
    pub fn candidates(&self, filter: &Filter) -> Result<Vec<Candidate>, Error> {
        for name in filter.only.iter().chain(filter.skip) {
            self.table.find(name)?;
        }
        let named = |names: &[String], factor: &Factor| names.iter().any(|name| name == factor.name);
        let mut candidates: Vec<Candidate> = Vec::new();
        for factor in self.table.all().filter(|factor| filter.only.is_empty() || named(filter.only, factor)) {
            let obstacle = match named(filter.skip, factor) {
                true => Some("left out by --skip or --set".to_owned()),
                false => self.path.obstacle(factor, sides(factor.on), "it"),
            };
            match obstacle {
                Some(reason) => candidates.push(self.skipped(factor, reason)),
                None => candidates.extend(self.of(factor, named(filter.only, factor))),
            }
        }
        candidates.sort_by_key(|candidate| candidate.rank);
        Ok(without_twins(candidates))
    }

    /// The value that stands, of the host that decides: the receiver for its own knobs.
    fn current(&self, factor: &Factor) -> &str {
        let settings = if factor.on == On::Receiver { &self.receiver } else { &self.settings };
        settings.get(factor.name).map_or("", String::as_str)
    }

    fn proposals(&self, factor: &Factor) -> Vec<Proposal> {
        self.with_view(factor, factor.propose)
    }

    /// Asks the knob's row about this path.
    fn with_view<T>(&self, factor: &Factor, ask: fn(&View) -> T) -> T {
        let states = || sides(factor.on).iter().filter_map(|side| self.path.state(*side, factor.name));
        ask(&View {
            sender: self.path.sender,
            receiver: self.path.receiver,
            sender_link: self.path.sender_link,
            receiver_link: self.path.receiver_link,
            rtt: self.path.rtt,
            ipv6: self.path.ipv6,
            current: self.current(factor),
            settings: &self.settings,
            receiver_settings: &self.receiver,
            most: states().filter_map(|state| state.most).min(),
            members: states().map(|state| state.members).min().unwrap_or(1),
        })
    }

    /// One line for a knob that is not tried at all.
    fn skipped(&self, factor: &Factor, reason: String) -> Candidate {
        let first = self.proposals(factor).into_iter().min_by_key(|proposal| proposal.rank);
        let (value, rank) = first.map_or((String::new(), 999), |proposal| (proposal.value, proposal.rank));
        Candidate { value, rank, skip: Some(reason), ..self.blank(factor) }
    }

    /// Factors whose effect depends on this one, whichever of the two says so.
    fn partners(&self, factor: &Factor) -> Vec<String> {
        let mutual = |other: &&Factor| {
            factor.interacts.contains(&other.name) || other.interacts.contains(&factor.name)
        };
        self.table.all().filter(mutual).map(|other| other.name.to_owned()).collect()
    }

    fn blank(&self, factor: &Factor) -> Candidate {
        Candidate {
            knob: factor.name.into(),
            from: self.current(factor).into(),
            interacts: self.partners(factor),
            toggle_ns: self.path.toggle(factor),
            source: factor.source.into(),
            ..Candidate::default()
        }
    }

    /// A knob's proposals as candidates. One that was asked for by name is never passed over in silence.
    fn of(&self, factor: &Factor, asked_for: bool) -> Vec<Candidate> {
        let proposals = self.proposals(factor).into_iter();
        let candidates: Vec<Candidate> = proposals.filter_map(|p| self.candidate(factor, &p)).collect();
        if candidates.is_empty() && asked_for {
            let reason =
                format!("it is set to {}: no other value is worth trying here", self.current(factor));
            return vec![Candidate { cannot_matter: true, ..self.skipped(factor, reason) }];
        }
        candidates
    }

    /// `None` where the proposal is what stands.
    fn candidate(&self, factor: &Factor, proposal: &Proposal) -> Option<Candidate> {
        let mut candidate = Candidate {
            value: proposal.value.clone(),
            rank: proposal.rank,
            skip: proposal.pointless.clone(),
            cannot_matter: proposal.pointless.is_some(),
            ..self.blank(factor)
        };
        if !self.lay(&mut candidate.change, factor, &proposal.value) {
            return None;
        }
        for (name, value) in &proposal.with {
            // The table's own tests hold every name to exist.
            let Ok(needed) = self.table.find(name) else { continue };
            if !self.lay(&mut candidate.change, needed, value) {
                continue;
            }
            candidate.with.push(format!("{name}={value}"));
            candidate.toggle_ns = Nanos(candidate.toggle_ns.0.max(self.path.toggle(needed).0));
            let on = sides(needed.on);
            let obstacle =
                self.path.obstacle(needed, on, name).or_else(|| self.path.refusal(needed, on, value));
            if candidate.skip.is_none() {
                candidate.skip = obstacle.map(|reason| format!("it needs {name}={value}: {reason}"));
            }
        }
        if candidate.skip.is_none() {
            candidate.skip = self.path.refusal(factor, sides(factor.on), &proposal.value);
        }
        Some(candidate)
    }

    /// Adds a knob's value where it differs from what stands; whether it did anywhere.
    fn lay(&self, change: &mut Cell, factor: &Factor, value: &str) -> bool {
        let name = factor.name;
        let mut differs = false;
        if factor.on == On::Flow && self.settings.get(name).is_none_or(|now| now != value) {
            change.flow.insert(name.into(), value.into());
            differs = true;
        }
        for side in sides(factor.on) {
            let stands = if *side == Side::A { &self.settings } else { &self.receiver };
            if stands.get(name).is_none_or(|now| now != value) {
                change.host_mut(*side).insert(name.into(), value.into());
                differs = true;
            }
        }
        differs
    }
}
