//! The lines of a copy's record, and the document that is derived from them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{BitRate, Nanos};
use crate::{
    ConditionChange, CopyChoice, CopyCounts, CopyDecision, CopyDiskTimes, CopyDiskUse, CopyEndTimes,
    CopyHeld, CopyHostSettings, CopyHostTimes, CopyKept, CopyNetworkTimes, CopyOutcome, CopyPath,
    CopyRelayTimes, CopySlowed, CopyStage, CopyStageTimes, CopyTimes, HostFacts, PathBytes, RestoreOutcome,
    Settings,
};

/// Format version of [`CopyReport`].
pub const COPY_FORMAT: u32 = 1;

/// The plan of a copy: the line after the header of the copy's record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyPlan {
    /// The host that has the files.
    pub from: String,
    /// The host that receives them.
    pub to: String,
    /// Number of files and folders on the command line.
    pub sources: u64,
    /// Paths of the first of these files and folders.
    pub sources_hex: Vec<PathBytes>,
    /// Path of the result: that of the single file or folder, or else the folder.
    pub target_hex: PathBytes,
    /// True if the machine of the command relays the data, because neither host can reach the other.
    pub is_relayed: bool,
    /// The transport of each flow, and its settings that differ from the transport's defaults.
    pub flow: Settings,
    /// The number of flows.
    pub flows: u32,
    /// True if the user chose the number (`--flows`). The copy then does not change it.
    pub flows_named: bool,
    /// The ends of the path.
    pub path: CopyPath,
    /// Settings of both hosts during the copy (`--tune`); null without any.
    pub tuned: Option<CopyHostSettings>,
    /// True if the copy ends only once everything is on stable storage.
    pub is_synced: bool,
    /// Attributes that are kept of each entry.
    pub keeps: BTreeSet<CopyKept>,
    /// True to copy devices.
    pub keeps_devices: bool,
    /// Number of patterns for entries to ignore.
    pub ignore_rules: u64,
    /// True if only the entries of a list are copied.
    pub only_named: bool,
    /// True if entries that only the target has are removed.
    pub deletes: bool,
    /// True if files of the same length are compared by content instead of by modification time.
    pub by_content: bool,
    /// Largest rate of all flows together; null without a limit.
    pub limit_bps: Option<BitRate>,
}

/// The progress of a copy at one time. Times and counts are from the start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyMoment {
    /// Time since the start.
    pub at_ns: Nanos,
    /// Entries and bytes that were found and moved.
    pub counts: CopyCounts,
    /// Times of the stages at both ends.
    pub stages: CopyStages,
}

/// The end of a copy.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyEnd {
    /// Time from the first request to the end, including the wait for stable storage.
    pub duration_ns: Nanos,
    /// The result of the copy.
    pub outcome: CopyOutcome,
    /// Times of the stages at both ends.
    pub stages: CopyStages,
    /// Settings of the flows that the kernels did not accept as requested: the host and the socket's value, one line
    /// each.
    pub not_as_asked: Vec<String>,
    /// Ciphers that both ends agreed on. There is one, unless flows chose differently, and none if the transport does
    /// not report it.
    pub ciphers: BTreeSet<String>,
    /// Congestion controls of the source's sockets; empty if the transport has none in the kernel.
    pub controls: BTreeSet<String>,
    /// The setting that was chosen during the copy.
    pub choice: CopyChoice,
    /// How the hosts' settings were restored; null if none was changed.
    pub restored: Option<RestoreOutcome>,
}

/// The times of the stages at both ends, and figures of the path and of the hosts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyStages {
    /// Stages of the source, in the order in which data passes them.
    pub source: Vec<CopyStageReport>,
    /// The stages of the target.
    pub target: Vec<CopyStageReport>,
    /// TCP's figures for the flows on which the source sends; zeros over another protocol and over a relay.
    pub network: CopyNetworkTimes,
    /// Processors of the source's host.
    pub source_host: CopyHostTimes,
    /// Processors of the target's host.
    pub target_host: CopyHostTimes,
    /// Disk under the source; null if there is no single one, as on tmpfs, btrfs and arrays.
    pub source_disk: Option<CopyDiskTimes>,
    /// Disk under the target; null as for `source_disk`.
    pub target_disk: Option<CopyDiskTimes>,
    /// Processor time in which the source's TLS encrypted content and decrypted answers; a part of the time of its
    /// stages `send` and `receive`. One call in seven is timed. Zero over QUIC.
    pub source_cipher_ns: Nanos,
    /// The same for the target, which decrypts content.
    pub target_cipher_ns: Nanos,
    /// Cost of the relay at the machine of the command; zeros without a relay.
    pub relay: CopyRelayTimes,
}

