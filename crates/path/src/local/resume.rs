//! Completes calls that a killed supervisor had begun. If a connection was offered, the offer's word decides the
//! result.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::net::connect_unspec;

use super::LocalCarrier;
use super::link::ReceivedOffer;
use super::rendezvous::SentOffer;
use super::word::{MOST, OfferWord, OfferWords};
use crate::heir::Inheritance;
use crate::notify::{NotifiedCall, SyscallAnswer};
use crate::shared::{CallStage, HeldNumbers};
use crate::socket::{own, peer};

/// Kind of a [`HeldConnection`]: a connection that this end makes and has offered. (0 means that nothing is held.)
const MADE: u64 = 1;
/// Kind of a [`HeldConnection`]: a connection that was accepted without an offer.
const ACCEPTED: u64 = 2;
/// Kind of a [`HeldConnection`]: an accepted connection whose offer is about to be taken.
const TAKING: u64 = 3;
/// Kind of a [`HeldConnection`]: a socket of a pair that replaces a TCP socket.
const GIVEN: u64 = 4;

/// The TCP socket, offer and pairs that a supervisor holds for a call. The notes store its fields as numbers, in this
/// order. A descriptor is stored as its number.
#[derive(Default)]
struct HeldConnection {
    kind: u64,
    /// The TCP socket; for [`GIVEN`], the end of a pair.
    socket: u64,
    /// The descriptor of the memory that contains the offer's word.
    memory: u64,
    /// The index of the word in the memory.
    place: u64,
    /// The number of the offer.
    number: u64,
    /// Index of the supervisor that takes the offer.
    which: u64,
    /// This supervisor's ends of the offer's pairs.
    ends: [u64; MOST],
}

impl HeldConnection {
    fn new(kind: u64, socket: &OwnedFd, word: Option<&OfferWord>) -> Self {
        let held = HeldConnection { kind, socket: descriptor(socket), ..HeldConnection::default() };
        let Some(word) = word else { return held };
        let memory = word.memory().as_raw_fd() as u64;
        HeldConnection { memory, place: word.place as u64, number: word.number, ..held }
    }

    fn from_numbers(numbers: HeldNumbers) -> Self {
        let [kind, socket, memory, place, number, which, ends @ ..] = numbers;
        HeldConnection { kind, socket, memory, place, number, which, ends }
    }

    fn to_numbers(&self) -> HeldNumbers {
        let HeldConnection { kind, socket, memory, place, number, which, ends } = *self;
        let [a, b, c, d, e, f] = ends;
        [kind, socket, memory, place, number, which, a, b, c, d, e, f]
    }
}

fn descriptor(fd: &OwnedFd) -> u64 {
    fd.as_raw_fd() as u64
}

/// Returns the numbers to note for an offered connection, with the client's ends of its pairs.
pub(super) fn of_sent(tcp: &OwnedFd, sent: &SentOffer) -> HeldNumbers {
    let mut held = HeldConnection::new(MADE, tcp, Some(&sent.offered.0));
    for (to, end) in held.ends.iter_mut().zip(&sent.ends) {
        *to = descriptor(end);
    }
    held.to_numbers()
}

/// Returns the numbers to note for an accepted connection. `offer` is the offer that is about to be taken, if any.
pub(super) fn of_accepted(tcp: &OwnedFd, offer: Option<&ReceivedOffer>) -> HeldNumbers {
    let Some(offer) = offer else { return HeldConnection::new(ACCEPTED, tcp, None).to_numbers() };
    let mut held = HeldConnection::new(TAKING, tcp, Some(&offer.word));
    held.which = offer.which as u64;
    held.ends[0] = descriptor(&offer.pair);
    held.to_numbers()
}

/// Returns the numbers to note for the socket of a pair that the program is about to get.
pub(super) fn of_given(pair: &OwnedFd) -> HeldNumbers {
    HeldConnection::new(GIVEN, pair, None).to_numbers()
}

