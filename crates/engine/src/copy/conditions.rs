//! Asks both ends of a copy for the settings that decide its figures.
//!
//! The copy does not wait for the answers: they are taken while it goes on
//! (docs/decisions/0100-the-conditions-of-a-copy.md).

use std::time::Duration;

use landspeed_agent::session::PendingReply;
use landspeed_record::{Line, Side};

use crate::Pair;

/// The longest wait for an answer once the copy is over. A host reads its settings in milliseconds.
const LAST_WAIT: Duration = Duration::from_secs(2);

enum Stage {
    Asked(PendingReply),
    /// The facts of the host have the conditions already, or they are not known.
    Known,
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
    /// Asks both hosts, unless their settings were read when they were joined. It is not known which links relayed data take.
    pub(super) fn ask(pair: &'a Pair<'a>, from: Side) -> Self {
        let stage = |side: Side| {
            let host = pair.host(side);
            if pair.is_relayed() || !host.states.is_empty() {
                return Stage::Known;
            }
            host.ask_conditions(pair.path.link(side)).map_or(Stage::Known, Stage::Asked)
        };
        CopyHosts { pair, from, stages: Side::BOTH.map(stage) }
    }

    /// Returns what the record is to have of hosts that have answered since the last call, without waiting.
    pub(super) fn step(&mut self) -> Vec<Line> {
        Side::BOTH.into_iter().filter_map(|side| self.line(side, Duration::ZERO)).collect()
    }

    /// Returns what the record is to have in addition of a copy that is over.
    pub(super) fn finish(mut self) -> Vec<Line> {
        let told: Vec<Line> = Side::BOTH.into_iter().filter_map(|side| self.line(side, LAST_WAIT)).collect();
        // What has not answered until now is known without its conditions.
        self.stages = self.stages.map(|stage| if let Stage::Asked(_) = stage { Stage::Known } else { stage });
        [told, self.step()].concat()
    }

    fn line(&mut self, side: Side, wait: Duration) -> Option<Line> {
        let (host, stage) = (self.pair.host(side), &mut self.stages[side as usize]);
        let facts = match stage {
            Stage::Over => return None,
            Stage::Known => host.facts.clone(),
            Stage::Asked(pending) => host.facts_told(&host.poll(pending, wait)?.1),
        };
        *stage = Stage::Over;
        // In the record, the source is at side A.
        let side = if self.from == Side::A { side } else { side.other() };
        Some(Line::Host { side, facts: Box::new(facts) })
    }
}
