//! `landspeed copy`: copies files between hosts.

pub(crate) mod against;
mod choose;
pub(crate) mod clean;
pub(crate) mod dry_run;
mod flow;
mod keep;
mod lands;
mod lists;
mod manifest;
mod names;
mod place;
pub(crate) mod progress;
mod recording;
mod rules;
mod summary;
mod tuned;
pub(crate) mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use landspeed_agent::session::{CopyRules, PathUse};
use landspeed_analysis::copy_report;
use landspeed_engine::{
    ComparisonDone, ComparisonListener, CopyListener, CopyOptions, JoinedHosts, Landing, Meeting,
    compare_files, copy, copy_tuned, shown_place,
};
use landspeed_record::{
    COPY_PATIENCE_TIMES, CopyCheck, CopyCounts, CopyDiffering, CopyKeeping, CopyOutcome, CopyPlan,
    CopyProven, CopyReport, CopyRoute, CopyTimes, Line, Record, Side,
};
use landspeed_report::live::print_if_room;
use landspeed_report::{
    choice_lines, condition_lines, counted, encrypted_words, held_lines, host_setting_lines,
    host_setting_words, resent_words, safe,
};

use crate::exit::Exit;
use crate::failure::{because, in_one_line};
use crate::groups::ReachArgs;
use crate::hosts::joined_for_copy;
use crate::output::{out, present, usage};
use crate::shown::ShownRecord;
use crate::stop::StopRequest;
use against::AgainstArgs;
use choose::ChooseArgs;
use flow::{CopyFlow, CopyFlowArgs};
use keep::{KeepArgs, lost_lines, lost_words};
use lands::lands;
use manifest::{Manifest, ManifestCounts};
use names::{failed, unlisted};
use place::{CopyPlaces, places};
use progress::{CopyProgressDisplay, ProgressArgs};
use recording::{CopyRecorder, RecordArgs, plan};
use rules::RuleArgs;
use summary::beside_files;
use tuned::CopyTuneArgs;
use verify::VerifiedFrom;

/// The part of the long help that concerns no single option.
const HELP: &str = "\
A folder is copied into TARGET under its own name. With a slash at its end
(run7/), only its entries are copied into TARGET. A single file gets TARGET's
name, unless TARGET is a folder.

Names, content, modes, times, extended attributes, ACLs, symbolic links and
FIFOs are copied. If the far end is root, so are owners and groups by number,
set-user-ID bits and capabilities. Files that are hard links to each other stay
hard links. Attributes that the target does not accept are counted by kind, and
the copy ends with 6; --keep leaves kinds out. A hole takes no time, and no
space if the target's file system has holes. Sockets are named and left out,
and so are devices without --devices.

Within one host, the data uses loopback, encrypted as between hosts. That
works, but cp is faster.

An entry of the same size and time stays as it is. What an interrupted copy has
received stays in TARGET/.landspeed-copy, and the same command continues from
there.

The first host opens the flows: this machine if it is one of the two, otherwise
the source. If a firewall or NAT prevents that, the other host opens them. If
neither host reaches the other, this machine relays the data over its sessions
with both (ssh, for example). That is slower, and still encrypted from one host
to the other. landspeed says so before it begins; --direct refuses it.

On a lossy path, --set socket-congestion=bbr or --transport udt may be faster.
`landspeed measure stream` shows which is.

If the path breaks, broken flows are opened again for up to ten times
--patience, 5 minutes by default. Data that has arrived is not sent again.

With --tune, both hosts have the settings that the newest `landspeed tune` of
this path kept. All settings are restored at the end of the copy, however it
ends. --tune needs logins as root, because a copy does not become root itself.

While it runs and at its end, a copy names its limit and the next one: a disk,
a file system, a processor or its quota, a window, losses, the path's rate, a
relay, or --limit-rate. `landspeed show last` shows this again from the copy's
record, also as a page (--html).";

