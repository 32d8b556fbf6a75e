//! How many flows have something to do, once the walk of the tree is over.

use std::collections::HashMap;

use super::{Phase, Plan};
use crate::digest;
use crate::wire::{EntryKind, HardLink, OfferedEntry};

/// The messages with content that may follow from offers that the target has not answered.
#[derive(Debug, Default)]
pub(super) struct AwaitedAnswers {
    /// By the number of the first entry of an offer.
    messages: HashMap<u64, u64>,
    all: u64,
}

impl AwaitedAnswers {
    pub(super) fn offered(&mut self, first: u64, entries: &[OfferedEntry]) {
        let messages = messages(entries);
        self.messages.insert(first, messages);
        self.all += messages;
    }

    pub(super) fn answered(&mut self, first: u64) {
        self.all -= self.messages.remove(&first).unwrap_or_default();
    }

    /// Returns the number of offers that are not answered, also of those that were not sent.
    pub(super) fn offers(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn clear(&mut self) {
        *self = AwaitedAnswers::default();
    }
}

/// Returns the number of messages that the content of these entries takes: one for each piece of long files, and those that
/// short files share.
fn messages(entries: &[OfferedEntry]) -> u64 {
    let (mut long, mut short_bytes) = (0_u64, 0_u64);
    for offered in entries.iter().filter(|offered| !matches!(offered.link, HardLink::To(_))) {
        let EntryKind::File { size } = offered.kind else { continue };
        match digest::pieces(size) {
            Some(1) => short_bytes += size.max(1),
            pieces => long += u64::from(pieces.unwrap_or_default()),
        }
    }
    long + short_bytes.div_ceil(digest::PIECE as u64)
}

impl Plan {
    /// Returns the number of flows that what is left keeps busy, if nothing can be handed out now; `None` as long as the walk
    /// may find more. One flow always has the next word.
    pub(crate) fn usable_flows(&self) -> Option<u64> {
        match self.phase {
            Phase::Content if !self.is_walked => None,
            Phase::Content => Some(self.awaited.all.max(1)),
            // The messages about folders are few, and follow from the target's answers.
            Phase::Removing | Phase::Folders | Phase::Finishing | Phase::Over => Some(1),
        }
    }
}
