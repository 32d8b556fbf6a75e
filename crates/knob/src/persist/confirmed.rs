//! The part of a run's final setting that later blocks confirmed.

use landspeed_record::{Cell, Settings, StepLine};

use super::change::UnpersistedSetting;
use crate::persist::shown;

/// A function that returns the settings that the knob with this name needs, as (knob, value), from the knob table.
pub type KnobNeeds<'a> = &'a dyn Fn(&str) -> &'static [(&'static str, &'static str)];

/// Returns the setting to persist, and the steps that it leaves out. The setting is `start` with every kept step,
/// except those that the blocks over the rest of the run did not confirm. It also contains the settings of `end` that
/// its knobs need, even if they come from a step that is left out. `steps` are the run's decisions in order, each in
/// its last version.
pub fn confirmed(
    start: &Cell,
    end: &Cell,
    steps: &[&StepLine],
    needs: KnobNeeds<'_>,
) -> (Cell, Vec<UnpersistedSetting>) {
    let (mut sure, mut left_out) = (start.clone(), Vec::new());
    for step in steps.iter().filter(|step| step.summary.kept) {
        if step.summary.confirmed == Some(false) {
            left_out.push(UnpersistedSetting { knob: shown(&step.summary.knob), why: why(step) });
        } else {
            sure = sure.with(&change(&step.incumbent, &step.candidate));
        }
    }
    for (sure, start, end) in [
        (&mut sure.a, &start.a, &end.a),
        (&mut sure.b, &start.b, &end.b),
        (&mut sure.flow, &start.flow, &end.flow),
    ] {
        add_needed(sure, start, end, needs);
    }
    (sure, left_out)
}

fn why(step: &StepLine) -> String {
    format!(
        "{} was kept but not confirmed: blocks over the rest of the run did not show its gain again; --unconfirmed \
         writes it too",
        shown(&step.summary.value)
    )
}

/// Returns the settings of `to` that differ from `from`.
fn change(from: &Cell, to: &Cell) -> Cell {
    let differing = |from: &Settings, to: &Settings| -> Settings {
        to.iter()
            .filter(|(knob, value)| from.get(*knob) != Some(*value))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    };
    Cell { a: differing(&from.a, &to.a), b: differing(&from.b, &to.b), flow: differing(&from.flow, &to.flow) }
}

/// Adds to `sure` those settings of `end` that the changes from `start` to `sure` need, until nothing more is needed.
fn add_needed(sure: &mut Settings, start: &Settings, end: &Settings, needs: KnobNeeds<'_>) {
    loop {
        let changed = sure.iter().filter(|(knob, value)| start.get(*knob) != Some(*value));
        let missing = changed.flat_map(|(knob, _)| needs(knob)).find(|(knob, value)| {
            let is_in = |settings: &Settings| settings.get(*knob).is_some_and(|now| now == value);
            is_in(end) && !is_in(sure)
        });
        let Some((knob, value)) = missing else { return };
        sure.insert((*knob).to_owned(), (*value).to_owned());
    }
}
