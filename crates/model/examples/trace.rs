//! Prints a flow second by second: `trace CONTROL [SECONDS]`, alone on the study's path.

use landspeed_model::{StudySpec, simulate};
use landspeed_units::Nanos;

fn main() {
    let mut words = std::env::args().skip(1);
    let control = words.next().unwrap_or_else(|| "reno".to_owned());
    let seconds = words.next().and_then(|word| word.parse().ok()).unwrap_or(60);
    let study = StudySpec { control, flows: 1, region_ns: Nanos::secs(seconds), ..StudySpec::default() };
    let mut scenario = study.scenario();
    scenario.sample_ns = Nanos::millis(200);
    scenario.duration_ns = Nanos::secs(seconds);
    let outcome = simulate(&scenario).expect("the study makes sense");
    println!("     s     Mb/s    cwnd ssthresh  srtt ms  resent  waiting  no room");
    for (flow, line) in outcome.flows[0].samples.iter().zip(&outcome.links[0].samples) {
        let tcp = &flow.tcp;
        println!(
            "{:6.1} {:8.1} {:7} {:8} {:8.1} {:7} {:8} {:8}",
            flow.at_ns.as_secs_f64(),
            tcp.delivery_rate_bps.0 / 1e6,
            tcp.cwnd_segments,
            tcp.ssthresh_segments,
            tcp.rtt_ns.as_secs_f64() * 1e3,
            tcp.retransmits,
            line.waiting_packets,
            line.no_room,
        );
    }
}
