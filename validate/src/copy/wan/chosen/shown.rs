//! What the turns show.

#[cfg(test)]
use landspeed_record::{CopyArm, CopyDecision, Estimate};
use landspeed_stats::{estimate, mean_and_deviation};

use super::by_record::{KeptChoice, name_of};
use super::{ChosenTurn, DEFAULT, NAME, beside};
use crate::copy::wan::{LEAST, LEAST_TURNS};
use crate::table::{self, BrokenPromises};

impl ChosenTurn {
    /// Returns the goodput after the choice over that of the better stream; `None` if there is none.
    fn over_best(&self) -> Option<f64> {
        let best = self.streams.iter().copied().fold(0.0, f64::max);
        self.choice.as_ref()?.after_bps.filter(|_| best > 0.0).map(|after| after / best)
    }

    /// Returns true if the record proves that what was kept is faster.
    fn is_proven(&self) -> bool {
        let ratio = self.choice.as_ref().and_then(|choice| choice.decision.ratio);
        ratio.is_some_and(|ratio| ratio.low > 1.0)
    }

    fn kept_words(&self) -> String {
        let Some(KeptChoice { decision, .. }) = &self.choice else { return DEFAULT.to_owned() };
        let (flows, name) = (decision.to.flows, name_of(&decision.to));
        format!("{flows} flows with {name} {} in {} blocks", table::ratio(decision.ratio), decision.blocks)
    }
}

/// Prints what the turns show. Each is to keep another control with a proof, and to reach the better stream from then
/// on.
pub(super) fn print(turns: &[&ChosenTurn], broken: &mut BrokenPromises) {
    table::head(
        "path | turns | kept, with its ratio over CUBIC by the records | streams, Mb/s: BBR, UDT | \
         copy after its choice, Mb/s | over the better stream | whole copy, Mb/s | promise",
    );
    let mean = |of: &dyn Fn(&ChosenTurn) -> Option<f64>| {
        let all: Vec<f64> = turns.iter().filter_map(|turn| of(turn)).collect();
        if all.is_empty() { "-".to_owned() } else { format!("{:.0}", mean_and_deviation(&all).0 / 1e6) }
    };
    let streams: Vec<String> =
        (0..beside().count()).map(|row| mean(&|turn: &ChosenTurn| turn.streams.get(row).copied())).collect();
    let logs: Vec<f64> = turns.iter().filter_map(|turn| turn.over_best()).map(f64::ln).collect();
    let ratio = (!logs.is_empty()).then(|| estimate(&logs, 0.95));
    let all_proven = logs.len() == turns.len() && turns.iter().all(|turn| turn.is_proven());
    let holds = all_proven && ratio.is_some_and(|ratio| ratio.low >= LEAST);
    let promise = match turns.len() < LEAST_TURNS {
        true => format!("{LEAST_TURNS} turns decide"),
        false => format!("proven in each, and {LEAST} of the better stream: {}", broken.check(holds)),
    };
    table::row(&[
        &NAME,
        &turns.len(),
        &table::counts(turns.iter().map(|turn| turn.kept_words())),
        &streams.join(", "),
        &mean(&|turn: &ChosenTurn| turn.choice.as_ref()?.after_bps),
        &table::ratio(ratio),
        &mean(&|turn: &ChosenTurn| Some(turn.copy)),
        &promise,
    ]);
}

#[cfg(test)]
impl ChosenTurn {
    /// Returns a turn whose copy has this share of the better stream after its choice.
    pub(super) fn small(share: f64, low: f64) -> ChosenTurn {
        let ratio = Some(Estimate { ratio: 2.0, low, high: 2.5 });
        let to = CopyArm { flows: 4, control: Some("bbr".to_owned()), ..CopyArm::default() };
        let decision = CopyDecision { to, ratio, ..CopyDecision::default() };
        let choice = Some(KeptChoice { decision, after_bps: Some(share * 8e8) });
        ChosenTurn { streams: vec![8e8, 5e8], copy: 4e8, choice, why: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_is_to_be_proven_and_the_better_stream_to_be_reached() {
        let kept = |turns: &[ChosenTurn]| {
            let mut broken = BrokenPromises::default();
            print(&turns.iter().collect::<Vec<_>>(), &mut broken);
            broken.sum_up().is_ok()
        };
        let good = || ChosenTurn::small(0.98, 1.5);
        assert!(kept(&[good(), good(), ChosenTurn::small(0.97, 1.1)]));
        assert!(!kept(&[good(), good(), ChosenTurn::small(0.97, 0.9)]), "no proof");
        assert!(!kept(&[good(), good(), ChosenTurn { choice: None, ..good() }]));
        assert!(!kept(&[
            ChosenTurn::small(0.7, 1.5),
            ChosenTurn::small(0.71, 1.5),
            ChosenTurn::small(0.7, 1.5)
        ]));
        assert!(kept(&[]) && kept(&[ChosenTurn::small(0.5, 0.5)]), "three turns decide");
        assert!(!kept(&[ChosenTurn { choice: None, ..good() }, good(), good()]));
    }
}
