//! Windows against loss rates: each congestion control that has a published response function, measured in
//! the simulator and held against it, with losses at equal distances and with random ones.
//!
//! `cargo run --release -p landspeed-simulator --example responses`

use landspeed_simulator::LossSpec;
use landspeed_simulator::response::{self, measure};
use landspeed_units::Nanos;

const RTT: Nanos = Nanos::millis(100);

type Response = fn(f64) -> f64;

const CONTROLS: [(&str, Response); 5] = [
    ("reno", response::reno),
    ("highspeed", response::highspeed),
    ("scalable", response::scalable),
    ("bic", response::bic),
    ("htcp", |p| response::htcp(p, RTT)),
];

fn main() {
    println!("control       1/p  published   measured  ratio   at loss  random  ratio");
    for (control, response) in CONTROLS {
        for nth in [1_000, 10_000, 100_000, 1_000_000] {
            let p = 1.0 / nth as f64;
            let published = response(p);
            let ask = |loss, cycles| {
                measure(control, loss, nth, cycles, RTT, published).expect("the controls are there")
            };
            let equal = ask(LossSpec::EveryNth { nth }, 30);
            let random = ask(LossSpec::Random { share: p }, if nth < 1_000_000 { 1000 } else { 100 });
            println!(
                "{control:10} {nth:7} {published:10.1} {:10.1} {:6.3} {:9.1} {:7.1} {:6.3}{}",
                equal.mean,
                equal.mean / published,
                equal.at_loss,
                random.mean,
                random.mean / published,
                if equal.timeouts + random.timeouts > 0 { "  timeouts" } else { "" },
            );
        }
    }
}
