//! Asks both ends of a copy for the settings that decide its figures.
//!
//! The copy does not wait for the answers: they are taken while it goes on
//! (docs/decisions/0100-the-conditions-of-a-copy.md).

use std::time::{Duration, Instant};

use landspeed_agent::session::PendingReply;
use landspeed_record::{Line, Side};

use crate::Pair;

/// The longest wait for both answers once the copy is over. A host reads these settings in milliseconds.
const LAST_WAIT: Duration = Duration::from_secs(2);

enum Stage {
    Asked(PendingReply),
    /// No answer is expected: the record gets the host without its conditions.
    Untold,
    Over,
}

/// The conditions of a copy that goes on.
pub(super) struct CopyHosts<'a> {
    pair: &'a Pair<'a>,
    /// The side of the source.
    from: Side,
    /// By side.
    stages: [Stage; 2],
}

impl<'a> CopyHosts<'a> {
    /// Asks both hosts, unless their data are relayed: it is not known which links those take.
    pub(super) fn ask(pair: &'a Pair<'a>, from: Side) -> Self {
        let stage = |side: Side| match pair.is_relayed() {
            true => Stage::Untold,
            false => pair.host(side).ask_conditions(pair.path.link(side)).map_or(Stage::Untold, Stage::Asked),
        };
        CopyHosts { pair, from, stages: Side::BOTH.map(stage) }
    }

    /// Returns the record's lines for hosts that have answered since the last call, without waiting.
    pub(super) fn step(&mut self) -> Vec<Line> {
        Side::BOTH.into_iter().filter_map(|side| self.line(side, Duration::ZERO)).collect()
    }

    /// Returns the remaining lines for the record of a finished copy.
    pub(super) fn finish(mut self) -> Vec<Line> {
        let end = Instant::now() + LAST_WAIT;
        let left = || end.saturating_duration_since(Instant::now());
        let told: Vec<Line> = Side::BOTH.into_iter().filter_map(|side| self.line(side, left())).collect();
        for stage in self.stages.iter_mut().filter(|stage| matches!(stage, Stage::Asked(_))) {
            *stage = Stage::Untold;
        }
        [told, self.step()].concat()
    }

    fn line(&mut self, side: Side, wait: Duration) -> Option<Line> {
        let host = self.pair.host(side);
        let facts = match &self.stages[side as usize] {
            Stage::Over => return None,
            Stage::Untold => host.facts.clone(),
            Stage::Asked(pending) => host.facts_told(&host.poll(pending, wait)?.1),
        };
        self.stages[side as usize] = Stage::Over;
        // In the record, the source is at side A.
        let side = if self.from == Side::A { side } else { side.other() };
        Some(Line::Host { side, facts: Box::new(facts) })
    }
}
