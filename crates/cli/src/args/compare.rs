//! Arguments of `landspeed compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{HostArgs, OutputArgs};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AskArg {
    /// How four flows of one protocol share the path as they come and go: the paper's study
    Regions,
    /// How two protocols share it, each with two of the four flows; every pair of protocols
    Meetings,
    /// How short flows fare beside a long one
    ShortFlows,
    /// How flows with different round trips share it (--simulate only)
    RoundTrips,
    /// What a bit costs the sender with 1, 2, 4 ... --parallel streams, the best of three windows searched for each
    Streams,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Four flows enter one region apart and leave last in, first out; seven regions, the middle one twice as long;\n\
             samples of each flow and a probe of the round trip meanwhile (Cottrell et al., section III.A). Regions of\n\
             the paper last 120 s: --scale 1 takes 16 minutes a run. Figures of another scale are never set beside the\n\
             paper's. Each run is in the record when it ends: go on with --resume after an interruption.\n\n\
             Examples:\n  \
             landspeed compare --simulate                        all protocols at the paper's full size, minutes, no root\n  \
             sudo landspeed compare                              on this kernel's sockets over an emulated path\n  \
             sudo landspeed compare lab:wan:rate=100M,rtt=80ms,queue=1bdp -p cubic,bbr --repeats 5 --html page.html\n  \
             landspeed compare HOST_A HOST_B -p cubic,htcp       between real hosts"
)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    /// Which, by their names in `landspeed cc list` (default: those of the study, cubic and bbr)
    #[arg(short, long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) protocols: Vec<String>,
    /// What to ask of them
    #[arg(long, value_enum, value_name = "QUESTION,...", value_delimiter = ',', default_value = "regions")]
    pub(crate) ask: Vec<AskArg>,
    /// Length of regions by the paper's 120 s (default 0.1, with --simulate 1)
    #[arg(long, value_name = "FACTOR")]
    pub(crate) scale: Option<f64>,
    /// Runs of each, for intervals: differences that are not beyond chance are not called any
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeats: u32,
    /// With --ask streams: the most parallel streams (the paper's best were 16 of 2 MB)
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) parallel: u16,
    /// Flows of a run
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=16))]
    pub(crate) flows: u16,
    /// In the simulator, packet by packet, with the same C sources: no root, no traffic
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Go on with the study of this record; everything else is as it was
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["protocols", "ask", "scale", "flows", "simulate", "seed", "hosts"])]
    pub(crate) resume: Option<PathBuf>,
    /// Seed of the order of runs and of all chance
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Use real hosts without asking first
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
