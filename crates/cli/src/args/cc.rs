//! Arguments of `landspeed cc`.

use clap::{Args, Subcommand};

use super::ListArgs;

#[derive(Debug, Args)]
#[command(after_help = "Example: sudo landspeed cc load scalable")]
pub(crate) struct CcArgs {
    #[command(subcommand)]
    pub(crate) action: CcAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CcAction {
    /// List congestion controls with their TCP_CONGESTION names, and which this host has
    List(ListArgs),
    /// Load congestion controls into the running kernel, for any program, until Ctrl-C; needs root
    Load {
        /// Names from `landspeed cc list`
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// Pin them in /sys/fs/bpf and return; they stay until `landspeed cc unload` or the next boot
        #[arg(long)]
        keep: bool,
    },
    /// Unload what `load --keep` loaded; connections that use it keep it until they close
    Unload {
        /// Names from `landspeed cc list`
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
}
