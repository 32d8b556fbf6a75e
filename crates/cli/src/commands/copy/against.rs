//! `landspeed copy --against`: compares with other programs by copying in turn, into folders that are removed
//! afterwards.

mod host;
mod report;
mod rivals;
mod turns;

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_engine::{THIS_HOST, TimedCommand, timed};
use landspeed_record::CopyConditions;
use landspeed_record::units::Bytes;
use landspeed_report::live::print_if_room;
use serde::Deserialize;

use super::place::places;
use super::{CopyArgs, print};
use crate::exit::Exit;
use crate::failure::because;
use crate::groups::ReachArgs;
use crate::output::{FORMAT, usage};
use crate::stop::StopRequest;
use host::{AgainstHost, ThrowAway, UNSHARED};
pub(crate) use report::AgainstReport;
use report::{AgainstProgram, TreeCounts, lines};
use rivals::{CopiedPlaces, rivals};
use turns::TurnTaker;

/// The default number of turns of each program.
const TURNS: u32 = 5;
/// The longest duration of a copy by landspeed.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// The exit status of a copy that left out entries, which are then named beside the figures.
const INCOMPLETE: Option<i32> = Some(Exit::Incomplete as i32);
/// Space that an entry may take in addition to its bytes: one block.
const ENTRY: u64 = 4096;
/// Reserve for unknown needs: a twentieth.
const SPARE: u64 = 20;

/// The comparison with other programs.
#[derive(Debug, Args)]
pub(crate) struct AgainstArgs {
    /// Compare with these programs: copy in turn into folders beneath the target, which are removed afterwards
    ///
    /// rsync and scp are known by name. In a command, {src} and {dst} are the folders with their hosts, {src-path} and
    /// {dst-path} the folders without them, {ssh} is ssh with the options of --ssh-option, and {ssh-options} these
    /// options alone. No shell reads the command, unless it is "sh -c '...'". May be given several times. One end is
    /// this machine, and the other a host that ssh reaches without a question.
    #[arg(
        long, value_name = "rsync,scp,CMD", help_heading = "Comparison",
        conflicts_with_all = [
            "clean", "dry_run", "verify", "from", "to", "keep", "devices", "ignore", "ignore_from", "files_from", "delete",
            "manifest", "checksum", "limit_rate", "no_room_check", "choose"
        ]
    )]
    against: Vec<String>,
    /// Count this many turns of each program (default: 5)
    #[arg(
        long, value_name = "N", requires = "against", value_parser = clap::value_parser!(u32).range(2..=100),
        help_heading = "Comparison"
    )]
    turns: Option<u32>,
    /// Copy a sample of the folder's files instead of all, of this size at most
    ///
    /// The files are drawn at random and copied into a folder beside the source, which is removed afterwards.
    #[arg(long, value_name = "SIZE", requires = "against", help_heading = "Comparison")]
    sample: Option<Bytes>,
}

impl AgainstArgs {
    pub(super) fn is_asked(&self) -> bool {
        !self.against.is_empty()
    }
}

/// landspeed itself, as one of the compared programs.
pub(super) struct OwnProgram<'a> {
    path: String,
    args: &'a CopyArgs,
    stop: &'a StopRequest,
}

/// The parts of the document of `landspeed copy --dry-run --json` that are used here.
#[derive(Deserialize)]
struct DryRunDocument {
    made: u64,
    file_bytes: Bytes,
}

pub(super) fn run(args: &CopyArgs) -> Result<ExitCode> {
    let rivals = rivals(&args.against.against).map_err(usage)?;
    let [(from, source), (to, target)] = ends(args)?;
    let stop = StopRequest::on_signals().context("cannot take signals over")?;
    stop.in_order("ending: what was copied is removed first. Ctrl-C again ends at once, and leaves it");
    let (source, target) = (from.resolved(&source)?, to.resolved(&target)?);
    let own = OwnProgram::of(args, &stop)?;
    let sample = args.against.sample.map(|size| own.sample(&from, &source, size)).transpose()?;
    let copied = sample.as_ref().map_or_else(|| source.clone(), |sample| sample.path_of("copy"));
    let thrown = ThrowAway::make(&to, &target)?;
    let (none, copy) = (thrown.path_of("none"), thrown.path_of("copy"));
    let content = own.counts(&from.place(&copied), &to.place(&none))?;
    check_room(&to, &target, content)?;
    let far = if from.is_local() { &to } else { &from };
    let with = CopiedPlaces {
        places: [from.place(&copied), to.place(&copy)],
        paths: [copied, copy],
        ssh_options: far.ssh_options(),
    };
    let programs =
        rivals.iter().map(|one| AgainstProgram::new(one.name.clone(), one.command(&with), one.missing()));
    let ours = AgainstProgram::new("landspeed".to_owned(), own.copy(&with), None);
    let mut report = AgainstReport {
        format: FORMAT,
        source: from.place(&source),
        target: to.place(&target),
        is_sample: sample.is_some(),
        content,
        programs: std::iter::once(ours).chain(programs).collect(),
        uncounted: None,
        conditions: CopyConditions::default(),
    };
    print_if_room(&format!("{} -> {}: {}\n", report.source, report.target, content.words()));
    let mut taker = TurnTaker {
        own: &own,
        to: &to,
        far: (!far.is_local()).then_some(far),
        thrown: &thrown,
        content,
        conditions: CopyConditions::default(),
    };
    report.uncounted = taker.measure(&mut report.programs, args.against.turns.unwrap_or(TURNS))?;
    report.conditions = taker.conditions;
    drop((thrown, sample));
    let report = report.judged();
    print(args, &report, lines)?;
    Ok(match report.has_ratio() {
        true => Exit::Done.into(),
        false => because(Exit::Failed, "no other program was compared"),
    })
}

