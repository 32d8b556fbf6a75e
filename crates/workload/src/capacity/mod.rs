//! `capacity`: measures the highest load that a path carries with at most a given loss ratio.
//!
//! The client sends trials of datagrams, each at a load that the client's clock paces, and the server counts the
//! arrivals. From these counts the client searches for the highest load (`search.rs`, after RFC 9971). After the
//! search the window opens, and the client sends at the load that it found. Goodput, loss and processor time of the
//! outcome are those of this window.

mod drops;
mod receiver;
mod result;
mod search;
mod sender;

use std::time::Duration;

use landspeed_record::factor::{Domain, Factor, FactorDeclaration};
use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{
    DetailError, DetailRow, EndpointOutcome, Headline, PathBurst, Role, Settings, TrialSpec, Workload,
};
use landspeed_transport::Delivery;

use crate::parameter;
use crate::runner::{FlowNeeds, TWO, WorkloadRole, WorkloadRunner};
use crate::session::flows;
use crate::{Error, TrialEnd, check};
use search::SearchGoal;

/// Time from the end of the search, when the client begins to send at the load that it found, to the opening of the
/// window.
const LEAD: Duration = Duration::from_millis(200);

/// The highest loss ratio. With a ratio of zero, the result is RFC 2544's throughput.
static LOSS: Factor = Factor {
    name: "loss",
    about: "share of the datagrams that may be lost; 0 is the throughput of RFC 2544",
    domain: Domain::Share(0.0, 0.5),
    default: "0.1%",
    source: "RFC 9971, goal loss ratio",
    ..Factor::FLOW
};
static WIDTH: Factor = Factor {
    name: "width",
    about: "search until the load that is carried and the one that is not are this near",
    domain: Domain::Share(0.001, 0.5),
    default: "1%",
    source: "RFC 9971, goal width",
    ..Factor::FLOW
};
static TRIAL: Factor = Factor {
    name: "trial",
    about: "length of each trial that counts",
    domain: Domain::Time(Nanos::millis(50), Nanos::secs(60)),
    default: "500ms",
    source: "RFC 9971, goal final trial duration",
    ..Factor::FLOW
};
static SUM: Factor = Factor {
    name: "duration-sum",
    about: "time of all trials at a load, of which at most half may lose more",
    domain: Domain::Time(Nanos::millis(50), Nanos::secs(600)),
    default: "2500ms",
    source: "RFC 9971, goal duration sum; its goal exceed ratio is 0.5",
    ..Factor::FLOW
};
/// The time limit of the search. A search that reaches it returns the bounds known by then.
static LIMIT: Factor = Factor {
    name: "limit",
    about: "end the search after this time",
    domain: Domain::Time(Nanos::millis(100), Nanos::secs(1800)),
    default: "60s",
    ..Factor::FLOW
};
static DURATION: Factor = Factor {
    about: "hold the load that was found for this long, in the measured window",
    default: "2s",
    ..parameter::DURATION
};

/// The default settings of a search's flow: datagrams in batches, so that hosts reach high loads.
pub const FLOW: &[(&str, &str)] =
    &[("transport", "udp"), ("datagram-send", "gso"), ("datagram-receive", "gro")];

/// Returns a search with short trials that takes a few seconds, and at most `limit`, before it holds the load that it
/// found for `hold`. It is for callers that search again after each change of a setting.
pub fn brief(limit: Nanos, hold: Nanos) -> Workload {
    Workload::new(CapacityWorkload.name())
        .with(TRIAL.name, "200ms")
        .with(SUM.name, "1s")
        .with(DURATION.name, hold.exact())
        .with(LIMIT.name, limit.exact())
}

/// The load that a path carries, as a search found it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CarriedLoad {
    /// Payload of the highest load that was carried with at most the requested loss.
    pub load: BitRate,
    /// True if the path, and not a host, was the limit.
    pub is_of_path: bool,
    /// Number of trials in the search.
    pub trials: usize,
}

/// Returns the result of a search from the client's outcome; `None` if no load was carried or the outcome has no
/// search.
///
/// # Errors
/// Returns an error if the outcome does not have the form that this version writes.
pub fn carried(client: &EndpointOutcome) -> Result<Option<CarriedLoad>, DetailError> {
    let found = client.details.find::<result::CapacityResult>()?;
    let of = |found: &result::CapacityResult| {
        let (load, is_of_path) = (found.carried_bps?, found.limit == result::PATH);
        Some(CarriedLoad { load, is_of_path, trials: found.trials.len() })
    };
    Ok(found.and_then(of))
}

/// Returns the fastest burst of a search, at far more than `sustained`, the load that the path carries for long. All
/// datagrams of the burst arrived, as fast as they were sent. `None` if there was no such burst, or if the outcome has
/// no readable search.
pub fn burst(client: &EndpointOutcome, sustained: BitRate) -> Option<PathBurst> {
    client.details.find::<result::CapacityResult>().ok()??.burst(sustained)
}

#[derive(Debug)]
pub(crate) struct CapacityWorkload;

impl WorkloadRunner for CapacityWorkload {
    fn name(&self) -> &str {
        "capacity"
    }

    fn describe(&self) -> &str {
        "the highest load of datagrams that is carried with at most a given loss (RFC 9971)"
    }

    fn parameters(&self) -> Vec<FactorDeclaration<'_>> {
        vec![LOSS, WIDTH, TRIAL, SUM, LIMIT, DURATION]
    }

    fn roles(&self) -> [WorkloadRole; 2] {
        TWO
    }

    fn flow(&self) -> &'static [(&'static str, &'static str)] {
        FLOW
    }

    fn headlines(&self) -> &'static [Headline<EndpointOutcome>] {
        result::HEADLINES
    }

    fn details(&self) -> &'static [DetailRow] {
        const { &[DetailRow::of::<result::CapacityResult>(), DetailRow::of::<result::ReceiveBufferReport>()] }
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        check::delivers(&spec.flow, Delivery::Datagrams, |transport| {
            format!("{transport} sends by a window, and capacity needs datagrams: use udp")
        })
    }

    fn lasts(&self, parameters: &Settings, _warm_up: Nanos) -> Nanos {
        LIMIT.time(parameters) + DURATION.time(parameters)
    }

    fn needs(&self, spec: &TrialSpec) -> FlowNeeds {
        FlowNeeds::alike(flows(&spec.flow), spec.flow.clone())
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        end.with_parts(|parts, role| match role {
            Role::Client => sender::run(parts),
            Role::Server => receiver::run(parts),
        })
    }
}

impl SearchGoal {
    fn of(asked: &Settings) -> SearchGoal {
        SearchGoal {
            loss: LOSS.share(asked),
            width: WIDTH.share(asked),
            trial: TRIAL.time(asked),
            trials: (SUM.time(asked).0 / TRIAL.time(asked).0).clamp(1, u32::MAX.into()) as u32,
        }
    }
}
