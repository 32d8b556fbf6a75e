//! Which settings a copy has compared while it ran, and which it kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};
use crate::{CopyHold, Estimate};

/// Settings that a copy can change while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyArm {
    /// The number of flows in use. Others that are open rest.
    pub flows: u32,
    /// The congestion control of the sockets that send; null if it is left as it is.
    pub control: Option<String>,
    /// True if the target writes pieces of long files past its page cache.
    pub direct: bool,
    /// The transport of the flows in use, such as "udt", if they are not the copy's own flows, which rest; null
    /// otherwise.
    pub transport: Option<String>,
}

/// What was counted while a copy ran with one setting.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyCount {
    /// Bytes of long files that the target has taken.
    pub taken_bytes: Bytes,
    /// The time in which it took them; zero if nothing was counted.
    pub counted_ns: Nanos,
    /// True if nothing but pieces of long files was sent, and no flow was broken.
    pub is_clean: bool,
    /// The number of flows that were in use at its end.
    pub flows: u32,
    /// The congestion control that the sockets say they have; null if they have none or not the same.
    pub control: Option<String>,
    /// The transport of these flows, if they are not the copy's own; null otherwise.
    pub transport: Option<String>,
    /// The longest smoothed round-trip time of the flows; zero if it is not known.
    pub rtt_ns: Nanos,
    /// Why the flows did not take the setting; empty if they did.
    pub refused: String,
}

/// A turn: a stretch of a copy with one of two settings that are compared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyTurn {
    /// Its end, as time since the beginning of the copy.
    pub at_ns: Nanos,
    /// The number of the candidate that is tried, from 0.
    pub candidate: u32,
    /// True if the candidate's setting is used, false for the setting that it is compared with.
    pub is_candidate: bool,
    /// True if no settings are compared, but the copy as it is with the copy while a part of it is slowed; that part is
    /// slowed where `is_candidate` is true.
    pub is_slowing: bool,
    /// The setting.
    pub arm: CopyArm,
    /// The time after the change that is not counted.
    pub settle_ns: Nanos,
    /// What was counted.
    pub counted: CopyCount,
}

/// What came of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyTrialResult {
    /// Proven to be better, and kept.
    Kept,
    /// Proven to be worse.
    Harms,
    /// Proven to have no useful effect.
    NoEffect,
    /// Neither was proven.
    Undecided,
    /// It could not be tried.
    #[default]
    NotTried,
}

/// What was decided about a candidate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyDecision {
    /// The number of the candidate, from 0.
    pub candidate: u32,
    /// The setting that it was compared with.
    pub from: CopyArm,
    /// The candidate.
    pub to: CopyArm,
    /// What came of it.
    pub result: CopyTrialResult,
    /// The number of blocks of four turns that were counted.
    pub blocks: u32,
    /// How many times as fast it is, with its interval; null if too few blocks were counted.
    pub ratio: Option<Estimate>,
    /// Why it was not tried, or not to its end; empty otherwise.
    pub why: String,
}

/// What a copy showed while a part of it was slowed, by turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopySlowAnswer {
    /// The copy became slower, so that this part holds it.
    Answers,
    /// The copy stayed as fast, so that this part does not hold it.
    Slack,
    /// Neither was proven.
    #[default]
    NotTested,
}

/// What a copy did while the processor work of one end, which was named to hold it, took 10 % longer, by turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopySlowed {
    /// What was named.
    pub hold: CopyHold,
    /// What the turns showed.
    pub answer: CopySlowAnswer,
    /// The number of blocks of four turns that were counted.
    pub blocks: u32,
    /// The rate while it was slowed over the rate otherwise, with its interval; null if too few blocks were counted.
    pub ratio: Option<Estimate>,
    /// The time for which it was slowed. At most one part in eleven of it was lost.
    pub slowed_ns: Nanos,
    /// Why it was not tested, or not to its end; empty otherwise.
    pub why: String,
}

/// What a copy came to choose.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyChoice {
    /// The setting that was kept in the place of the default, by this copy or by an earlier one over the same path;
    /// null for the default.
    pub kept: Option<CopyArm>,
    /// True if an earlier copy has kept it, and this one has not compared it.
    pub is_remembered: bool,
    /// True if enough turns of a candidate were counted to judge it, so that later copies over the same path go by what
    /// this one has kept.
    pub is_judged: bool,
    /// Why nothing was compared; empty if something was, if the copy was too short, or if it was not to.
    pub untried: String,
}

/// The ends of a path, by which a later copy knows it again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyPath {
    /// The interface and the address at the source.
    pub source: [String; 2],
    /// The interface and the address at the target.
    pub target: [String; 2],
    /// The idle round trip; zero if it was not measured.
    pub rtt_ns: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;

    #[test]
    fn what_a_line_says_comes_back() {
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