/// Returns the hosts of source and target, with their paths.
fn ends(args: &CopyArgs) -> Result<[(AgainstHost, String); 2]> {
    let places = places(args).map_err(usage)?;
    let [source] = places.paths.sources.as_slice() else {
        return Err(usage("--against takes one folder and the folder beneath which it is copied"));
    };
    if places.from != THIS_HOST && places.to != THIS_HOST {
        return Err(usage(
            "--against needs this machine as source or target, because rsync and scp copy from or to the machine that they run on: \
             run it on one of the two hosts",
        ));
    }
    let end = |word: &str, path: &[u8]| -> Result<(AgainstHost, String)> {
        let path = std::str::from_utf8(path).map_err(|_| usage("--against takes paths that are text"))?;
        Ok((AgainstHost::new(word, &args.reach.ssh_option)?, path.to_owned()))
    };
    Ok([end(&places.from, source)?, end(&places.to, &places.paths.target)?])
}

/// Checks that a folder has space for this content.
fn check_room(host: &AgainstHost, folder: &str, content: TreeCounts) -> Result<()> {
    let bytes = content.file_bytes.0.saturating_add(content.entries.saturating_mul(ENTRY));
    let (needed, room) = (Bytes(bytes.saturating_add(bytes / SPARE)), host.room(folder)?);
    let place = host.place(folder);
    ensure!(
        needed <= room,
        "{place} has room for {room}, and a turn needs {needed}: free some there, or take a --sample"
    );
    Ok(())
}

