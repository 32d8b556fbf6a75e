//! `landspeed copy`: copies files between hosts.

pub(crate) mod clean;
pub(crate) mod dry_run;
mod held;
mod keep;
mod lands;
mod manifest;
mod names;
mod place;
mod progress;
mod rules;
pub(crate) mod verify;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use landspeed_agent::session::CopyRules;
use landspeed_analysis::copy_held;
use landspeed_engine::{
    ComparisonListener, CopyDone, CopyListener, CopyOptions, JoinedHosts, Landing, Meeting, compare_files,
    copy, shown_place,
};
use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{
    COPY_PATIENCE_TIMES, CopyCheck, CopyComparison, CopyDiffering, CopyHeld, CopyKeeping, CopyOutcome,
    CopyProven, Settings, Side,
};
use landspeed_report::safe;
use landspeed_transport::settings::TRANSPORT;

use crate::exit::Exit;
use crate::failure::because;
use crate::groups::ReachArgs;
use crate::hosts::joined_for_copy;
use crate::output::{FORMAT, out, usage};
use crate::stop::StopRequest;
use held::CopyStages;
use keep::{KeepArgs, lost_lines, lost_words};
use lands::lands;
use manifest::{Manifest, ManifestCounts};
use names::failed;
use place::{CopyPlaces, places};
use progress::CopyLine;
use rules::RuleArgs;

/// The settings of a copy's flows: TLS 1.3 with AES-128-GCM. The end of a message is not held back until what was sent before is
/// acknowledged, because the other end may have nothing else to do.
const FLOW: [(&str, &str); 3] = [("transport", "tls"), ("tls-cipher", "aes-128-gcm"), ("nodelay", "on")];

const HELP: &str = "\
A folder lands in TARGET under its own name; with a slash at its end (run7/),
its entries land there. A single file takes TARGET's name unless a folder is
there.

Names, content, modes, times, extended attributes, ACLs, symbolic links and
FIFOs are copied, and where the far end is root owners and groups by their
numbers, with set-user-ID bits and capabilities. Files that are hard links to
each other stay so. What the target does not take of this is counted by kind,
and the copy ends with 6: --keep leaves kinds out. A hole takes no time, and no
room where the target's file system has holes. Sockets are named and left out,
and devices without --devices.

Within one host the data take loopback, encrypted as between hosts: that works,
and cp is faster.

An entry that is there with the same size and time is left as it is. With
--checksum, files of the same size are compared by content, whatever their time,
and only pieces that differ are sent. What an interrupted copy has received
stays in TARGET/.landspeed-copy: the same command goes on from there.

--ignore leaves alone what patterns of .gitignore name, at both ends.
--files-from copies only what a file names. --delete deletes at the target what
the source folders have not, once all else is there; and nothing if any entry
fails, as a socket does unless --ignore names it. --manifest writes the digests
of what was copied, for b3sum --check, except of files with holes of a MiB and
more. --limit bounds the rate of all flows together.

The first host opens the flows: this machine if it is one of the two, otherwise
the source. Where a firewall or NAT forbids that, the other one does. Where
neither reaches the other, data pass through this machine, over the sessions by
which it reaches both (ssh, for example): slower, and still encrypted from one
host to the other. landspeed says so before it begins; --direct refuses it.

Where the path breaks for a while, flows are opened again for ten times
--patience, 5 minutes by default, and nothing that has arrived is sent again.

While it runs and at its end, a copy names what holds it and what would hold it
next: a disk, a file system, a processor, a window, losses, the path's rate, or
--limit.

Examples:
  landspeed copy run7 dtn2:/scratch             to another host
  landspeed copy dtn1:/data/run7/ dtn2:/run7    from one host to another
  landspeed copy dtn1:results.tar .             to this one
  landspeed copy dtn1:/data dtn1:/backup        within a host
  landspeed copy --dry-run run7 dtn2:/scratch   what the first one would do
  landspeed copy --delete run7 dtn2:/scratch    and delete there what run7 has not
  landspeed copy --ignore '*.o' run7 dtn2:      all but object files
  landspeed copy --verify run7 dtn2:/scratch    whether all is there
  landspeed copy --clean dtn2:/scratch          give an interrupted copy up";