/// Returns the word of the offer that a killed supervisor held. Duplicates the descriptor of the memory, because other
/// calls may use the same one.
fn word(inheritance: &Inheritance, held: &HeldConnection) -> Option<OfferWord> {
    let memory = inheritance.copy(held.memory)?;
    let words = Arc::new(OfferWords::of(memory).ok()?);
    Some(OfferWord::of(&words, held.place as usize, held.number))
}

impl LocalCarrier {
    /// Completes a call that the killed supervisor had begun; `None` if it held nothing for the call.
    pub(super) fn resumed(
        &self,
        call: &NotifiedCall<'_>,
        inheritance: &mut Inheritance,
    ) -> Option<SyscallAnswer> {
        let held = HeldConnection::from_numbers(inheritance.held);
        match held.kind {
            MADE => Some(self.resumed_connect(call, inheritance, &held)),
            ACCEPTED | TAKING => self.resumed_accept(call, inheritance, &held),
            GIVEN => self.resumed_given(call, inheritance, &held),
            _ => None,
        }
    }

    fn resumed_connect(
        &self,
        call: &NotifiedCall<'_>,
        inheritance: &mut Inheritance,
        held: &HeldConnection,
    ) -> SyscallAnswer {
        let tcp = inheritance.take(held.socket);
        let taken = word(inheritance, held).and_then(|word| word.withdraw());
        let pair =
            taken.and_then(|which| held.ends.get(which).copied()).and_then(|end| inheritance.take(end));
        match (tcp, pair) {
            (Some(tcp), Some(pair)) => {
                // A pair with recorded addresses is already prepared by `dress`. The TCP socket may have been reset
                // since, and then has no addresses.
                if self.names_of(&pair).is_none() {
                    self.dress(&tcp, call.destination(), [&pair]);
                }
                self.replaced(call, &tcp, &pair);
                SyscallAnswer::Return(0)
            }
            (Some(tcp), None) if inheritance.stage == CallStage::Done || peer(&tcp).is_some() => {
                SyscallAnswer::Return(0)
            }
            // The kernel continues the call.
            _ => SyscallAnswer::Continue,
        }
    }

    fn resumed_accept(
        &self,
        call: &NotifiedCall<'_>,
        inheritance: &mut Inheritance,
        held: &HeldConnection,
    ) -> Option<SyscallAnswer> {
        let tcp = inheritance.take(held.socket)?;
        let pair = if held.kind == TAKING { inheritance.take(held.ends[0]) } else { None };
        let names = pair.as_ref().and_then(|pair| self.names_of(pair));
        let names = names.or_else(|| own(&tcp).zip(peer(&tcp)));
        let taken =
            pair.filter(|_| word(inheritance, held).is_some_and(|word| word.take(held.which as usize)));
        let end = match (taken, names) {
            (Some(pair), Some(names)) => self.taken(call, tcp, pair, names),
            (Some(pair), None) => pair,
            (None, _) => tcp,
        };
        let answer = self.accepts.deliver(call, self.accepts.left(call, end), names.map(|(_, from)| from));
        word(inheritance, held).iter().for_each(|word| word.settle(held.which as usize));
        Some(answer)
    }

    fn resumed_given(
        &self,
        call: &NotifiedCall<'_>,
        inheritance: &mut Inheritance,
        held: &HeldConnection,
    ) -> Option<SyscallAnswer> {
        let pair = inheritance.take(held.socket)?;
        let from = self.names_of(&pair).map(|(_, from)| from);
        Some(self.accepts.deliver(call, self.accepts.left(call, pair), from))
    }

    /// Puts the pair's socket in place of the program's socket, and resets TCP. If the program has closed its
    /// descriptor, only resets TCP.
    fn replaced(&self, call: &NotifiedCall<'_>, tcp: &OwnedFd, pair: &OwnedFd) {
        let closes = super::entangled::closes(call.thread, call.int(0));
        if call.replace(pair, call.int(0), closes).is_ok() {
            self.end(tcp, pair);
        } else {
            let _ = connect_unspec(tcp.as_fd());
        }
    }
}
