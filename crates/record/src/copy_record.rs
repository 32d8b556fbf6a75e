//! The lines of a copy's record, and the document that is made from them.

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

/// What is copied, from where to where, and how: the line after the header of a copy's record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyPlan {
    /// The host that has the files.
    pub from: String,
    /// The host that gets them.
    pub to: String,
    /// The number of files and folders that the command line names.
    pub sources: u64,
    /// The paths of the first of them.
    pub sources_hex: Vec<PathBytes>,
    /// The path that the files get: of a single file or folder its own, otherwise the folder.
    pub target_hex: PathBytes,
    /// True if the data pass through the machine of the command, because neither host reaches the other.
    pub is_relayed: bool,
    /// The transport of each flow, and its settings that are not the transport's defaults.
    pub flow: Settings,
    /// The number of flows.
    pub flows: u32,
    /// True if the user named it (`--flows`), so that the copy does not change it.
    pub flows_named: bool,
    /// The ends of the path.
    pub path: CopyPath,
    /// What is set at both hosts while the copy lasts (`--tune`); null if nothing is to be.
    pub tuned: Option<CopyHostSettings>,
    /// True if the copy ends only once everything is on stable storage.
    pub is_synced: bool,
    /// What is kept of each entry beside its name and content.
    pub keeps: BTreeSet<CopyKept>,
    /// True to copy devices.
    pub keeps_devices: bool,
    /// The number of patterns that name what is left alone.
    pub ignore_rules: u64,
    /// True if only the entries of a list are copied.
    pub only_named: bool,
    /// True if what only the target has is removed.
    pub deletes: bool,
    /// True if files of the same length are compared by their content, and not by their times.
    pub by_content: bool,
    /// The largest rate of all flows together; null without one.
    pub limit_bps: Option<BitRate>,
}

/// What a copy had done at one moment. Times and counts are from its beginning.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyMoment {
    /// Time since the beginning.
    pub at_ns: Nanos,
    /// What was found and moved.
    pub counts: CopyCounts,
    /// What the stages of both ends had done with their time.
    pub stages: CopyStages,
}

/// The end of a copy.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyEnd {
    /// From the first request to the end, with the wait for stable storage.
    pub duration_ns: Nanos,
    /// What the copy came to.
    pub outcome: CopyOutcome,
    /// What the stages of both ends did with their time.
    pub stages: CopyStages,
    /// Which of the flows' settings the kernels did not take as asked: the host and what its socket says, one line each.
    pub not_as_asked: Vec<String>,
    /// The ciphers that both ends agreed on: one, unless flows chose differently; none if the transport does not say it.
    pub ciphers: BTreeSet<String>,
    /// The congestion controls that the sockets of the source had; none if the transport has none in the kernel.
    pub controls: BTreeSet<String>,
    /// Which setting was chosen while it ran.
    pub choice: CopyChoice,
    /// How the hosts' settings were restored; null if none was changed.
    pub restored: Option<RestoreOutcome>,
}

/// What the stages of both ends did with their time, and what they know of the path and of their hosts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyStages {
    /// The stages of the source, in the order of the data.
    pub source: Vec<CopyStageReport>,
    /// The stages of the target.
    pub target: Vec<CopyStageReport>,
    /// What TCP says of the flows on which the source has sent; zeros over another protocol and where they are relayed.
    pub network: CopyNetworkTimes,
    /// What the source's host had of its processors.
    pub source_host: CopyHostTimes,
    /// What the target's host had of its processors.
    pub target_host: CopyHostTimes,
    /// What the disk under the source did; null where no single one is, as on tmpfs, btrfs and arrays.
    pub source_disk: Option<CopyDiskTimes>,
    /// What the disk under the target did, as `source_disk`.
    pub target_disk: Option<CopyDiskTimes>,
    /// Processor time in which the source's TLS encrypted content and decrypted answers: a part of that of its stages
    /// `send` and `receive`. One of seven calls is timed. Zero over QUIC.
    pub source_cipher_ns: Nanos,
    /// The same of the target, which decrypts content.
    pub target_cipher_ns: Nanos,
    /// What the machine of the command did to relay the data; zeros where the hosts reach each other.
    pub relay: CopyRelayTimes,
}

