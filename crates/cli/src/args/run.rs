//! Arguments of `landspeed run` and `landspeed experiments`.

use clap::Args;

use super::{HostArgs, ListArgs, OutputArgs};

#[derive(Debug, Args)]
#[command(
    after_help = "A file is strict TOML: what is sent, over what, what is varied, when it ends, and what is expected. \
             docs/reference/experiments.md describes it.\n\n\
             Examples:\n  \
             landspeed experiments                       list the experiments that ship\n  \
             sudo landspeed run cottrell/streams --short measure one of them in a few minutes\n  \
             landspeed run --check mine.toml             look for mistakes, measure nothing"
)]
pub(crate) struct RunArgs {
    /// A file, or the name of an experiment that ships, such as cottrell/streams
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    /// Measure the version of a few minutes
    #[arg(long)]
    pub(crate) short: bool,
    /// Look for mistakes in the file and measure nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Change settings of real hosts without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print everything that the page says
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: sudo landspeed run cottrell/streams --short")]
pub(crate) struct ExperimentsArgs {
    #[command(flatten)]
    pub(crate) form: ListArgs,
    /// Print the file of this experiment
    #[arg(value_name = "NAME", conflicts_with_all = ["json", "csv"])]
    pub(crate) name: Option<String>,
}
