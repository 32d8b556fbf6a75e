//! Looks up the declarations of the names to vary or set, and checks their values. This module does no I/O.

use std::collections::BTreeMap;

use landspeed_lab::topology;
use landspeed_record::factor::{Domain, Factor, FactorDeclaration, FactorPlacement, FactorScope};
use landspeed_record::units::{BitRate, Nanos, parse_duration};
use landspeed_record::{GridFactor, GridSetting, GridSettingTarget, LevelKind};
use landspeed_workload::WorkloadRunner;

use crate::Error;
use crate::factors::all_factors;

/// The longest toggle time of a factor that is not slow. A slow factor keeps its value over a whole plot, because a
/// settled cell is worth more than a random position of each cell in the block.
pub(super) const SLOW: Nanos = Nanos::millis(100);
/// The assumed time to take a lab down, create another and join its hosts. It is used until the time is measured.
const ANOTHER_LAB: Nanos = Nanos::secs(1);

/// The scope in which names are looked up: the workload that runs, and the words of the topology.
#[derive(Clone, Copy)]
pub struct FactorNames<'a> {
    pub runner: &'a dyn WorkloadRunner,
    pub words: &'a [String],
}

/// The declaration of a name, and the place to which its settings belong.
struct NamedFactor<'a> {
    factor: FactorDeclaration<'a>,
    place: GridSettingTarget,
}

/// Parses a factor with its values, such as "mtu=1500,9000".
///
/// # Errors
/// Returns an error that shows the name or the value that is not valid.
pub fn vary(text: &str, names: FactorNames<'_>) -> Result<GridFactor, Error> {
    let (name, values) = text.split_once('=').ok_or_else(|| {
        Error::Other(format!("--vary {text}: expected FACTOR=VALUE,..., such as mtu=1500,9000"))
    })?;
    factor(name.trim(), values, names)
}

impl<'a> FactorNames<'a> {
    /// Finds a name among the workload's parameters, the settings of flows, the knobs of hosts and the parameters of
    /// the lab. "mtu@b" is the knob of host B alone; "topology" is the lab itself.
    fn find(&self, text: &str) -> Result<NamedFactor<'a>, Error> {
        let (name, side) = side(text);
        let alone = |named: NamedFactor<'a>| match side {
            None => Ok(named),
            Some(_) => Err(Error::Other(format!("{text}: only a host's knob takes @a or @b"))),
        };
        let parameters = self.runner.parameters();
        if let Some(parameter) = parameters.iter().find(|parameter| parameter.name == name) {
            return alone(NamedFactor { factor: *parameter, place: GridSettingTarget::Workload });
        }
        if let Some(factor) = self.of_topology(name) {
            return alone(NamedFactor { factor, place: GridSettingTarget::Topology });
        }
        let factor = *all_factors().named(name).map_err(|_| self.unknown(name, &parameters))?;
        let place = match (factor.scope, side, factor.on) {
            (FactorScope::Flow, ..) => return alone(NamedFactor { factor, place: GridSettingTarget::Flow }),
            (_, Some(place), _) => place,
            (_, None, FactorPlacement::Sender) => GridSettingTarget::A,
            (_, None, FactorPlacement::Receiver) => GridSettingTarget::B,
            (_, None, _) => GridSettingTarget::Both,
        };
        Ok(NamedFactor { factor, place })
    }

    /// Returns the factor of a lab's parameter, of the lab itself ("topology") or of the fan ("fan"); `None` for other
    /// names.
    fn of_topology(&self, name: &str) -> Option<Factor> {
        if let Some(one) = [TOPOLOGY, FAN].into_iter().find(|one| one.name == name) {
            return Some(one);
        }
        let groups = topology::find(self.words).ok()?.parameters();
        let parameter = groups.iter().flat_map(|(_, all)| all).find(|parameter| parameter.name == name)?;
        Some(Factor { name: parameter.name, domain: lab_domain(parameter.default), ..Factor::FLOW })
    }

    fn unknown(&self, name: &str, parameters: &[FactorDeclaration<'_>]) -> Error {
        let of_lab = topology::find(self.words).map(|topology| topology.parameters()).unwrap_or_default();
        let of_lab = of_lab.iter().flat_map(|(_, all)| all).map(|parameter| parameter.name);
        let known = parameters.iter().map(|parameter| parameter.name).chain(of_lab);
        let known = known.chain(all_factors().all().map(|one| one.name));
        Error::Factor(landspeed_record::factor::Error::unknown(name, known))
    }
}

