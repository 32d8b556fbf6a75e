//! The result of a search, in the form that is recorded.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{
    DetailError, EndpointOutcome, FigureValue, HOST_LIMITED, Headline, LIMITED_BY, PathBurst, detail,
};
use serde::{Deserialize, Serialize};

use super::search::{self, LoadLimit, LoadTrialResult};

/// The value of [`CapacityResult::limit`] if the path was the limit.
pub(super) const PATH: &str = "path";
/// Its values if a host was the limit.
const SENDER: &str = "sender";
const RECEIVER: &str = "receiver";

/// The result of a search, at the sender's end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(super) struct CapacityResult {
    /// The highest load that is carried, in bits of payload; `None` if the search found none.
    pub(super) carried_bps: Option<BitRate>,
    /// The highest load that is carried, in bits of IP packets, the unit of a link's rate.
    pub(super) carried_ip_bps: Option<BitRate>,
    /// The lowest load that is not carried, in bits of payload; `None` if the search ended before one was found.
    pub(super) exceeded_bps: Option<BitRate>,
    /// The limit of the carried load: "path", "sender", "receiver", or "time" if the time limit ended the search.
    pub(super) limit: String,
    /// Duration of the search.
    pub(super) took_ns: Nanos,
    /// The most datagrams sent in one call at the carried load.
    pub(super) burst_datagrams: u64,
    /// All trials, in order.
    pub(super) trials: Vec<CapacityTrial>,
}

/// One trial of a search.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(super) struct CapacityTrial {
    /// The requested load, in bits of payload.
    pub(super) load_bps: BitRate,
    /// Datagrams that the sender passed to the kernel.
    pub(super) sent: u64,
    /// Datagrams that arrived.
    pub(super) received: u64,
    /// Buffers that the receiving host dropped. A buffer contains at most the datagrams of one send call.
    pub(super) dropped: u64,
    /// Time from the first datagram sent to the last.
    pub(super) sending_ns: Nanos,
    /// Time from the first arrival to the last.
    pub(super) arriving_ns: Nanos,
}

detail!("capacity" => CapacityResult);

/// Ratio of a passed trial's load to the sustained load above which the trial counts as a burst. The noise of short
/// trials is far smaller.
const BURST: f64 = 1.5;

impl CapacityTrial {
    /// Returns true if nearly all datagrams arrived, and no queue delayed them.
    fn passed(&self) -> bool {
        self.received as f64 >= 0.99 * self.sent as f64
            && self.arriving_ns.as_secs_f64() <= 1.05 * self.sending_ns.as_secs_f64()
    }

    pub(super) fn of(load_bps: BitRate, result: &LoadTrialResult) -> CapacityTrial {
        CapacityTrial {
            load_bps,
            sent: result.sent,
            received: result.received,
            dropped: result.dropped,
            sending_ns: result.sending,
            arriving_ns: result.arriving,
        }
    }
}

impl CapacityResult {
    /// Returns the recorded form of a search's bounds. `is_cut` is true if the time limit ended the search.
    pub(super) fn of(found: search::SearchBounds, is_cut: bool) -> CapacityResult {
        let limit = match found.exceeded {
            _ if is_cut => "time",
            Some((_, LoadLimit::Sender)) => SENDER,
            Some((_, LoadLimit::Receiver)) => RECEIVER,
            Some((_, LoadLimit::Path)) => PATH,
            None => "time",
        };
        CapacityResult {
            carried_bps: found.carried,
            exceeded_bps: found.exceeded.map(|(load, _)| load),
            limit: limit.to_owned(),
            ..CapacityResult::default()
        }
    }

    /// Returns the fastest trial, at far more than `sustained`, whose datagrams all arrived as fast as they were sent.
    /// If a token bucket lets short trials through, they are such bursts.
    pub(super) fn burst(&self, sustained: BitRate) -> Option<PathBurst> {
        let passed = |trial: &&CapacityTrial| trial.load_bps.0 >= BURST * sustained.0 && trial.passed();
        let trial = self.trials.iter().filter(passed).max_by(|a, b| a.load_bps.0.total_cmp(&b.load_bps.0))?;
        let above = (trial.load_bps.0 - sustained.0) / 8.0 * trial.sending_ns.as_secs_f64();
        Some(PathBurst { rate_bps: trial.load_bps, least_bytes: Bytes(above as u64) })
    }

