//! Prints what a flow does, alone on a path:
//! `trace CONTROL [SECONDS [MBPS [RTT_MS [QUEUE_PERCENT_OF_BDP [LOSS_PER_MILLION [SAMPLE_MS]]]]]]`.

use landspeed_model::{LossSpec, simulate, study_scenario};
use landspeed_record::{Contest, Study};
use landspeed_units::{BitRate, Bytes, Nanos};

fn main() {
    let mut words = std::env::args().skip(1);
    let control = words.next().unwrap_or_else(|| "reno".to_owned());
    let mut number = |default| words.next().and_then(|word| word.parse::<u32>().ok()).unwrap_or(default);
    let (seconds, mbps, rtt_ms) = (number(60), number(1000), number(164));
    let (queue, loss, sample_ms) = (number(50), number(0), number(1000));
    let mut study = Study { flows: 1, region_ns: Nanos::secs(seconds.into()), ..Study::paper() };
    study.path.rate_bps = BitRate(f64::from(mbps) * 1e6);
    study.path.rtt_ns = Nanos::millis(rtt_ms.into());
    study.path.queue_bytes = Bytes(study.path.bdp().0 * u64::from(queue) / 100);
    let contest = Contest { controls: vec![control], ..Contest::default() };
    let mut scenario = study_scenario(&study, &contest, 0);
    scenario.sample_ns = Nanos::millis(sample_ms.into());
    scenario.links[0].loss = LossSpec::Random { share: f64::from(loss) / 1e6 };
    scenario.duration_ns = Nanos::secs(seconds.into());
    let outcome = simulate(&scenario).expect("the study makes sense");
    println!("     s     Mb/s    cwnd   ssthresh  srtt ms  resent  waiting  no room");
    for (flow, line) in outcome.flows[0].samples.iter().zip(&outcome.links[0].samples) {
        let tcp = &flow.tcp;
        println!(
            "{:6.1} {:8.1} {:7} {:10} {:8.1} {:7} {:8} {:8}",
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
