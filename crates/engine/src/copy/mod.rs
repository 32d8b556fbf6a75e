//! Copies files from one host of a pair to the other.

mod choose;
mod compare;
mod condition_changes;
mod conditions;
mod landing;
mod named;
mod one_tree;
mod slow;
mod timed;
mod tuned;
mod watch;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use landspeed_agent::session::{CopyFlows, CopyRoot, CopyRules, FoundPath, PathUse, Reply, Request};
use landspeed_record::{
    CopyChoice, CopyCounts, CopyKeeping, CopyLeftovers, CopyOutcome, CopyProven, CopyTimes, Line, PathBytes,
    RestoreOutcome, Role, Settings, Side,
};

use crate::answers::{RunCallbacks, both};
use crate::pair::DataEnds;
use crate::{Error, Host, Pair};

pub use choose::CopyChoosing;
use choose::CopyTrials;
pub use compare::{ComparisonDone, ComparisonListener, compare_files};
use conditions::CopyHosts;
pub use landing::{
    CopyPaths, Landing, LandingError, THIS_HOST, check_landing, check_mirror, landing, shown_place,
};
pub use one_tree::{check_apart, landed};
use slow::CopySlowing;
pub use timed::{CPU_TICK, TimedCommand, cpu_of_children, timed};
pub use tuned::{check_tunable, copy_tuned};
use watch::CopyWatch;

/// The time between two reports of a copy.
const REPORT: Duration = Duration::from_secs(1);
/// Additional time for the removal of incomplete files, which may be many or long.
const CLEANING: Duration = Duration::from_secs(120);
/// A copy has no fixed duration: its ends give up by themselves if a path stays silent. This limits the wait for its
/// end nevertheless.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// What is copied, and how.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    /// The side of the pair that has the files. The other side receives them.
    pub from: Side,
    pub roots: Vec<CopyRoot>,
    /// The folder that receives the files.
    pub folder: PathBytes,
    /// True if the copy ends only once everything is on stable storage.
    pub is_synced: bool,
    /// The attributes that are kept of each entry.
    pub keeping: CopyKeeping,
    /// The settings of the flows, with their transport.
    pub flow: Settings,
    /// The number of flows.
    pub flows: u32,
    /// The user's further options.
    pub rules: CopyRules,
    /// The names below the source folder to which the copy is limited; `None` for all.
    pub only: Option<Vec<PathBytes>>,
    /// The settings that the copy may change while it runs; `None` for none.
    pub choosing: Option<CopyChoosing>,
}

/// Returns what exists at these paths of a host, and its location.
///
/// # Errors
/// Returns an error if the host cannot be asked, or if its agent does not permit such a use of one of the paths.
pub fn look(host: &Host, paths: Vec<PathBytes>, to: PathUse) -> Result<Vec<FoundPath>, Error> {
    let asked = paths.len();
    match host.call(&Request::CopyLook { paths_hex: paths, to })? {
        Reply::Paths { found } if found.len() == asked => Ok(found),
        _ => Err(host.unexpected("look at paths")),
    }
}

/// Removes the incomplete files that copies have left in a folder of a host, and returns them. With `only_list`, removes
/// nothing.
///
/// # Errors
/// Returns an error if the host cannot be asked or may not be copied to, if a copy writes into the folder now, or if a
/// file cannot be removed.
pub fn clean(host: &Host, folder: PathBytes, only_list: bool) -> Result<CopyLeftovers, Error> {
    let pending = host.start(&Request::CopyClean { folder_hex: folder, only_list })?;
    match host.wait(pending, host.patience() + CLEANING)? {
        Reply::CopyLeft { left } => Ok(*left),
        _ => Err(host.unexpected("list incomplete files")),
    }
}

/// The result of a copy.
#[derive(Debug)]
pub struct CopyDone {
    pub outcome: CopyOutcome,
    /// The time at which both ends had reported the end.
    pub ended: Instant,
    /// The times of the stages at both ends.
    pub times: CopyTimes,
    /// The settings of the flows that differed from the requested ones: the host, and one line each.
    pub not_as_asked: Vec<String>,
    /// The ciphers that both ends agreed on. There is one, unless flows chose differently, and none if the transport
    /// does not report it.
    pub ciphers: BTreeSet<String>,
    /// The congestion controls that the source's sockets used on the path.
    pub controls: BTreeSet<String>,
    /// The setting that was chosen during the copy.
    pub choice: CopyChoice,
    /// How the hosts' settings were restored; `None` if none was changed.
    pub restored: Option<RestoreOutcome>,
}

/// Callbacks during a copy.
pub struct CopyListener<'a> {
    /// Receives the counts and times so far, about once a second.
    pub on_counts: &'a dyn Fn(CopyCounts, CopyTimes),
    /// Receives files whose copies were proven, if the options request digests.
    pub on_proven: &'a dyn Fn(Vec<CopyProven>),
    /// Receives the record's lines on hosts and on compared settings.
    pub on_line: &'a dyn Fn(Line),
    /// Returns true if the copy must end.
    pub stop: &'a dyn Fn() -> bool,
}

