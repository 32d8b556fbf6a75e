//! What a person asks to vary: each factor found where it is declared, its values checked. Pure.

use landspeed_factor::{Domain, Factor, On, Scope};
use landspeed_record::{GridFactor, GridPlace, LevelKind};
use landspeed_topology as topology;
use landspeed_units::{BitRate, Nanos, parse_duration};
use landspeed_workload::Runner;

use crate::Error;
use crate::factors::all_factors;

/// A factor that takes longer than this to change is varied over whole plots: a settled cell is worth more than a random
/// place in the block.
pub(super) const SLOW: Nanos = Nanos::millis(100);
/// What it takes to take a lab down, make another and join its hosts, until it was measured.
const ANOTHER_LAB: Nanos = Nanos::secs(1);

/// Finds the factor of "mtu=1500,9000" among the workload's parameters, the settings of flows, the knobs of hosts and the
/// parameters of the lab that `words` name. "mtu@b=..." is a knob of host B alone.
///
/// # Errors
/// What is wrong with the name, or with which value.
pub fn vary(text: &str, runner: &dyn Runner, words: &[String]) -> Result<GridFactor, Error> {
    let (name, values) = text.split_once('=').ok_or_else(|| {
        Error::Other(format!("--vary {text}: expected FACTOR=VALUE,..., such as mtu=1500,9000"))
    })?;
    let (name, side) = side(name.trim());
    let parameters = runner.parameters();
    if let Some(parameter) = parameters.iter().find(|parameter| parameter.name == name) {
        alone(text, side)?;
        return factor(parameter, GridPlace::Workload, values);
    }
    if let Some(parameter) = of_topology(name, words) {
        alone(text, side)?;
        let toggle = ANOTHER_LAB;
        return Ok(GridFactor {
            is_slow: true,
            toggle_ns: toggle,
            ..factor(&parameter, GridPlace::Topology, values)?
        });
    }
    let found = all_factors().named(name).map_err(|_| unknown(name, &parameters, words))?;
    let place = match (found.scope, side, found.on) {
        (Scope::Flow, ..) => {
            alone(text, side)?;
            GridPlace::Flow
        }
        (_, Some(place), _) => place,
        (_, None, On::Sender) => GridPlace::A,
        (_, None, On::Receiver) => GridPlace::B,
        (_, None, _) => GridPlace::Both,
    };
    factor(found, place, values)
}

/// "mtu@b" is of host B.
fn side(name: &str) -> (&str, Option<GridPlace>) {
    match name.rsplit_once('@') {
        Some((name, "a" | "A")) => (name, Some(GridPlace::A)),
        Some((name, "b" | "B")) => (name, Some(GridPlace::B)),
        _ => (name, None),
    }
}

/// Refuses a host for what belongs to none.
fn alone(text: &str, side: Option<GridPlace>) -> Result<(), Error> {
    match side {
        None => Ok(()),
        Some(_) => Err(Error::Other(format!("--vary {text}: only a host's knob takes @a or @b"))),
    }
}

fn factor(found: &Factor, place: GridPlace, values: &str) -> Result<GridFactor, Error> {
    let levels = found.levels(values)?;
    let amounts: Option<Vec<f64>> = levels.iter().map(|level| found.amount(level)).collect();
    Ok(GridFactor {
        name: found.name.to_owned(),
        place,
        kind: if amounts.is_some() { kind(&found.domain) } else { LevelKind::Words },
        levels,
        amounts: amounts.unwrap_or_default(),
        is_slow: found.toggle > SLOW,
        toggle_ns: found.toggle,
    })
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

/// A parameter of the lab that the words name, as a factor.
fn of_topology(name: &str, words: &[String]) -> Option<Factor> {
    let topology = topology::find(words).ok()?;
    let groups = topology.parameters();
    let parameter = groups.iter().flat_map(|(_, all)| all).find(|parameter| parameter.name == name)?;
    Some(Factor { name: parameter.name, domain: domain(parameter.default), ..Factor::FLOW })
}

/// What a parameter of a lab takes, by its default: the lab itself checks what lies in it.
fn domain(default: &str) -> Domain {
    const LONGEST: usize = 64;
    match default {
        time if time.ends_with('s') && parse_duration(time).is_ok() => {
            Domain::Time(Nanos(0), Nanos::secs(3600))
        }
        rate if rate.parse::<BitRate>().is_ok() => Domain::Rate(0, 1 << 53),
        _ => Domain::Text(LONGEST),
    }
}

fn unknown(name: &str, parameters: &[&Factor], words: &[String]) -> Error {
    let of_lab = topology::find(words).map(|topology| topology.parameters()).unwrap_or_default();
    let of_lab = of_lab.iter().flat_map(|(_, all)| all).map(|parameter| parameter.name);
    let known = parameters.iter().map(|parameter| parameter.name).chain(of_lab);
    Error::Factor(landspeed_factor::Error::unknown(
        name,
        known.chain(all_factors().all().map(|one| one.name)),
    ))
}
