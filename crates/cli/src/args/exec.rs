//! Arguments of `landspeed exec`.

use std::ffi::OsString;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

/// The part of the help that explains how paths work.
const PATHS_HELP: &str = "\
A program that runs over a path is not changed and not told. `local` carries
connections between two programs that both run over it, on one host, as the
same user:

  landspeed exec --path local -- redis-server --port 6400
  landspeed exec --path local -- redis-benchmark -p 6400

A connection that cannot be carried stays on TCP. At the end, landspeed says
how many were carried, and why others were not.";

#[derive(Debug, Args)]
#[command(after_long_help = PATHS_HELP)]
pub(crate) struct ExecArgs {
    /// What carries the program's connections
    #[arg(long, value_name = "NAME", value_parser = paths())]
    pub(crate) path: String,
    /// Put only connections to this port, or with this network, on the path (may be repeated)
    ///
    /// A port (6379) is the one that the server listens on, whichever end the program is. A network (10.0.0.0/8, fd00::/8) or an
    /// address (10.0.0.1) is the peer's. Of several, one must fit. Other connections stay on TCP and are not counted, so that
    /// --require does not fail for them. mptcp takes all.
    #[arg(long, value_name = "PORT|CIDR", value_parser = str::parse::<landspeed_path::PortOrNetwork>)]
    pub(crate) only: Vec<landspeed_path::PortOrNetwork>,
    /// Fail where a connection stayed on TCP, or where there was none
    #[arg(long)]
    pub(crate) require: bool,
    /// Count the bytes of carried connections too (root)
    ///
    /// A BPF program in the kernel counts them, because only the kernel sees a socket until it closes. It costs a little at every call
    /// that sends or receives.
    #[arg(long)]
    pub(crate) bytes: bool,
    /// Print the counts as JSON, on standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

pub(crate) fn paths() -> PossibleValuesParser {
    let named =
        landspeed_path::PATHS.iter().map(|path| PossibleValue::new(path.name()).help(path.describe()));
    PossibleValuesParser::new(named.collect::<Vec<_>>())
}
