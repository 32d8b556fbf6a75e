//! The table of faults.

use landspeed_record::Cause;
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::scenario::{Scenario, Shaper, Traffic, Wan};

/// A known cause of a slow path.
#[derive(Clone, Copy)]
pub struct Fault {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, one line.
    pub about: &'static str,
    /// What a judge should name.
    pub cause: Cause,
    /// What it needs of the traffic.
    pub needs: Needs,
    /// Does it to a scenario: `strength` 0 is a nuisance, 1 is a disaster; everything between is had too.
    pub inject: fn(&mut Scenario, f64),
}

/// What a fault needs of the traffic that it is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it is a fault of the path or of a host.
    Anything,
    /// A TCP stream.
    Stream,
    /// Traffic of its own kind.
    Own,
}

impl Needs {
    /// Whether two faults can be had on one flow.
    pub fn goes_with(self, other: Needs) -> bool {
        self == Needs::Anything || other == Needs::Anything || (self, other) == (Needs::Stream, Needs::Stream)
    }
}

/// All faults.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "receive-buffer",
        about: "the receiver's socket buffer is small for a path of 20 ms",
        cause: Cause::ReceiveBuffer,
        needs: Needs::Stream,
        inject: receive_buffer,
    },
    Fault {
        name: "send-buffer",
        about: "the sender's socket buffer is small for a path of 20 ms",
        cause: Cause::SendBuffer,
        needs: Needs::Stream,
        inject: send_buffer,
    },
    Fault {
        name: "slow-reader",
        about: "the receiving program reads too slowly",
        cause: Cause::SlowReader,
        needs: Needs::Stream,
        inject: slow_reader,
    },
    Fault {
        name: "slow-writer",
        about: "the sending program rests between its writes",
        cause: Cause::SlowWriter,
        needs: Needs::Stream,
        inject: slow_writer,
    },
    Fault {
        name: "tiny-writes",
        about: "the sending program writes a few bytes at a time",
        cause: Cause::TinyWrites,
        needs: Needs::Stream,
        inject: tiny_writes,
    },
    Fault {
        name: "nagle-delayed-ack",
        about: "requests are written in two parts, and Nagle's algorithm waits for a delayed acknowledgement",
        cause: Cause::NagleDelayedAck,
        needs: Needs::Own,
        inject: nagle_delayed_ack,
    },
    Fault {
        name: "softirq-core",
        about: "small segments without GRO: all packets of the receiver are handled on one core, which is full",
        cause: Cause::SoftirqCore,
        needs: Needs::Anything,
        inject: softirq_core,
    },
    Fault {
        name: "competing-load",
        about: "other programs want the core that the receiver is bound to",
        cause: Cause::CompetingLoad,
        needs: Needs::Anything,
        inject: competing_load,
    },
    Fault {
        name: "rate-limit",
        about: "a token bucket filter limits what leaves the sender",
        cause: Cause::RateLimit,
        needs: Needs::Anything,
        inject: rate_limit,
    },
    Fault {
        name: "random-loss",
        about: "a path of 20 ms loses packets at random",
        cause: Cause::RandomLoss,
        needs: Needs::Anything,
        inject: random_loss,
    },
    Fault {
        name: "burst-loss",
        about: "a path of 20 ms loses runs of packets",
        cause: Cause::BurstLoss,
        needs: Needs::Anything,
        inject: burst_loss,
    },
    Fault {
        name: "reordering",
        about: "a path of 20 ms lets packets overtake each other",
        cause: Cause::Reordering,
        needs: Needs::Anything,
        inject: reordering,
    },
    Fault {
        name: "window-below-bdp",
        about: "window scaling is off on a long path, so that the window ends at 64 KB",
        cause: Cause::WindowBelowBdp,
        needs: Needs::Anything,
        inject: window_below_bdp,
    },
    Fault {
        name: "mtu-black-hole",
        about: "packets above some size vanish on the way, and no ICMP message says so",
        cause: Cause::MtuBlackHole,
        needs: Needs::Anything,
        inject: mtu_black_hole,
    },
    Fault {
        name: "offloads-off",
        about: "segmentation and receive offloads are off",
        cause: Cause::OffloadsOff,
        needs: Needs::Anything,
        inject: offloads_off,
    },
    Fault {
        name: "software-checksum",
        about: "checksums are computed by the processor, and what depends on the offload is off with it",
        cause: Cause::SoftwareChecksum,
        needs: Needs::Anything,
        inject: software_checksum,
    },
    Fault {
        name: "fragmentation",
        about: "datagrams larger than the MTU are cut into fragments",
        cause: Cause::Fragmentation,
        needs: Needs::Own,
        inject: fragmentation,
    },
    Fault {
        name: "udp-receive-buffer",
        about: "datagrams overflow the receiver's socket buffer",
        cause: Cause::UdpReceiveBuffer,
        needs: Needs::Own,
        inject: udp_receive_buffer,
    },
    Fault {
        name: "listen-backlog",
        about: "connections are opened faster than they are accepted, and the backlog is short",
        cause: Cause::ListenBacklog,
        needs: Needs::Own,
        inject: listen_backlog,
    },
    Fault {
        name: "window-alignment",
        about: "a buffer that holds a few segments and a half: the half is never used",
        cause: Cause::WindowAlignment,
        needs: Needs::Stream,
        inject: window_alignment,
    },
    Fault {
        name: "qdisc-drops",
        about: "the queue of the sender's link is too short for its bursts",
        cause: Cause::QdiscDrops,
        needs: Needs::Anything,
        inject: qdisc_drops,
    },
    Fault {
        name: "congestion-window",
        about: "the congestion window of the route is locked at a small value",
        cause: Cause::CongestionControl,
        needs: Needs::Anything,
        inject: congestion_window,
    },
];

