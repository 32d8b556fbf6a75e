//! The settings that a copy compared while it ran, and the setting that it kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};
use crate::{CopyHold, Estimate};

/// Settings that a copy can change while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyArm {
    /// Number of flows in use. Further open flows are idle.
    pub flows: u32,
    /// Congestion control of the sockets that send; null if it is not changed.
    pub control: Option<String>,
    /// True if the target writes pieces of long files past its page cache.
    pub direct: bool,
    /// Transport of the flows in use, such as "udt", if these are not the copy's own flows, which are then idle; null
    /// otherwise.
    pub transport: Option<String>,
}

/// Counts of a copy over a period with one setting.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyCount {
    /// Bytes of long files that the target received.
    pub taken_bytes: Bytes,
    /// Length of the period; zero if nothing was counted.
    pub counted_ns: Nanos,
    /// True if only pieces of long files were sent and no flow was broken.
    pub is_clean: bool,
    /// Number of flows in use at the end of the period.
    pub flows: u32,
    /// Congestion control that the sockets reported; null if they reported none or different ones.
    pub control: Option<String>,
    /// Transport of the flows in use, if these are not the copy's own flows; null otherwise.
    pub transport: Option<String>,
    /// Longest smoothed round-trip time of the flows; zero if unknown.
    pub rtt_ns: Nanos,
    /// Reason why the flows did not accept the setting; empty if they did.
    pub refused: String,
}

/// A turn: a period of a copy with one of two settings that are compared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyTurn {
    /// End of the turn, from the start of the copy.
    pub at_ns: Nanos,
    /// Number of the candidate under trial, from 0.
    pub candidate: u32,
    /// True if the turn has the candidate's setting, false if it has the setting for comparison.
    pub is_candidate: bool,
    /// True if the turn belongs to a test in which a part of the copy is slowed, and not to a comparison of settings.
    /// The part is slowed if `is_candidate` is true.
    pub is_slowing: bool,
    /// The setting.
    pub arm: CopyArm,
    /// Time after the change that is not counted.
    pub settle_ns: Nanos,
    /// The counts.
    pub counted: CopyCount,
}

/// The result of a candidate's trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyTrialResult {
    /// Proven to be better; kept.
    Kept,
    /// Proven to be worse.
    Harms,
    /// Proven to have no useful effect.
    NoEffect,
    /// Neither better nor worse is proven.
    Undecided,
    /// The candidate could not be tried.
    #[default]
    NotTried,
}

/// The decision about a candidate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyDecision {
    /// The number of the candidate, from 0.
    pub candidate: u32,
    /// The setting for comparison.
    pub from: CopyArm,
    /// The candidate's setting.
    pub to: CopyArm,
    /// The result.
    pub result: CopyTrialResult,
    /// Number of blocks of four turns that were counted.
    pub blocks: u32,
    /// Ratio of the candidate's rate to the other rate, with its interval; null if too few blocks were counted.
    pub ratio: Option<Estimate>,
    /// Reason why the trial was not made or not completed; empty otherwise.
    pub why: String,
}

/// The result of a test in which a part of a copy is slowed in alternate turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopySlowAnswer {
    /// The copy became slower: this part limits it.
    Answers,
    /// The copy stayed as fast: this part does not limit it.
    Slack,
    /// Neither is proven.
    #[default]
    NotTested,
}

/// The test of a copy's limit: in alternate turns, the processor work of the limiting end takes 10 % longer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopySlowed {
    /// The limit under test.
    pub hold: CopyHold,
    /// The result.
    pub answer: CopySlowAnswer,
    /// Number of blocks of four turns that were counted.
    pub blocks: u32,
    /// Ratio of the rate in slowed turns to the rate in other turns, with its interval; null if too few blocks were
    /// counted.
    pub ratio: Option<Estimate>,
    /// Total time of the slowed turns. At most one eleventh of it was lost.
    pub slowed_ns: Nanos,
    /// Reason why the test was not made or not completed; empty otherwise.
    pub why: String,
}

/// The choice of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyChoice {
    /// The setting that replaced the default, kept by this copy or by an earlier one over the same path; null for the
    /// default.
    pub kept: Option<CopyArm>,
    /// True if an earlier copy kept the setting and this copy did not compare it.
    pub is_remembered: bool,
    /// True if enough turns of a candidate were counted to judge it. Later copies over the same path then use what this
    /// copy kept.
    pub is_judged: bool,
    /// Reason why nothing was compared; empty if something was, if the copy was too short, or if comparisons were off.
    pub untried: String,
}

/// The ends of a path, by which a later copy recognises the path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyPath {
    /// Interface and address at the source.
    pub source: [String; 2],
    /// Interface and address at the target.
    pub target: [String; 2],
    /// Idle round trip; zero if it was not measured.
    pub rtt_ns: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;

    #[test]
    fn a_line_is_read_back_as_it_was_written() {
        let arm = CopyArm { flows: 8, control: None, direct: true, transport: Some("udt".to_owned()) };
        let counted = CopyCount { taken_bytes: Bytes(7), is_clean: true, ..CopyCount::default() };
        let turn = CopyTurn { arm: arm.clone(), candidate: 2, counted, ..CopyTurn::default() };
        let ratio = Some(Estimate { ratio: 1.2, low: 1.1, high: 1.3 });
        let result = CopyTrialResult::Kept;
        let decision = CopyDecision { to: arm, result, ratio, blocks: 9, ..CopyDecision::default() };
        let slowed = CopySlowed {
            hold: CopyHold::TargetQuota,
            answer: CopySlowAnswer::Slack,
            blocks: 9,
            ratio,
            slowed_ns: Nanos(5),
            why: String::new(),
        };
        let [turn, decision] = [Line::CopyTurn(Box::new(turn)), Line::CopyDecision(Box::new(decision))];
        for line in [turn, decision, Line::CopySlowed(Box::new(slowed))] {
            let text = serde_json::to_vec(&line).unwrap();
            assert_eq!(crate::decode::<Line>(&text).unwrap(), line);
        }
    }
}