const EXAMPLES: &str = "\
Examples:
  landspeed copy run7 dtn2:/scratch             to another host
  landspeed copy dtn1:/data/run7/ dtn2:/run7    from one host to another
  landspeed copy dtn1:results.tar .             to this one
  landspeed copy dtn1:/data dtn1:/backup        within a host
  landspeed copy --dry-run run7 dtn2:/scratch   show what the first one would do
  landspeed copy --verify run7 dtn2:/scratch    check that all is there
  landspeed copy --delete run7 dtn2:/scratch    and delete what run7 lacks
  landspeed copy --ignore '*.o' run7 dtn2:      all but object files
  landspeed copy --clean dtn2:/scratch          give up an interrupted copy
  landspeed copy --transport quic run7 dtn2:    over QUIC
  landspeed copy --tune run7 root@dtn2:/scratch with the settings of tune
  landspeed copy --against rsync,scp run7 dtn2: compared with rsync and scp";

/// Copy files between hosts, encrypted, with every byte verified
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{HELP}\n\n{EXAMPLES}"))]
pub(crate) struct CopyArgs {
    /// Files and folders, and last where they go: PATH or [user@]HOST:PATH
    ///
    /// To name a path with a colon, write ./a:b. All sources are on one host.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<OsString>,
    /// Read from this host, with plain source paths: 'local', 'netns:NAME', [user@]host or an agent's line
    ///
    /// An agent that was started by hand permits copies only out of its --allow-read folders and only into its
    /// --allow-write folders.
    #[arg(long, value_name = "HOST")]
    pub(crate) from: Option<String>,
    /// Write to this host, with a plain target path
    #[arg(long, value_name = "HOST")]
    pub(crate) to: Option<String>,
    /// Send over this many flows
    ///
    /// The default is four. Each flow has its own threads at both ends, so that ciphers and digests use several
    /// processors. After a loss, only the flow that lost a packet slows down.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) flows: Option<u32>,
    /// Refuse to relay data through this machine if neither host reaches the other
    #[arg(long, conflicts_with = "clean")]
    pub(crate) direct: bool,
    /// End before the files are on stable storage
    #[arg(long)]
    pub(crate) no_sync: bool,
    /// Show what would be copied, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Compare source and target, and copy nothing: names, content, and what a copy keeps, except holes
    ///
    /// Both ends read files of the same length and compare their digests; no content is sent. --verify=disk reads the
    /// target's files from its disk, even if the system holds them in memory, as it does after a copy.
    #[arg(
        long,
        value_name = "FROM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "memory",
        conflicts_with = "dry_run"
    )]
    pub(crate) verify: Option<VerifiedFrom>,
    /// Remove what interrupted copies have left in the folder PATH; with --dry-run, only list it
    ///
    /// The next copy then sends these files from their beginning. A running copy is not affected.
    #[arg(long, conflicts_with_all = ["verify", "from", "no_sync", "keep", "devices"])]
    pub(crate) clean: bool,
    /// List all names, not only a screenful
    #[arg(long)]
    pub(crate) full: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    flow: CopyFlowArgs,
    #[command(flatten)]
    choose: ChooseArgs,
    #[command(flatten)]
    tune: CopyTuneArgs,
    #[command(flatten)]
    keep: KeepArgs,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    record: RecordArgs,
    #[command(flatten)]
    against: AgainstArgs,
}

impl CopyArgs {
    /// Returns the initial number of flows.
    fn flows(&self) -> u32 {
        self.flows.unwrap_or(choose::USUAL_FLOWS)
    }
}

/// The output of `landspeed copy --json`, and of `landspeed show --json` for the record of a copy.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct CopyDocument {
    #[serde(flatten)]
    report: CopyReport,
    /// The line about the flows, if the user chose any of their options.
    #[serde(skip)]
    asked_flow: Option<String>,
    /// What `--manifest` wrote; null without the option.
    manifest: Option<ManifestCounts>,
    /// Number of sources that give only their entries to the target's folder. Each counts this folder as unchanged.
    #[serde(skip)]
    into_folder: u64,
    /// True if the copy ends when the remaining data exceeds the target's free space.
    #[serde(skip)]
    checks_room: bool,
}