/// The times of the threads in one stage, summed over the threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyStageReport {
    /// The stage.
    pub stage: CopyStage,
    #[serde(flatten)]
    pub times: CopyStageTimes,
}

impl From<&CopyTimes> for CopyStages {
    /// Leaves out stages that no thread entered.
    fn from(times: &CopyTimes) -> Self {
        let CopyTimes { source, target, relay } = times;
        CopyStages {
            source: used(source),
            target: used(target),
            network: source.network,
            source_host: source.host,
            target_host: target.host,
            source_disk: source.disk,
            target_disk: target.disk,
            source_cipher_ns: source.cipher_ns,
            target_cipher_ns: target.cipher_ns,
            relay: *relay,
        }
    }
}

impl CopyStages {
    /// Returns the times. If a stage is listed twice, its last times count.
    pub fn times(&self) -> CopyTimes {
        CopyTimes {
            source: CopyEndTimes {
                network: self.network,
                host: self.source_host,
                disk: self.source_disk,
                cipher_ns: self.source_cipher_ns,
                ..stages_of(&self.source)
            },
            target: CopyEndTimes {
                host: self.target_host,
                disk: self.target_disk,
                cipher_ns: self.target_cipher_ns,
                ..stages_of(&self.target)
            },
            relay: self.relay,
        }
    }
}

/// Returns the stages that any thread entered.
fn used(end: &CopyEndTimes) -> Vec<CopyStageReport> {
    let all = CopyStage::ALL.into_iter().map(|stage| CopyStageReport { stage, times: *end.of(stage) });
    all.filter(|report| report.times.total() > Nanos(0)).collect()
}

/// Returns the times of an end of which only the stages are known.
fn stages_of(reports: &[CopyStageReport]) -> CopyEndTimes {
    let mut end = CopyEndTimes::default();
    for report in reports {
        *end.of_mut(report.stage) = report.times;
    }
    end
}

/// The origin and the destination of files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct CopyRoute {
    /// The host that has the files.
    pub from: String,
    /// The host that receives them.
    pub to: String,
    /// Path at the receiving host. Bytes of a name that are not valid text are replaced by other characters.
    pub target: String,
    /// True if the machine of the command relayed the data, because neither host could reach the other.
    pub is_relayed: bool,
}

/// The conditions of a copy: the settings of both ends that decide its figures, and disturbances from outside.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyConditions {
    /// Facts about the source's host, with its settings at the start of the copy; null if the record has none.
    pub source_facts: Option<HostFacts>,
    /// Facts about the target's host; null as for `source_facts`.
    pub target_facts: Option<HostFacts>,
    /// Congestion controls of the source's sockets; empty if the transport has none in the kernel.
    pub controls: BTreeSet<String>,
    /// Conditions that changed during the copy without a change by landspeed, in the order of detection.
    pub condition_changes: Vec<ConditionChange>,
    /// Disturbances, one line each: time taken by the hypervisor, a processor quota.
    pub disturbed: Vec<String>,
}

