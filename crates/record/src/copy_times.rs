//! The times of a copy's stages, and what limited the copy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CopyDiskTimes;
use crate::units::{CpuNanos, Nanos};

/// A stage of a copy. The threads of the source read, hash and send; those of the target receive, hash and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyStage {
    /// Walk the tree.
    Walk,
    /// Open and read files.
    Read,
    /// Hash what was read, or what is about to be written.
    Hash,
    /// Encrypt and send.
    Send,
    /// Receive and decrypt.
    Receive,
    /// Write content.
    Write,
    /// Examine entries, create them, set their modes and times.
    Metadata,
    /// Put files on stable storage.
    Sync,
    /// Give files their names.
    Install,
}

impl CopyStage {
    /// All stages, in the order of the data.
    pub const ALL: [CopyStage; 9] = [
        CopyStage::Walk,
        CopyStage::Read,
        CopyStage::Hash,
        CopyStage::Send,
        CopyStage::Receive,
        CopyStage::Write,
        CopyStage::Metadata,
        CopyStage::Sync,
        CopyStage::Install,
    ];
}

/// The times of the threads of one stage, summed over the threads of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyStageTimes {
    /// Time on a processor.
    pub processor_ns: Nanos,
    /// Time runnable, waiting for a processor.
    pub queued_ns: Nanos,
    /// Time waiting for a disk or a file system.
    pub device_ns: Nanos,
    /// Time waiting for the previous stage.
    pub starved_ns: Nanos,
    /// Time waiting for the next stage.
    pub blocked_ns: Nanos,
    /// Time waiting because of `--limit-rate`.
    pub limited_ns: Nanos,
    /// Time without work for the thread, while other flows carried the remaining data.
    pub idle_ns: Nanos,
}

impl CopyStageTimes {
    /// Returns the time in which the stage did not wait for another one.
    pub fn busy(&self) -> Nanos {
        self.processor_ns + self.queued_ns + self.device_ns + self.limited_ns
    }

    /// Returns the time in which the stage had work or waited for it.
    pub fn engaged(&self) -> Nanos {
        self.busy() + self.starved_ns + self.blocked_ns
    }

    /// Returns the whole time.
    pub fn total(&self) -> Nanos {
        self.engaged() + self.idle_ns
    }

    fn since(&self, earlier: &Self) -> Self {
        CopyStageTimes {
            processor_ns: self.processor_ns - earlier.processor_ns,
            queued_ns: self.queued_ns - earlier.queued_ns,
            device_ns: self.device_ns - earlier.device_ns,
            starved_ns: self.starved_ns - earlier.starved_ns,
            blocked_ns: self.blocked_ns - earlier.blocked_ns,
            limited_ns: self.limited_ns - earlier.limited_ns,
            idle_ns: self.idle_ns - earlier.idle_ns,
        }
    }
}

/// TCP's figures for the flows on which one end sends, summed over the flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyNetworkTimes {
    /// Time with data to send or unacknowledged data.
    pub busy_ns: Nanos,
    /// Time limited by the window of the receiver.
    pub window_limited_ns: Nanos,
    /// Time limited by the send buffer.
    pub buffer_limited_ns: Nanos,
    /// Segments with payload that were sent.
    pub sent: u64,
    /// Segments retransmitted.
    pub resent: u64,
    /// Sum of the smoothed round-trip times over all readings.
    pub rtt_ns: Nanos,
    /// Sum of the lowest round-trip times over all readings.
    pub least_rtt_ns: Nanos,
}

impl CopyNetworkTimes {
    /// Returns the differences from `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        CopyNetworkTimes {
            busy_ns: self.busy_ns - earlier.busy_ns,
            window_limited_ns: self.window_limited_ns - earlier.window_limited_ns,
            buffer_limited_ns: self.buffer_limited_ns - earlier.buffer_limited_ns,
            sent: self.sent.saturating_sub(earlier.sent),
            resent: self.resent.saturating_sub(earlier.resent),
            rtt_ns: self.rtt_ns - earlier.rtt_ns,
            least_rtt_ns: self.least_rtt_ns - earlier.least_rtt_ns,
        }
    }
}

/// The processors of one end's host during the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyHostTimes {
    /// Length of the observed time.
    pub observed_ns: Nanos,
    /// Time for which a processor quota throttled the copy's control group or a parent of it, summed over processors.
    pub quota_ns: Nanos,
    /// Time for which the processors worked, for any program.
    pub used_ns: CpuNanos,
    /// Time that the hypervisor took away while the processors had work.
    pub stolen_ns: CpuNanos,
}

impl CopyHostTimes {
    /// Returns the share of the time, 0 to 1, in which a quota may have throttled a thread.
    pub fn quota_share(&self) -> f64 {
        self.quota_ns.share_of(self.observed_ns)
    }

    /// Returns the share of the processors' working time, 0 to 1, that the hypervisor took away.
    pub fn stolen_share(&self) -> f64 {
        let wanted = self.used_ns.as_secs_f64() + self.stolen_ns.as_secs_f64();
        if wanted > 0.0 { self.stolen_ns.as_secs_f64() / wanted } else { 0.0 }
    }

    fn since(&self, earlier: &Self) -> Self {
        CopyHostTimes {
            observed_ns: self.observed_ns - earlier.observed_ns,
            quota_ns: self.quota_ns - earlier.quota_ns,
            used_ns: self.used_ns - earlier.used_ns,
            stolen_ns: self.stolen_ns - earlier.stolen_ns,
        }
    }
}

