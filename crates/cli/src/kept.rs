//! The settings that a run kept on one host, which can be made permanent.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use landspeed_engine::all_factors;
use landspeed_knob as knob;
use landspeed_knob::persist::{
    KeptChange, PersistInput, PersistPlan, UnpersistedSetting, changes, confirmed, persist,
};
use landspeed_observer::host;
use landspeed_record::{
    Cell, HostFacts, KnobState, Line, LinkFacts, PathFacts, Record, Side, StepLine, StepSummary, TuneSummary,
};

use crate::data::{self, RecordArg};
use crate::groups::DataArgs;

/// A record of `landspeed tune`, and which of its hosts.
#[derive(Debug, Args)]
pub(crate) struct KeptSettingsArgs {
    /// Record of the run
    pub(crate) record: RecordArg,
    /// Side of the run that this host is to be [default: the one that it was]
    #[arg(long, value_name = "SIDE", value_parser = sides())]
    pub(crate) host: Option<Side>,
    /// Include kept steps that the run did not confirm
    #[arg(long)]
    pub(crate) unconfirmed: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

fn sides() -> impl TypedValueParser<Value = Side> {
    PossibleValuesParser::new(["a", "b"]).map(|name| if name == "a" { Side::A } else { Side::B })
}

/// The settings of both hosts that a run kept, to be made permanent.
pub(crate) struct KeptSettings {
    pub(crate) path: PathBuf,
    pub(crate) summary: TuneSummary,
    record: Record,
    /// The final configuration, by default without changes that were not confirmed.
    end: Cell,
    pub(crate) unconfirmed: Vec<UnpersistedSetting>,
}

impl KeptSettings {
    pub(crate) fn read(args: &KeptSettingsArgs) -> Result<KeptSettings> {
        let path = data::find(&args.record, args.data.data_dir.as_deref())?;
        Self::of(path, args.unconfirmed)
    }

    /// Reads the record at `path`. With `unconfirmed`, includes kept steps that the run did not confirm.
    pub(crate) fn of(path: PathBuf, unconfirmed: bool) -> Result<KeptSettings> {
        let record = data::read(&path)?;
        if let Some(why) = record.unread.first() {
            bail!("{}: {why}: update landspeed", path.display());
        }
        let summary = landspeed_analysis::summary(&record, &path.display().to_string())?;
        let (end, unconfirmed) = end(&record, &summary, unconfirmed);
        Ok(KeptSettings { path, summary, record, end, unconfirmed })
    }

    /// Returns the path of the run; `None` if the record has none.
    pub(crate) fn path_facts(&self) -> Option<&PathFacts> {
        self.record.path()
    }

    /// Returns true if the run began with the hosts as they were: neither its baseline nor `--set` changed a setting of
    /// theirs.
    pub(crate) fn began_as_found(&self) -> bool {
        let stood = |side: Side, state: &KnobState| {
            let start = self.summary.start_cell.host(side).get(&state.knob);
            start.is_none() || state.value.is_none() || start == state.value.as_ref()
        };
        self.record.lines.iter().all(|line| match line {
            Line::Knobs { side, states } => states.iter().all(|state| stood(*side, state)),
            _ => true,
        })
    }

    /// Returns the host's interface on the path.
    pub(crate) fn interface(&self, side: Side) -> Option<&str> {
        self.record.path().map(|path| path.link(side))
    }

    fn link(&self, side: Side) -> Option<&LinkFacts> {
        let name = self.interface(side)?;
        self.summary.host(side).links.iter().find(|link| link.name == name)
    }

    /// Returns the host's settings that the run kept.
    pub(crate) fn of_host(&self, side: Side) -> Vec<KeptChange<'_>> {
        changes(self.summary.start_cell.host(side), self.end.host(side)).collect()
    }

    /// Returns the flow's settings that the run kept. The user's program must set them on its sockets.
    pub(crate) fn of_flow(&self) -> Vec<KeptChange<'_>> {
        changes(&self.summary.start_cell.flow, &self.end.flow).collect()
    }

    pub(crate) fn persisted(&self, side: Side) -> Result<PersistPlan> {
        let origin = format!("{}, {}\n{}", self.path.display(), self.summary.started, self.summary.command);
        let (start, end, link) = (&self.summary.start_cell, &self.end, self.link(side));
        Ok(persist(&PersistInput { start, end, side, link, origin: &origin }, all_factors())?)
    }

    /// Returns the side of the run that this host is, or checks that it is the side `asked`.
    pub(crate) fn side_here(&self, asked: Option<Side>) -> Result<Side> {
        let here = host::probe();
        let sides = asked.map_or(Side::BOTH.to_vec(), |side| vec![side]);
        let (mut matching, mut why) = (Vec::new(), Vec::new());
        for side in sides {
            match self.differs(side, &here) {
                None => matching.push(side),
                Some(differs) => why.push(differs),
            }
        }
        match matching.first() {
            Some(side) => Ok(*side),
            None => bail!("this host is not the one of the run: {}", why.join("; ")),
        }
    }

    /// Returns why this host cannot be the run's host `side`, or `None` if its name and its interface match.
    fn differs(&self, side: Side, here: &HostFacts) -> Option<String> {
        let then = self.summary.host(side);
        if then.hostname != here.hostname {
            return Some(format!("{side} was {}, and this is {}", then.hostname, here.hostname));
        }
        let link = self.link(side)?;
        match here.links.iter().find(|found| found.name == link.name) {
            None => Some(format!("{side} had an interface {}, and there is none here", link.name)),
            Some(found) if found.driver != link.driver => Some(format!(
                "{} of {side} was of {}, and is of {} here",
                link.name, link.driver, found.driver
            )),
            Some(_) => None,
        }
    }
}

/// Returns the configuration to make permanent, and the changes that are left out because the run did not confirm them.
fn end(record: &Record, summary: &TuneSummary, unconfirmed: bool) -> (Cell, Vec<UnpersistedSetting>) {
    if unconfirmed {
        return (summary.final_cell.clone(), Vec::new());
    }
    let line = |step: &StepSummary| {
        record.lines.iter().rev().find_map(|line| match line {
            Line::Step(line) if line.summary.id == step.id => Some(&**line),
            _ => None,
        })
    };
    let steps: Vec<&StepLine> = summary.steps.iter().filter_map(line).collect();
    let needs = |name: &str| knob::find(name).map_or(&[][..], |knob| knob.factor.needs);
    confirmed(&summary.start_cell, &summary.final_cell, &steps, &needs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_changed_a_host_before_its_start_did_not_begin_with_what_it_found() {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/records/tune.jsonl");
        let mut kept = KeptSettings::of(file, false).expect("a record");
        assert!(!kept.began_as_found(), "it began with the settings of SC'03");
        for line in &kept.record.lines {
            if let Line::Knobs { side, states } = line {
                let found =
                    states.iter().filter_map(|state| Some((state.knob.clone(), state.value.clone()?)));
                kept.summary.start_cell.host_mut(*side).extend(found);
            }
        }
        assert!(kept.began_as_found());
        // As with --set.
        kept.summary.start_cell.a.insert("mtu".to_owned(), "9000".to_owned());
        assert!(!kept.began_as_found());
    }
}
