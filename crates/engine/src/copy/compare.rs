//! Compares files on one host of a pair with those on the other.

use std::cell::Cell;
use std::time::Instant;

use landspeed_agent::session::{Reply, Request};
use landspeed_record::{CopyCheck, CopyComparison, CopyCounts, CopyDiffering, Side};

use super::{CopyOptions, LONGEST, REPORT, flows, named, names, said_of_flows};
use crate::answers::{RunCallbacks, both};
use crate::pair::DataEnds;
use crate::{Error, Host, Pair};

/// Callbacks during a comparison.
pub struct ComparisonListener<'a> {
    /// Receives the counts so far, about once a second.
    pub on_counts: &'a dyn Fn(CopyCounts),
    /// Receives entries that differ at the target.
    pub on_differing: &'a dyn Fn(Vec<CopyDiffering>),
}

/// The result of a comparison.
#[derive(Debug)]
pub struct ComparisonDone {
    pub outcome: CopyComparison,
    /// The settings of the flows that differed from the requested ones: the host, and one line each.
    pub not_as_asked: Vec<String>,
}

/// Compares files on one host of the pair with those on the other, and changes nothing. Reports every entry that
/// differs to the listener.
///
/// # Errors
/// Returns an error if a host fails, if a flow breaks, or if a copy could not write into the target's folder. An entry
/// that cannot be compared is part of the result.
pub fn compare_files(
    pair: &Pair<'_>,
    what: &CopyOptions,
    check: CopyCheck,
    listener: &ComparisonListener<'_>,
) -> Result<ComparisonDone, Error> {
    named::name(pair, what)?;
    let ends = pair.data_ends(&what.flow)?;
    let [client, server] = Side::BOTH.map(|side| request(side, what, check, &ends));
    // Starts the server first, so that it listens when the client connects.
    let server = pair.b.start(&server)?;
    let client = pair.a.start(&client)?;
    let source = pair.host(what.from);
    let reported = Cell::new(Instant::now());
    let report = || {
        // The session notices a host that does not answer.
        let _ = hand_over(source, listener);
        if reported.get().elapsed() >= REPORT {
            reported.set(Instant::now());
            if let Ok(Reply::CopyState { counts, .. }) = source.call(&Request::CopyState {}) {
                (listener.on_counts)(counts);
            }
        }
        false
    };
    let callbacks = RunCallbacks { stop: &report, on_progress: &|_, _| {} };
    let answers = both([pair.a, pair.b], [client, server], LONGEST, &callbacks)?;
    let outcome = |answer| if let Reply::Compared { outcome } = answer { Some(outcome) } else { None };
    let outcome = answers.into_iter().flatten().find_map(outcome);
    hand_over(source, listener)?;
    let outcome = outcome.ok_or_else(|| source.unexpected("compare files"))?;
    Ok(ComparisonDone { outcome: *outcome, not_as_asked: said_of_flows(pair, what.from).not_as_asked })
}

/// Passes the entries that wait at the source to the listener.
fn hand_over(source: &Host, listener: &ComparisonListener<'_>) -> Result<(), Error> {
    loop {
        match source.call(&Request::CopyListed {})? {
            Reply::CopyListed { entries } if entries.is_empty() => return Ok(()),
            Reply::CopyListed { entries } => (listener.on_differing)(entries),
            _ => return Err(source.unexpected("list files that differ")),
        }
    }
}

/// Returns the request for one side.
fn request(side: Side, what: &CopyOptions, check: CopyCheck, ends: &DataEnds) -> Request {
    let (mut flows, keeping) = (flows(side, what, ends), what.keeping.clone());
    // A comparison changes no setting while it runs.
    flows.most = None;
    let rules = Box::new(what.rules.clone());
    match side == what.from {
        true => Request::CompareOut { flows, roots: what.roots.clone(), check, keeping, rules },
        false => {
            let (folder_hex, names_hex) = (what.folder.clone(), names(what));
            Request::CompareIn { flows, folder_hex, names_hex, check, keeping, rules }
        }
    }
}
