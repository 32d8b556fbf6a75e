//! The command line. Each command is a module here and a row of the table at the end of this file.
//!
//! A command's module has its arguments, the function `run`, and the types of its JSON documents, which the row names.
//! The doc comment of the arguments is the command's line in the help. The `mod` lines are outside the table, because
//! rustfmt formats no module that a macro declares.

pub(crate) mod agent;
pub(crate) mod app;
pub(crate) mod calc;
pub(crate) mod causes;
pub(crate) mod cc;
pub(crate) mod compare;
pub(crate) mod copy;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod experiments;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod internal;
pub(crate) mod knobs;
pub(crate) mod lab;
pub(crate) mod measure;
pub(crate) mod papers;
pub(crate) mod persist;
pub(crate) mod records;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod tune;
pub(crate) mod undo;
pub(crate) mod verify;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Command, CommandFactory, Parser};
use landspeed_record::{
    CompareReport, ExplainReport, GridReport, MeasureReport, OccasionsReport, RecordRunReport, TuneSummary,
};
use landspeed_report::{DiffReport, RecordsReport};

use crate::exit;
use crate::schema::{DocumentSchema, document};

const EXAMPLES: &str = "Examples:\n  \
    sudo landspeed tune             tune a lab on this machine\n  \
    landspeed doctor                check this host's settings\n  \
    landspeed tune HOST_A HOST_B    tune a real path by ssh";

