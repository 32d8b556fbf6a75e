//! The promises of every knob, and their checks.

use std::process::Command;

use landspeed_knob::{Factor, FactorScope, Knob, KnobTarget, SideEffect, SystemSetting};

use crate::another::another;
use crate::namespace::{NamespaceSettings, look};

type PromiseCheck = fn(&Knob, &KnobTarget) -> Result<(), String>;

/// The promises of every knob.
pub(crate) static PROMISES: &[(&str, PromiseCheck)] = &[
    ("all is said of it", is_whole),
    ("a probe has its value or a reason", is_probed),
    ("probing changes nothing", is_only_probed),
    ("values that make no sense are refused", refuses),
    ("it is as written, or says why not", reads_back),
    ("it takes what it reads", takes_its_own),
    ("it goes back exactly", goes_back),
    ("its command sets it", has_a_command),
];

fn is_whole(knob: &Knob, _: &KnobTarget) -> Result<(), String> {
    let Factor { name, about, source, default, system, scope, .. } = knob.factor;
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    hold(!name.is_empty() && name.bytes().all(plain), "its name is odd")?;
    hold(is_line(about) && is_line(source), "it is not described in one line")?;
    hold(default.is_empty() && scope != FactorScope::Flow, "it is not a host's")?;
    hold(system != SystemSetting::Own, "nothing makes it last")
}

fn is_probed(knob: &Knob, target: &KnobTarget) -> Result<(), String> {
    let state = knob.probe(target);
    let has_reason = state.skip.as_deref().is_some_and(is_line);
    hold(has_reason || state.skip.is_none() && state.value.is_some(), format!("{state:?}"))?;
    state.value.map_or(Ok(()), |value| knob.factor.check(&value).map_err(text))
}

fn is_only_probed(knob: &Knob, target: &KnobTarget) -> Result<(), String> {
    let before = look(target);
    let (first, second) = (knob.probe(target), knob.probe(target));
    hold(first == second, format!("{first:?}, and then {second:?}"))?;
    same(&before, &look(target), |_| false)
}

/// Values that no knob has.
const SENSELESS: [&str; 5] = ["", "-f", "\u{1b}[31m", "1; reboot", "99999999999999999999999"];

fn refuses(knob: &Knob, _: &KnobTarget) -> Result<(), String> {
    for value in SENSELESS {
        let why = knob.factor.check(value).err().map(text).unwrap_or_default();
        hold(why.contains(knob.factor.name), format!("'{}': {why}", value.escape_default()))?;
    }
    Ok(())
}

/// Returns the current value and another one, if the row can be written here.
fn values(knob: &Knob, target: &KnobTarget) -> Option<(String, String)> {
    let state = knob.probe(target);
    let now = state.value.filter(|_| state.skip.is_none())?;
    let offered = state.choices.into_iter().find(|choice| *choice != now);
    let other = offered.or_else(|| another(&knob.factor.domain, &now))?;
    Some((now, other))
}

fn reads_back(knob: &Knob, target: &KnobTarget) -> Result<(), String> {
    let Some((now, other)) = values(knob, target) else { return Ok(()) };
    knob.factor.check(&other).map_err(text)?;
    let wrote = knob.setting.write(target, &other);
    let read = knob.setting.read(target).map_err(text)?;
    knob.setting.write(target, &now).map_err(text)?;
    match wrote.map_err(text) {
        Ok(()) => hold(read == other, format!("'{other}' was written, and '{read}' was read back")),
        Err(why) => hold(is_line(&why) && why.contains(knob.factor.name), why),
    }
}

fn takes_its_own(knob: &Knob, target: &KnobTarget) -> Result<(), String> {
    let Some((now, _)) = values(knob, target) else { return Ok(()) };
    let before = look(target);
    knob.setting.write(target, &now).map_err(text)?;
    same(&before, &look(target), |_| false)
}

fn goes_back(knob: &Knob, target: &KnobTarget) -> Result<(), String> {
    let Some((now, other)) = values(knob, target) else { return Ok(()) };
    let before = look(target);
    // A refused write changes nothing either.
    let _ = knob.setting.write(target, &other);
    knob.setting.write(target, &now).map_err(text)?;
    same(&before, &look(target), |what| {
        knob.factor.disturbs.iter().any(|disturbs| covers(*disturbs, what, target))
    })
}

/// The knobs whose link attribute only newer versions of iproute2 have, and the first version that has it.
const LATE_IN_IPROUTE2: &[(&str, f64)] = &[("gso-ipv4-max-size", 6.3), ("gro-ipv4-max-size", 6.3)];

/// Returns true if the `ip` of this host is new enough to set the knob `name`.
fn ip_can_set(name: &str) -> bool {
    let Some((_, since)) = LATE_IN_IPROUTE2.iter().find(|(late, _)| *late == name) else { return true };
    let said = Command::new("ip").arg("-V").output().expect("iproute2 is here").stdout;
    let said = String::from_utf8_lossy(&said);
    let version = said.split_once("iproute2-").expect("a version").1;
    let version: String = version.split('.').take(2).collect::<Vec<_>>().join(".");
    version.parse::<f64>().expect("a number") >= *since
}

/// Pastes the command for another value into a shell, and reads that value back.
fn has_a_command(knob: &Knob, target: &KnobTarget) -> Result<(), String> {
    let Some((now, other)) = values(knob, target) else { return Ok(()) };
    let Some(command) = knob.command(&target.device, &other) else { return Ok(()) };
    if !ip_can_set(knob.factor.name) {
        return Ok(());
    }
    // The shell's /sys shows the devices of its own namespace, as on a host.
    let line = format!("mount -t sysfs sysfs /sys && {command}");
    let ran = Command::new("unshare").args(["--mount", "sh", "-c", &line]).output().map_err(text)?;
    let read = knob.setting.read(target).map_err(text)?;
    knob.setting.write(target, &now).map_err(text)?;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    hold(ran.status.success() && read == other, format!("`{command}`: '{read}' was read back; {said}"))
}

/// Returns true if a setting with this name is among those that a write disturbs.
fn covers(disturbs: SideEffect, what: &str, target: &KnobTarget) -> bool {
    let of_device = |kind: &str| what == format!("{kind} of {}", target.device);
    match disturbs {
        SideEffect::Addresses => of_device("addresses"),
        SideEffect::Routes => what == "routes",
        SideEffect::DeviceSysctls => {
            what.starts_with("/proc/sys") && what.contains(&format!("/{}/", target.device))
        }
        SideEffect::Features => of_device("features"),
        SideEffect::Queues => ["rps", "xps", "rfs"].contains(&what),
        SideEffect::Qdisc => of_device("qdiscs") || what == "qdisc",
        // No device of this test is related to another.
        SideEffect::Related => false,
        SideEffect::Sysctl(name) => what == format!("/proc/sys/{}", name.replace('.', "/")),
    }
}

/// Compares two snapshots of a namespace's settings. Returns an error that lists the settings that differ, without
/// those for which `may_differ` returns true.
fn same(
    before: &NamespaceSettings,
    after: &NamespaceSettings,
    may_differ: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let differ = names.filter(|name| before.get(*name) != after.get(*name) && !may_differ(name));
    let lines: Vec<_> =
        differ.map(|name| format!("{name}: {:?} was {:?}", after.get(name), before.get(name))).collect();
    hold(lines.is_empty(), lines.join("; "))
}

fn is_line(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Returns an error unless `holds`.
fn hold(holds: bool, why: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.into()) }
}
