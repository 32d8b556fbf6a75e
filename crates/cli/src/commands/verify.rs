//! `landspeed verify`: compares this host with the settings that a run kept.

use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use landspeed_knob::persist::{ConfigFile, KeptChange};
use landspeed_knob::{self as knob, KnobTarget};
use landspeed_observer::host;
use landspeed_record::Side;
use landspeed_report::{Gauge, OutputCapabilities, json, labels, open_metrics, quoted, safe, table};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::{because, in_one_line};
use crate::groups::{MetricsArgs, RECORD};
use crate::kept::{KeptSettings, KeptSettingsArgs};
use crate::output::{next, out, save_metrics, usage};

/// Check this host against the settings that a run kept; changes nothing
#[derive(Debug, Args)]
#[command(
    after_help = format!("{RECORD}\n\
             Exits with 1 where a setting, or a file of `landspeed persist`, differs, and with 2 where it cannot check.\n\n\
             Example: landspeed verify last")
)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) kept: KeptSettingsArgs,
    /// Read the settings of this interface [default: the run's]
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
}

/// The output of `landspeed verify --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct VerifyReport {
    /// Format version of this document.
    format: u32,
    record: String,
    /// The host's side in the run.
    host: Side,
    /// Interface whose settings were read.
    interface: String,
    /// True if no setting differs from the kept value, and no file from what `landspeed persist` writes. If all files
    /// are missing, they are not considered.
    verified: bool,
    /// Settings of the host that the run kept.
    settings: Vec<SettingCheck>,
    /// Files of `landspeed persist`.
    files: Vec<FileCheck>,
    /// Settings of the flow, which are not stored on a host.
    in_your_program: Vec<String>,
}

/// A setting compared with the kept value.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct SettingCheck {
    /// Name of the knob.
    knob: String,
    /// The value that the run kept.
    kept: String,
    /// The present value; null if it cannot be read.
    now: Option<String>,
    /// True if the present value is not the kept one, or cannot be read.
    differs: bool,
    /// Why the value cannot be read; null if it was read.
    why: Option<String>,
}

/// A file compared with what `landspeed persist` writes.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct FileCheck {
    /// Path of the file.
    path: String,
    /// State of the file.
    state: FileState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum FileState {
    /// The file is as `landspeed persist` writes it.
    AsWritten,
    /// The file has other contents, or cannot be read.
    Changed,
    /// The file does not exist.
    Missing,
}

pub(crate) fn run(args: &VerifyArgs) -> Result<ExitCode> {
    let report = report(args).map_err(|why| usage(format!("cannot check: {}", in_one_line(&why))))?;
    save_metrics(&args.metrics, || Some(open_metrics(&gauges(&report))))?;
    out(&if args.kept.json { json(&report) } else { text(&report) })?;
    next(args.kept.json, &command(&report))?;
    Ok(exit(&report))
}

fn exit(report: &VerifyReport) -> ExitCode {
    let unread =
        report.settings.iter().filter(|setting| setting.why.is_some()).map(|setting| setting.knob.as_str());
    let unread = unread.collect::<Vec<_>>().join(", ");
    match differing(report) {
        Some(why) => because(Exit::Failed, &why),
        None if !unread.is_empty() => because(Exit::Usage, &format!("{unread} cannot be read")),
        None => Exit::Done.into(),
    }
}

/// Returns true if the setting was read and has another value.
fn is_other(setting: &SettingCheck) -> bool {
    setting.differs && setting.why.is_none()
}

fn report(args: &VerifyArgs) -> Result<VerifyReport> {
    let kept = KeptSettings::read(&args.kept)?;
    let side = match (&args.interface, args.kept.host) {
        // With --interface, the user names what to read, so this host need not be a host of the run.
        (Some(_), host) => host.unwrap_or(Side::A),
        (None, host) => kept.side_here(host).map_err(|why| anyhow!("{why}; name the --interface to read"))?,
    };
    let interface = args.interface.as_deref().or(kept.interface(side)).unwrap_or("lo").to_owned();
    let is_here = interface == "lo" || host::probe().links.iter().any(|link| link.name == interface);
    ensure!(is_here, "no interface is called '{interface}' here: name one with --interface");
    let target = KnobTarget { device: interface.clone() };
    let settings: Vec<SettingCheck> =
        kept.of_host(side).iter().map(|change| check(change, &target)).collect();
    let persisted = kept.persisted(side)?;
    let files: Vec<FileCheck> = persisted.files.iter().map(check_file).collect();
    Ok(VerifyReport {
        format: 1,
        record: kept.path.display().to_string(),
        host: side,
        interface,
        verified: !settings.iter().any(|setting| setting.differs) && !files_differ(&files),
        settings,
        files,
        in_your_program: persisted.application.lines().map(str::to_owned).collect(),
    })
}

