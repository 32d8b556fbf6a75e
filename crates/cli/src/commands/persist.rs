//! `landspeed persist`: writes the settings that a run kept as files that apply at boot.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use landspeed_knob::persist::{ConfigFile, PersistPlan, UnpersistedSetting, is_ours};
use landspeed_record::Side;
use landspeed_report::{json, quoted, safe};
use serde::Serialize;

use crate::exit::Exit;
use crate::groups::RECORD;
use crate::kept::{KeptSettings, KeptSettingsArgs};
use crate::output::out;
use crate::place::put_in_place;

/// Write the settings that a run kept as files that apply at boot
#[derive(Debug, Args)]
#[command(after_help = format!("{RECORD}\n\nExample: sudo landspeed persist last --write /"))]
pub(crate) struct PersistArgs {
    /// Write the files below this folder (/ for this host) instead of showing them
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) kept: KeptSettingsArgs,
    /// Take a lab's record, although its settings prove nothing about this host
    #[arg(long)]
    pub(crate) lab: bool,
    /// Make the files although the host of the run is not this one
    #[arg(long)]
    pub(crate) other_host: bool,
}

/// The output of `landspeed persist --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct PersistReport {
    /// Format version of this document.
    format: u32,
    record: String,
    /// The host's side in the run.
    host: Side,
    /// Name of the host in the run.
    hostname: String,
    /// Files that apply the settings at boot.
    files: Vec<ConfigFile>,
    /// The folder below which the files were written; null if they were only shown.
    written_below: Option<PathBuf>,
    /// Settings of the flow, which its program must set.
    in_your_program: Vec<String>,
    /// Settings that are in no file, and why.
    left_out: Vec<UnpersistedSetting>,
    notes: Vec<String>,
    /// Commands to copy, by purpose.
    commands: Vec<SuggestedCommands>,
}

/// Commands to copy.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct SuggestedCommands {
    /// Purpose of the commands.
    what: &'static str,
    /// Shell commands.
    commands: Vec<String>,
}

pub(crate) fn run(args: &PersistArgs) -> Result<ExitCode> {
    let kept = KeptSettings::read(&args.kept)?;
    let side = match Side::BOTH.iter().all(|side| kept.of_host(*side).is_empty()) {
        // Without files, the host does not matter.
        true => Side::A,
        false => side(&kept, args)?,
    };
    let PersistPlan { files, application, left_out } = kept.persisted(side)?;
    let mut report = PersistReport {
        format: 1,
        record: kept.path.display().to_string(),
        host: side,
        hostname: kept.summary.host(side).hostname.clone(),
        commands: if files.is_empty() { Vec::new() } else { commands(&kept, args, &files) },
        notes: nothing(&kept, side)
            .into_iter()
            .chain(kept.summary.void.iter().map(|void| format!("the run does not count: {void}")))
            .collect(),
        files,
        written_below: args.write.clone(),
        in_your_program: application.lines().map(str::to_owned).collect(),
        left_out: kept.unconfirmed.iter().cloned().chain(left_out).collect(),
    };
    if let Some(root) = &args.write {
        report.notes.extend(ready(root, &report.files)?);
        report.files.iter().try_for_each(|file| write(root, file))?;
    }
    out(&if args.kept.json { json(&report) } else { text(&report) })?;
    Ok(Exit::Done.into())
}

/// Returns the side whose settings are persisted, or an error if this host is not that side.
fn side(kept: &KeptSettings, args: &PersistArgs) -> Result<Side> {
    let asked = args.kept.host;
    if kept.summary.is_lab() && !args.lab {
        bail!(
            "the record is of a lab, whose settings prove nothing about this host: tune a real path, or add --lab"
        );
    }
    if args.lab || args.other_host {
        return Ok(asked.unwrap_or(Side::A));
    }
    kept.side_here(asked).map_err(|why| anyhow!("{why}; run it there, or add --other-host"))
}

/// Returns why there are no files, or `None` if there are some.
fn nothing(kept: &KeptSettings, side: Side) -> Option<String> {
    let other = side.other();
    let why = match (kept.of_host(side).len(), kept.of_host(other).len(), kept.of_flow().len()) {
        (0, 0, 0) if !kept.unconfirmed.is_empty() => {
            "the run confirmed none of the settings that it kept".to_owned()
        }
        (0, 0, 0) => "the run kept no setting".to_owned(),
        (0, 0, _) => "what the run kept is set in your program".to_owned(),
        (0, _, _) => {
            format!(
                "what the run kept is on host {other} ({}): run it there",
                kept.summary.host(other).hostname
            )
        }
        _ => return None,
    };
    Some(format!("nothing to persist: {why}"))
}

