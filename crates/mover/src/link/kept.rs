//! Messages that were sent, and may have to be retransmitted.

use std::collections::VecDeque;

/// The messages of one direction of a link that the other end is not known to have taken, oldest first.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    /// Each with its weight.
    messages: VecDeque<(T, usize)>,
    /// The weight of all of them.
    weight: usize,
    /// The number of messages before these.
    taken: u64,
}

impl<T> Kept<T> {
    pub(super) fn new() -> Self {
        Kept { messages: VecDeque::new(), weight: 0, taken: 0 }
    }

    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    pub(super) fn push(&mut self, message: T, weight: usize) {
        self.weight += weight;
        self.messages.push_back((message, weight));
    }

    /// Iterates over the messages from this number on, of which the first one ever is 0.
    pub(super) fn since(&self, number: u64) -> impl Iterator<Item = &T> {
        let before = usize::try_from(number.saturating_sub(self.taken)).unwrap_or(usize::MAX);
        self.messages.iter().skip(before).map(|(message, _)| message)
    }

    /// Forgets the messages that the other end has taken. `taken` is their number since the first one ever. Returns false if
    /// there were fewer, or if the other end has said before that it has taken more.
    #[must_use]
    pub(super) fn forget(&mut self, taken: u64) -> bool {
        let more = taken.checked_sub(self.taken).and_then(|more| usize::try_from(more).ok());
        let Some(more) = more.filter(|more| *more <= self.messages.len()) else { return false };
        self.weight -= self.messages.drain(..more).map(|(_, weight)| weight).sum::<usize>();
        self.taken = taken;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_kept_until_they_are_taken() {
        let mut kept = Kept::new();
        ["a", "b", "c"].into_iter().for_each(|message| kept.push(message, 2));
        let since = |kept: &Kept<&'static str>, number| kept.since(number).copied().collect::<String>();
        assert_eq!((since(&kept, 0).as_str(), since(&kept, 2).as_str(), kept.weight()), ("abc", "c", 6));
        assert!(kept.forget(2) && kept.forget(2));
        assert_eq!([0, 2, 3].map(|number| since(&kept, number)), ["c", "c", ""]);
        assert_eq!(kept.weight(), 2);
        // An acknowledgement of fewer messages than before, or of more than were sent, is refused.
        assert!(!kept.forget(1) && !kept.forget(4) && !kept.forget(u64::MAX));
        kept.push("d", 1);
        assert_eq!((since(&kept, 3).as_str(), kept.weight()), ("d", 3));
        assert!(kept.forget(4));
        assert_eq!((since(&kept, 0).as_str(), kept.weight()), ("", 0));
    }
}
