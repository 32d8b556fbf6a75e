//! `make agree-drops`: the same packets are lost on the kernel's sockets and in the simulator, and the windows are
//! compared round trip by round trip from each loss on.
//!
//! BBR is no part of it: its window is a multiple of a rate that it measures, begun at a phase that it draws, and single
//! losses are nothing to it.

use anyhow::{Result, bail, ensure};
use clap::Args;
use landspeed_model::{FlowSpec, LinkSpec, LossSpec, Outcome, QueueSpec, Scenario, simulate};
use landspeed_record::TcpSample;
use landspeed_units::{BitRate, Bytes, Nanos};

use super::path::{self, PROOF, SEGMENT, Seen, Traffic};
use super::rounds::{Apart, Epochs};

const CONTROLS: [&str; 11] = [
    "reno",
    "cubic",
    "highspeed",
    "scalable",
    "htcp",
    "bic",
    "ltcp",
    "westwood",
    "africa",
    "fast",
    "hstcp_lp",
];
/// The path has room for 1034 packets, and its queue for as many again: nothing but the list is lost.
const RATE: BitRate = BitRate(200e6);
const RTT: Nanos = Nanos::millis(62);
/// Which packets are lost, counted from the flow's first. The first ends slow start; the rest lie 3000 to 8000 apart.
const LOST: [u64; 7] = [300, 3_300, 7_800, 12_300, 18_300, 23_300, 31_300];
/// Packets of a flow that are looked at.
const PACKETS: u64 = 36_000;
/// Looks at a window within a round trip.
const LOOKS: u64 = 12;
/// What the mean may be apart.
const BOUND: f64 = 0.05;

/// What to compare; lists are separated by commas.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Congestion controls.
    #[arg(long, value_delimiter = ',', default_values = CONTROLS, value_parser = CONTROLS)]
    controls: Vec<String>,
    /// With segmentation offload, without, or both.
    #[arg(long, value_delimiter = ',', default_values = ["on", "off"], value_parser = ["on", "off"])]
    segmentation: Vec<String>,
    /// How many times as far apart losses are.
    #[arg(long, default_value_t = 1)]
    spread: u64,
}

/// Compares each control, with superpackets and without.
pub(super) fn run(options: &Options) -> Result<()> {
    let losses = Losses::spread(options.spread);
    println!(
        "| control | TSO, GSO, GRO | losses | mean window, kernel | simulator | round trips | apart, mean | bias | worst (loss, round trip) | where it falls | without partner | |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    let mut apart = Vec::new();
    for control in &options.controls {
        let model = losses.simulated(control)?;
        for mode in &options.segmentation {
            let real = losses.real(control, mode, &model)?;
            let row = Row { control, mode, losses: &losses, model: &model, real: &real };
            if !row.print() {
                apart.push(format!("{control} with segmentation offload {mode}"));
            }
        }
    }
    super::verdict(&apart)
}

fn interval() -> Nanos {
    Nanos(RTT.0 / LOOKS)
}

/// The list, and how long it goes on. A control with a large window has few round trips between two losses: with its
/// losses so many times as far apart it has as many as the others.
struct Losses {
    lost: Vec<u64>,
    packets: u64,
}

impl Losses {
    /// The first one stays where it is: it ends slow start.
    fn spread(times: u64) -> Self {
        let [first, rest @ ..] = &LOST;
        let lost = std::iter::once(*first).chain(rest.iter().map(|packet| first + (packet - first) * times));
        Losses { lost: lost.collect(), packets: PACKETS * times }
    }

    fn simulated(&self, control: &str) -> Result<Outcome> {
        let one_way = Nanos(RTT.0 / 2);
        Ok(simulate(&Scenario {
            links: vec![LinkSpec {
                rate_bps: RATE,
                delay_ns: one_way,
                queue: QueueSpec::Bdp { times: 1.0, rtt_ns: RTT },
                mark_above: None,
                loss: LossSpec::List { packets: self.lost.clone() },
            }],
            flows: vec![FlowSpec {
                control: control.to_owned(),
                return_ns: RTT - one_way,
                data_bytes: Some(Bytes(self.packets * SEGMENT)),
                ..FlowSpec::default()
            }],
            // Three packets a round trip would take so long: it is over when the data are.
            duration_ns: Nanos(RTT.0 * self.packets / 3),
            sample_ns: interval(),
            probe: None,
            seed: 1,
        })?)
    }

    fn real(&self, control: &str, mode: &str, model: &Outcome) -> Result<Seen> {
        let Some(finished) = model.flows[0].finished_ns else {
            bail!("{control} did not come to its end in the simulator")
        };
        let list: Vec<String> = self.lost.iter().map(|packet| (packet + PROOF).to_string()).collect();
        let traffic = Traffic {
            path: format!(
                "rate={}M,rtt={}ms,queue=1bdp,drop-list={}",
                RATE.0 / 1e6,
                RTT.0 / 1_000_000,
                list.join("+")
            ),
            controls: vec![control],
            duration: Nanos(finished.0 / 10 * 11),
            interval: interval(),
            superpackets: mode == "on",
        };
        ensure!(["on", "off"].contains(&mode), "--segmentation {mode}: expected on, off, or on,off");
        path::run(&traffic)
    }

    /// Until all is acknowledged that both engines send.
    fn under_way<'a>(&self, samples: impl Iterator<Item = &'a TcpSample>) -> Vec<TcpSample> {
        samples.filter(|sample| sample.acked_bytes.0 < self.packets * SEGMENT).cloned().collect()
    }
}

