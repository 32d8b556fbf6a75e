//! The settings with which a tuning run starts, and those with which it compares.

use landspeed_record::factor::FactorPlacement;
use landspeed_record::{Cell, Settings};

use crate::Error;
use crate::factors::all_factors;

/// Overrides settings of a cell. A knob that no host has is left out. Returns the cell, and its changes as texts.
pub(super) fn overlay<'a>(
    found: &Cell,
    settings: impl IntoIterator<Item = (&'a str, String)>,
) -> Result<(Cell, Vec<String>), Error> {
    let mut cell = found.clone();
    let mut changes = Vec::new();
    for (name, value) in settings {
        for (place, side) in places(&mut cell, name)? {
            if let Some(now) = place.get_mut(name).filter(|now| **now != value) {
                changes.push(format!("{side}: {name}: {now} -> {value}"));
                now.clone_from(&value);
            }
        }
    }
    Ok((cell, changes))
}

/// Overrides settings of a cell with those that a user named. Returns an error for a knob that no host has.
pub(super) fn overlay_all(found: &Cell, settings: &Settings) -> Result<Cell, Error> {
    let mut cell = found.clone();
    for (name, value) in settings {
        all_factors().check(name, value)?;
        if places(&mut cell, name)?.iter().all(|(place, _)| !place.contains_key(name)) {
            return Err(Error::Other(format!("{name} cannot be turned here: see `landspeed knobs`")));
        }
    }
    let all = settings.iter().map(|(name, value)| (name.as_str(), value.clone()));
    Ok(overlay(found, all)?.0)
}

/// Returns the parts of `cell` to which the knob `name` belongs, each with its name for the user.
fn places<'a>(cell: &'a mut Cell, name: &str) -> Result<Vec<(&'a mut Settings, &'static str)>, Error> {
    Ok(match all_factors().find(name)?.on {
        FactorPlacement::Flow => vec![(&mut cell.flow, "flow")],
        FactorPlacement::Sender => vec![(&mut cell.a, "A")],
        FactorPlacement::Receiver => vec![(&mut cell.b, "B")],
        FactorPlacement::Both => vec![(&mut cell.a, "A"), (&mut cell.b, "B")],
    })
}

/// Returns the settings with which SC'03 started (feng-2003 3.3.1, the stock configuration): MTU 1500, no offloads, 64
/// KB windows, Reno, 8 KB writes, sender and receiver on different processors. Coalescing keeps its default.
///
/// Each knob applies to the hosts that its row's [`crate::Factor::on`] names; a knob that a host lacks is left out. A
/// receive buffer of 128 KB makes a window of 64 KB: the other half is for the overhead of packets beyond their
/// payload.
pub(crate) fn sc03() -> Vec<(&'static str, String)> {
    const START: &[(&str, &str)] = &[
        ("placement", "neighbours"),
        ("write-size", "8192"),
        ("tcp-rmem", "4096 131072 131072"),
        ("tcp-wmem", "4096 131072 131072"),
        ("congestion-control", "reno"),
        ("mtu", "1500"),
        ("tx-checksum", "off"),
        ("scatter-gather", "off"),
        ("tso", "off"),
        ("gso", "off"),
        ("rx-checksum", "off"),
        ("gro", "off"),
        ("lro", "off"),
        ("hw-gro", "off"),
    ];
    START.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_lies_in_the_table() {
        for (name, value) in sc03() {
            crate::all_factors().check(name, &value).unwrap();
        }
    }
}