pub(crate) fn run(args: &CopyArgs) -> Result<ExitCode> {
    if args.clean {
        return clean::run(args);
    }
    if args.against.is_asked() {
        return against::run(args);
    }
    let stop = StopRequest::on_signals().context("cannot take signals over")?;
    let (keeping, places) = (args.keep.keeping().map_err(usage)?, places(args).map_err(usage)?);
    let manifest = args.rules.manifest.as_deref().map(Manifest::begin).transpose()?;
    let (rules, only, flow) = (args.rules.asked()?, args.rules.only()?, args.flow.chosen()?);
    args.tune.check(&places).map_err(usage)?;
    stop.at_once(match args.dry_run || args.verify.is_some() {
        true => "ended: nothing was changed",
        false => "ended: what was copied stays, and the same command goes on from there",
    });
    // A session over the path of the flows notices the path's return later, because ssh's TCP may wait up to twice the
    // silence.
    let outlasted = (!args.tune.is_asked()).then(|| args.reach.patience.times(2 * COPY_PATIENCE_TIMES));
    let meeting = if args.direct { Meeting::EitherWay } else { Meeting::Relayed };
    let mut joined = joined_for_copy(&places.words(), &args.reach, outlasted, meeting, flow.ports)?;
    flow.check(&joined.group.first())?;
    let reads = joined.group.first().side_of_named(places.reads);
    let places = CopyPlaces { reads, ..places.without_tokens() };
    let to = if args.verify.is_some() { PathUse::Compare } else { PathUse::Write };
    let landing = lands(&joined, &places, &args.rules, to)?;
    let (shown, target) = (landing.shown.clone(), safe(&String::from_utf8_lossy(&landing.shown)));
    let is_relayed = joined.group.first().is_relayed();
    args.progress.begin(&places, &shown, is_relayed);
    let what = CopyOptions { rules, only, ..options(args, keeping, places.reads, landing, &flow)? };
    let path = choose::path(&joined.group.first(), what.from);
    let records = args.record.folder();
    let tuned = args.tune.settings(&joined.group.first(), &places, &flow, records.as_deref())?;
    let plan = CopyPlan {
        flow: flow.settings.clone(),
        flows_named: args.flows.is_some(),
        path,
        tuned,
        ..plan(&places, &what, shown, is_relayed)
    };
    let choosing = args.choose.choosing(&plan, flow.others(), records.as_deref());
    let what = CopyOptions { choosing, ..what };
    let route = CopyRoute { from: places.from, to: places.to, target, is_relayed };
    if args.dry_run {
        return dry_run::run(args, route, joined, (&what, &flow));
    }
    if args.verify.is_some() {
        return verify::run(args, route, joined, (&what, &flow));
    }
    if let Some(tuned) = &plan.tuned {
        print_if_room(&format!("{}\n", host_setting_words(tuned)));
        if !tuned.is_empty() {
            stop.in_order("ending: all settings are restored first. Ctrl-C again ends at once");
        }
    }
    let recorder = CopyRecorder::begin(plan);
    let display = args.progress.display();
    let (record, failed) = recorded(&mut joined, &what, recorder, display, manifest.as_ref(), &stop);
    drop(joined);
    args.record.keep(&record);
    if let Some(error) = failed {
        return Err(error);
    }
    let report = copy_report(&record, "")?;
    let unrestored = tuned::unrestored(&report);
    let into_folder = what.roots.iter().filter(|root| root.name_hex.0.is_empty()).count() as u64;
    // The copy itself is complete, even if its manifest fails.
    let (manifest, unwritten) = match manifest.map(Manifest::finish).transpose() {
        Ok(manifest) => (manifest, None),
        Err(error) => (None, Some(error)),
    };
    let (asked_flow, checks_room) = (flow.line(args.flows()), !args.rules.no_room_check);
    let document = CopyDocument { report, asked_flow, manifest, into_folder, checks_room };
    let shown = print(args, &document, lines).and_then(|()| unwritten.map_or(Ok(()), Err));
    Ok(match (unrestored, shown) {
        (Some((status, why)), Ok(())) => because(status, &why),
        (Some((status, why)), Err(error)) => because(status, &format!("{why}; {}", in_one_line(&error))),
        (None, shown) => shown.map(|()| exit(&document.report.outcome))?,
    })
}