impl<'a> OwnProgram<'a> {
    fn of(args: &'a CopyArgs, stop: &'a StopRequest) -> Result<OwnProgram<'a>> {
        let path = std::env::current_exe().context("cannot find landspeed itself")?;
        Ok(OwnProgram { path: path.display().to_string(), args, stop })
    }

    /// Runs a program. If Ctrl-C stops the comparison, its processes end too.
    fn run(&self, words: &[String], limit: Duration, also: Option<i32>) -> Result<TimedCommand> {
        let (program, rest) = words.split_first().context("a command has no words")?;
        let mut command = Command::new(program);
        command.args(rest).stdin(Stdio::null()).process_group(0);
        let done = timed(&mut command, limit, &self.stop.flag());
        ensure!(!self.stop.asked(), "stopped");
        Ok(done.and_then(|done| done.succeeded(also))?)
    }

    /// Returns the command that copies.
    fn copy(&self, with: &CopiedPlaces) -> Vec<String> {
        let args = self.args;
        let ([source, target], flows) = (&with.places, args.flows().to_string());
        let source = format!("{source}/");
        let given = [("--direct", args.direct), ("--no-sync", args.no_sync)];
        let flags = given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name);
        let flow = args.flow.again();
        let mut rest: Vec<&str> = vec!["--no-record", "--choose", "never", "--flows", &flows];
        rest.extend(flags);
        rest.extend(flow.iter().map(String::as_str));
        rest.extend([source.as_str(), target.as_str()]);
        self.words(&rest)
    }

    /// Returns the words of `landspeed copy` that reach the hosts as the user requested.
    fn words(&self, rest: &[&str]) -> Vec<String> {
        let ReachArgs { remote_path, keep_agent, ssh_option, patience, token_file: _ } = &self.args.reach;
        let remote = remote_path.iter().flat_map(|path| ["--remote-path".to_owned(), path.clone()]);
        let keep = keep_agent.then(|| "--keep-agent".to_owned());
        let options = ssh_option.iter().map(String::as_str).chain([UNSHARED]);
        let options = options.flat_map(|option| ["--ssh-option".to_owned(), option.to_owned()]);
        let begin = [self.path.clone(), "copy".to_owned(), "--json".to_owned()];
        let begin = begin.into_iter().chain([format!("--patience={}", patience.exact())]);
        let reached = begin.chain(remote).chain(keep).chain(options);
        reached.chain(rest.iter().map(|word| (*word).to_owned())).collect()
    }

    /// Counts the entries and bytes of a tree, by a dry run of its copy to a place where nothing exists.
    fn counts(&self, tree: &str, nothing: &str) -> Result<TreeCounts> {
        let words = self.words(&["--dry-run", &format!("{tree}/"), nothing]);
        let done = self.run(&words, LONGEST, INCOMPLETE).with_context(|| format!("count {tree}"))?;
        let seen: DryRunDocument = landspeed_record::decode(&done.printed)?;
        Ok(TreeCounts { entries: seen.made, file_bytes: seen.file_bytes })
    }

    /// Copies some of the files of a folder into a new folder beside it, as `copy` in the result.
    fn sample<'h>(&self, host: &'h AgainstHost, folder: &str, size: Bytes) -> Result<ThrowAway<'h>> {
        let above = host.resolved(&format!("{folder}/.."))?;
        let (files, bytes) = turns::sampled(host.files(folder)?, size);
        let place = host.place(folder);
        ensure!(!files.is_empty(), "{place} has no file of {size} or less for a --sample");
        check_room(host, &above, TreeCounts { entries: files.len() as u64, file_bytes: bytes })?;
        let mut list = tempfile::NamedTempFile::new()?;
        list.write_all(&files.join(&0_u8))?;
        let thrown = ThrowAway::make(host, &above)?;
        let (list, target) = (list.path().display().to_string(), host.place(&thrown.path_of("copy")));
        let rest = [
            "--no-record",
            "--choose",
            "never",
            "--null",
            "--files-from",
            &list,
            &format!("{place}/"),
            &target,
        ];
        let words = self.words(&rest);
        self.run(&words, LONGEST, INCOMPLETE).context("copy a sample")?;
        Ok(thrown)
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: CopyArgs,
    }

    fn parsed(words: &[&str]) -> Result<CopyArgs, clap::Error> {
        let matches = Line::command().no_binary_name(true).try_get_matches_from(words)?;
        Line::from_arg_matches(&matches).map(|line| line.args)
    }

    fn refused(words: &[&str]) -> String {
        run(&parsed(words).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn comparisons_that_other_programs_cannot_make_are_refused() {
        for more in [
            "--delete",
            "--checksum",
            "--verify",
            "--dry-run",
            "--limit-rate=1M",
            "--ignore=a",
            "--devices",
            "--choose=auto",
            "--progress=json",
        ] {
            assert!(parsed(&["--against", "rsync", more, "a", "b:"]).is_err(), "{more}");
        }
        assert!(
            parsed(&["--sample", "1G", "a", "b:"]).is_err() && parsed(&["--turns", "3", "a", "b:"]).is_err()
        );
        assert!(refused(&["--against", "rsync", "a:x", "b:y"]).contains("run it on one of the two hosts"));
        assert!(refused(&["--against", "rsync", "a", "b", "c"]).contains("takes one folder"));
        assert!(refused(&["--against", "tar", "a", "b"]).contains("neither rsync nor scp"));
    }

    #[test]
    fn landspeed_copies_as_the_user_asked() {
        let args = parsed(&[
            "--against",
            "rsync",
            "--flows",
            "2",
            "--no-sync",
            "--set",
            "nodelay=off",
            "--ports",
            "5000-5003",
            "--ssh-option",
            "Port=2222",
            "--remote-path",
            "/opt/landspeed",
            "a",
            "b:c",
        ])
        .unwrap();
        let stop = StopRequest::on_signals().unwrap();
        let own = OwnProgram { path: "landspeed".to_owned(), args: &args, stop: &stop };
        let with = CopiedPlaces {
            places: ["/a", "b:/c/x"].map(str::to_owned),
            paths: ["/a", "/c/x"].map(str::to_owned),
            ssh_options: Vec::new(),
        };
        let expected = "landspeed copy --json --patience=30s --remote-path /opt/landspeed --ssh-option Port=2222 \
                        --ssh-option ControlPath=none --no-record --choose never --flows 2 --no-sync --transport tcp --set nodelay=off --ports=5000-5003 /a/ b:/c/x";
        assert_eq!(own.copy(&with).join(" "), expected);
        // landspeed accepts all of these words.
        let words = own.copy(&with);
        let words: Vec<&str> = words.iter().skip(2).map(String::as_str).collect();
        assert_eq!(parsed(&words).unwrap().flows, Some(2));
    }
}