    fn is_of_host(&self) -> bool {
        [SENDER, RECEIVER].contains(&self.limit.as_str())
    }

    fn limited(&self) -> String {
        match self.limit.as_str() {
            SENDER => format!("{HOST_LIMITED}: the sender could not send more"),
            RECEIVER => format!("{HOST_LIMITED}: the receiver dropped what arrived"),
            "time" => "the search was cut: --limit was too short".to_owned(),
            other => format!("the {other}"),
        }
    }
}

/// The server's report of its receive buffers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(super) struct ReceiveBufferReport {
    /// Size of the smallest receive buffer of the flows' sockets: half the value that SO_RCVBUF returns, because the
    /// kernel doubles it.
    pub(super) receive_buffer_bytes: Bytes,
}

detail!("capacity_room" => ReceiveBufferReport);

pub(super) static HEADLINES: &[Headline<EndpointOutcome>] = &[
    Headline {
        name: LIMITED_BY,
        about: "what kept a higher load from being carried",
        of: |end| Ok(found(end)?.map(|found| found.limited().into())),
    },
    Headline {
        name: "capacity",
        about: "payload of the highest load that was carried with at most the loss asked for; none if a host was the limit",
        of: |end| Ok(of_path(end)?.and_then(|found| found.carried_bps).map(FigureValue::from)),
    },
    Headline {
        name: "in IP packets",
        about: "the same load with the headers of IP and UDP, as the rates of links are usually given",
        of: |end| Ok(of_path(end)?.and_then(|found| found.carried_ip_bps).map(FigureValue::from)),
    },
    Headline {
        name: "not carried",
        about: "payload of the lowest load that was not",
        of: |end| Ok(of_path(end)?.and_then(|found| found.exceeded_bps).map(FigureValue::from)),
    },
    Headline {
        name: "hosts reached",
        about: "payload of the highest load that was carried, if a host was the limit: the path may carry more",
        of: |end| {
            let found = found(end)?.filter(|found| found.is_of_host());
            Ok(found.and_then(|found| found.carried_bps).map(FigureValue::from))
        },
    },
    Headline {
        name: "burst",
        about: "the most datagrams that went out at once at that load",
        of: |end| Ok(found(end)?.map(|found| found.burst_datagrams.into())),
    },
    Headline {
        name: "trials",
        about: "of the search",
        of: |end| Ok(found(end)?.map(|found| (found.trials.len() as u64).into())),
    },
    Headline {
        name: "search took",
        about: "without the window behind it",
        of: |end| Ok(found(end)?.map(|found| found.took_ns.into())),
    },
    Headline {
        name: "receive buffer",
        about: "of each socket; forced above net.core.rmem_max where landspeed may, unless --set rcvbuf says otherwise",
        of: |end| {
            Ok(end.details.find::<ReceiveBufferReport>()?.map(|report| report.receive_buffer_bytes.into()))
        },
    },
];

fn found(end: &EndpointOutcome) -> Result<Option<&CapacityResult>, DetailError> {
    end.details.find()
}

/// Returns the result of a search, unless a host limited it. Its rates then say nothing about the path.
fn of_path(end: &EndpointOutcome) -> Result<Option<&CapacityResult>, DetailError> {
    Ok(found(end)?.filter(|found| !found.is_of_host()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(limit: &str) -> Vec<String> {
        let found = CapacityResult {
            carried_bps: Some(BitRate(3e8)),
            carried_ip_bps: Some(BitRate(3.1e8)),
            exceeded_bps: Some(BitRate(3.2e8)),
            limit: limit.to_owned(),
            ..CapacityResult::default()
        };
        let end = EndpointOutcome::default().with(found);
        let figures = Headline::figures(HEADLINES, &end).expect("figures");
        figures.into_iter().map(|figure| figure.name).collect()
    }

    #[test]
    fn a_load_that_hosts_limit_is_no_capacity() {
        let path = figures(PATH);
        assert_eq!(path[..4], [LIMITED_BY, "capacity", "in IP packets", "not carried"]);
        assert!(!path.iter().any(|name| name == "hosts reached"));
        for limit in [SENDER, RECEIVER] {
            assert_eq!(figures(limit)[..3], [LIMITED_BY, "hosts reached", "burst"], "{limit}");
        }
    }
}