/// Copies. Returns the record, and the error that ended the copy, if any.
fn recorded(
    joined: &mut JoinedHosts,
    what: &CopyOptions,
    recorder: CopyRecorder,
    display: CopyProgressDisplay,
    manifest: Option<&Manifest>,
    stop: &StopRequest,
) -> (Record, Option<anyhow::Error>) {
    let on_counts = |counts: CopyCounts, times: CopyTimes| {
        recorder.take(counts, &times);
        display.take(counts, times);
    };
    let on_proven = |proven: Vec<CopyProven>| manifest.iter().for_each(|manifest| manifest.take(&proven));
    let on_line = |line: Line| recorder.take_line(line);
    let stop = || stop.asked();
    let listener =
        CopyListener { on_counts: &on_counts, on_proven: &on_proven, on_line: &on_line, stop: &stop };
    let done = match recorder.settings(what.from) {
        Some(settings) => copy_tuned(&mut joined.group, &settings, what, &listener),
        None => copy(&joined.group.first(), what, &listener),
    };
    let record = recorder.record(done.as_ref());
    (record, done.err().map(Into::into))
}

/// Shows the record of a copy.
pub(crate) fn show(of: &ShownRecord<'_>) -> Result<ExitCode> {
    let report = copy_report(of.record, &of.path.display().to_string())?;
    for why in &of.record.unread {
        eprintln!("landspeed: {}", safe(why));
    }
    let page = landspeed_report::copy(&report, of.record);
    let document =
        CopyDocument { report, asked_flow: None, manifest: None, into_folder: 0, checks_room: true };
    present(&page, || landspeed_report::json(&document), of.form, of.detail)?;
    Ok(Exit::Done.into())
}

/// Prints a report as one JSON document, or as lines, all of them or a screenful.
fn print<R: serde::Serialize>(args: &CopyArgs, report: &R, lines: fn(&R, bool) -> Vec<String>) -> Result<()> {
    match args.json {
        true => out(&landspeed_report::json(report)),
        false => out(&lines(report, args.full).join("\n")),
    }
}

/// Compares source and target. Passes differing entries to `on_differing`.
fn compared(
    joined: &JoinedHosts,
    what: &CopyOptions,
    check: CopyCheck,
    display: &CopyProgressDisplay,
    on_differing: &dyn Fn(Vec<CopyDiffering>),
) -> Result<ComparisonDone> {
    let on_counts = |counts| display.take(counts, CopyTimes::default());
    let listener = ComparisonListener { on_counts: &on_counts, on_differing };
    Ok(compare_files(&joined.group.first(), what, check, &listener)?)
}

fn options(
    args: &CopyArgs,
    keeping: CopyKeeping,
    from: Side,
    landing: Landing,
    flow: &CopyFlow,
) -> Result<CopyOptions> {
    Ok(CopyOptions {
        from,
        roots: landing.roots,
        folder: landing.folder,
        is_synced: !args.no_sync,
        keeping,
        flow: flow.all()?,
        flows: args.flows(),
        rules: CopyRules::default(),
        only: None,
        choosing: None,
    })
}

