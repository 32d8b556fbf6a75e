//! Candidates of a ladder, made from the proposals of a table of factors. A candidate is a change that the ladder may
//! try. If the change must not be tried, the candidate has the reason.

use crate::units::Nanos;
use crate::{Candidate, Cell, HostFacts, KnobState, LinkFacts, Settings, Side};

use crate::factor::{Error, Factor, FactorPlacement, FactorScope, FactorTable, FactorView, Proposal};

mod named;
mod placebo;

pub use placebo::Placebo;

/// A path and the facts that were probed on its two hosts. Data flows from A, the sender, to B.
#[derive(Debug, Clone, Copy)]
pub struct PathView<'a> {
    pub sender: &'a HostFacts,
    pub receiver: &'a HostFacts,
    pub sender_link: &'a LinkFacts,
    pub receiver_link: &'a LinkFacts,
    pub sender_states: &'a [KnobState],
    pub receiver_states: &'a [KnobState],
    pub rtt: Nanos,
    /// True if the path uses IPv6.
    pub ipv6: bool,
    /// True if the hosts are network namespaces of this machine. Settings of the whole machine are then not changed.
    pub in_lab: bool,
}

/// The user's selection of knobs, by name.
#[derive(Debug, Clone, Copy, Default)]
pub struct KnobSelection<'a> {
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

    /// Returns the usual duration of a toggle on this path. The time in a device's declaration includes the reset of
    /// the link by its hardware. Between two veths, which have no hardware, a toggle takes at most 5 ms.
    pub fn toggle(&self, factor: &Factor) -> Nanos {
        const AT_ONCE: Nanos = Nanos::millis(5);
        let links = [self.sender_link, self.receiver_link];
        let at_once = factor.scope == FactorScope::Device && links.iter().all(|link| link.driver == "veth");
        if at_once { factor.toggle.min(AT_ONCE) } else { factor.toggle }
    }

    /// Returns the reason why a knob cannot be set to a value on these hosts, or `None` if it can.
    pub fn refuses(&self, factor: &Factor, on: &[Side], value: &str) -> Option<String> {
        self.obstacle(factor, on, "it").or_else(|| self.refusal(factor, on, value))
    }

    /// Returns the reason why a knob cannot be changed on this path, or `None` if it can. `what` names the knob
    /// within the reason.
    fn obstacle(&self, factor: &Factor, on: &[Side], what: &str) -> Option<String> {
        let name = factor.name;
        if self.in_lab && factor.scope == FactorScope::Host {
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

    /// Returns the reason why a host would not accept a value, or `None` if all hosts would.
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

    /// Returns the current values of one side. The cell's values have priority over the probed ones.
    fn settings(&self, side: Side, start: &Cell) -> Settings {
        let probed = self.states(side).iter();
        let mut settings: Settings =
            probed.filter_map(|state| Some((state.knob.clone(), state.value.clone()?))).collect();
        settings.extend(start.host(side).clone());
        settings
    }
}

/// Returns the hosts on which a knob is set; none for a setting of the flow.
fn sides(on: FactorPlacement) -> &'static [Side] {
    match on {
        FactorPlacement::Flow => &[],
        FactorPlacement::Sender => &[Side::A],
        FactorPlacement::Receiver => &[Side::B],
        FactorPlacement::Both => &Side::BOTH,
    }
}

/// Removes each candidate whose change equals that of an earlier candidate, if both can be tried. For example,
/// scatter-gather with checksums is the same change as checksums with scatter-gather.
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

/// A planner of changes to the settings of a path. The changes start from a cell, and the factors of a table propose
/// them. Planning has no side effects.
pub struct CandidatePlanner<'a> {
    table: &'a FactorTable<'static>,
    path: &'a PathView<'a>,
    /// Current values of the sender and of the flow.
    settings: Settings,
    receiver: Settings,
}

impl<'a> CandidatePlanner<'a> {
    pub fn new(table: &'a FactorTable<'static>, path: &'a PathView<'a>, start: &Cell) -> Self {
        let mut settings = path.settings(Side::A, start);
        settings.extend(start.flow.clone());
        CandidatePlanner { table, path, settings, receiver: path.settings(Side::B, start) }
    }

    /// Returns every change that the factors propose, lowest rank first. Changes that cannot be tried or cannot
    /// matter are included, with the reason.
    pub fn candidates(&self, filter: &KnobSelection) -> Result<Vec<Candidate>, Error> {
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

    /// Returns the current value of a factor: the receiver's value for a knob of the receiver, and else the value of
    /// the sender or the flow. It is empty if unknown.
    fn current(&self, factor: &Factor) -> &str {
        let settings = if factor.on == FactorPlacement::Receiver { &self.receiver } else { &self.settings };
        settings.get(factor.name).map_or("", String::as_str)
    }

    fn proposals(&self, factor: &Factor) -> Vec<Proposal> {
        self.with_view(factor, factor.propose)
    }

    /// Calls `ask`, a function of the factor's declaration, with the facts of this path.
    fn with_view<T>(&self, factor: &Factor, ask: fn(&FactorView) -> T) -> T {
        let states = || sides(factor.on).iter().filter_map(|side| self.path.state(*side, factor.name));
        ask(&FactorView {
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

    /// Returns the only candidate for a knob that is not tried at all, with the reason. Its value is the proposal of
    /// the lowest rank.
    fn skipped(&self, factor: &Factor, reason: String) -> Candidate {
        let first = self.proposals(factor).into_iter().min_by_key(|proposal| proposal.rank);
        let (value, rank) = first.map_or((String::new(), 999), |proposal| (proposal.value, proposal.rank));
        Candidate { value, rank, skip: Some(reason), ..self.blank(factor) }
    }

    /// Returns the names of the factors that interact with `factor`. Two factors interact if the declaration of either
    /// names the other.
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

    /// Converts a knob's proposals to candidates. A knob that the user requested by name always gives at least one
    /// candidate.
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

    /// Converts a proposal to a candidate, or returns `None` if the proposal's value is set already.
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
            // The table has every name, as its own tests check.
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

    /// Adds a factor's value to `change`, for the flow or for each host whose current value differs. Returns true if it
    /// added the value at least once.
    fn lay(&self, change: &mut Cell, factor: &Factor, value: &str) -> bool {
        let name = factor.name;
        let mut differs = false;
        if factor.on == FactorPlacement::Flow && self.settings.get(name).is_none_or(|now| now != value) {
            change.flow.insert(name.into(), value.into());
            differs = true;
        }
        for side in sides(factor.on) {
            let settings = if *side == Side::A { &self.settings } else { &self.receiver };
            if settings.get(name).is_none_or(|now| now != value) {
                change.host_mut(*side).insert(name.into(), value.into());
                differs = true;
            }
        }
        differs
    }
}
