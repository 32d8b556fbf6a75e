//! `make full-path`: does `landspeed explain --capacity` tell a flow that fills its path from one that leaves room? Every
//! second flow of the lab is held by a small receive buffer. It prints the table of docs/results/full-path.md.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use clap::Args;
use landspeed_record::ExplainReport;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_stats::Random;

use crate::landspeed::{document, landspeed};
use crate::table::{self, BrokenPromises};

/// The payload of a full packet, as a share of the packet.
const PAYLOAD: f64 = 1448.0 / 1500.0;
/// The largest relative error of the path's rate that is named.
const NEAR: f64 = 0.1;
/// A flow that uses this share of what the path carries fills it.
const FULL: f64 = 0.95;
/// A flow that uses less than this share of what the path carries leaves room.
const ROOM: f64 = 0.8;
const CONTROLS: [&str; 3] = ["cubic", "bbr", "reno"];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs, each over another link.
    #[arg(long, default_value_t = 24)]
    runs: u32,
    /// Draws the links.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// A flow over a link of the lab.
struct DrawnFlow {
    mbps: u64,
    rtt: Nanos,
    /// The queue before the link, in bandwidth-delay products.
    queue: f64,
    control: &'static str,
    /// The receive buffer that holds the flow; `None` if it may fill the link.
    window: Option<Bytes>,
}

impl DrawnFlow {
    fn draw(random: &mut Random, is_held: bool) -> DrawnFlow {
        let between = |random: &mut Random, low: f64, high: f64| low * (high / low).powf(random.uniform());
        let mbps = between(random, 20.0, 500.0) as u64;
        let rtt = Nanos::millis(between(random, 5.0, 40.0) as u64);
        let queue = between(random, 0.5, 4.0);
        let control = CONTROLS[(random.uniform() * CONTROLS.len() as f64) as usize];
        let product = mbps as f64 * 1e6 / 8.0 * rtt.as_secs_f64();
        // The kernel may offer up to twice the buffer.
        let window = Bytes((between(random, 0.1, 0.6) * product) as u64);
        DrawnFlow { mbps, rtt, queue, control, window: is_held.then_some(window) }
    }

    fn explained(&self, landspeed: &Path) -> Result<ExplainReport> {
        let lab = format!("lab:wan:rate={}M,rtt={}ns,queue={:.2}bdp", self.mbps, self.rtt.0, self.queue);
        let mut command = Command::new(landspeed);
        command.args(["explain", "--json", "--capacity", "--no-limits", "-t", "5s", &lab]);
        command.arg("--set").arg(format!("socket-congestion={}", self.control));
        if let Some(window) = self.window {
            command.arg("--set").arg(format!("rcvbuf={}", window.0));
        }
        document(&mut command)
    }

    /// Returns true if the report names the path's rate where the flow, which uses `share` of the path, fills it, and none
    /// where it leaves room; `None` where it does neither.
    fn is_told_by(&self, report: &ExplainReport, share: f64) -> Option<bool> {
        let truth = self.mbps as f64 * 1e6 * PAYLOAD;
        let is_near = |rate: f64| (rate / truth - 1.0).abs() <= NEAR;
        match share {
            full if full >= FULL => {
                Some(report.path_rate.as_ref().is_some_and(|named| is_near(named.rate_bps.0)))
            }
            room if room < ROOM => Some(report.path_rate.is_none()),
            _ => None,
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    let mut random = Random::new(options.seed);
    let mut broken = BrokenPromises::default();
    println!("Seed {}.\n", options.seed);
    table::head(
        "link | control | receive buffer | goodput | found by datagrams | of it | path's rate | promise",
    );
    for run in 0..options.runs {
        let flow = DrawnFlow::draw(&mut random, run % 2 == 1);
        let report = flow.explained(&landspeed)?;
        let Some(capacity) = report.capacity else { continue };
        let share = report.goodput_bps.0 / capacity.carried_bps.0;
        table::row(&[
            &format!("{} Mb/s, {}, {:.1} BDP", flow.mbps, flow.rtt, flow.queue),
            &flow.control,
            &flow.window.map_or("free".to_owned(), |window| window.to_string()),
            &report.goodput_bps,
            &capacity.carried_bps,
            &table::percent(share),
            &report.path_rate.as_ref().map_or("-".to_owned(), |named| named.rate_bps.to_string()),
            &flow.is_told_by(&report, share).map_or("-", |told| broken.check(told)),
        ]);
    }
    broken.sum_up()
}
