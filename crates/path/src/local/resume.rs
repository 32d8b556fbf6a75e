//! What a killed supervisor held for a call, and how its keeper completes the call. The word decides the result.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::net::connect_unspec;

use super::Carried;
use super::connect::destination;
use super::link::Offer;
use super::rendezvous::Made;
use super::word::{Word, Words};
use crate::heir::Left;
use crate::notify::{Answer, Call};
use crate::shared::{HELD, Held, Stage};
use crate::socket::{own, peer};

/// Kinds of what is held, in the first number. The second number is the TCP socket's descriptor; then come the word's
/// memory, place and number.
const MADE: u64 = 1;
const ACCEPTED: u64 = 2;
const TAKING: u64 = 3;
/// A kind whose second number is a pair's descriptor.
const GIVEN: u64 = 4;
/// Index of the number that says which supervisor takes the offer.
const WHICH: usize = 5;
/// Index of the first descriptor of this supervisor's ends of pairs.
const ENDS: usize = 6;

fn held(kind: u64, tcp: &OwnedFd, word: Option<&Word>) -> Held {
    let mut held = [0; HELD];
    held[..2].copy_from_slice(&[kind, tcp.as_raw_fd() as u64]);
    if let Some(word) = word {
        held[2..WHICH].copy_from_slice(&[word.memory().as_raw_fd() as u64, word.place as u64, word.number]);
    }
    held
}

/// Returns what is held for an offered connection, with the client's ends of its pairs.
pub(super) fn of_made(tcp: &OwnedFd, made: &Made) -> Held {
    let mut all = held(MADE, tcp, Some(&made.offered.0));
    for (to, end) in all[ENDS..].iter_mut().zip(&made.ends) {
        *to = end.as_raw_fd() as u64;
    }
    all
}

/// Returns what is held for an accepted connection, with the offer that is about to be taken.
pub(super) fn of_accepted(tcp: &OwnedFd, offer: Option<&Offer>) -> Held {
    let Some(offer) = offer else { return held(ACCEPTED, tcp, None) };
    let mut all = held(TAKING, tcp, Some(&offer.word));
    all[WHICH..=ENDS].copy_from_slice(&[offer.which as u64, offer.pair.as_raw_fd() as u64]);
    all
}

/// Returns what is held for an end of a pair that its program is about to get.
pub(super) fn of_given(pair: &OwnedFd) -> Held {
    held(GIVEN, pair, None)
}

/// Returns the word of an offer. Its memory may also be that of other calls.
fn word(left: &Left) -> Option<Word> {
    let memory = left.copy(left.held[2])?;
    let words = Arc::new(Words::of(memory).ok()?);
    Some(Word::of(&words, left.held[3] as usize, left.held[4]))
}

impl Carried {
    /// Completes a call for which something is held.
    pub(super) fn resumed(&self, call: &Call<'_>, left: &mut Left) -> Option<Answer> {
        match left.held[0] {
            MADE => Some(self.resumed_connect(call, left)),
            ACCEPTED | TAKING => self.resumed_accept(call, left),
            GIVEN => self.resumed_given(call, left),
            _ => None,
        }
    }

    fn resumed_connect(&self, call: &Call<'_>, left: &mut Left) -> Answer {
        let tcp = left.take(left.held[1]);
        let taken = word(left).and_then(|word| word.withdraw());
        let pair =
            taken.and_then(|which| left.held.get(ENDS + which).copied()).and_then(|end| left.take(end));
        match (tcp, pair) {
            (Some(tcp), Some(pair)) => {
                // A pair with names has been dressed; TCP may have been reset since, and have no addresses.
                if self.names_of(&pair).is_none() {
                    self.dress((&tcp, destination(call)), [&pair]);
                }
                self.replaced(call, &tcp, &pair);
                Answer::Return(0)
            }
            (Some(tcp), None) if left.stage == Stage::Done || peer(&tcp).is_some() => Answer::Return(0),
            // The kernel continues the call.
            _ => Answer::Continue,
        }
    }

    fn resumed_accept(&self, call: &Call<'_>, left: &mut Left) -> Option<Answer> {
        let tcp = left.take(left.held[1])?;
        let pair = if left.held[0] == TAKING { left.take(left.held[ENDS]) } else { None };
        let names = pair.as_ref().and_then(|pair| self.names_of(pair));
        let names = names.or_else(|| own(&tcp).zip(peer(&tcp)));
        let taken = pair.filter(|_| word(left).is_some_and(|word| word.take(left.held[WHICH] as usize)));
        let end = match (taken, names) {
            (Some(pair), Some(names)) => self.taken(call, tcp, pair, names),
            (Some(pair), None) => pair,
            (None, _) => tcp,
        };
        let answer = self.accepts.deliver(call, self.accepts.left(call, end), names.map(|(_, from)| from));
        word(left).iter().for_each(|word| word.settle(left.held[WHICH] as usize));
        Some(answer)
    }

    fn resumed_given(&self, call: &Call<'_>, left: &mut Left) -> Option<Answer> {
        let pair = left.take(left.held[1])?;
        let from = self.names_of(&pair).map(|(_, from)| from);
        Some(self.accepts.deliver(call, self.accepts.left(call, pair), from))
    }

    /// Puts the pair in place of the program's socket, and resets TCP. If the program has closed its descriptor, only
    /// TCP is reset.
    fn replaced(&self, call: &Call<'_>, tcp: &OwnedFd, pair: &OwnedFd) {
        let closes = super::entangled::closes(call.thread, call.int(0));
        if call.replace(pair, call.int(0), closes).is_ok() {
            self.end(tcp, pair);
        } else {
            let _ = connect_unspec(tcp.as_fd());
        }
    }
}