/// Returns the commands that the user may need next.
fn commands(kept: &KeptSettings, args: &PersistArgs, files: &[ConfigFile]) -> Vec<SuggestedCommands> {
    let is_root = rustix::process::geteuid().is_root();
    let record = match is_root {
        true => args.kept.record.again(args.kept.data.data_dir.as_deref(), &kept.path),
        // `last` would name another record for another user.
        false => quoted(&kept.path.display().to_string()),
    };
    let sudo = if is_root { "" } else { "sudo " };
    let as_root =
        |commands: &[String]| commands.iter().map(|command| format!("{sudo}{command}")).collect::<Vec<_>>();
    let host = args.kept.host.map(|side| format!(" --host {side}").to_lowercase()).unwrap_or_default();
    let of_run = format!("{record}{host}{}", if args.kept.unconfirmed { " --unconfirmed" } else { "" });
    let flags = [(args.lab, " --lab"), (args.other_host, " --other-host")];
    let flags: String = flags.iter().filter(|(given, _)| *given).map(|(_, flag)| *flag).collect();
    let write = format!("{sudo}landspeed persist {of_run}{flags} --write /");
    let todo = |what, commands| SuggestedCommands { what, commands };
    let write = args.write.is_none().then(|| todo("write", vec![write]));
    let rest = [
        todo("apply", files.iter().flat_map(|file| as_root(&file.apply)).collect()),
        todo("verify", vec![format!("landspeed verify {of_run}")]),
        todo("remove", files.iter().flat_map(|file| as_root(&file.remove)).collect()),
    ];
    write.into_iter().chain(rest).collect()
}

/// Checks that no foreign file would be overwritten, before anything is written. Returns notes on settings that an
/// earlier `persist` wrote and the new files lack.
fn ready(root: &Path, files: &[ConfigFile]) -> Result<Vec<String>> {
    let is_this_host = root.canonicalize().is_ok_and(|root| root == Path::new("/"));
    if is_this_host && !rustix::process::geteuid().is_root() {
        bail!("--write / needs root: run it with sudo");
    }
    let mut notes = Vec::new();
    for file in files {
        let path = below(root, file);
        match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() => {}
            Ok(text) if is_ours(&text) && !path.is_symlink() => notes.extend(
                file.drops(&text).iter().map(|line| format!("{} no longer has: {line}", path.display())),
            ),
            _ => bail!(
                "{} is there already, and not written by landspeed; nothing was written: move it away",
                path.display()
            ),
        }
    }
    Ok(notes)
}

fn below(root: &Path, file: &ConfigFile) -> PathBuf {
    root.join(file.path.trim_start_matches('/'))
}

fn write(root: &Path, file: &ConfigFile) -> Result<()> {
    let path = below(root, file);
    put_in_place(&path, &file.text, file.mode).with_context(|| format!("cannot write {}", path.display()))
}

fn text(report: &PersistReport) -> String {
    let file = |file: &ConfigFile| match &report.written_below {
        Some(root) => format!("wrote {}\n", below(root, file).display()),
        None => format!("{}\n{}\n{}\n", file.path, "-".repeat(file.path.len()), file.text),
    };
    let files: String = report.files.iter().map(file).collect();
    let programs = report.in_your_program.iter().map(|setting| format!("in your program: {setting}"));
    let left_out = report.left_out.iter().map(|left| format!("not in a file: {}: {}", left.knob, left.why));
    let notes = report.notes.iter().map(|note| safe(note));
    let lines: Vec<String> = notes.chain(programs).chain(left_out).collect();
    let commands: String = report.commands.iter().map(todo).collect();
    let parts = [files.trim_end().to_owned(), lines.join("\n"), commands];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Prints commands unbroken, however long, so that they can be copied.
fn todo(todo: &SuggestedCommands) -> String {
    let heads = std::iter::once(todo.what).chain(std::iter::repeat(""));
    todo.commands.iter().zip(heads).map(|(command, head)| format!("{head:8}{command}\n")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const FOLDER: &str = "LANDSPEED_TEST_PERSIST";

    fn file(text: &str) -> ConfigFile {
        let (apply, remove) = (Vec::new(), Vec::new());
        ConfigFile {
            path: "/etc/sysctl.d/90-landspeed.conf".into(),
            text: text.into(),
            mode: 0o644,
            apply,
            remove,
        }
    }

    /// Not a test, but the program that the test below runs, and whose write is cut short.
    #[test]
    fn role() {
        if let Some(folder) = std::env::var_os(FOLDER) {
            let written = write(Path::new(&folder), &file(&"net.ipv4.tcp_sack = 0\n".repeat(1000)));
            eprintln!("{written:?}");
            std::process::exit(i32::from(written.is_err()));
        }
    }

    #[test]
    fn a_write_that_is_cut_short_leaves_the_old_file() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), &file("old")).unwrap();
        let etc = root.path().join("etc/sysctl.d");
        let mode = || etc.join("90-landspeed.conf").metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o644);
        // Limits files to one block of 512 bytes. SIGXFSZ is ignored, so a longer write fails instead of ending the
        // process.
        let script =
            "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact commands::persist::tests::role --nocapture";
        let mut cut = std::process::Command::new("sh");
        cut.args(["-c", script]).arg(std::env::current_exe().unwrap()).env(FOLDER, root.path());
        let output = cut.output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        assert_eq!(std::fs::read_to_string(etc.join("90-landspeed.conf")).unwrap(), "old");
        let names: Vec<_> = std::fs::read_dir(&etc).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), 1, "{names:?}");

        write(root.path(), &file("new")).unwrap();
        assert_eq!(std::fs::read_to_string(etc.join("90-landspeed.conf")).unwrap(), "new");
        assert_eq!(mode(), 0o644);
    }
}
