//! Arguments of `landspeed cc`.

use clap::{Args, Subcommand};
use landspeed_record::units::{BitRate, Nanos, parse_duration};

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
    /// Simulate how long each congestion control takes to recover from one loss on a long path
    Recovery(RecoveryArgs),
}

/// A path that one flow fills, and loses one segment on (Feng et al. 2003, Table 1).
#[derive(Debug, Args)]
#[command(after_help = "Example: landspeed cc recovery --rate 10G --rtt 180ms")]
pub(crate) struct RecoveryArgs {
    /// Names from `landspeed cc list` [default: all that can be simulated]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Rate of the path
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: BitRate,
    /// Round-trip time of the path
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) rtt: Nanos,
    /// Largest packet of the path, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(68..))]
    pub(crate) mtu: u16,
    /// Give up on a control that needs longer than this
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
    pub(crate) within: Nanos,
    #[command(flatten)]
    pub(crate) form: ListArgs,
}
