//! Arguments of `landspeed measure`: each workload is a subcommand with the parameters that it declares.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use landspeed_record::factor::reference::capital;
use landspeed_record::factor::{Domain, Factor, FactorDeclaration};
use landspeed_record::{Settings, TrialSpec, Workload};
use landspeed_transport::settings::{FLOWS, TRANSPORT};
use landspeed_workload::WorkloadRunner;

use super::common::CommonArgs;
use crate::commands::app;

#[derive(Debug, Clone)]
pub(crate) struct MeasureArgs {
    /// The workload to run, with the given parameters.
    pub(crate) workload: Workload,
    pub(crate) common: CommonArgs,
}

const EXAMPLES: &str = "\
Examples:
  landspeed measure stream dtn2               from here to a host
  landspeed measure pingpong dtn1 dtn2        between two others
  sudo landspeed measure stream               in a lab on this machine
  landspeed measure stream --help             its options";

impl Args for MeasureArgs {
    /// Each start of the program builds the whole command line, even that of an agent. The workloads and their options
    /// are built only when this command is parsed.
    fn augment_args(command: Command) -> Command {
        command
            .about("Measure a path with one workload")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand_value_name("WORKLOAD")
            .subcommand_help_heading("Workloads")
            .disable_help_subcommand(true)
            .after_help(EXAMPLES)
            .defer(with_workloads)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for MeasureArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, matches) = matches.subcommand().expect("clap requires a workload");
        let runner =
            app::workloads().iter().find(|runner| runner.name() == name).expect("clap takes these names");
        let workload = Workload {
            name: name.to_owned(),
            parameters: given(runner.as_ref(), matches),
            file: runner.application().map(|one| one.text.clone()),
        };
        Ok(MeasureArgs { workload, common: CommonArgs::from_arg_matches(matches)?.with_habits() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the command with a subcommand for each workload, if it has none yet.
pub(crate) fn with_workloads(command: Command) -> Command {
    if command.has_subcommands() {
        return command;
    }
    command.subcommands(app::workloads().iter().map(|runner| of_workload(runner.as_ref())))
}

fn of_workload(runner: &'static dyn WorkloadRunner) -> Command {
    let arguments = runner.parameters().into_iter().map(argument);
    let command = CommonArgs::augment_args(Command::new(runner.name()).args(arguments));
    // The workload's description replaces the one that `CommonArgs` brings.
    let command = command.about(capital(runner.describe())).long_about(None);
    let command = command.after_help(format!("Example: landspeed measure {}{}", example(runner), GRID));
    only_own(command, runner)
}

/// The part of the help after the example of each workload.
const GRID: &str = "\n\nWith --vary, it measures a grid: every combination of values in randomised blocks, so that the ratios between \
                    them carry intervals. Ctrl-C keeps what was measured; --resume continues.\n\
                    Example: landspeed measure stream --vary mtu=1500,9000 --vary write-size=1K..1M*4";

/// Returns a command line with one of the workload's parameters.
fn example(runner: &dyn WorkloadRunner) -> String {
    let set = runner.parameters().into_iter().find(|parameter| !matches!(parameter.domain, Domain::Switch));
    let set = set.map_or_else(String::new, |one| format!(" --{} {}", one.name, one.default));
    format!("{}{set} HOST_A HOST_B", runner.name())
}

/// Hides the options that the workload does not use. `--flows` is also refused if the workload has no flows to count.
fn only_own(command: Command, runner: &'static dyn WorkloadRunner) -> Command {
    let flows = |number: &str| {
        let flow = [(FLOWS.name.to_owned(), number.to_owned())].into();
        runner
            .needs(&TrialSpec { workload: Workload::new(runner.name()), flow, ..TrialSpec::default() })
            .flows
    };
    let unused = |arg: Arg| {
        arg.hide(true).value_parser(move |_: &str| Err::<String, _>(format!("{} has none", runner.name())))
    };
    let command = if flows("1") == flows("2") { command.mut_arg("flows", unused) } else { command };
    let transport = runner.flow().iter().find(|(name, _)| *name == TRANSPORT.name);
    let command = transport.map_or(command.clone(), |(_, usual)| {
        command.mut_arg(TRANSPORT.name, |arg| arg.default_value(*usual))
    });
    let command = match runner.hosts() {
        None => command,
        Some(_) => ["transport", "set", "warm_up", "fan", "interval"]
            .into_iter()
            .fold(command, |command, name| command.mut_arg(name, |arg| arg.hide(true))),
    };
    let many = runner.hosts().is_none() && runner.roles().iter().any(|role| role.most > 1);
    command.mut_arg("fan", |arg| arg.hide(!many))
}

/// Returns the command-line argument of a parameter: a flag for an on/off parameter, otherwise an option whose value
/// must be in the parameter's domain.
fn argument(parameter: Factor) -> Arg {
    let arg = Arg::new(parameter.name).long(parameter.name).short(parameter.short);
    if matches!(parameter.domain, Domain::Switch) {
        return arg.help(capital(parameter.about)).action(ArgAction::SetTrue);
    }
    let of_datagrams = parameter.default_of_datagrams.map(|default| format!("; {default} of datagrams"));
    let default = format!("[default: {}{}]", parameter.default, of_datagrams.unwrap_or_default());
    arg.help(format!("{} {default}", capital(parameter.about)))
        .value_name("VALUE")
        .value_parser(move |text: &str| parameter.parse(text).map_err(|error| error.to_string()))
}

fn given(runner: &dyn WorkloadRunner, matches: &ArgMatches) -> Settings {
    let value = |parameter: &FactorDeclaration<'_>| match parameter.domain {
        Domain::Switch => matches.get_flag(parameter.name).then(|| "on".to_owned()),
        _ => matches.get_one::<String>(parameter.name).cloned(),
    };
    let parameters = runner.parameters().into_iter();
    parameters.filter_map(|parameter| Some((parameter.name.to_owned(), value(&parameter)?))).collect()
}