fn lines(document: &CopyDocument, is_full: bool) -> Vec<String> {
    let CopyDocument { report, asked_flow, manifest, into_folder, checks_room } = document;
    let outcome = &report.outcome;
    let (copied, bytes, time) = (counted(outcome.copied, "file"), outcome.copied_bytes, report.duration_ns);
    let mut lines = vec![format!("copied {copied}, {bytes}, in {time} ({})", report.goodput_bps)];
    lines.extend(beside_files(outcome.made, outcome.unchanged.saturating_sub(*into_folder)));
    if outcome.deleted > 0 {
        let deleted = counted(outcome.deleted, "entry");
        lines.push(format!("deleted {deleted} that only the target had"));
    }
    lines.extend((!outcome.not_deleted.is_empty()).then(|| safe(&outcome.not_deleted)));
    lines.extend(asked_flow.clone());
    lines.extend(encrypted_words(report));
    lines.extend(flow::not_as_asked(&report.not_as_asked));
    lines.extend(held_lines(report));
    lines.extend(resent_words(report));
    lines.extend(choice_lines(&report.choice, &report.decisions));
    lines.extend(host_setting_lines(report));
    lines.extend(condition_lines(&report.conditions));
    if outcome.is_full {
        let target = shown_place(&report.route.to, &report.route.target);
        let beside = if *checks_room { "; where others free it meanwhile, add --no-room-check" } else { "" };
        lines.push(format!(
            "{target} has no room left: free some there, and the same command goes on{beside}"
        ));
    }
    // On a full target, all other entries fail for the same reason.
    let most = if outcome.is_full { 1 } else { usize::MAX };
    let named = &outcome.failures[..outcome.failures.len().min(most)];
    lines.extend(failed("NOT copied", outcome.failed, named, is_full));
    lines.extend(unlisted(&outcome.unlisted));
    lines.extend(lost_lines(&outcome.lost));
    lines.extend(manifest.iter().flat_map(ManifestCounts::lines));
    lines
}

fn exit(outcome: &CopyOutcome) -> ExitCode {
    let any = outcome.copied + outcome.made + outcome.unchanged > 0;
    match (outcome.is_complete(), any) {
        (true, _) => Exit::Done.into(),
        (false, false) => because(Exit::Failed, "nothing was copied"),
        (false, true) if outcome.failed > 0 => {
            because(Exit::Incomplete, &format!("{} not at the target", counted(outcome.failed, "entry")))
        }
        (false, true) if !outcome.unfinished.is_empty() => because(Exit::Incomplete, &outcome.unfinished),
        (false, true) if !outcome.not_deleted.is_empty() => because(Exit::Incomplete, &outcome.not_deleted),
        (false, true) => because(Exit::Incomplete, &lost_words(&outcome.lost)),
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::{CopyLoss, CopyLossKind, PathBytes};

    use super::*;

    #[test]
    fn the_exit_status_says_whether_anything_and_everything_is_there() {
        let outcome = |copied, failed, unfinished: &str| CopyOutcome {
            copied,
            failed,
            unfinished: unfinished.to_owned(),
            ..CopyOutcome::default()
        };
        let not_deleted = CopyOutcome { not_deleted: "too many".to_owned(), ..outcome(3, 0, "") };
        for (outcome, expected) in [
            (not_deleted, Exit::Incomplete),
            (outcome(3, 0, ""), Exit::Done),
            (outcome(0, 0, ""), Exit::Done),
            (outcome(0, 2, ""), Exit::Failed),
            (outcome(3, 2, ""), Exit::Incomplete),
            (outcome(3, 0, "the disk said no"), Exit::Incomplete),
        ] {
            assert_eq!(exit(&outcome), expected.into(), "{outcome:?}");
        }
        for kind in [CopyLossKind::Owner, CopyLossKind::HardLink] {
            let name_hex = PathBytes(b"a".to_vec());
            let loss = CopyLoss { kind, entries: 1, name_hex, why: "no".to_owned() };
            assert_eq!(exit(&CopyOutcome { lost: vec![loss], ..outcome(3, 0, "") }), Exit::Incomplete.into());
        }
    }
}
