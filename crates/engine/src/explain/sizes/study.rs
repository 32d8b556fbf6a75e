//! Runs the rounds of trials over sizes, and collects their results.

use std::collections::BTreeMap;

use landspeed_analysis::BothEnds;
use landspeed_analysis::fit::{MessageCost, OffloadStudy};
use landspeed_observer::COST;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{Cell, CpuAccounting, EndpointOutcome, PerPacketCost, Settings, Side};
use landspeed_workload::stream;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::plan::{MessageKind, PlannedSweep, SizesPlan};
use super::{SizesOptions, StopCheck, UserListener};
use crate::block::refused;
use crate::{Error, HostGroup, RunSpec, WatchOptions};

/// The largest number of refused trials; one more ends the study. On a crowded machine a trial sometimes fails for lack
/// of acknowledgements.
const MOST_REFUSED: usize = 20;

pub(super) struct SizesStudy<'a> {
    pub(super) group: &'a mut HostGroup,
    pub(super) options: &'a SizesOptions,
    pub(super) plan: SizesPlan,
    found: Cell,
    turned: bool,
    /// The measured costs of each sweep, in the order of the plan.
    costs: Vec<Vec<MessageCost>>,
    refused: Vec<String>,
    /// Trials in which nothing arrived.
    silent: Vec<String>,
    /// The profiler's messages about missing samples, each once.
    unseen: Vec<String>,
    pub(super) stopped: bool,
    pub(super) offload: OffloadStudy,
    dice: ChaCha8Rng,
}

pub(super) struct SizesFindings {
    pub(super) parts: Vec<PerPacketCost>,
    pub(super) offload: OffloadStudy,
    pub(super) notes: Vec<String>,
}

impl<'a> SizesStudy<'a> {
    pub(super) fn new(group: &'a mut HostGroup, options: &'a SizesOptions) -> Self {
        let plan = SizesPlan::of(&group.first(), options);
        SizesStudy {
            found: group.found(Settings::new()),
            turned: false,
            costs: vec![Vec::new(); plan.sweeps.len()],
            refused: Vec::new(),
            silent: Vec::new(),
            unseen: Vec::new(),
            stopped: false,
            offload: OffloadStudy::default(),
            dice: ChaCha8Rng::seed_from_u64(options.seed),
            group,
            options,
            plan,
        }
    }

    /// Runs the rounds over all sizes.
    pub(super) fn rounds(&mut self, listener: &mut UserListener<'_>) -> Result<(), Error> {
        let rounds = self.plan.rounds;
        for round in 0..rounds {
            (listener.progress)(&format!("cost over sizes: round {} of {rounds}", round + 1));
            self.round(Some(round), listener.stop)?;
            if self.stopped {
                return Ok(());
            }
        }
        if self.options.effort.profiled > Nanos(0) {
            (listener.progress)("cost over sizes: where the time of each size goes");
            self.round(None, listener.stop)?;
        }
        Ok(())
    }

    /// Runs each size of each sweep once, in random order within an MTU. `round` is the number of the round, or `None`
    /// for the last round, which samples stacks.
    fn round(&mut self, round: Option<u32>, stop: StopCheck<'_>) -> Result<(), Error> {
        let mut mtus = self.plan.mtus.clone();
        mtus.shuffle(&mut self.dice);
        for mtu in mtus {
            if !self.take_mtu(mtu)? {
                continue;
            }
            for group in self.in_random_order(mtu) {
                for (index, size) in group {
                    self.stopped |= stop();
                    if self.stopped {
                        return Ok(());
                    }
                    self.trial(index, size, round)?;
                }
            }
        }
        Ok(())
    }

