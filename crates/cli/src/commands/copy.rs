//! `landspeed copy`: copies files between hosts.

pub(crate) mod clean;
pub(crate) mod dry_run;
mod lands;
mod manifest;
mod names;
mod place;
mod rules;
pub(crate) mod verify;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use landspeed_agent::session::CopyRules;
use landspeed_engine::{
    ComparisonListener, CopyListener, CopyOptions, JoinedHosts, Landing, compare_files, copy,
};
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{
    COPY_PATIENCE_TIMES, CopyCheck, CopyComparison, CopyCounts, CopyDiffering, CopyOutcome, Settings, Side,
};
use landspeed_report::live::{ProgressLine, clock};
use landspeed_report::{OutputCapabilities, safe};
use landspeed_transport::settings::TRANSPORT;
use parking_lot::Mutex;

use crate::exit::Exit;
use crate::failure::because;
use crate::groups::ReachArgs;
use crate::hosts::joined_for_copy;
use crate::output::{FORMAT, out, usage};
use crate::stop::StopRequest;
use lands::lands;
use manifest::{Manifest, ManifestCounts};
use names::failed;
use place::places;
use rules::RuleArgs;

/// The settings of a copy's flows: TLS 1.3 with AES-128-GCM. The end of a message is not held back until what was sent before is
/// acknowledged, because the other end may have nothing else to do.
const FLOW: [(&str, &str); 3] = [("transport", "tls"), ("tls-cipher", "aes-128-gcm"), ("nodelay", "on")];

const HELP: &str = "\
A folder lands in TARGET under its own name; with a slash at its end (run7/),
its entries land there. A single file takes TARGET's name unless a folder is
there.

Names, content, modes, times and symbolic links are copied. Not yet copied are
owners, hard links (each becomes a file), holes, extended attributes and ACLs;
FIFOs, sockets and devices are named and left out.

Within one host the data take loopback, encrypted as between hosts: that works,
and cp is faster.

An entry that is there with the same size and time is left as it is. What an
interrupted copy has received stays in TARGET/.landspeed-copy: the same command
goes on from there.

Where the path breaks for a while, flows are opened again for ten times
--patience, 5 minutes by default, and nothing that has arrived is sent again.

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
    /// End before the files are on stable storage
    #[arg(long)]
    pub(crate) no_sync: bool,
    /// Show what would be copied, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Compare source and target, and copy nothing: names, content, modes and times
    ///
    /// Both ends read the files of the same length, and their digests are compared: no content is sent.
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) verify: bool,
    /// Remove what interrupted copies have left in the folder PATH; with --dry-run, only list it
    ///
    /// The next copy then sends these files from their beginning. A copy that runs is left alone.
    #[arg(long, conflicts_with_all = ["verify", "from", "no_sync"])]
    pub(crate) clean: bool,
    /// List all names, not only a screen of them
    #[arg(long)]
    pub(crate) full: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
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
}