/// The fault of this name.
pub fn fault(name: &str) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| fault.name == name)
}

/// From `weak` to `strong` in even ratios.
fn between(weak: f64, strong: f64, strength: f64) -> f64 {
    weak * (strong / weak).powf(strength.clamp(0.0, 1.0))
}

fn bytes(weak: f64, strong: f64, strength: f64) -> Bytes {
    Bytes(between(weak, strong, strength).round() as u64)
}

fn wan(scenario: &mut Scenario) -> &mut Wan {
    scenario.wan.get_or_insert_with(Wan::healthy)
}

fn receive_buffer(scenario: &mut Scenario, strength: f64) {
    wan(scenario);
    if let Traffic::Stream { receive_buffer, .. } = &mut scenario.traffic {
        *receive_buffer = Some(bytes(96e3, 12e3, strength));
    }
}

fn send_buffer(scenario: &mut Scenario, strength: f64) {
    wan(scenario);
    if let Traffic::Stream { send_buffer, .. } = &mut scenario.traffic {
        *send_buffer = Some(bytes(96e3, 12e3, strength));
    }
}

fn slow_reader(scenario: &mut Scenario, strength: f64) {
    if let Traffic::Stream { read, read_pause, .. } = &mut scenario.traffic {
        *read = Bytes(64 * 1024);
        // 64 KB every 5 ms is 105 Mb/s, every 100 ms is 5 Mb/s.
        *read_pause = Nanos(between(5e6, 100e6, strength) as u64);
    }
}

fn slow_writer(scenario: &mut Scenario, strength: f64) {
    if let Traffic::Stream { write, write_pause, .. } = &mut scenario.traffic {
        *write = Bytes(64 * 1024);
        *write_pause = Nanos(between(5e6, 100e6, strength) as u64);
    }
}

fn tiny_writes(scenario: &mut Scenario, strength: f64) {
    if let Traffic::Stream { write, .. } = &mut scenario.traffic {
        *write = bytes(256.0, 16.0, strength);
    }
}

fn nagle_delayed_ack(scenario: &mut Scenario, strength: f64) {
    let rest_every = between(8.0, 1.0, 1.0 - strength).round() as u32;
    scenario.traffic = Traffic::Requests { part: Bytes(100), rest_every };
}

fn softirq_core(scenario: &mut Scenario, strength: f64) {
    for (name, value) in [("gro", "off"), ("tso", "off"), ("gso", "off")] {
        scenario.b.insert(name.into(), value.into());
        scenario.a.insert(name.into(), value.into());
    }
    let mtu = bytes(1500.0, 1280.0, strength).0.to_string();
    scenario.a.insert("mtu".into(), mtu.clone());
    scenario.b.insert("mtu".into(), mtu);
    scenario.b.insert("rps".into(), "0".into());
    scenario.sender_core = Some(0);
    scenario.receiver_core = Some(0);
}

fn competing_load(scenario: &mut Scenario, strength: f64) {
    scenario.burners = between(1.0, 4.0, strength).round() as u32;
    scenario.receiver_core = Some(1);
    scenario.sender_core = Some(0);
}

fn rate_limit(scenario: &mut Scenario, strength: f64) {
    let rate = between(500e6, 10e6, strength);
    scenario.shaper =
        Some(Shaper { rate: BitRate(rate), burst: Bytes(128 * 1024), limit: Bytes(1024 * 1024) });
}