/// Copy files between hosts, encrypted, with every byte verified
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CopyArgs {
    /// Files and folders, and last where they go: PATH or [user@]HOST:PATH
    ///
    /// A path with a colon in its name is written ./a:b. All sources are on one host.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<OsString>,
    /// Read from this host, with plain source paths: 'local', 'netns:NAME' or [user@]host
    #[arg(long, value_name = "HOST")]
    pub(crate) from: Option<String>,
    /// Write to this host, with a plain target path
    #[arg(long, value_name = "HOST")]
    pub(crate) to: Option<String>,
    /// Send over this many flows
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) flows: u32,
    /// Refuse to send data through this machine where neither host reaches the other
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
    /// Both ends read the files of the same length, and their digests are compared: no content is sent.
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) verify: bool,
    /// Remove what interrupted copies have left in the folder PATH; with --dry-run, only list it
    ///
    /// The next copy then sends these files from their beginning. A copy that runs is left alone.
    #[arg(long, conflicts_with_all = ["verify", "from", "no_sync", "keep", "devices"])]
    pub(crate) clean: bool,
    /// List all names, not only a screen of them
    #[arg(long)]
    pub(crate) full: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    keep: KeepArgs,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// The output of `landspeed copy --json`.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct CopyReport {
    /// Format version of this document.
    format: u32,
    #[serde(flatten)]
    route: CopyRoute,
    /// The settings of each flow.
    flow: Settings,
    /// The number of flows.
    flows: u32,
    /// From the first request to the end, with the wait for stable storage.
    duration_ns: Nanos,
    /// The content of the files that were sent, over the whole duration.
    goodput_bps: BitRate,
    /// What held the copy.
    held: CopyHeld,
    /// What the stages of both ends did with their time.
    stages: CopyStages,
    #[serde(flatten)]
    outcome: CopyOutcome,
    /// What `--manifest` wrote; null without it.
    manifest: Option<ManifestCounts>,
}

/// Where files come from and go to.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct CopyRoute {
    /// The host that has the files.
    from: String,
    /// The host that gets them.
    to: String,
    /// The path there. In a name that is no text, other characters stand for the bytes that are none.
    target: String,
    /// True if the data passed through the machine of the command, because neither host reaches the other.
    is_relayed: bool,
}

pub(crate) fn run(args: &CopyArgs) -> Result<ExitCode> {
    if args.clean {
        return clean::run(args);
    }
    let stop = StopRequest::on_signals().context("cannot take signals over")?;
    let (keeping, places) = (args.keep.keeping().map_err(usage)?, places(args).map_err(usage)?);
    let manifest = args.rules.manifest.as_deref().map(Manifest::begin).transpose()?;
    let (rules, only) = (args.rules.asked()?, args.rules.only()?);
    stop.at_once(match args.dry_run || args.verify {
        true => "ended: nothing was changed",
        false => "ended: what was copied stays, and the same command goes on from there",
    });
    // A session over the path of the flows hears of the path's return later: ssh's TCP waits up to twice the silence.
    let outlasted = args.reach.patience.times(2 * COPY_PATIENCE_TIMES);
    let meeting = if args.direct { Meeting::EitherWay } else { Meeting::Relayed };
    let joined = joined_for_copy(&places.words(), &args.reach, outlasted, meeting)?;
    let places = CopyPlaces { reads: joined.group.first().side_of_named(places.reads), ..places };
    let landing = lands(&joined, &places, &args.rules)?;
    let target = safe(&String::from_utf8_lossy(&landing.shown));
    eprintln!("{} -> {}", safe(&places.sources_shown()), shown_place(&places.to, &target));
    let what = CopyOptions { rules, only, ..options(args, keeping, places.reads, landing)? };
    let is_relayed = joined.group.first().is_relayed();
    let route = CopyRoute { from: places.from, to: places.to, target, is_relayed };
    if args.dry_run {
        return dry_run::run(args, route, joined, &what);
    }
    if args.verify {
        return verify::run(args, route, joined, &what);
    }
    let begun = Instant::now();
    let line = CopyLine::new();
    let on_proven = |proven: Vec<CopyProven>| manifest.iter().for_each(|manifest| manifest.take(&proven));
    let listener =
        CopyListener { on_counts: &|counts, times| line.take_with(counts, times), on_proven: &on_proven };
    let done = copy(&joined.group.first(), &what, &listener)?;
    let mut report = report(args, route, begun, done);
    drop((line, joined));
    report.manifest = manifest.map(Manifest::finish).transpose()?;
    print(args, &report, lines)?;
    Ok(exit(&report.outcome))
}