/// The factor whose values are whole labs. Semicolons separate its values, because the words of a lab contain commas.
const TOPOLOGY: Factor = Factor { name: "topology", domain: Domain::Text(200), ..Factor::FLOW };

/// The factor of the pairs that run at the same time. With `in` all other hosts send to the last one. With `out` the
/// last host sends to all others.
pub const FAN: Factor = Factor { name: "fan", domain: Domain::OneOf(&["in", "out"]), ..Factor::FLOW };

/// Returns the factor `name` with the values that the text `values` lists.
///
/// # Errors
/// Returns an error that shows the name or the value that is not valid.
pub fn factor(name: &str, values: &str, names: FactorNames<'_>) -> Result<GridFactor, Error> {
    let NamedFactor { factor: found, place } = names.find(name)?;
    let levels = match found.name == TOPOLOGY.name {
        true => values.split(';').map(|words| words.trim().to_owned()).collect(),
        false => found.levels(values)?,
    };
    let amounts: Option<Vec<f64>> = levels.iter().map(|level| found.amount(level)).collect();
    let setting =
        |value: &String| vec![GridSetting { name: found.name.to_owned(), place, value: value.clone() }];
    Ok(GridFactor {
        name: found.name.to_owned(),
        kind: if amounts.is_some() { kind(&found.domain) } else { LevelKind::Words },
        sets: levels.iter().map(setting).collect(),
        levels,
        amounts: amounts.unwrap_or_default(),
        is_slow: false,
        toggle_ns: toggle(place, &found),
        turned_out: BTreeMap::new(),
    }
    .with_slowness())
}

/// Returns the setting of `name` to `value`, with its place.
///
/// # Errors
/// Returns an error that shows the name or the value that is not valid.
pub fn set(name: &str, value: &str, names: FactorNames<'_>) -> Result<GridSetting, Error> {
    let NamedFactor { factor, place } = names.find(name)?;
    Ok(GridSetting { name: factor.name.to_owned(), place, value: factor.parse(value)? })
}

/// Returns a factor of which each level is a named group of settings.
pub fn bundle(name: &str, levels: Vec<(String, Vec<GridSetting>)>) -> GridFactor {
    let (levels, sets): (Vec<_>, Vec<_>) = levels.into_iter().unzip();
    let toggle = |one: &GridSetting| match one.place {
        GridSettingTarget::Topology => ANOTHER_LAB,
        _ => all_factors().find(&one.name).map_or(Nanos(0), |factor| factor.toggle),
    };
    let toggle_ns = sets.iter().map(|set| set.iter().map(toggle).sum()).max().unwrap_or_default();
    GridFactor { name: name.to_owned(), levels, sets, toggle_ns, ..GridFactor::default() }.with_slowness()
}

/// Returns the approximate time to change a factor. A parameter of the lab takes the time of another lab.
fn toggle(place: GridSettingTarget, factor: &FactorDeclaration<'_>) -> Nanos {
    if place == GridSettingTarget::Topology { ANOTHER_LAB } else { factor.toggle }
}

/// Marks a factor as slow if its changes take longer than [`SLOW`].
pub(super) trait GridFactorExt {
    fn with_slowness(self) -> Self;
}

impl GridFactorExt for GridFactor {
    fn with_slowness(self) -> Self {
        GridFactor { is_slow: self.toggle_ns > SLOW, ..self }
    }
}

/// Splits a name such as "mtu@b" into the knob and the host. The host is `None` without a suffix.
fn side(name: &str) -> (&str, Option<GridSettingTarget>) {
    match name.rsplit_once('@') {
        Some((name, "a" | "A")) => (name, Some(GridSettingTarget::A)),
        Some((name, "b" | "B")) => (name, Some(GridSettingTarget::B)),
        _ => (name, None),
    }
}

fn kind(domain: &Domain) -> LevelKind {
    match domain {
        Domain::Bytes(..) | Domain::Sizes(..) => LevelKind::Bytes,
        Domain::Time(..) => LevelKind::Time,
        Domain::Rate(..) => LevelKind::Rate,
        Domain::Each(inner) => kind(inner),
        _ => LevelKind::Number,
    }
}

/// Returns the domain of a lab's parameter, guessed from one of its values. The lab itself checks them.
pub(crate) fn lab_domain(value: &str) -> Domain<'static> {
    const LONGEST: usize = 64;
    match value {
        time if time.ends_with('s') && parse_duration(time).is_ok() => {
            Domain::Time(Nanos(0), Nanos::secs(3600))
        }
        rate if rate.parse::<BitRate>().is_ok() => Domain::Rate(0, 1 << 53),
        _ => Domain::Text(LONGEST),
    }
}