/// What the threads in one stage did with their time, summed over the threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyStageReport {
    /// The stage.
    pub stage: CopyStage,
    #[serde(flatten)]
    pub times: CopyStageTimes,
}

impl From<&CopyTimes> for CopyStages {
    /// Leaves out stages in which no thread has been.
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
    /// Returns the times. Those of a stage that is listed twice are the last ones.
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

/// Returns the stages in which any thread has been.
fn used(end: &CopyEndTimes) -> Vec<CopyStageReport> {
    let all = CopyStage::ALL.into_iter().map(|stage| CopyStageReport { stage, times: *end.of(stage) });
    all.filter(|report| report.times.total() > Nanos(0)).collect()
}

/// Returns an end of which only the stages are known.
fn stages_of(reports: &[CopyStageReport]) -> CopyEndTimes {
    let mut end = CopyEndTimes::default();
    for report in reports {
        *end.of_mut(report.stage) = report.times;
    }
    end
}

/// Where files come from and go to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct CopyRoute {
    /// The host that has the files.
    pub from: String,
    /// The host that gets them.
    pub to: String,
    /// The path there. In a name that is no text, other characters stand for the bytes that are none.
    pub target: String,
    /// True if the data passed through the machine of the command, because neither host reaches the other.
    pub is_relayed: bool,
}

/// The conditions of a copy: the settings of both ends that decide its figures, and what happened to it from outside.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyConditions {
    /// Facts about the host of the source, with the settings that it had when the copy began; null in a record that has none.
    pub source_facts: Option<HostFacts>,
    /// Facts about the host of the target, as `source_facts`.
    pub target_facts: Option<HostFacts>,
    /// The congestion controls that the sockets of the source had; none if the transport has none in the kernel.
    pub controls: BTreeSet<String>,
    /// What changed of the conditions while it ran, other than by landspeed, in the order in which it was seen.
    pub condition_changes: Vec<ConditionChange>,
    /// What disturbed it: time that the hypervisor took, and a processor quota, one line each.
    pub disturbed: Vec<String>,
}

/// What a copy came to, and what held it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct CopyReport {
    /// Format version of this document.
    pub format: u32,
    #[serde(flatten)]
    pub route: CopyRoute,
    /// The transport of each flow, and its settings that are not the transport's defaults.
    pub flow: Settings,
    /// The number of flows.
    pub flows: u32,
    /// From the first request to the end, with the wait for stable storage.
    pub duration_ns: Nanos,
    /// The content of the files that were sent, over the whole duration.
    pub goodput_bps: BitRate,
    /// Which of the flows' settings the kernels did not take as asked: the host and what its socket says, one line each.
    pub not_as_asked: Vec<String>,
    /// The ciphers that both ends agreed on: one, unless flows chose differently; none if the transport does not say it.
    pub ciphers: BTreeSet<String>,
    #[serde(flatten)]
    pub conditions: CopyConditions,
    /// Which setting was chosen while it ran.
    pub choice: CopyChoice,
    /// What was decided about each setting that was compared, or that was to be.
    pub decisions: Vec<CopyDecision>,
    /// What was set at both hosts while it lasted (`--tune`); null if nothing was to be.
    pub tuned: Option<CopyHostSettings>,
    /// How the hosts' settings were restored; null if none was changed.
    pub restored: Option<RestoreOutcome>,
    /// What held the copy.
    pub held: CopyHeld,
    /// What the copy did while what was named to hold it was slowed; null if nothing was.
    pub slowed: Option<CopySlowed>,
    /// What the stages of both ends did with their time.
    pub stages: CopyStages,
    /// At which rate the disk under the source worked; null where no single one is, or where it had nothing to do.
    pub source_disk: Option<CopyDiskUse>,
    /// At which rate the disk under the target worked, as `source_disk`.
    pub target_disk: Option<CopyDiskUse>,
    #[serde(flatten)]
    pub outcome: CopyOutcome,
    /// Why the copy did not come to its end, so that only its last moment is known; null if it did.
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
    fn what_a_line_says_comes_back() {
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
