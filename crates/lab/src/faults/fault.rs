//! The table of faults, and the scenario that some of them make.

use landspeed_record::Cause;
use landspeed_record::units::did_you_mean;

use crate::faults::error::Error;
use crate::faults::inject;
use crate::faults::scenario::FaultScenario;

/// A known cause of a slow path, which can be added to a scenario.
#[derive(Clone, Copy)]
pub struct Fault {
    pub name: &'static str,
    pub about: &'static str,
    pub cause: Cause,
    pub needs: TrafficNeed,
    /// Adds the fault to a scenario. `strength` ranges continuously from 0, a nuisance, to 1, a disaster.
    pub inject: fn(&mut FaultScenario, f64),
}

/// The kind of traffic that a fault needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficNeed {
    /// Any traffic, because it is a fault of the path or of a host.
    Anything,
    /// The stream of a scenario, whose programs it changes.
    Stream,
    /// Its own traffic, with which the fault replaces the stream.
    Own,
}

impl TrafficNeed {
    /// Returns true if two faults can be combined on one flow.
    pub fn goes_with(self, other: TrafficNeed) -> bool {
        self == TrafficNeed::Anything
            || other == TrafficNeed::Anything
            || (self, other) == (TrafficNeed::Stream, TrafficNeed::Stream)
    }
}

pub const FAULTS: &[Fault] = &[
    Fault {
        name: "receive-buffer",
        about: "the receiver's socket buffer is small for a path of 20 ms",
        cause: Cause::ReceiveBuffer,
        needs: TrafficNeed::Stream,
        inject: inject::receive_buffer,
    },
    Fault {
        name: "send-buffer",
        about: "the sender's socket buffer is small for a path of 20 ms",
        cause: Cause::SendBuffer,
        needs: TrafficNeed::Stream,
        inject: inject::send_buffer,
    },
    Fault {
        name: "slow-reader",
        about: "the receiving program reads too slowly",
        cause: Cause::SlowReader,
        needs: TrafficNeed::Stream,
        inject: inject::slow_reader,
    },
    Fault {
        name: "slow-writer",
        about: "the sending program rests between its writes",
        cause: Cause::SlowWriter,
        needs: TrafficNeed::Stream,
        inject: inject::slow_writer,
    },
    Fault {
        name: "tiny-writes",
        about: "the sending program writes a few bytes at a time",
        cause: Cause::TinyWrites,
        needs: TrafficNeed::Stream,
        inject: inject::tiny_writes,
    },
    Fault {
        name: "nagle-delayed-ack",
        about: "requests are written in two parts, and Nagle's algorithm waits for a delayed acknowledgement",
        cause: Cause::NagleDelayedAck,
        needs: TrafficNeed::Own,
        inject: inject::nagle_delayed_ack,
    },
    Fault {
        name: "softirq-core",
        about: "small segments without GRO: all packets of the receiver are handled on one core, which is full",
        cause: Cause::SoftirqCore,
        needs: TrafficNeed::Anything,
        inject: inject::softirq_core,
    },
    Fault {
        name: "competing-load",
        about: "other programs want the core that the receiver is bound to",
        cause: Cause::CompetingLoad,
        needs: TrafficNeed::Anything,
        inject: inject::competing_load,
    },
    Fault {
        name: "rate-limit",
        about: "a token bucket filter limits what leaves the sender",
        cause: Cause::RateLimit,
        needs: TrafficNeed::Anything,
        inject: inject::rate_limit,
    },
    Fault {
        name: "random-loss",
        about: "a path of 20 ms loses packets at random",
        cause: Cause::RandomLoss,
        needs: TrafficNeed::Anything,
        inject: inject::random_loss,
    },
    Fault {
        name: "burst-loss",
        about: "a path of 20 ms loses runs of packets",
        cause: Cause::BurstLoss,
        needs: TrafficNeed::Anything,
        inject: inject::burst_loss,
    },
    Fault {
        name: "reordering",
        about: "a path of 20 ms lets packets overtake each other",
        cause: Cause::Reordering,
        needs: TrafficNeed::Anything,
        inject: inject::reordering,
    },
    Fault {
        name: "window-below-bdp",
        about: "window scaling is off on a long path, so that the window ends at 64 KB",
        cause: Cause::WindowBelowBdp,
        needs: TrafficNeed::Anything,
        inject: inject::window_below_bdp,
    },
    Fault {
        name: "mtu-black-hole",
        about: "packets above some size vanish on the way, and no ICMP message says so",
        cause: Cause::MtuBlackHole,
        needs: TrafficNeed::Anything,
        inject: inject::mtu_black_hole,
    },
    Fault {
        name: "offloads-off",
        about: "segmentation and receive offloads are off",
        cause: Cause::OffloadsOff,
        needs: TrafficNeed::Anything,
        inject: inject::offloads_off,
    },
    Fault {
        name: "software-checksum",
        about: "checksums are computed by the processor, and what depends on the offload is off with it",
        cause: Cause::SoftwareChecksum,
        needs: TrafficNeed::Anything,
        inject: inject::software_checksum,
    },
    Fault {
        name: "fragmentation",
        about: "datagrams larger than the MTU are cut into fragments",
        cause: Cause::Fragmentation,
        needs: TrafficNeed::Own,
        inject: inject::fragmentation,
    },
    Fault {
        name: "udp-receive-buffer",
        about: "datagrams overflow the receiver's socket buffer",
        cause: Cause::UdpReceiveBuffer,
        needs: TrafficNeed::Own,
        inject: inject::udp_receive_buffer,
    },
    Fault {
        name: "listen-backlog",
        about: "connections are opened faster than they are accepted, and the backlog is short",
        cause: Cause::ListenBacklog,
        needs: TrafficNeed::Own,
        inject: inject::listen_backlog,
    },
    Fault {
        name: "window-alignment",
        about: "a buffer that holds a few segments and a half: the half is never used",
        cause: Cause::WindowAlignment,
        needs: TrafficNeed::Stream,
        inject: inject::window_alignment,
    },
    Fault {
        name: "qdisc-drops",
        about: "the queue of the sender's link is too short for its bursts",
        cause: Cause::QdiscDrops,
        needs: TrafficNeed::Anything,
        inject: inject::qdisc_drops,
    },
    Fault {
        name: "congestion-window",
        about: "the congestion window of the route is locked at a small value",
        cause: Cause::CongestionControl,
        needs: TrafficNeed::Anything,
        inject: inject::congestion_window,
    },
    Fault {
        name: "receiver-quota",
        about: "a processor quota of its control group stops the receiving program",
        cause: Cause::CpuQuota,
        needs: TrafficNeed::Anything,
        inject: inject::receiver_quota,
    },
    Fault {
        name: "sender-quota",
        about: "a processor quota of its control group stops the sending program",
        cause: Cause::CpuQuota,
        needs: TrafficNeed::Anything,
        inject: inject::sender_quota,
    },
    Fault {
        name: "slow-disk",
        about: "the sending program reads what it sends from a disk, past the page cache",
        cause: Cause::SlowDisk,
        needs: TrafficNeed::Stream,
        inject: inject::slow_disk,
    },
    Fault {
        name: "idle-restart",
        about: "the sending program rests after each burst, and TCP begins anew on a long path",
        cause: Cause::IdleRestart,
        needs: TrafficNeed::Stream,
        inject: inject::idle_restart,
    },
    Fault {
        name: "window-cap",
        about: "the receive buffer may not grow to what a path of 150 ms holds",
        cause: Cause::WindowBelowBdp,
        needs: TrafficNeed::Anything,
        inject: inject::window_cap,
    },
    Fault {
        name: "dropped-window",
        about: "packets take more memory than the receiver promised by: it drops some and takes its window back",
        cause: Cause::DroppedWindow,
        needs: TrafficNeed::Stream,
        inject: inject::dropped_window,
    },
];