struct Row<'a> {
    control: &'a str,
    mode: &'a str,
    losses: &'a Losses,
    model: &'a Outcome,
    real: &'a Seen,
}

impl Row<'_> {
    /// Whether it is as it should be.
    fn print(&self) -> bool {
        let model = self.losses.under_way(self.model.flows[0].samples.iter().map(|sample| &sample.tcp));
        let real = self.losses.under_way(self.real.flows[0].iter());
        let (measured, expected) = (Epochs::of(&real, RTT), Epochs::of(&model, RTT));
        let apart = Apart::of(&measured, &expected);
        let is_listed = [&measured, &expected].iter().all(|epochs| epochs.losses() == self.losses.lost.len());
        let is_near = apart.mean <= BOUND && apart.rounds > 0;
        if !is_near {
            // Which loss parted them.
            eprintln!(
                "{}: losses left {} in the kernel, {} in the simulator",
                self.control,
                measured.left(),
                expected.left()
            );
        }
        let mut words = vec![if is_near { "agrees" } else { "**differs**" }.to_owned()];
        if !is_listed {
            words.push("**lost other than listed**".to_owned());
        }
        words.extend(Some(self.real.remark()).filter(|remark| !remark.is_empty()));
        println!(
            "| {} | {} | {} and {} | {:.1} | {:.1} | {} | {:.1} % | {:+.1} % | {:+.1} % ({}, {}) | {:+.1} % | {} | {} |",
            self.control,
            self.mode,
            self.real.link.a_to_b.loss_drops + self.real.link.a_to_b.queue_drops,
            self.model.flows[0].lost + self.model.flows[0].no_room,
            mean_window(&real),
            mean_window(&model),
            apart.rounds,
            100.0 * apart.mean,
            100.0 * apart.bias,
            100.0 * apart.worst,
            apart.worst_at.0,
            apart.worst_at.1,
            100.0 * apart.falling,
            apart.alone,
            words.join("; "),
        );
        is_listed && is_near && self.real.unfit.is_empty()
    }
}

/// Over time, from the first loss on.
fn mean_window(samples: &[TcpSample]) -> f64 {
    let after: Vec<_> = samples.iter().filter(|sample| sample.retransmits > 0).collect();
    after.iter().map(|sample| f64::from(sample.cwnd_segments)).sum::<f64>() / after.len().max(1) as f64
}
