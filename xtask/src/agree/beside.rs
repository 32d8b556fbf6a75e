//! What HSTCP-LP leaves to Reno, on the kernel's sockets and in the simulator (Kuzmanovic, Knightly, Cottrell,
//! PFLDnet 2004: it is to take no more than others leave).

use anyhow::{Context, Result};
use landspeed_model::{FlowSpec, LinkSpec, LossSpec, QueueSpec, Scenario, simulate};
use landspeed_record::TcpSample;
use landspeed_units::{BitRate, Bytes, Nanos};

use super::path::{self, Traffic};

const PATH: &str = "rate=100M,rtt=80ms,queue=0.25bdp";
const RATE: BitRate = BitRate(100e6);
const RTT: Nanos = Nanos::millis(80);
/// 20 ms of the line.
const QUEUE: Bytes = Bytes(250_000);
/// Reno grows back in 35 s here. What came before is its start.
const FROM: Nanos = Nanos::secs(40);
const TO: Nanos = Nanos::secs(120);
/// Of its rate alone, Reno keeps this at least.
const KEPT: f64 = 0.8;
/// Share of the path that Reno must have had alone: on a machine that is too busy for it, what it keeps says nothing.
const FULL: f64 = 0.7;

/// Prints the line.
pub(super) fn run() -> Result<()> {
    let (alone, pair) = (["reno"], ["reno", "hstcp_lp"]);
    println!(
        "\n| {PATH} | Reno alone, Mb/s | beside HSTCP-LP | keeps | HSTCP-LP takes | |\n|---|---|---|---|---|---|"
    );
    let (before, remark) = real(&alone)?;
    let (beside, other) = real(&pair)?;
    let kernel = print("kernel", before[0], &beside, &format!("{remark} {other}"));
    let (before, beside) = (simulated(&alone)?, simulated(&pair)?);
    print("simulator", before[0], &beside, "");
    let is_unfit = remark.contains("unfit") || other.contains("unfit");
    let apart = if kernel && !is_unfit { Vec::new() } else { vec!["HSTCP-LP beside Reno".to_owned()] };
    super::verdict(&apart)
}

/// Whether Reno keeps what it should.
fn print(engine: &str, alone: f64, beside: &[f64], remark: &str) -> bool {
    let kept = beside[0] / alone;
    println!(
        "| {engine} | {:.1} | {:.1} | {kept:.2} | {:.1} | {} |",
        alone / 1e6,
        beside[0] / 1e6,
        beside[1] / 1e6,
        remark.trim()
    );
    kept >= KEPT && alone >= FULL * RATE.0
}

/// Rates by flow, acknowledged, and what is to be known of the link.
fn real(controls: &[&str]) -> Result<(Vec<f64>, String)> {
    let seen = path::run(&Traffic {
        path: PATH.to_owned(),
        controls: controls.to_vec(),
        duration: TO,
        interval: RTT,
        superpackets: true,
    })?;
    let rates = seen.flows.iter().map(|flow| rate(flow)).collect::<Result<_>>()?;
    Ok((rates, seen.remark()))
}

fn rate(samples: &[TcpSample]) -> Result<f64> {
    let first = samples.iter().find(|sample| sample.at_ns >= FROM).context("no sample in time")?;
    let last = samples.last().context("no sample")?;
    Ok((last.acked_bytes - first.acked_bytes).per(last.at_ns - first.at_ns).0)
}

fn simulated(controls: &[&str]) -> Result<Vec<f64>> {
    let one_way = Nanos(RTT.0 / 2);
    let flow = |control: &&str| FlowSpec {
        control: (*control).to_owned(),
        return_ns: RTT - one_way,
        ..FlowSpec::default()
    };
    let outcome = simulate(&Scenario {
        links: vec![LinkSpec {
            rate_bps: RATE,
            delay_ns: one_way,
            queue: QueueSpec::Bytes { bytes: QUEUE },
            mark_above: None,
            loss: LossSpec::None,
        }],
        flows: controls.iter().map(flow).collect(),
        duration_ns: TO,
        sample_ns: RTT,
        probe: None,
        seed: 1,
    })?;
    Ok(outcome.flows.iter().map(|flow| flow.goodput(FROM, TO).0).collect())
}