pub fn fault(name: &str) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| fault.name == name)
}

impl FaultScenario {
    /// Creates a scenario of a healthy path with these faults, each with its strength from 0 to 1.
    pub fn with(faults: &[(&str, f64)]) -> Result<FaultScenario, Error> {
        let known = |(name, strength): &(&str, f64)| {
            let unknown = || Error::Unknown {
                name: (*name).to_owned(),
                near: did_you_mean(name, FAULTS.iter().map(|fault| fault.name)),
            };
            Ok((fault(name).ok_or_else(unknown)?, *strength))
        };
        let faults = faults.iter().map(known).collect::<Result<Vec<_>, Error>>()?;
        let mut scenario = FaultScenario::default();
        for (at, (fault, strength)) in faults.iter().enumerate() {
            let clash = faults[..at].iter().find(|(other, _)| !fault.needs.goes_with(other.needs));
            if let Some((other, _)) = clash {
                return Err(Error::Together(other.name.to_owned(), fault.name.to_owned()));
            }
            (fault.inject)(&mut scenario, *strength);
        }
        Ok(scenario)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_fault_changes_something() {
        for fault in FAULTS {
            assert_eq!(FAULTS.iter().filter(|other| other.name == fault.name).count(), 1);
            for strength in [0.0, 0.37, 1.0] {
                let mut scenario = FaultScenario::default();
                (fault.inject)(&mut scenario, strength);
                assert_ne!(
                    format!("{scenario:?}"),
                    format!("{:?}", FaultScenario::default()),
                    "{} at {strength}",
                    fault.name
                );
            }
        }
    }

    #[test]
    fn every_path_can_be_made() {
        for fault in FAULTS {
            for strength in [0.0, 0.37, 1.0] {
                let mut scenario = FaultScenario::default();
                (fault.inject)(&mut scenario, strength);
                let words = scenario.topology();
                assert!(crate::topology::find(&[words]).is_ok(), "{}: {}", fault.name, scenario.topology());
            }
        }
    }

    #[test]
    fn knobs_are_of_the_table() {
        for fault in FAULTS {
            for strength in [0.0, 1.0] {
                let mut scenario = FaultScenario::default();
                (fault.inject)(&mut scenario, strength);
                for (name, value) in scenario.a.iter().chain(&scenario.b) {
                    assert_eq!(landspeed_knob::check(name, value).map_err(|e| e.to_string()), Ok(()));
                }
            }
        }
    }
}