/// Returns the command to run next: it writes the files if a setting differs or does not last, otherwise it shows the
/// record.
fn command(report: &VerifyReport) -> String {
    let record = quoted(&report.record);
    let is_lasting = report.files.iter().all(|file| file.state == FileState::AsWritten);
    match (report.verified && is_lasting, report.settings.is_empty()) {
        (_, true) => format!("landspeed show {record}"),
        (false, false) => format!("sudo landspeed persist {record} --write /   # makes the settings last"),
        (true, false) => format!("landspeed show {record}   # the rate that these settings gave"),
    }
}

fn gauges(report: &VerifyReport) -> Vec<Gauge> {
    let setting = |one: &SettingCheck| {
        (labels([("setting", &one.knob), ("interface", &report.interface)]), Some(f64::from(!one.differs)))
    };
    let file =
        |one: &FileCheck| (labels([("file", &one.path)]), Some(f64::from(one.state == FileState::AsWritten)));
    vec![
        Gauge::new("verified", "", "1 if nothing differs from what the run kept, else 0.")
            .with(labels([("interface", &report.interface)]), u8::from(report.verified)),
        Gauge::new("setting_as_kept", "", "1 if a setting has the value that the run kept, else 0.")
            .all(report.settings.iter().map(setting)),
        Gauge::new("file_as_written", "", "1 if a file is as `landspeed persist` writes it, else 0.")
            .all(report.files.iter().map(file)),
    ]
}

/// Returns the sentence that names what differs, or `None` if nothing does.
fn differing(report: &VerifyReport) -> Option<String> {
    let settings = report.settings.iter().filter(|setting| is_other(setting));
    let files = report.files.iter().filter(|file| file.state != FileState::AsWritten);
    let names: Vec<String> =
        settings.map(|setting| setting.knob.clone()).chain(files.map(|file| file.path.clone())).collect();
    (!names.is_empty())
        .then(|| format!("{} differ from what was kept; `landspeed persist` writes them", names.join(", ")))
}

/// Compares a setting with its kept value. A setting that cannot be read counts as different.
fn check(change: &KeptChange<'_>, target: &KnobTarget) -> SettingCheck {
    let (knob, kept) = (change.knob.to_owned(), change.to.to_owned());
    let read = knob::find(change.knob)
        .map_err(|error| error.to_string())
        .and_then(|knob| Ok((knob, knob.setting.read(target).map_err(|error| error.to_string())?)));
    match read {
        Ok((found, now)) => {
            let differs = !found.factor.domain.same(&now, &kept);
            SettingCheck { knob, kept, now: Some(now), differs, why: None }
        }
        Err(why) => SettingCheck { knob, kept, now: None, differs: true, why: Some(why) },
    }
}

fn check_file(file: &ConfigFile) -> FileCheck {
    let state = match std::fs::read_to_string(&file.path) {
        Ok(found) if file.says_the_same(&found) => FileState::AsWritten,
        Err(error) if error.kind() == ErrorKind::NotFound => FileState::Missing,
        _ => FileState::Changed,
    };
    FileCheck { path: file.path.clone(), state }
}

/// Returns true if a file is not as written. Returns false if all files are missing, because another tool may keep the
/// settings.
fn files_differ(files: &[FileCheck]) -> bool {
    let is_missing = |file: &FileCheck| file.state == FileState::Missing;
    !files.iter().all(is_missing) && files.iter().any(|file| file.state != FileState::AsWritten)
}

fn text(report: &VerifyReport) -> String {
    let mut parts = vec![headline(report)];
    if !report.settings.is_empty() {
        let row = |one: &SettingCheck| {
            let now = one.now.as_deref().unwrap_or("-");
            let said = match (&one.why, one.differs) {
                (Some(why), _) => format!("cannot be read: {why}"),
                (None, true) => "DIFFERS".to_owned(),
                (None, false) => "as kept".to_owned(),
            };
            [&one.knob, now, &one.kept, &said].map(safe).to_vec()
        };
        let rows: Vec<Vec<String>> = report.settings.iter().map(row).collect();
        parts.push(table(&["setting", "now", "kept", ""], &rows, OutputCapabilities::stdout()));
    }
    let lines: Vec<String> = (report.files.iter().map(file_line))
        .chain(report.in_your_program.iter().map(|setting| format!("in your program: {setting}")))
        .collect();
    parts.push(lines.join("\n"));
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn headline(report: &VerifyReport) -> String {
    let differing = report.settings.iter().filter(|setting| setting.differs).count();
    let what = match (report.settings.len(), differing) {
        (0, _) => format!("the run kept no setting of host {}", report.host),
        (all, 0) => format!("all {all} settings are as the run kept them"),
        (all, differing) => format!("{differing} of {all} settings differ from what the run kept"),
    };
    let files = match () {
        () if files_differ(&report.files) => "; files differ",
        () if report.files.iter().any(|file| file.state == FileState::Missing) => {
            "; no file makes them last (`landspeed persist`)"
        }
        () => "",
    };
    what + files
}

fn file_line(file: &FileCheck) -> String {
    let state = match file.state {
        FileState::AsWritten => "as written",
        FileState::Changed => "CHANGED",
        FileState::Missing => "missing",
    };
    format!("{}: {state}", file.path)
}
