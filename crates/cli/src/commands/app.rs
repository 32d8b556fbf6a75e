//! `landspeed app`: lists, shows and checks applications.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use landspeed_record::Workload;
use landspeed_record::factor::FactorTable;
use landspeed_record::units::did_you_mean;
use landspeed_workload::app::{Application, read};
use landspeed_workload::{WORKLOADS, WorkloadRunner};
use serde::Serialize;

use crate::failure::in_one_line;
use crate::groups::ListArgs;
use crate::output::{list, next, out, usage};

/// List and check applications: programs as workloads
#[derive(Debug, Args)]
#[command(
    after_help = "An application is a file that says which programs run on which hosts, and where their figures are.\n\n\
             Example: landspeed app show redis > mine.toml; landspeed app check mine.toml"
)]
pub(crate) struct AppArgs {
    #[command(subcommand)]
    pub(crate) action: AppAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AppAction {
    /// List the applications that ship
    List(ListArgs),
    /// Print the file of one that ships
    #[command(after_help = "Example: landspeed app show redis > mine.toml")]
    Show {
        /// Its name, from `landspeed app list`
        name: String,
    },
    /// Check a file: print the first mistake with its line
    #[command(
        after_help = "Example: landspeed app check mine.toml; docs/reference/applications.md describes such files."
    )]
    Check {
        /// File of an application
        file: PathBuf,
    },
}

/// An application in the output of `landspeed app list --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ApplicationEntry {
    /// The name that `landspeed measure` takes.
    name: &'static str,
    /// What the application does, and its figure.
    title: &'static str,
    /// Least and greatest number of hosts.
    hosts: [usize; 2],
    /// Parameters with their defaults.
    parameters: Vec<(&'static str, &'static str)>,
}

pub(crate) fn run(args: &AppArgs) -> Result<ExitCode> {
    match &args.action {
        AppAction::List(form) => {
            let listed: Vec<ApplicationEntry> = shipped().map(listed).collect();
            let rows: Vec<_> = listed.iter().map(row).collect();
            list(&["name", "what it does", "hosts"], &rows, &listed, form)?;
            let first = listed.first().map(|one| format!("landspeed measure app:{}", one.name));
            first.map_or(Ok(()), |command| next(form.json, &command))?;
        }
        AppAction::Show { name } => out(&by_name(name)?.text)?,
        AppAction::Check { file } => {
            let parameters = load(file)?.parameters.len();
            out(&format!(
                "{}: no mistakes; {parameters} parameters; run it with: landspeed measure app:{}\n",
                file.display(),
                file.display()
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn listed(application: &'static Application) -> ApplicationEntry {
    let Application { name, title, hosts, .. } = application;
    let parameters = application.parameters().into_iter().map(|one| (one.name, one.default)).collect();
    ApplicationEntry { name, title, hosts: *hosts, parameters }
}

fn row(one: &ApplicationEntry) -> Vec<String> {
    let hosts = match one.hosts {
        [least, most] if least == most => least.to_string(),
        [least, most] => format!("{least} to {most}"),
    };
    vec![one.name.to_owned(), one.title.to_owned(), hosts]
}

/// The applications of the files that the command line names as `app:FILE`.
static NAMED: OnceLock<Vec<Arc<dyn WorkloadRunner>>> = OnceLock::new();

/// Returns all workloads that `landspeed measure` takes: those of the table, and those that the command line names.
pub(crate) fn workloads() -> &'static [Arc<dyn WorkloadRunner>] {
    static ALL: OnceLock<Vec<Arc<dyn WorkloadRunner>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let named = NAMED.get().map(Vec::as_slice).unwrap_or_default();
        let is_replaced = |one: &Arc<dyn WorkloadRunner>| named.iter().any(|own| own.name() == one.name());
        WORKLOADS.iter().filter(|one| !is_replaced(one)).chain(named).cloned().collect()
    })
}

/// Returns the applications that ship with landspeed.
fn shipped() -> impl Iterator<Item = &'static Application> {
    WORKLOADS.iter().filter_map(|one| one.application())
}

/// Returns the application that ships under this name, or a usage error if there is none.
fn by_name(name: &str) -> Result<&'static Application> {
    let name = name.trim_start_matches("app:");
    shipped().find(|one| one.file_name() == name).ok_or_else(|| {
        let near = did_you_mean(name, shipped().map(Application::file_name));
        usage(format!("no application is called '{name}'{near} (`landspeed app list` lists all)"))
    })
}