fn random_loss(scenario: &mut Scenario, strength: f64) {
    wan(scenario).loss = between(0.0005, 0.01, strength);
}

fn burst_loss(scenario: &mut Scenario, strength: f64) {
    let wan = wan(scenario);
    wan.loss = between(0.001, 0.02, strength);
    wan.burst = between(10.0, 40.0, strength);
}

fn reordering(scenario: &mut Scenario, strength: f64) {
    wan(scenario).reorder = between(0.005, 0.1, strength);
}

fn window_below_bdp(scenario: &mut Scenario, strength: f64) {
    wan(scenario).rtt = Nanos(between(30e6, 150e6, strength) as u64);
    scenario.a.insert("window-scaling".into(), "off".into());
    scenario.b.insert("window-scaling".into(), "off".into());
}

fn mtu_black_hole(scenario: &mut Scenario, strength: f64) {
    wan(scenario).drop_above = Some(bytes(1480.0, 600.0, strength));
}

fn offloads_off(scenario: &mut Scenario, strength: f64) {
    for name in ["tso", "gso"] {
        scenario.a.insert(name.into(), "off".into());
    }
    if strength > 0.5 {
        scenario.b.insert("gro".into(), "off".into());
    }
}

fn software_checksum(scenario: &mut Scenario, strength: f64) {
    scenario.a.insert("tx-checksum".into(), "off".into());
    let mtu = if strength > 0.5 { "1500" } else { "9000" };
    scenario.a.insert("mtu".into(), mtu.into());
    scenario.b.insert("mtu".into(), mtu.into());
}

fn fragmentation(scenario: &mut Scenario, strength: f64) {
    scenario.traffic = Traffic::Datagrams {
        size: bytes(4000.0, 32_000.0, strength),
        rate: None,
        receive_buffer: Some(Bytes(8 * 1024 * 1024)),
        read_pause: Nanos(0),
        reads_between: 1,
    };
}

fn udp_receive_buffer(scenario: &mut Scenario, strength: f64) {
    scenario.traffic = Traffic::Datagrams {
        size: Bytes(1400),
        rate: Some(BitRate(between(100e6, 400e6, strength))),
        receive_buffer: Some(bytes(128e3, 8e3, strength)),
        read_pause: Nanos::millis(10),
        reads_between: 64,
    };
}

fn listen_backlog(scenario: &mut Scenario, strength: f64) {
    scenario.traffic = Traffic::Connections {
        clients: between(16.0, 128.0, strength).round() as u32,
        backlog: between(8.0, 1.0, strength).round() as u32,
        service: Nanos(between(5e6, 40e6, strength) as u64),
    };
}

fn window_alignment(scenario: &mut Scenario, strength: f64) {
    wan(scenario);
    for host in [&mut scenario.a, &mut scenario.b] {
        host.insert("mtu".into(), "9000".into());
    }
    if let Traffic::Stream { receive_buffer, .. } = &mut scenario.traffic {
        // What is asked for the kernel doubles, and offers about half of: three segments and a half (the
        // paper's window of 33,000 bytes), or one and most of a second.
        let segments = between(3.5, 1.9, strength);
        *receive_buffer = Some(Bytes((segments * 8948.0).round() as u64));
    }
}

fn qdisc_drops(scenario: &mut Scenario, strength: f64) {
    scenario.shaper = Some(Shaper {
        rate: BitRate(2e9),
        burst: Bytes(64 * 1024 + 2048),
        limit: bytes(12e3, 3e3, strength),
    });
}

fn congestion_window(scenario: &mut Scenario, strength: f64) {
    wan(scenario);
    scenario.cwnd_segments = Some(between(24.0, 4.0, strength).round() as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_fault_changes_something() {
        for fault in FAULTS {
            assert_eq!(FAULTS.iter().filter(|other| other.name == fault.name).count(), 1);
            for strength in [0.0, 0.37, 1.0] {
                let mut scenario = Scenario::default();
                (fault.inject)(&mut scenario, strength);
                assert_ne!(
                    format!("{scenario:?}"),
                    format!("{:?}", Scenario::default()),
                    "{} at {strength}",
                    fault.name
                );
            }
        }
    }

    #[test]
    fn knobs_are_of_the_table() {
        for fault in FAULTS {
            for strength in [0.0, 1.0] {
                let mut scenario = Scenario::default();
                (fault.inject)(&mut scenario, strength);
                for (name, value) in scenario.a.iter().chain(&scenario.b) {
                    assert_eq!(landspeed_knob::check(name, value).map_err(|e| e.to_string()), Ok(()));
                }
            }
        }
    }
}
