//! How long the paper's full size takes: 1 Gb/s, 164 ms, MTU 1500, 16 minutes, four flows.
//!
//! `cargo run --release -p landspeed-simulator --example study_speed -- [CONTROL ...]` prints for each congestion
//! control the processor time, packets, and the paper's figures: mean throughput, its standard deviation,
//! stability, the range of fairness over regions 2 to 6, and the standard deviation of the round trip; then
//! drops, recoveries and timeouts. It fails where one takes over 60 seconds of processor time.

use std::process::ExitCode;

use landspeed_record::{Contest, Study};
use landspeed_simulator::{Outcome, simulate, study_scenario};
use landspeed_units::Nanos;
use rustix::time::{ClockId, clock_gettime};

const MOST_SECONDS: f64 = 60.0;

fn main() -> ExitCode {
    let mut controls: Vec<String> = std::env::args().skip(1).collect();
    if controls.is_empty() {
        controls = landspeed_congestion::CONTROLS.iter().map(|row| row.name.to_owned()).collect();
    }
    println!(
        "control      cpu s  ns/pkt   Mpkts  mean Mb/s  sd Mb/s     S  F min  F max  rtt sd ms    drops recov. rtos"
    );
    let mut code = ExitCode::SUCCESS;
    for control in controls {
        let study = Study::paper();
        let contest = Contest { contestants: vec![control], ..Contest::default() };
        let began = processor_seconds();
        let outcome = simulate(&study_scenario(&study, &contest, 0));
        let seconds = processor_seconds() - began;
        match outcome {
            Ok(outcome) => print(&study, &outcome, seconds),
            Err(error) => println!("{:10} {error}", contest.contestants[0]),
        }
        if seconds > MOST_SECONDS {
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn print(study: &Study, outcome: &Outcome, seconds: f64) {
    let packets: u64 = outcome.flows.iter().map(|flow| flow.sender.sent).sum();
    let totals: Vec<f64> = by_second(outcome).iter().map(|flows| flows.iter().sum()).collect();
    let (mean, sd) = mean_and_sd(&totals);
    let fairness = fairness(study, outcome);
    let least = fairness.iter().copied().fold(f64::INFINITY, f64::min);
    let most = fairness.iter().copied().fold(0.0, f64::max);
    let rtts: Vec<f64> = outcome.probes.iter().map(|probe| probe.rtt_ns.as_secs_f64() * 1e3).collect();
    let drops = outcome.links[0].counts.no_room;
    let recoveries: u64 = outcome.flows.iter().map(|flow| flow.sender.recoveries).sum();
    let timeouts: u64 = outcome.flows.iter().map(|flow| flow.sender.timeouts).sum();
    println!(
        "{:10} {seconds:7.2} {:7.0} {:7.1} {mean:10.0} {sd:8.0} {:5.2} {least:6.2} {most:6.2} {:10.1} {drops:8} {recoveries:6} {timeouts:4}",
        outcome.flows[0].control,
        seconds * 1e9 / packets as f64,
        packets as f64 / 1e6,
        sd / mean,
        mean_and_sd(&rtts).1,
    );
}

/// Mb/s of each flow in each second.
fn by_second(outcome: &Outcome) -> Vec<Vec<f64>> {
    let seconds = outcome.links[0].samples.iter().map(|sample| sample.at_ns);
    let at = |at_ns: Nanos| {
        let flows = outcome.flows.iter();
        flows.map(|flow| flow.goodput(at_ns - Nanos::secs(1), at_ns).0 / 1e6).collect()
    };
    seconds.map(at).collect()
}

/// Jain's index of the regions with several flows (cottrell-2005, section IV.A).
fn fairness(study: &Study, outcome: &Outcome) -> Vec<f64> {
    let index = |(from, to, flows): (Nanos, Nanos, u16)| {
        // Last in, first out: those that are there are the first so many.
        let rates = outcome.flows.iter().take(flows.into()).map(|flow| flow.goodput(from, to).0);
        let (sum, squares) =
            rates.fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
        sum * sum / f64::from(flows) / squares
    };
    study.regions().into_iter().filter(|(.., flows)| *flows > 1).map(index).collect()
}

fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (values.len() as f64 - 1.0)).sqrt())
}