/// Generates the command line of clap, the calls of `run`, and the list of JSON documents from the rows of the table.
macro_rules! commands {
    ($($(#[$($attribute:tt)+])? $name:ident($module:ident::$args:ident) $({ $($title:literal: $document:ty,)* })?,)*) => {
        /// Measure a network path between two hosts, find what holds it back, change one setting at a time, keep only what is proven
        /// to help, and restore everything.
        #[derive(Debug, Parser)]
        #[command(name = "landspeed", version = landspeed_agent::session::BUILD, arg_required_else_help = true, max_term_width = 100)]
        #[command(after_help = format!("{EXAMPLES}\n\n{}", exit::line()))]
        pub(crate) enum CliCommand {
            $($(#[$($attribute)+])? $name($module::$args),)*
        }

        /// The documents of `--json`, each titled by the command that prints it.
        pub(crate) const DOCUMENTS: &[DocumentSchema] = &[$($($(document::<$document>($title),)*)?)*];

        impl CliCommand {
            pub(crate) fn run(&self) -> Result<ExitCode> {
                match self {
                    $(CliCommand::$name(args) => $module::run(args),)*
                }
            }
        }
    };
}

// The table, in the order of the help: what is asked of a path, then records and settings, then tools, then lists.
commands! {
    Tune(tune::TuneArgs) {
        "landspeed tune": TuneSummary,
        "landspeed tune --record-run": RecordRunReport,
    },
    Explain(explain::ExplainArgs) { "landspeed explain": ExplainReport, },
    Doctor(doctor::DoctorArgs) { "landspeed doctor": doctor::DoctorDocument, },
    Knobs(knobs::KnobsArgs) { "landspeed knobs": knobs::KnobList, },
    Measure(measure::MeasureArgs) {
        "landspeed measure": MeasureReport,
        "landspeed measure --vary": GridReport,
        "landspeed measure --vary --occasions": OccasionsReport,
    },
    Compare(compare::CompareArgs) {
        "landspeed compare": CompareReport,
        "landspeed compare --paths": GridReport,
    },
    Copy(copy::CopyArgs) {
        "landspeed copy": copy::CopyDocument,
        "landspeed copy --against": copy::against::AgainstReport,
        "landspeed copy --clean": copy::clean::CopyCleaning,
        "landspeed copy --dry-run": copy::dry_run::DryRunReport,
        "landspeed copy --progress": copy::progress::CopyProgressLine,
        "landspeed copy --verify": copy::verify::CopyVerification,
    },
    Exec(exec::ExecArgs) { "landspeed exec": exec::ExecReport, },
    Run(run::RunArgs) {
        "landspeed run": GridReport,
        "landspeed run --occasions": OccasionsReport,
    },
    Experiments(experiments::ExperimentsArgs) { "landspeed experiments": Vec<experiments::ExperimentEntry>, },
    App(app::AppArgs) { "landspeed app list": Vec<app::ApplicationEntry>, },
    Records(records::RecordsArgs) { "landspeed records": RecordsReport, },
    Show(show::ShowArgs),
    Diff(diff::DiffArgs) { "landspeed diff": DiffReport, },
    Persist(persist::PersistArgs) { "landspeed persist": persist::PersistReport, },
    Verify(verify::VerifyArgs) { "landspeed verify": verify::VerifyReport, },
    Undo(undo::UndoArgs) { "landspeed undo": undo::UndoDocument, },
    Lab(lab::LabArgs) {
        "landspeed lab faults": lab::faults::FaultList,
        "landspeed lab list": lab::LabList,
    },
    Agent(agent::AgentArgs),
    Cc(cc::CcArgs) {
        "landspeed cc list": cc::ControlList,
        "landspeed cc recovery": cc::recovery::RecoveryList,
    },
    Causes(causes::CausesArgs) { "landspeed causes": Vec<causes::CauseEntry>, },
    Papers(papers::PapersArgs) {
        "landspeed papers": Vec<papers::ClaimEntry>,
        "landspeed papers --procedures": Vec<papers::ProcedureEntry>,
        "landspeed papers --inconsistencies": Vec<papers::InconsistencyEntry>,
    },
    Calc(calc::CalcArgs) { "landspeed calc": Vec<calc::FormulaEntry>, },
    Generate(generate::GenerateArgs),
    #[command(flatten)]
    Internal(internal::InternalCommand),
}

/// Returns the whole command line, with the workloads of `measure`, which are otherwise made only where it is parsed.
pub(crate) fn whole() -> Command {
    let whole = |command: Command| {
        if command.get_name() == "measure" { measure::with_workloads(command) } else { command }
    };
    CliCommand::command().mut_subcommands(whole)
}

#[cfg(test)]
mod tests {
    use clap::Args;

    use super::*;
    use crate::groups::{FlowArgs, FormArgs, HostArgs, ListArgs, OutputArgs};

    /// If a command has no help line of its own, clap shows that of a group of its arguments.
    #[test]
    fn every_command_has_a_line_of_help_of_its_own() {
        let groups: [fn(Command) -> Command; 5] = [
            FlowArgs::augment_args,
            FormArgs::augment_args,
            HostArgs::augment_args,
            ListArgs::augment_args,
            OutputArgs::augment_args,
        ];
        let about = |command: &Command| command.get_about().map(ToString::to_string);
        let of_groups = groups.map(|group| about(&group(Command::new("group"))));
        let all = whole();
        for command in all.get_subcommands() {
            let about = about(command);
            assert!(about.is_some() && !of_groups.contains(&about), "{}: {about:?}", command.get_name());
        }
        all.debug_assert();
    }

    #[test]
    fn every_command_that_prints_json_names_its_documents() {
        fn prints_json(command: &Command) -> bool {
            let is_json = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
            is_json || command.get_subcommands().any(prints_json)
        }
        // `show` prints the document of the command that wrote the record.
        let named: Vec<&str> =
            DOCUMENTS.iter().filter_map(|one| one.title.split(' ').nth(1)).chain(["show"]).collect();
        let all = whole();
        for command in all.get_subcommands().filter(|command| prints_json(command)) {
            assert!(named.contains(&command.get_name()), "{}", command.get_name());
        }
    }

    /// An agent would make all of them too, and read the files of all applications for them.
    #[test]
    fn the_workloads_are_made_only_where_they_are_parsed() {
        let has_workloads = |all: &Command| all.find_subcommand("measure").expect("a row").has_subcommands();
        assert!(!has_workloads(&CliCommand::command()) && has_workloads(&whole()));
        let mut built = whole();
        built.build();
        let names = |all: &Command| all.find_subcommand("measure").expect("a row").get_subcommands().count();
        assert_eq!(names(&built), names(&whole()), "none twice");
        assert!(CliCommand::try_parse_from(["landspeed", "measure", "pingpong", "--sizes", "1"]).is_ok());
    }
}
