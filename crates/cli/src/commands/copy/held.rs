//! What held a copy, in words and in its document.

use landspeed_analysis::{copy_held, hold_remedy, hold_words};
use landspeed_record::{
    CopyEndTimes, CopyHeld, CopyHolder, CopyNetworkTimes, CopyRelayTimes, CopyStage, CopyStageTimes,
    CopyTimes,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::progress::RATE_OVER;

/// What the stages of both ends did with their time.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CopyStages {
    /// The stages of the source, in the order of the data.
    source: Vec<CopyStageReport>,
    /// The stages of the target.
    target: Vec<CopyStageReport>,
    /// What TCP says of the flows on which the source has sent; zeros over another protocol and where they are relayed.
    network: CopyNetworkTimes,
    /// What this machine did to relay the data; zeros where the hosts reach each other.
    relay: CopyRelayTimes,
}

/// What the threads in one stage did with their time, summed over the threads.
#[derive(Debug, Serialize, JsonSchema)]
struct CopyStageReport {
    /// The stage.
    stage: CopyStage,
    #[serde(flatten)]
    times: CopyStageTimes,
}

impl CopyStages {
    pub(super) fn of(times: &CopyTimes) -> Self {
        let (source, target) = (stages(&times.source), stages(&times.target));
        CopyStages { source, target, network: times.source.network, relay: times.relay }
    }
}

/// Returns the stages in which any thread has been.
fn stages(end: &CopyEndTimes) -> Vec<CopyStageReport> {
    let all = CopyStage::ALL.into_iter().map(|stage| CopyStageReport { stage, times: *end.of(stage) });
    all.filter(|report| report.times.total().0 > 0).collect()
}

/// What holds a copy now: in the last reports, of which one comes each second.
pub(super) struct HeldNow {
    seen: Vec<CopyTimes>,
    words: String,
}

impl HeldNow {
    pub(super) fn new() -> Self {
        HeldNow { seen: vec![CopyTimes::default()], words: String::new() }
    }

    pub(super) fn take(&mut self, times: CopyTimes) {
        if self.seen.len() > RATE_OVER {
            self.seen.remove(0);
        }
        let since = self.seen.first().map_or(times, |first| times.since(first));
        self.seen.push(times);
        self.words = words(&copy_held(&since)).map(|words| format!("  {words}")).unwrap_or_default();
    }

    /// Returns the words for a progress line, which come after others; empty if nothing is known.
    pub(super) fn words(&self) -> &str {
        &self.words
    }
}

/// Returns the lines about a copy that is over; none if it was too short to tell.
pub(super) fn lines(held: &CopyHeld) -> Vec<String> {
    let (Some(words), Some(first)) = (words(held), held.by.first()) else { return Vec::new() };
    let gain = held.gain_at_most.map(|gain| format!("; without it, at most {gain:.1} times as fast"));
    vec![words + &gain.unwrap_or_default(), format!("what helps: {}", hold_remedy(first.hold))]
}

/// Returns "held by: target's disk, 91 % of the time; then the network's rate"; `None` if nothing is known.
fn words(held: &CopyHeld) -> Option<String> {
    let mut holders = held.by.iter();
    let first = holders.next()?;
    let next = holders.next().map(|next| format!("; then {}", holder(next))).unwrap_or_default();
    Some(format!("held by: {}, {:.0} % of the time{next}", holder(first), first.share * 100.0))
}

fn holder(holder: &CopyHolder) -> String {
    let full_of = holder.stage.map(stage_words).map(|stage| format!(" ({stage})"));
    format!("{}{}", hold_words(holder.hold), full_of.unwrap_or_default())
}

/// Returns what a processor does in a stage.
fn stage_words(stage: CopyStage) -> &'static str {
    match stage {
        CopyStage::Walk => "listing files",
        CopyStage::Read => "reading",
        CopyStage::Hash => "hashing",
        CopyStage::Send => "encrypting and sending",
        CopyStage::Receive => "receiving and decrypting",
        CopyStage::Write => "writing",
        CopyStage::Metadata => "creating files",
        CopyStage::Sync => "syncing",
        CopyStage::Install => "naming files",
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::CopyHold;
    use landspeed_record::units::Nanos;

    use super::*;

    fn held(by: &[(CopyHold, Option<CopyStage>, f64)], gain_at_most: Option<f64>) -> CopyHeld {
        let by =
            by.iter().map(|(hold, stage, share)| CopyHolder { hold: *hold, stage: *stage, share: *share });
        CopyHeld { by: by.collect(), gain_at_most }
    }

    #[test]
    fn what_held_comes_first_and_what_would_hold_next() {
        let disk = (CopyHold::TargetDisk, None, 0.914);
        let processor = (CopyHold::SourceProcessor, Some(CopyStage::Hash), 0.4);
        let first = "held by: target's disk, 91 % of the time; then source's processor (hashing)";
        assert_eq!(words(&held(&[disk, processor], None)).as_deref(), Some(first));
        let told = lines(&held(&[processor], Some(2.54)));
        assert_eq!(
            told[0],
            "held by: source's processor (hashing), 40 % of the time; without it, at most 2.5 times as fast"
        );
        assert!(told[1].starts_with("what helps: more --flows"), "{told:?}");
        assert!(lines(&CopyHeld::default()).is_empty());
    }

    /// The first half of a copy says nothing of what holds it now.
    #[test]
    fn a_progress_line_tells_of_the_last_seconds() {
        let mut now = HeldNow::new();
        let mut times = CopyTimes::default();
        let mut after = |seconds: u64, is_disk: bool| {
            for _ in 0..seconds {
                let write = times.target.of_mut(CopyStage::Write);
                let spent = if is_disk { &mut write.device_ns } else { &mut write.processor_ns };
                *spent += Nanos::secs(1);
                now.take(times);
            }
            now.words().to_owned()
        };
        assert_eq!(after(1, true), "  held by: target's disk, 100 % of the time");
        assert_eq!(after(30, false), "  held by: target's processor (writing), 100 % of the time");
    }

    #[test]
    fn a_document_has_the_stages_that_were_used() {
        let mut times = CopyTimes::default();
        times.source.of_mut(CopyStage::Read).device_ns = Nanos(7);
        let stages = serde_json::to_value(CopyStages::of(&times)).unwrap();
        assert_eq!(stages["source"][0]["stage"], "read");
        assert_eq!(stages["source"][0]["device_ns"], 7);
        assert_eq!(
            (stages["source"].as_array().map(Vec::len), stages["target"].as_array().map(Vec::len)),
            (Some(1), Some(0))
        );
    }
}
