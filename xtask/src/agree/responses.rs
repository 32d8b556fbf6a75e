//! `make agree-responses`: windows of the kernel's sockets where every n-th packet is lost, against the published
//! response functions.
//!
//! The round trip is as short as lets packets go at a pace that a shared machine carries, and the path has room for over
//! twice the window that is expected: the losses alone hold it, and thirty cycles take about a minute.

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_model::LossSpec;
use landspeed_model::response::{self, measure};
use landspeed_record::TcpSample;
use landspeed_units::Nanos;

use super::path::{self, SEGMENT, Seen, Traffic};

type Response = fn(f64, Nanos) -> f64;

const CONTROLS: [(&str, Response); 5] = [
    ("reno", |p, _| response::reno(p)),
    ("highspeed", |p, _| response::highspeed(p)),
    ("scalable", |p, _| response::scalable(p)),
    ("bic", |p, _| response::bic(p)),
    ("htcp", response::htcp),
];
/// Losses before the window is looked at: the one that ends slow start, and ten.
const WARM_UP: u64 = 11;
const CYCLES: u64 = 30;
/// Packets a second, at most: 93 Mb/s of payload. `--pace 60000` makes thirty cycles of 100,000 packets bearable.
const PACE: f64 = 8000.0;
/// Room of the path over the expected mean window; a window at its largest is a third above its mean, or less.
const ROOM: f64 = 2.2;
/// The longest round trip that is tried, in ms: Scalable's 75,000 packets at one loss in a million, at 60,000 a second.
const LONGEST_RTT: u64 = 1500;
/// Share of the path's room that a window may take.
const MOST_ROOM: f64 = 0.7;
/// Looks at a flow, at most: once a round trip where that is fewer.
const MOST_LOOKS: u64 = 25_000;
/// Bits of a full packet.
const PACKET_BITS: f64 = 12_000.0;

/// What to compare; lists are separated by commas.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Every how manieth packet is lost.
    #[arg(long, value_delimiter = ',', default_values_t = [1000, 10_000])]
    nth: Vec<u64>,
    /// With segmentation offload, without, or both.
    #[arg(long, value_delimiter = ',', default_value = "on", value_parser = ["on", "off"])]
    segmentation: Vec<String>,
    /// Packets a second, at most.
    #[arg(long, default_value_t = PACE)]
    pace: f64,
    /// Congestion controls.
    #[arg(long, value_delimiter = ',', default_values = CONTROLS.map(|(name, _)| name), value_parser = CONTROLS.map(|(name, _)| name))]
    controls: Vec<String>,
}

/// Prints the table.
pub(super) fn run(options: &Options) -> Result<()> {
    println!(
        "| control | p | TSO, GSO, GRO | RTT | published | kernel | ratio | simulator | largest / path's room | cycles | |\n\
         |---|---|---|---|---|---|---|---|---|---|---|"
    );
    let mut apart = Vec::new();
    for &nth in &options.nth {
        let wanted = |name: &str| options.controls.iter().any(|control| control == name);
        for (control, response) in CONTROLS.iter().filter(|(name, _)| wanted(name)) {
            let point = Point::of(control, *response, nth, options.pace)?;
            for mode in &options.segmentation {
                let seen = path::run(&point.traffic(*mode == "on"))?;
                if !point.print(mode, &seen)? {
                    apart.push(format!("{control} at 1/{nth} with segmentation offload {mode}"));
                }
            }
        }
    }
    super::verdict(&apart)
}

/// A control at a rate of loss.
struct Point<'a> {
    control: &'a str,
    nth: u64,
    rtt: Nanos,
    published: f64,
    simulated: f64,
}

impl<'a> Point<'a> {
    fn of(control: &'a str, response: Response, nth: u64, pace: f64) -> Result<Self> {
        let published = |rtt| response(1.0 / nth as f64, rtt);
        let fits = |rtt: &Nanos| published(*rtt) / rtt.as_secs_f64() <= pace;
        let rtt = (10..=LONGEST_RTT)
            .map(Nanos::millis)
            .find(fits)
            .context("no round trip is long enough: raise --pace")?;
        let published = published(rtt);
        let simulated = measure(control, LossSpec::EveryNth { nth }, nth, CYCLES, rtt, published)?.mean;
        Ok(Point { control, nth, rtt, published, simulated })
    }

    fn packets(&self) -> u64 {
        self.nth * (WARM_UP + CYCLES)
    }

    /// Whole Mb/s.
    fn rate(&self) -> f64 {
        (ROOM * self.published * PACKET_BITS / self.rtt.as_secs_f64() / 1e6).ceil()
    }

    /// Every n-th, and one that ends slow start where windows will be largest: a packet's number is about the window
    /// then.
    fn losses(&self) -> String {
        format!("loss-nth={},drop-list={}", self.nth, (1.3 * self.published) as u64)
    }