/// The times of one end of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CopyEndTimes {
    /// By stage, in the order of [`CopyStage::ALL`].
    pub stages: [CopyStageTimes; CopyStage::ALL.len()],
    pub network: CopyNetworkTimes,
    #[serde(default)]
    pub host: CopyHostTimes,
    /// The disk under the files; `None` if there is no single one.
    #[serde(default)]
    pub disk: Option<CopyDiskTimes>,
    /// Processor time of TLS encryption and decryption, which the stages include; zero over QUIC.
    #[serde(default)]
    pub cipher_ns: Nanos,
}

impl CopyEndTimes {
    /// Returns the times of a stage.
    pub fn of(&self, stage: CopyStage) -> &CopyStageTimes {
        &self.stages[stage as usize]
    }

    /// Returns the times of a stage for changes.
    pub fn of_mut(&mut self, stage: CopyStage) -> &mut CopyStageTimes {
        &mut self.stages[stage as usize]
    }

    fn since(&self, earlier: &Self) -> Self {
        let stage = |index: usize| self.stages[index].since(&earlier.stages[index]);
        CopyEndTimes {
            stages: std::array::from_fn(stage),
            network: self.network.since(&earlier.network),
            host: self.host.since(&earlier.host),
            disk: self.disk.and_then(|disk| disk.since(earlier.disk)),
            cipher_ns: self.cipher_ns - earlier.cipher_ns,
        }
    }
}

/// The cost of relaying a copy at the machine of the command; zeros if it relays nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyRelayTimes {
    /// Length of the time in which it relayed.
    pub relayed_ns: Nanos,
    /// Processor time of the thread that receives from the source's session.
    pub source_processor_ns: Nanos,
    /// Processor time of the thread that sends to the target's session.
    pub target_processor_ns: Nanos,
    /// Time of the writes to the target's session, which wait while it takes no more.
    pub handing_ns: Nanos,
}

impl CopyRelayTimes {
    /// Returns the differences from `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        CopyRelayTimes {
            relayed_ns: self.relayed_ns - earlier.relayed_ns,
            source_processor_ns: self.source_processor_ns - earlier.source_processor_ns,
            target_processor_ns: self.target_processor_ns - earlier.target_processor_ns,
            handing_ns: self.handing_ns - earlier.handing_ns,
        }
    }
}

/// The times of both ends of a copy, and of a relay between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyTimes {
    pub source: CopyEndTimes,
    pub target: CopyEndTimes,
    pub relay: CopyRelayTimes,
}

impl CopyTimes {
    /// Returns the differences from `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        CopyTimes {
            source: self.source.since(&earlier.source),
            target: self.target.since(&earlier.target),
            relay: self.relay.since(&earlier.relay),
        }
    }
}

/// A part of a copy that can limit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyHold {
    /// The source's disk, which delivers data no faster.
    SourceDisk,
    /// The source's processor.
    SourceProcessor,
    /// A processor quota at the source.
    SourceQuota,
    /// The hypervisor of the source, which takes processor time away.
    SourceSteal,
    /// The source's file system, which lists and examines files no faster.
    SourceMetadata,
    /// The window that the target advertises, which is too small for the path.
    NetworkWindow,
    /// The source's send buffer, which is too small for the path.
    SendBuffer,
    /// Packet loss on the path.
    NetworkLoss,
    /// The rate of the path.
    NetworkRate,
    /// The processor of the machine that relays the data.
    RelayProcessor,
    /// The session over which relayed data arrives from the source.
    RelaySource,
    /// The session over which relayed data goes to the target.
    RelayTarget,
    /// The user's rate limit (`--limit-rate`).
    Limit,
    /// Round trips in which the ends wait for each other's answers.
    Answers,
    /// The target's processor.
    TargetProcessor,
    /// A processor quota at the target.
    TargetQuota,
    /// The hypervisor of the target, which takes processor time away.
    TargetSteal,
    /// The target's disk, which accepts data no faster.
    TargetDisk,
    /// The target's file system, which creates and names files no faster.
    TargetMetadata,
}

/// One of the parts that limited a copy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyHolder {
    /// The part.
    pub hold: CopyHold,
    /// For a processor, the stage that used most of it; null for other parts.
    pub stage: Option<CopyStage>,
    /// Share of the copy's time in which this part limited it.
    pub share: f64,
}

/// The parts that limited a copy.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CopyHeld {
    /// The parts, largest share first; empty if the copy was too short to judge.
    pub by: Vec<CopyHolder>,
    /// Upper bound of the ratio of the copy's rate without the first part to its measured rate: the other stages still
    /// need their time; null if no part limited the copy.
    pub gain_at_most: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_its_own_times() {
        for (index, stage) in CopyStage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, index);
            let mut end = CopyEndTimes::default();
            end.of_mut(stage).device_ns = Nanos(7);
            let busy = end.stages.iter().map(|stage| stage.busy().0).collect::<Vec<_>>();
            assert_eq!((busy.iter().sum::<u64>(), busy[index]), (7, 7), "{stage:?}");
        }
    }

    #[test]
    fn times_of_an_interval_are_differences() {
        let mut earlier = CopyTimes::default();
        earlier.source.of_mut(CopyStage::Send).blocked_ns = Nanos(5);
        let mut later = earlier;
        later.source.of_mut(CopyStage::Send).blocked_ns = Nanos(12);
        later.source.network.resent = 3;
        later.source.cipher_ns = Nanos(9);
        let between = later.since(&earlier);
        assert_eq!(between.source.of(CopyStage::Send).total(), Nanos(7));
        assert_eq!((between.source.network.resent, between.source.cipher_ns), (3, Nanos(9)));
        // A peer that counts backwards gives zeros.
        assert_eq!(earlier.since(&later).source, CopyEndTimes::default());
    }
}
