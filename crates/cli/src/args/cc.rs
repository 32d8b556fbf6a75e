//! Arguments of `landspeed cc`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct CcArgs {
    #[command(subcommand)]
    pub(crate) action: CcAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CcAction {
    /// List the congestion controls, the name that TCP_CONGESTION takes for each, and what this host has of them
    List,
    /// Put congestion controls into the running kernel, for any program, until Ctrl-C; needs root
    Load {
        /// Which; see `landspeed cc list`
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// Pin them in /sys/fs/bpf and return: they stay until `landspeed cc unload` or the next boot
        #[arg(long)]
        keep: bool,
    },
    /// Take out what `load --keep` put in; connections that use it keep it until they close
    Unload {
        /// Which
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
}