/// The result of a copy, and what limited it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct CopyReport {
    /// Format version of this document.
    pub format: u32,
    #[serde(flatten)]
    pub route: CopyRoute,
    /// The transport of each flow, and its settings that differ from the transport's defaults.
    pub flow: Settings,
    /// The number of flows.
    pub flows: u32,
    /// Time from the first request to the end, including the wait for stable storage.
    pub duration_ns: Nanos,
    /// Content of the sent files divided by the whole duration.
    pub goodput_bps: BitRate,
    /// Settings of the flows that the kernels did not accept as requested: the host and the socket's value, one line
    /// each.
    pub not_as_asked: Vec<String>,
    /// Ciphers that both ends agreed on. There is one, unless flows chose differently, and none if the transport does
    /// not report it.
    pub ciphers: BTreeSet<String>,
    #[serde(flatten)]
    pub conditions: CopyConditions,
    /// The setting that was chosen during the copy.
    pub choice: CopyChoice,
    /// Decisions about each setting that was compared or should have been.
    pub decisions: Vec<CopyDecision>,
    /// Settings of both hosts during the copy (`--tune`); null without any.
    pub tuned: Option<CopyHostSettings>,
    /// How the hosts' settings were restored; null if none was changed.
    pub restored: Option<RestoreOutcome>,
    /// What limited the copy.
    pub held: CopyHeld,
    /// Test of the named limit, in which it was slowed in alternate turns; null without a test.
    pub slowed: Option<CopySlowed>,
    /// Times of the stages at both ends.
    pub stages: CopyStages,
    /// Rates and load of the disk under the source; null if there is no single disk, or if it had no requests.
    pub source_disk: Option<CopyDiskUse>,
    /// Rates and load of the disk under the target; null as for `source_disk`.
    pub target_disk: Option<CopyDiskUse>,
    #[serde(flatten)]
    pub outcome: CopyOutcome,
    /// Reason why the copy did not complete, so that only its last progress is known; null if it completed.
    pub cut_off: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy_disk::tests::written;
    use crate::units::{Bytes, CpuNanos};
    use crate::{CopyFailure, Line};

    fn times() -> CopyTimes {
        let mut times = CopyTimes::default();
        times.source.of_mut(CopyStage::Read).device_ns = Nanos(7);
        times.source.of_mut(CopyStage::Send).idle_ns = Nanos(u64::MAX);
        times.target.of_mut(CopyStage::Install).processor_ns = Nanos(3);
        times.source.network.resent = 4;
        times.source.host.quota_ns = Nanos(5);
        times.target.host.stolen_ns = CpuNanos(6);
        times.source.disk = Some(written("sda", 2));
        times.target.disk = Some(written("vdb1", 9));
        times.relay.handing_ns = Nanos(8);
        (times.source.cipher_ns, times.target.cipher_ns) = (Nanos(9), Nanos(10));
        times
    }

    #[test]
    fn a_document_has_the_stages_that_were_used() {
        let stages = serde_json::to_value(CopyStages::from(&times())).unwrap();
        assert_eq!(
            (&stages["source"][0]["stage"], &stages["source"][0]["device_ns"]),
            (&"read".into(), &7.into())
        );
        assert_eq!(
            (stages["source"].as_array().map(Vec::len), stages["target"].as_array().map(Vec::len)),
            (Some(2), Some(1))
        );
    }

    #[test]
    fn a_line_is_read_back_as_it_was_written() {
        let stages = CopyStages::from(&times());
        let name_hex = PathBytes(b"a\n\xff\x1b".to_vec());
        let plan = CopyPlan { sources_hex: vec![name_hex.clone()], flows: 4, ..CopyPlan::default() };
        let counts = CopyCounts { moved_bytes: Bytes(9), ..CopyCounts::default() };
        let failures = vec![CopyFailure { name_hex, why: "no".to_owned() }];
        let outcome = CopyOutcome { failed: 1, failures, ..CopyOutcome::default() };
        let moment = CopyMoment { at_ns: Nanos(1), counts, stages: stages.clone() };
        let (not_as_asked, ciphers) = (vec!["b: no".to_owned()], BTreeSet::from(["aes-128-gcm".to_owned()]));
        let controls = BTreeSet::from(["bbr".to_owned()]);
        let (choice, restored) = (CopyChoice::default(), Some(RestoreOutcome::untouched()));
        let duration_ns = Nanos(2);
        let end = CopyEnd { duration_ns, outcome, stages, not_as_asked, ciphers, controls, choice, restored };
        for line in
            [Line::Copy(Box::new(plan)), Line::CopyMoment(Box::new(moment)), Line::CopyEnd(Box::new(end))]
        {
            let text = serde_json::to_vec(&line).unwrap();
            let read: Line = crate::decode(&text).unwrap();
            assert_eq!(read, line);
            if let Line::CopyMoment(moment) = read {
                assert_eq!(moment.stages.times(), times());
            }
        }
    }

    /// An older landspeed wrote fewer fields.
    #[test]
    fn a_line_without_some_fields_is_read() {
        let line = br#"{"line":"copy-end","duration_ns":5,"outcome":{"copied":3},"stages":{"source":[{"stage":"read","device_ns":2}]}}"#;
        let Line::CopyEnd(end) = crate::decode(line).unwrap() else { panic!("another line") };
        assert_eq!(
            (end.outcome.copied, end.stages.times().source.of(CopyStage::Read).device_ns),
            (3, Nanos(2))
        );
    }
}
