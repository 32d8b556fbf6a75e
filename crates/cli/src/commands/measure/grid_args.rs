//! Arguments of `landspeed measure WORKLOAD --vary`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use landspeed_record::GridFigure;
use landspeed_record::units::{Nanos, parse_duration};

use crate::data::RecordArg;

/// The factors to vary, and when to end.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Grid")]
pub(crate) struct GridArgs {
    /// Measure every value of a factor, and with further --vary every combination
    ///
    /// A factor is a host's knob (mtu=1500,9000; mtu@b is host B's alone), a setting of the flow (write-size=1K..1M*4), a
    /// parameter of the workload, the transport, or a parameter of the lab's link (rtt=10ms..40ms+10ms). The first value is
    /// the reference. A..B*2 doubles, A..B+10 adds 10.
    #[arg(long, value_name = "FACTOR=VALUE,...")]
    pub(crate) vary: Vec<String>,
    /// Draw a curve for each value of this factor [default: the one with the fewest values]
    #[arg(long, value_name = "FACTOR", requires = "vary", hide_short_help = true)]
    pub(crate) by: Option<String>,
    /// Compare this figure [default: the workload's main figure]
    #[arg(long, value_name = "NAME", requires = "vary", hide_short_help = true, value_parser = figures())]
    pub(crate) figure: Option<GridFigure>,
    /// Print the effect of each factor alone, with the others, and together (two values each)
    #[arg(long, requires = "vary", hide_short_help = true)]
    pub(crate) factorial: bool,
    /// Measure every combination this many times [default: 8]
    #[arg(long, value_name = "N", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) blocks: Option<u32>,
    /// Continue until the interval of every ratio reaches at most this far to either side, such as 3%
    #[arg(long, value_name = "PERCENT", hide_short_help = true, value_parser = share)]
    pub(crate) precision: Option<f64>,
    /// Begin no block that would end after this time
    #[arg(long, value_name = "TIME", hide_short_help = true, value_parser = parse_duration)]
    pub(crate) budget: Option<Nanos>,
    /// Measure the whole grid this many times, each time with new hosts, processes and lab
    #[arg(long, value_name = "N", requires = "vary", conflicts_with = "resume", hide_short_help = true,
        value_parser = clap::value_parser!(u64).range(2..=100))]
    pub(crate) occasions: Option<u64>,
    /// With --occasions: start them at least this far apart
    #[arg(long, value_name = "TIME", requires = "occasions", default_value = "0s", hide_short_help = true, value_parser = parse_duration)]
    pub(crate) apart: Nanos,
    /// With --occasions: count this record of the same grid as one of them (may be repeated), to continue a series
    #[arg(long = "with", value_name = "RECORD", requires = "occasions", hide_short_help = true)]
    pub(crate) made: Vec<RecordArg>,
    /// Seed of the order of trials
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) seed: Option<u64>,
    /// Continue the grid of this record with its own options
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["vary", "seed", "hosts"], hide_short_help = true)]
    pub(crate) resume: Option<RecordArg>,
    /// Change settings of real hosts without asking
    #[arg(short, long, hide_short_help = true)]
    pub(crate) yes: bool,
}

fn figures() -> impl TypedValueParser<Value = GridFigure> {
    let name = |figure: GridFigure| PossibleValue::new(figure.name).help(figure.about);
    PossibleValuesParser::new(GridFigure::all().map(name))
        .map(|name| GridFigure::named(&name).unwrap_or_default())
}

/// Parses "3%" or "3" as 0.03.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    let share = percent.ok().map(|percent| percent / 100.0).filter(|share| (0.001..=1.0).contains(share));
    share.ok_or_else(|| "expected a percentage from 0.1% to 100%, such as 3%".to_owned())
}
