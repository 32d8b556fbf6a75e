//! `landspeed app`: lists, shows and checks applications.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use landspeed_record::Workload;
use landspeed_record::factor::FactorTable;
use landspeed_record::units::did_you_mean;
use landspeed_workload::{WorkloadRunner, applications};
use serde::Serialize;

use crate::groups::ListArgs;
use crate::output::{list, out, usage};

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
    Show {
        /// Its name
        name: String,
    },
    /// Check a file: print the first mistake with its line
    Check {
        /// The file
        file: PathBuf,
    },
}

/// An application in the output of `landspeed app list --json`.
#[derive(Debug, Serialize)]
struct ApplicationEntry {
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
            let listed: Vec<ApplicationEntry> = applications().into_iter().map(listed).collect();
            let rows: Vec<_> = listed.iter().map(row).collect();
            list(&["name", "what it does", "hosts"], &rows, &listed, form)?;
        }
        AppAction::Show { name } => out(text(name)?)?,
        AppAction::Check { file } => {
            let runner = load(file)?;
            let parameters = runner.parameters().len();
            out(&format!(
                "{}: no mistakes; {parameters} parameters; run it with: landspeed measure app:{}\n",
                file.display(),
                file.display()
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn listed(runner: &'static dyn WorkloadRunner) -> ApplicationEntry {
    let parameters = runner.parameters().into_iter().map(|one| (one.name, one.default)).collect();
    ApplicationEntry {
        name: runner.name(),
        title: runner.describe(),
        hosts: runner.hosts().unwrap_or([2, 2]),
        parameters,
    }
}

fn row(one: &ApplicationEntry) -> Vec<String> {
    let hosts = match one.hosts {
        [least, most] if least == most => least.to_string(),
        [least, most] => format!("{least} to {most}"),
    };
    vec![one.name.to_owned(), one.title.to_owned(), hosts]
}

/// Returns the text of an application that ships with landspeed.
fn text(name: &str) -> Result<&'static str> {
    let name = name.trim_start_matches("app:");
    landspeed_workload::app::shipped_text(name).ok_or_else(|| {
        let known: Vec<&str> =
            applications().into_iter().map(|one| one.name().trim_start_matches("app:")).collect();
        usage(format!("no application is called '{name}'{}", did_you_mean(name, known)))
    })
}

/// Returns an application that ships, by its name, or the one in a file.
pub(crate) fn named(word: &str) -> Result<&'static dyn WorkloadRunner> {
    let name = word.trim_start_matches("app:");
    if name.contains('/') || Path::new(name).extension().is_some() {
        return load(Path::new(name));
    }
    text(name)?;
    landspeed_workload::find(&format!("app:{name}")).context("an application that ships can be read")
}

/// Returns an application with parameters, such as "size=4K,metric=p99".
pub(crate) fn asked(word: &str, with: Option<&str>) -> Result<Workload> {
    set_on(named(word)?, with)
}

/// Returns the workload of `runner` with parameters, such as "size=4K,metric=p99".
pub(crate) fn set_on(runner: &dyn WorkloadRunner, with: Option<&str>) -> Result<Workload> {
    let table = FactorTable::of(runner.parameters());
    let mut workload = Workload::new(runner.name());
    for one in with.iter().flat_map(|text| text.split(',')) {
        let (name, value) =
            one.split_once('=').ok_or_else(|| usage(format!("--with '{one}': expected NAME=VALUE")))?;
        let (name, value) = table.parse(name.trim(), value.trim()).map_err(usage)?;
        workload.parameters.insert(name, value);
    }
    Ok(workload)
}

/// Reads the application in a file and registers it as a workload.
pub(crate) fn load(file: &Path) -> Result<&'static dyn WorkloadRunner> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {}", file.display()))
        .map_err(|error| usage(format!("{error:#}")))?;
    let runner = landspeed_workload::load(file, &text).map_err(usage)?;
    match runner.parameters().iter().find(|one| super::measure::is_taken(one.name)) {
        Some(taken) => Err(usage(format!(
            "{}: parameter.{}: `landspeed measure` has an option of that name: choose another",
            file.display(),
            taken.name
        ))),
        None => Ok(runner),
    }
}

/// Loads the files that words of the command line name as `app:FILE`, and replaces those words by the workloads'
/// names.
pub(crate) fn load_named(words: impl Iterator<Item = std::ffi::OsString>) -> Result<Vec<std::ffi::OsString>> {
    let replaced = |word: std::ffi::OsString| match word.to_str().and_then(|word| word.strip_prefix("app:")) {
        Some(file) if file.contains('/') || Path::new(file).extension().is_some() => {
            Ok(load(Path::new(file))?.name().into())
        }
        _ => Ok(word),
    };
    words.map(replaced).collect()
}