    /// Sets the links to `mtu`. If a host refuses, notes the reason, removes the MTU from the plan, and returns false.
    fn take_mtu(&mut self, mtu: Bytes) -> Result<bool, Error> {
        match self.set(&[("mtu", &mtu.0.to_string())]) {
            Ok(()) => Ok(true),
            Err(error) if refused(&error) => {
                self.refused.push(format!("MTU {} could not be had: {error}", mtu.0));
                self.plan.mtus.retain(|other| *other != mtu);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the trials at an MTU in random order, as index of the sweep and size. Trials that are compared with each
    /// other form a group and run directly one after the other.
    fn in_random_order(&mut self, mtu: Bytes) -> Vec<Vec<(usize, Bytes)>> {
        let mut groups: Vec<Vec<(usize, Bytes)>> = Vec::new();
        let sweeps = self.plan.sweeps.iter().enumerate().filter(|(_, sweep)| sweep.of.mtu == mtu);
        for (index, sweep) in sweeps {
            for sizes in &sweep.groups {
                let trials = || sizes.iter().map(|size| (index, *size));
                let with = |group: &&mut Vec<(usize, Bytes)>| {
                    sweep.kind == MessageKind::UdpUnsummed && group.len() == 1 && group[0].1 == sizes[0]
                };
                match groups.iter_mut().find(with) {
                    Some(group) => group.extend(trials()),
                    None => groups.push(trials().collect()),
                }
            }
        }
        groups.shuffle(&mut self.dice);
        groups.iter_mut().for_each(|group| group.shuffle(&mut self.dice));
        groups
    }

    fn trial(&mut self, index: usize, size: Bytes, round: Option<u32>) -> Result<(), Error> {
        let sweep = self.plan.sweeps[index].clone();
        let Some(seen) = self.send(&sweep, size, round.is_none())? else { return Ok(()) };
        let cost = {
            let ends = self.ends(&seen);
            round.map_or_else(|| ends.class_cost(size, 0), |round| ends.message_cost(size, round))
        };
        match cost {
            Some(cost) => self.costs[index].push(cost),
            None if round.is_some() => self.silent.push(sweep.trial(size)),
            None => {}
        }
        Ok(())
    }

    /// Runs a trial that sends messages of `size`. If a host refuses, notes the reason and returns `None`.
    pub(super) fn send(
        &mut self,
        sweep: &PlannedSweep,
        size: Bytes,
        profiled: bool,
    ) -> Result<Option<[EndpointOutcome; 2]>, Error> {
        let duration_ns =
            if profiled { self.options.effort.profiled.max(self.plan.window) } else { self.plan.window };
        let observers = if profiled { vec![COST.name.to_owned()] } else { Vec::new() };
        let watching = WatchOptions { observers, ..WatchOptions::default() };
        let flow = sweep.flow(size, self.options);
        let run = RunSpec::new(stream::spec(duration_ns), &flow).after(self.plan.warm_up);
        match self.group.first().run(&run.watched(watching)) {
            Ok(seen) => {
                self.look(&seen);
                Ok(Some(seen))
            }
            Err(error) if refused(&error) && self.refused.len() < MOST_REFUSED => {
                self.refused.push(format!("{}: {error}", sweep.trial(size)));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn ends<'s>(&'s self, seen: &'s [EndpointOutcome; 2]) -> BothEnds<'s> {
        self.group.first().ends(seen)
    }

    /// Keeps the profiler's messages about missing samples.
    fn look(&mut self, seen: &[EndpointOutcome; 2]) {
        let lines = seen.iter().flat_map(|end| &end.observed.unseen);
        for line in lines.filter(|line| line.starts_with(COST.name)) {
            if !self.unseen.contains(line) {
                self.unseen.push(line.clone());
            }
        }
    }

    /// Sets both hosts to their initial settings with `changes` applied. Writes nothing as long as no setting has been
    /// changed.
    pub(super) fn set(&mut self, changes: &[(&str, &str)]) -> Result<(), Error> {
        let mut cell = self.found.clone();
        for side in Side::BOTH {
            let settings = cell.host_mut(side);
            for (knob, value) in changes {
                // A knob that cannot be set on this host keeps its value.
                if let Some(now) = settings.get_mut(*knob) {
                    (*value).clone_into(now);
                }
            }
        }
        self.turned |= cell != self.found;
        if self.turned { self.group.set(&cell) } else { Ok(()) }
    }

    pub(super) fn finish(self) -> (bool, SizesFindings) {
        let notes = self.notes();
        let shared = self.attribution();
        let mut parts: Vec<PerPacketCost> = Vec::new();
        for (sweep, costs) in self.plan.sweeps.iter().zip(&self.costs).filter(|(_, costs)| !costs.is_empty())
        {
            let mut part = sweep.of.per_packet(costs);
            part.notes.extend(shared.clone());
            parts.push(part);
        }
        (self.turned, SizesFindings { parts, offload: self.offload, notes })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.plan.notes.clone();
        notes.extend(self.unseen.iter().cloned());
        let mut refused: BTreeMap<&String, usize> = BTreeMap::new();
        self.refused.iter().for_each(|line| *refused.entry(line).or_default() += 1);
        notes.extend(refused.into_iter().map(|(line, times)| match times {
            1 => line.clone(),
            n => format!("{line} ({n} times)"),
        }));
        notes.extend((!self.silent.is_empty()).then(|| {
            let (count, first) = (self.silent.len(), &self.silent[0]);
            format!(
                "nothing arrived in {count} of the trials, {first} among them: other work may have had the cores"
            )
        }));
        notes.extend(self.stopped.then(|| "ended by the user before all trials were done".to_owned()));
        notes.into_iter().map(|note| format!("cost over sizes: {note}")).collect()
    }

    /// Returns a note on how well the processor time of two hosts on one machine can be separated; `None` for two
    /// machines.
    fn attribution(&self) -> Option<String> {
        let pair = self.group.first();
        let (a, b) = (&pair.a.facts, &pair.b.facts);
        let why = match a.cpu_accounting {
            CpuAccounting::Tasks => {
                "what B's stack does with a packet up to its socket runs on A's thread and is of A's time"
            }
            CpuAccounting::TasksAndIrq => {
                "softirqs, in which B's stack takes packets up to its socket, are of the time that both share"
            }
            CpuAccounting::Stat => "this kernel does not tell their time apart",
        };
        (!a.boot_id.is_empty() && a.boot_id == b.boot_id)
            .then(|| format!("both hosts are this machine: {why}; trust their sum more than their shares"))
    }
}