/// Copies files from one host of the pair to the other.
///
/// # Errors
/// Returns an error if a host fails, a flow breaks, the target cannot be used, or the listener ends the copy. An entry
/// that fails is part of the outcome.
pub fn copy(pair: &Pair<'_>, what: &CopyOptions, listener: &CopyListener<'_>) -> Result<CopyDone, Error> {
    named::name(pair, what)?;
    let ends = pair.data_ends(&what.flow)?;
    let requests = Side::BOTH.map(|side| request(side, what, &ends));
    // Starts the server first, so that it listens when the client connects.
    let server = pair.b.start(&requests[1])?;
    let client = pair.a.start(&requests[0])?;
    let hosts = RefCell::new(CopyHosts::ask(pair, what.from));
    let watch = CopyWatch::new(pair, what.from);
    let trials = RefCell::new(CopyTrials::begin(pair, what));
    let slowing = RefCell::new(CopySlowing::begin(pair, what));
    let report = || {
        hosts.borrow_mut().step().into_iter().for_each(listener.on_line);
        let news = watch.look();
        if let Some((counts, times)) = news {
            (listener.on_counts)(counts, times);
        }
        if !watch.is_broken() {
            trials.borrow_mut().has_windows(hosts.borrow().windows(&what.flow));
            let lines = trials.borrow_mut().step(news);
            let more = slowing.borrow_mut().step(&trials.borrow());
            lines.into_iter().chain(more).for_each(listener.on_line);
            // The session notices a host that does not answer.
            let _ = hand_over(pair, what, listener);
        }
        (listener.stop)()
    };
    let callbacks = RunCallbacks { stop: &report, on_progress: &|_, _| {} };
    let Some(answers) = both([pair.a, pair.b], [client, server], LONGEST, &callbacks)? else {
        return Err(stopped(pair));
    };
    let ended = Instant::now();
    hosts.borrow_mut().ask_last();
    hand_over(pair, what, listener)?;
    let outcome = |answer| if let Reply::Copied { outcome } = answer { Some(outcome) } else { None };
    match answers.into_iter().find_map(outcome) {
        Some(outcome) => {
            let (choice, lines) = trials.into_inner().finish();
            lines.into_iter().chain(slowing.into_inner().finish()).for_each(listener.on_line);
            let SaidOfFlows { not_as_asked, ciphers, controls } = said_of_flows(pair, what.from);
            let (outcome, times) = (*outcome, watch.end());
            // Last, because a host may be slow to answer.
            hosts.into_inner().finish().into_iter().for_each(listener.on_line);
            let restored = None;
            Ok(CopyDone { outcome, ended, times, not_as_asked, ciphers, controls, choice, restored })
        }
        None => Err(pair.host(what.from).unexpected("send files")),
    }
}

/// Ends a copy at both ends, and returns the error for it. An end that does not get the message ends with its session.
fn stopped(pair: &Pair<'_>) -> Error {
    for host in [pair.a, pair.b] {
        drop(host.start(&Request::Cancel {}));
    }
    Error::Other("ended: what was copied stays, and the same command goes on from there".to_owned())
}

/// The reports of both ends about the flows of a finished copy or comparison.
#[derive(Default)]
struct SaidOfFlows {
    /// The settings that differed from the requested ones: the host, and one line each.
    not_as_asked: Vec<String>,
    ciphers: BTreeSet<String>,
    /// The congestion controls of the end that sent.
    controls: BTreeSet<String>,
}

/// Collects the reports of both ends about the flows. Ignores a host that does not answer. The source is at side
/// `from`.
fn said_of_flows(pair: &Pair<'_>, from: Side) -> SaidOfFlows {
    let mut said = SaidOfFlows::default();
    for side in Side::BOTH {
        let host = pair.host(side);
        let Ok(Reply::CopyState { not_as_asked, ciphers, controls, .. }) = host.call(&Request::CopyState {})
        else {
            continue;
        };
        said.not_as_asked.extend(not_as_asked.into_iter().map(|line| format!("{}: {line}", host.name)));
        said.ciphers.extend(ciphers);
        // Relayed flows use loopback at both ends.
        said.controls.extend(controls.into_iter().filter(|_| side == from && !pair.is_relayed()));
    }
    said
}

/// Passes files whose copies were proven to the listener, if they are listed.
fn hand_over(pair: &Pair<'_>, what: &CopyOptions, listener: &CopyListener<'_>) -> Result<(), Error> {
    if !what.rules.lists_digests {
        return Ok(());
    }
    let source = pair.host(what.from);
    loop {
        match source.call(&Request::CopyProven {})? {
            Reply::CopyProven { entries } if entries.is_empty() => return Ok(()),
            Reply::CopyProven { entries } => (listener.on_proven)(entries),
            _ => return Err(source.unexpected("list digests")),
        }
    }
}

/// Returns the request for one side.
fn request(side: Side, what: &CopyOptions, ends: &DataEnds) -> Request {
    let (flows, rules) = (flows(side, what, ends), Box::new(what.rules.clone()));
    let keeping = what.keeping.clone();
    match side == what.from {
        true => Request::CopyOut { flows, roots: what.roots.clone(), keeping, rules },
        false => Request::CopyIn {
            flows,
            folder_hex: what.folder.clone(),
            names_hex: names(what),
            is_synced: what.is_synced,
            keeping,
            rules,
        },
    }
}

/// Returns the flows of one side for its request.
fn flows(side: Side, what: &CopyOptions, ends: &DataEnds) -> Box<CopyFlows> {
    Box::new(CopyFlows {
        role: if side == Side::A { Role::Client } else { Role::Server },
        at: ends.at[side as usize],
        is_relayed: ends.is_relayed,
        key: ends.key.clone(),
        settings: what.flow.clone(),
        count: what.flows,
        most: what.most_flows(),
        patience_ns: ends.patience,
    })
}

/// Returns the names that the source may use in the target's folder.
fn names(what: &CopyOptions) -> Vec<PathBytes> {
    what.roots.iter().map(|root| root.name_hex.clone()).collect()
}
