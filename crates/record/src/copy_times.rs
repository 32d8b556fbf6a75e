//! What the stages of a copy did with their time, and what held the copy.

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
    /// Look at entries, create them, set their modes and times.
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

/// What the threads of one stage did with their time, summed over the threads of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyStageTimes {
    /// Time on a processor.
    pub processor_ns: Nanos,
    /// Time runnable, and waiting for a processor.
    pub queued_ns: Nanos,
    /// Time waiting for a disk or a file system.
    pub device_ns: Nanos,
    /// Time waiting for the stage before.
    pub starved_ns: Nanos,
    /// Time waiting for the stage behind.
    pub blocked_ns: Nanos,
    /// Time waiting because of `--limit-rate`.
    pub limited_ns: Nanos,
    /// Time in which nothing was left for the thread, while other flows had what there was.
    pub idle_ns: Nanos,
}

impl CopyStageTimes {
    /// Returns the time in which the stage waited for no other one.
    pub fn busy(&self) -> Nanos {
        self.processor_ns + self.queued_ns + self.device_ns + self.limited_ns
    }

    /// Returns the time in which there was anything for the stage to do or to wait for.
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

/// What TCP says of the flows on which one end has sent, summed over the flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyNetworkTimes {
    /// Time with data to send or to be acknowledged.
    pub busy_ns: Nanos,
    /// Time limited by the window of the receiver.
    pub window_limited_ns: Nanos,
    /// Time limited by the send buffer.
    pub buffer_limited_ns: Nanos,
    /// Segments with data that were sent.
    pub sent: u64,
    /// Segments that were sent again.
    pub resent: u64,
    /// The sum of the smoothed round-trip times at all readings.
    pub rtt_ns: Nanos,
    /// The sum of the least round-trip times at all readings.
    pub least_rtt_ns: Nanos,
}

impl CopyNetworkTimes {
    /// Returns what came after `earlier`.
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

/// What the host of one end had of its processors while the copy ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyHostTimes {
    /// Time over which this was observed.
    pub observed_ns: Nanos,
    /// Time for which a processor quota stopped the control group of the copy, or one above it, summed over processors.
    pub quota_ns: Nanos,
    /// Time for which the processors worked, for whatever program.
    pub used_ns: CpuNanos,
    /// Time that the hypervisor gave to others while the processors had work.
    pub stolen_ns: CpuNanos,
}

impl CopyHostTimes {
    /// Returns the share of the time, 0 to 1, for which a quota may have stopped a thread.
    pub fn quota_share(&self) -> f64 {
        self.quota_ns.share_of(self.observed_ns)
    }

    /// Returns the share, 0 to 1, that the hypervisor gave to others of the time for which the processors had work.
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
    /// The disk under the files; `None` where no single one is.
    #[serde(default)]
    pub disk: Option<CopyDiskTimes>,
    /// Processor time in which TLS encrypted and decrypted, which its stages have too; zero over QUIC.
    #[serde(default)]
    pub cipher_ns: Nanos,
}

impl CopyEndTimes {
    /// Returns the times of a stage.
    pub fn of(&self, stage: CopyStage) -> &CopyStageTimes {
        &self.stages[stage as usize]
    }

    /// Returns the times of a stage, to be changed.
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

/// What the machine of the command did to relay a copy, where neither host reaches the other; zeros otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyRelayTimes {
    /// Time for which it relayed.
    pub relayed_ns: Nanos,
    /// Processor time of the thread that takes what comes from the source's session.
    pub source_processor_ns: Nanos,
    /// Processor time of the thread that hands it to the target's session.
    pub target_processor_ns: Nanos,
    /// Time until the target's session had taken what it was handed.
    pub handing_ns: Nanos,
}

impl CopyRelayTimes {
    /// Returns what came after `earlier`.
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

/// The times of both ends of a copy, and of what is between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyTimes {
    pub source: CopyEndTimes,
    pub target: CopyEndTimes,
    pub relay: CopyRelayTimes,
}

impl CopyTimes {
    /// Returns what came after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        CopyTimes {
            source: self.source.since(&earlier.source),
            target: self.target.since(&earlier.target),
            relay: self.relay.since(&earlier.relay),
        }
    }
}

/// What can hold a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyHold {
    /// The disk of the source does not deliver faster.
    SourceDisk,
    /// The source's processor.
    SourceProcessor,
    /// A processor quota at the source.
    SourceQuota,
    /// The hypervisor of the source, which gives processor time to others.
    SourceSteal,
    /// The source's file system lists and looks at files no faster.
    SourceMetadata,
    /// The window that the target announces is too small for the path.
    NetworkWindow,
    /// The send buffer of the source is too small for the path.
    SendBuffer,
    /// The path loses packets.
    NetworkLoss,
    /// The path carries no more.
    NetworkRate,
    /// The processor of the machine that relays the data.
    RelayProcessor,
    /// The session over which the relayed data come from the source.
    RelaySource,
    /// The session over which the relayed data go to the target.
    RelayTarget,
    /// The limit that the user has set (`--limit-rate`).
    Limit,
    /// The ends wait for each other's answers.
    Answers,
    /// The target's processor.
    TargetProcessor,
    /// A processor quota at the target.
    TargetQuota,
    /// The hypervisor of the target, which gives processor time to others.
    TargetSteal,
    /// The disk of the target does not take more.
    TargetDisk,
    /// The target's file system creates and names files no faster.
    TargetMetadata,
}

/// One of the things that held a copy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyHolder {
    /// What it is.
    pub hold: CopyHold,
    /// Of a processor, the stage that took most of it; null for others.
    pub stage: Option<CopyStage>,
    /// The share of the copy's time that it held the copy.
    pub share: f64,
}

/// What held a copy.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CopyHeld {
    /// The largest share first; empty if the copy was too short to tell.
    pub by: Vec<CopyHolder>,
    /// Without the first of them, the copy could be at most so many times as fast, because the other stages need their
    /// time; null if nothing held it.
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