pub(crate) fn run(args: &CopyArgs) -> Result<ExitCode> {
    if args.clean {
        return clean::run(args);
    }
    let stop = StopRequest::on_signals().context("cannot take signals over")?;
    let places = places(args).map_err(usage)?;
    let manifest = args.rules.manifest.as_deref().map(Manifest::begin).transpose()?;
    let (rules, only) = (args.rules.asked()?, args.rules.only()?);
    stop.at_once(match args.dry_run || args.verify {
        true => "ended: nothing was changed",
        false => "ended: what was copied stays, and the same command goes on from there",
    });
    // A session over the path of the flows hears of the path's return later: ssh's TCP waits up to twice the silence.
    let outlasted = args.reach.patience.times(2 * COPY_PATIENCE_TIMES);
    let joined = joined_for_copy(&places.words(), &args.reach, outlasted)?;
    let landing = lands(&joined, &places, &args.rules)?;
    let target = safe(&String::from_utf8_lossy(&landing.shown));
    eprintln!("{} -> {}:{target}", safe(&places.sources_shown()), places.to);
    let what = CopyOptions { rules, only, ..options(args, places.reads, landing)? };
    let route = CopyRoute { from: places.from, to: places.to, target };
    if args.dry_run {
        return dry_run::run(args, route, joined, &what);
    }
    if args.verify {
        return verify::run(args, route, joined, &what);
    }
    let begun = Instant::now();
    let line = CopyLine::new();
    let on_proven = |proven| {
        if let Some(manifest) = &manifest {
            manifest.take(proven);
        }
    };
    let listener = CopyListener { on_counts: &|counts| line.take(counts), on_proven: &on_proven };
    let outcome = copy(&joined.group.first(), &what, &listener)?;
    let mut report = report(args, route, begun.elapsed().into(), outcome);
    drop((line, joined));
    report.manifest = manifest.map(Manifest::finish).transpose()?;
    if args.json {
        out(&landspeed_report::json(&report))?;
    } else {
        print(&report, args)?;
    }
    Ok(exit(&report.outcome))
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

fn options(args: &CopyArgs, from: Side, landing: Landing) -> Result<CopyOptions> {
    Ok(CopyOptions {
        from,
        roots: landing.roots,
        folder: landing.folder,
        is_synced: !args.no_sync,
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

fn report(args: &CopyArgs, route: CopyRoute, duration: Nanos, outcome: CopyOutcome) -> CopyReport {
    CopyReport {
        format: FORMAT,
        route,
        flow: chosen(),
        flows: args.flows,
        duration_ns: duration,
        goodput_bps: outcome.copied_bytes.per(duration),
        outcome,
        manifest: None,
    }
}

fn print(report: &CopyReport, args: &CopyArgs) -> Result<()> {
    let outcome = &report.outcome;
    let (copied, bytes, time) = (outcome.copied, outcome.copied_bytes, report.duration_ns);
    let mut lines = vec![
        format!("copied {copied} files, {bytes}, in {time} ({})", report.goodput_bps),
        format!("made {} folders and links, found {} entries unchanged", outcome.made, outcome.unchanged),
    ];
    if outcome.deleted > 0 {
        lines.push(format!("deleted {} entries that only the target had", outcome.deleted));
    }
    lines.extend((!outcome.not_deleted.is_empty()).then(|| safe(&outcome.not_deleted)));
    if outcome.is_full {
        let CopyRoute { to, target, .. } = &report.route;
        lines.push(format!("{to}:{target} has no room left: free some there, and the same command goes on"));
    }
    // Where the target is full, all others fail for the same reason.
    let most = if outcome.is_full { 1 } else { usize::MAX };
    let named = &outcome.failures[..outcome.failures.len().min(most)];
    lines.extend(failed("NOT copied", outcome.failed, named, args.full));
    if let (Some(counts), Some(path)) = (report.manifest, &args.rules.manifest) {
        lines.extend(counts.lines(path));
    }
    out(&lines.join("\n"))
}

fn exit(outcome: &CopyOutcome) -> ExitCode {
    let any = outcome.copied + outcome.made + outcome.unchanged > 0;
    match (outcome.is_complete(), any) {
        (true, _) => Exit::Done.into(),
        (false, false) => because(Exit::Failed, "nothing was copied"),
        (false, true) if outcome.failed > 0 => {
            because(Exit::Incomplete, &format!("{} entries are not at the target", outcome.failed))
        }
        (false, true) if outcome.unfinished.is_empty() => because(Exit::Incomplete, &outcome.not_deleted),
        (false, true) => because(Exit::Incomplete, &outcome.unfinished),
    }
}

/// The progress of a copy: what was moved, of how much, and how fast in the last ten seconds.
struct CopyLine {
    seen: Arc<Mutex<Vec<(Instant, CopyCounts)>>>,
    line: ProgressLine,
}

/// The number of reports, one a second, over which the rate is taken.
const RATE_OVER: usize = 10;

impl CopyLine {
    fn new() -> CopyLine {
        let seen: Arc<Mutex<Vec<(Instant, CopyCounts)>>> = Arc::default();
        let (shown, begun) = (Arc::clone(&seen), Instant::now());
        let line = ProgressLine::new(OutputCapabilities::stderr(), move |width| {
            let margin = if width.is_some() { "  " } else { "" };
            format!("{margin}{}  {}", words(&shown.lock()), clock(begun.elapsed().into()))
        });
        CopyLine { seen, line }
    }

    fn take(&self, counts: CopyCounts) {
        let mut seen = self.seen.lock();
        if seen.len() > RATE_OVER {
            seen.remove(0);
        }
        seen.push((Instant::now(), counts));
        drop(seen);
        self.line.draw();
    }
}

/// Returns the progress in words. The time that is left is there only once the whole amount is known.
fn words(seen: &[(Instant, CopyCounts)]) -> String {
    let (Some((begun, first)), Some((now, last))) = (seen.first(), seen.last()) else {
        return "copying".to_owned();
    };
    let seconds = (*now - *begun).as_secs_f64();
    let rate = (last.moved_bytes.0 - first.moved_bytes.0.min(last.moved_bytes.0)) as f64 / seconds.max(1e-9);
    let of = if last.is_walked { "of" } else { "of at least" };
    let mut words =
        format!("{} {of} {}, {} of {} entries", last.moved_bytes, last.found_bytes, last.settled, last.found);
    if seconds > 0.0 {
        words.push_str(&format!(", {}/s", Bytes(rate as u64)));
    }
    if last.broken_flows > 0 {
        words.push_str(&format!(", the path broke: {} flows are being opened again", last.broken_flows));
    }
    if last.is_walked && rate > 1.0 {
        let left = last.found_bytes.0.saturating_sub(last.moved_bytes.0) as f64 / rate;
        words.push_str(&format!(", {} left", clock(Nanos((left * 1e9) as u64))));
    }
    words
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_time_left_is_told_once_the_amount_is_known() {
        let begun = Instant::now();
        let counts = |moved, is_walked| CopyCounts {
            found: 9,
            found_bytes: Bytes::mib(100),
            is_walked,
            settled: 3,
            moved_bytes: Bytes::mib(moved),
            broken_flows: 0,
        };
        let later = begun + Duration::from_secs(2);
        let walking = words(&[(begun, counts(10, false)), (later, counts(30, false))]);
        assert_eq!(walking, "30 MiB of at least 100 MiB, 3 of 9 entries, 10 MiB/s");
        let walked = words(&[(begun, counts(10, true)), (later, counts(30, true))]);
        assert!(walked.starts_with("30 MiB of 100 MiB") && walked.ends_with("left"), "{walked}");
        let broken = CopyCounts { broken_flows: 3, ..counts(30, false) };
        assert!(words(&[(begun, broken)]).ends_with(", the path broke: 3 flows are being opened again"));
        assert_eq!(words(&[]), "copying");
    }

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
    }

    #[test]
    fn the_settings_of_the_flow_are_of_its_transport() {
        assert_eq!(flow().unwrap()["tls-cipher"], "aes-128-gcm");
    }
}