    fn traffic(&self, superpackets: bool) -> Traffic<'a> {
        let expected = self.packets() as f64 / self.published * self.rtt.as_secs_f64();
        let (rate, rtt, losses) = (self.rate(), self.rtt.0 / 1_000_000, self.losses());
        let duration = Nanos((1.15 * expected * 1e9) as u64) + Nanos::secs(1);
        Traffic {
            path: format!("rate={rate}M,rtt={rtt}ms,queue=1bdp,{losses}"),
            controls: vec![self.control],
            duration,
            interval: self.rtt.max(Nanos(duration.0 / MOST_LOOKS)),
            superpackets,
        }
    }

    /// Whether it is as it should be.
    fn print(&self, mode: &str, seen: &Seen) -> Result<bool> {
        let window = Window::of(&seen.flows[0])?;
        let ratio = window.mean / self.published;
        let room = self.rate() * 1e6 * self.rtt.as_secs_f64() / PACKET_BITS;
        let most = f64::from(window.most) / room;
        let is_near = (ratio - 1.0).abs() <= if self.nth > 1000 { 0.10 } else { 0.20 };
        let overflows = seen.link.a_to_b.queue_drops;
        let mut words = vec![if is_near { "agrees" } else { "**differs**" }.to_owned()];
        if overflows > 0 {
            words.push(format!("**{overflows} found no room**"));
        }
        words.extend(Some(seen.remark()).filter(|remark| !remark.is_empty()));
        println!(
            "| {} | 1/{} | {mode} | {:.1} ms | {:.1} | {:.1} | {ratio:.3} | {:.1} | {most:.2} | {} | {} |",
            self.control,
            self.nth,
            window.rtt_s * 1e3,
            self.published,
            window.mean,
            self.simulated,
            window.cycles,
            words.join("; "),
        );
        let is_whole = overflows == 0 && window.cycles >= CYCLES && most <= MOST_ROOM;
        Ok(is_near && is_whole && seen.unfit.is_empty())
    }
}

/// A window over whole cycles, from one loss to another.
struct Window {
    /// What was acknowledged, in segments, by how many round trips it took.
    mean: f64,
    most: u32,
    /// Mean of the smoothed round trips.
    rtt_s: f64,
    cycles: u64,
}

impl Window {
    fn of(samples: &[TcpSample]) -> Result<Window> {
        let all = samples.iter().map(|sample| sample.retransmits).max().unwrap_or(0).min(WARM_UP + CYCLES);
        ensure!(all > WARM_UP, "only {all} losses: the flow went on for too short a time");
        let from = samples.partition_point(|sample| sample.retransmits < WARM_UP);
        let to = samples.partition_point(|sample| sample.retransmits < all);
        let cycle = &samples[from..=to];
        let [first, .., last] = cycle else {
            anyhow::bail!("no whole cycle among {} samples", samples.len())
        };
        let rtt_s = cycle.iter().map(|sample| sample.rtt_ns.as_secs_f64()).sum::<f64>() / cycle.len() as f64;
        let segments = (last.acked_bytes - first.acked_bytes).0 as f64 / SEGMENT as f64;
        let round_trips = (last.at_ns - first.at_ns).as_secs_f64() / rtt_s;
        let most = cycle.iter().map(|sample| sample.cwnd_segments).max().unwrap_or(0);
        Ok(Window { mean: segments / round_trips, most, rtt_s, cycles: all - first.retransmits })
    }
}

#[cfg(test)]
mod tests {
    use landspeed_units::Bytes;

    use super::*;

    #[test]
    fn a_window_is_what_a_round_trip_acknowledges() {
        let sample = |n: u64| TcpSample {
            at_ns: Nanos::millis(10 * n),
            rtt_ns: Nanos::millis(20),
            retransmits: n,
            acked_bytes: Bytes(n * 50 * SEGMENT),
            cwnd_segments: 100 + n as u32,
            ..TcpSample::default()
        };
        let window = Window::of(&(0..=40).map(sample).collect::<Vec<_>>()).unwrap();
        assert!((window.mean - 100.0).abs() < 1e-9);
        assert_eq!((window.most, window.cycles), (140, 29), "40 losses");
        assert!(Window::of(&[sample(1), sample(2)]).is_err());
    }

    #[test]
    fn paths_are_as_short_as_the_pace_allows_and_have_room() {
        for (control, response) in CONTROLS {
            let point = Point::of(control, response, 1000, PACE).unwrap();
            assert!(point.published / point.rtt.as_secs_f64() <= PACE);
            let room = point.rate() * 1e6 * point.rtt.as_secs_f64() / PACKET_BITS;
            assert!(1.4 * point.published < MOST_ROOM * room, "{control}");
            assert!(point.losses().starts_with("loss-nth=1000,drop-list="), "{control}");
        }
    }
}