/// Prints a report: as one JSON document, or as lines, all of them or a screen.
fn print<R: serde::Serialize>(args: &CopyArgs, report: &R, lines: fn(&R, bool) -> Vec<String>) -> Result<()> {
    match args.json {
        true => out(&landspeed_report::json(report)),
        false => out(&lines(report, args.full).join("\n")),
    }
}

/// Compares source and target. Entries that differ go to `on_differing`.
fn compared(
    joined: &JoinedHosts,
    what: &CopyOptions,
    check: CopyCheck,
    on_differing: &dyn Fn(Vec<CopyDiffering>),
) -> Result<CopyComparison> {
    let line = CopyLine::new();
    let listener = ComparisonListener { on_counts: &|counts| line.take(counts), on_differing };
    Ok(compare_files(&joined.group.first(), what, check, &listener)?)
}

fn options(args: &CopyArgs, keeping: CopyKeeping, from: Side, landing: Landing) -> Result<CopyOptions> {
    Ok(CopyOptions {
        from,
        roots: landing.roots,
        folder: landing.folder,
        is_synced: !args.no_sync,
        keeping,
        flow: flow()?,
        flows: args.flows,
        rules: CopyRules::default(),
        only: None,
    })
}

fn flow() -> Result<Settings> {
    let settings = chosen();
    let transport = landspeed_transport::find(TRANSPORT.of(&settings)).context("the table has TLS")?;
    Ok(landspeed_engine::flow(transport, &settings)?)
}

/// Returns the settings of [`FLOW`].
fn chosen() -> Settings {
    FLOW.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn report(args: &CopyArgs, route: CopyRoute, begun: Instant, done: CopyDone) -> CopyReport {
    let (duration, outcome) = (Nanos::from(done.ended - begun), done.outcome);
    CopyReport {
        format: FORMAT,
        route,
        flow: chosen(),
        flows: args.flows,
        duration_ns: duration,
        goodput_bps: outcome.copied_bytes.per(duration),
        held: copy_held(&done.times),
        stages: CopyStages::of(&done.times),
        outcome,
        manifest: None,
    }
}

fn lines(report: &CopyReport, is_full: bool) -> Vec<String> {
    let outcome = &report.outcome;
    let (copied, bytes, time) = (outcome.copied, outcome.copied_bytes, report.duration_ns);
    let mut lines = vec![
        format!("copied {copied} files, {bytes}, in {time} ({})", report.goodput_bps),
        format!(
            "made {} folders, links and FIFOs, found {} entries unchanged",
            outcome.made, outcome.unchanged
        ),
    ];
    if outcome.deleted > 0 {
        lines.push(format!("deleted {} entries that only the target had", outcome.deleted));
    }
    lines.extend((!outcome.not_deleted.is_empty()).then(|| safe(&outcome.not_deleted)));
    lines.extend(held::lines(&report.held));
    if outcome.is_full {
        let target = shown_place(&report.route.to, &report.route.target);
        lines.push(format!("{target} has no room left: free some there, and the same command goes on"));
    }
    // Where the target is full, all others fail for the same reason.
    let most = if outcome.is_full { 1 } else { usize::MAX };
    let named = &outcome.failures[..outcome.failures.len().min(most)];
    lines.extend(failed("NOT copied", outcome.failed, named, is_full));
    lines.extend(lost_lines(&outcome.lost));
    lines.extend(report.manifest.iter().flat_map(ManifestCounts::lines));
    lines
}

fn exit(outcome: &CopyOutcome) -> ExitCode {
    let any = outcome.copied + outcome.made + outcome.unchanged > 0;
    match (outcome.is_complete(), any) {
        (true, _) => Exit::Done.into(),
        (false, false) => because(Exit::Failed, "nothing was copied"),
        (false, true) if outcome.failed > 0 => {
            because(Exit::Incomplete, &format!("{} entries are not at the target", outcome.failed))
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

    #[test]
    fn the_settings_of_the_flow_are_of_its_transport() {
        assert_eq!(flow().unwrap()["tls-cipher"], "aes-128-gcm");
    }
}