/// Returns the workload of the application `word`, which is a file or the name of an application that ships.
pub(crate) fn named(word: &str) -> Result<Workload> {
    let name = word.trim_start_matches("app:");
    match is_file(name) {
        true => Ok(of_file(&load(Path::new(name))?)),
        false => Ok(Workload::new(by_name(name)?.name())),
    }
}

/// Returns landspeed's own workload called `word`, if `tune` and `explain` can run it instead of a stream.
pub(crate) fn own(word: &str) -> Option<&'static dyn WorkloadRunner> {
    let own = WORKLOADS.iter().filter(|one| one.application().is_none() && one.ends_with_its_work());
    own.map(|one| &**one).find(|one| one.name() == word)
}

/// Returns the workload that `tune` and `explain` run instead of a stream: landspeed's own, or an application.
pub(crate) fn in_place_of_stream(word: &str) -> Result<Workload> {
    own(word).map_or_else(|| named(word), |runner| Ok(Workload::new(runner.name())))
}

/// Returns the workload of a file's application.
pub(crate) fn of_file(application: &Application) -> Workload {
    Workload { file: Some(application.text.clone()), ..Workload::new(&application.name) }
}

/// Returns the workload of the application `word` with the parameters `with`, such as "size=4K,metric=p99".
pub(crate) fn asked(word: &str, with: Option<&str>) -> Result<Workload> {
    set_on(named(word)?, with)
}

/// Returns `workload` with the parameters `with`, such as "size=4K,metric=p99".
pub(crate) fn set_on(mut workload: Workload, with: Option<&str>) -> Result<Workload> {
    let runner = landspeed_workload::find(&workload).context("it was read before")?;
    let parameters = runner.parameters();
    let table = FactorTable::of(&parameters);
    for one in with.iter().flat_map(|text| text.split(',')) {
        let (name, value) =
            one.split_once('=').ok_or_else(|| usage(format!("--with '{one}': expected NAME=VALUE")))?;
        let (name, value) = table.parse(name.trim(), value.trim()).map_err(usage)?;
        workload.parameters.insert(name, value);
    }
    Ok(workload)
}

/// Returns true if the word after `app:` names a file and not an application that ships.
fn is_file(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some()
}

/// Reads the application in a file. Returns a usage error for a mistake in the file, or if a parameter has the name of
/// an option of `landspeed measure`.
fn load(file: &Path) -> Result<Application> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {}", file.display()))
        .map_err(|error| usage(in_one_line(&error)))?;
    let application = read(file, &text).map_err(usage)?;
    match application.parameters.iter().find(|one| super::measure::common::is_taken(&one.name)) {
        Some(taken) => Err(usage(format!(
            "{}: parameter.{}: `landspeed measure` has an option of that name: choose another",
            file.display(),
            taken.name
        ))),
        None => Ok(application),
    }
}

/// Loads each file that a word of the command line names as `app:FILE`. Returns the words, with each such word replaced
/// by the workload's name. Reads no other file: each start of the program calls this, also that of an agent.
pub(crate) fn load_named(words: impl Iterator<Item = OsString>) -> Result<Vec<OsString>> {
    let mut all: Vec<Arc<dyn WorkloadRunner>> = Vec::new();
    let replaced = |word: OsString| match word.to_str().and_then(|word| word.strip_prefix("app:")) {
        Some(file) if is_file(file) => {
            let application = load(Path::new(file))?;
            let name = application.name.clone();
            all.retain(|one| one.name() != name);
            all.push(Arc::new(application));
            Ok(name.into())
        }
        _ => Ok(word),
    };
    let words = words.map(replaced).collect();
    NAMED.get_or_init(|| all);
    words
}
