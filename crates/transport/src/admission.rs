//! Limits the number of connections that have not yet proven the session's key, and the duration of each proof. Chooses
//! the connection to turn away if there are too many. Only transports that keep state of a client before its proof need
//! this.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use landspeed_proof::{ProofKey, one_source};

/// The longest time that a proof may take. The packets of a proof may be lost several times, or wait for seconds in the
/// queue of a slow link. The limits on the number of connections hold strangers back, not this time limit.
const PROOF_TIME: Duration = Duration::from_secs(30);
/// The largest number of connections whose proof is under way. A further connection replaces the oldest one that has
/// not greeted yet ([`Applicant::has_greeted`]). If all have greeted, it replaces the oldest one of all.
const MOST: usize = 256;
/// The largest number of connections from one address that have not greeted yet. A trial stays below it, because it
/// opens only 32 flows at a time.
const MOST_OF_ONE: usize = 64;

/// A connection whose proof is under way. No method blocks, so that no connection delays another.
pub(crate) trait Applicant {
    /// Continues the proof as far as possible.
    fn step(&mut self, key: &ProofKey) -> ProofState;

    /// Returns true if the client has sent a hello that only a holder of the key can make. The client may still be a
    /// stranger that replays another client's hello. Connections that have greeted are turned away last.
    fn has_greeted(&self) -> bool;

    /// Ends the connection in a way that makes a client with the key try again.
    fn turn_away(self);
}

/// The state of a connection's proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProofState {
    Waiting,
    /// The key is proven, for the flow of this number.
    Proven(u32),
    /// The client does not have the key, or the connection has failed. The client was informed if the protocol has a
    /// message for this case.
    Stranger,
}

/// The connections of a listener whose proof is under way, oldest first.
pub(crate) struct Applicants<A> {
    waiting: VecDeque<WaitingApplicant<A>>,
    proven: VecDeque<(u32, A)>,
    strangers: u64,
}

struct WaitingApplicant<A> {
    from: Option<IpAddr>,
    since: Instant,
    applicant: A,
}

impl<A: Applicant> WaitingApplicant<A> {
    fn is_in_time(&self) -> bool {
        self.since.elapsed() < PROOF_TIME
    }
}

impl<A: Applicant> Applicants<A> {
    pub(crate) fn new() -> Self {
        Applicants { waiting: VecDeque::new(), proven: VecDeque::new(), strangers: 0 }
    }

    /// Iterates over the connections whose proof is under way, and those that have proven the key but that
    /// [`Applicants::next_proven`] has not returned yet.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &A> {
        let proven = self.proven.iter().map(|(_, applicant)| applicant);
        self.waiting.iter().map(|waiting| &waiting.applicant).chain(proven)
    }

    /// Iterates over the connections whose proof is under way, mutably.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut A> {
        self.waiting.iter_mut().map(|waiting| &mut waiting.applicant)
    }

    /// Returns the number of strangers turned away so far.
    pub(crate) fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Counts a stranger that was turned away before it had a connection.
    pub(crate) fn add_stranger(&mut self) {
        self.strangers += 1;
    }

    /// Takes the next connection that has proven the key, with the number of its flow.
    pub(crate) fn next_proven(&mut self) -> Option<(u32, A)> {
        self.proven.pop_front()
    }

    /// Admits a connection to the proof. `from` is the client's address, or `None` if the transport's addresses do
    /// not identify clients.
    pub(crate) fn admit(&mut self, from: Option<IpAddr>, applicant: A, key: &ProofKey) {
        let from = from.map(one_source);
        self.make_room(from, key);
        self.advance(WaitingApplicant { from, since: Instant::now(), applicant }, key);
    }

    /// Continues the proof of each connection as far as possible.
    pub(crate) fn advance_all(&mut self, key: &ProofKey) {
        for _ in 0..self.waiting.len() {
            let Some(waiting) = self.waiting.pop_front() else { break };
            self.advance(waiting, key);
        }
    }

    fn advance(&mut self, mut waiting: WaitingApplicant<A>, key: &ProofKey) {
        match waiting.applicant.step(key) {
            ProofState::Proven(number) => self.proven.push_back((number, waiting.applicant)),
            ProofState::Stranger => self.strangers += 1,
            ProofState::Waiting if waiting.is_in_time() => self.waiting.push_back(waiting),
            ProofState::Waiting => self.turn_away(waiting.applicant),
        }
    }

    fn turn_away(&mut self, applicant: A) {
        self.strangers += 1;
        applicant.turn_away();
    }

    /// Turns connections away until the limits allow one more from `from`.
    fn make_room(&mut self, from: Option<IpAddr>, key: &ProofKey) {
        while let Some(mut surplus) = self.surplus(from).and_then(|at| self.waiting.remove(at)) {
            let was_silent = !surplus.applicant.has_greeted();
            // The connection's hello may have arrived since its last step.
            match surplus.applicant.step(key) {
                ProofState::Proven(number) => self.proven.push_back((number, surplus.applicant)),
                ProofState::Stranger => self.strangers += 1,
                ProofState::Waiting if was_silent && surplus.applicant.has_greeted() => {
                    self.waiting.push_back(surplus);
                }
                ProofState::Waiting => self.turn_away(surplus.applicant),
            }
        }
    }

    /// Returns the index of the connection to turn away before another one from `from` is admitted; `None` if there is
    /// room for it.
    fn surplus(&self, from: Option<IpAddr>) -> Option<usize> {
        let silent =
            || self.waiting.iter().enumerate().filter(|(_, waiting)| !waiting.applicant.has_greeted());
        let of_one = || silent().filter(|(_, waiting)| waiting.from == from);
        // Clients on this host, over AF_UNIX, have no address, so the limit of one address does not apply to them.
        let oldest = if from.is_some() && of_one().count() >= MOST_OF_ONE {
            of_one().next()
        } else if self.waiting.len() >= MOST {
            silent().next().or_else(|| self.waiting.iter().enumerate().next())
        } else {
            None
        };
        oldest.map(|(at, _)| at)
    }
}

/// Returns true if `error` means that file descriptors or memory ran out. A client that is not accepted for this reason
/// tries again.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::net::Ipv4Addr;
    use std::rc::Rc;

    use super::*;

    const KEY: ProofKey = [7; 32];

    /// An applicant that records when it is turned away.
    struct FakeApplicant {
        number: usize,
        greets: Rc<Cell<bool>>,
        gone: Rc<RefCell<Vec<usize>>>,
    }

    impl Applicant for FakeApplicant {
        fn step(&mut self, _: &ProofKey) -> ProofState {
            ProofState::Waiting
        }

        fn has_greeted(&self) -> bool {
            self.greets.get()
        }

        fn turn_away(self) {
            self.gone.borrow_mut().push(self.number);
        }
    }

    fn host(number: usize) -> Option<IpAddr> {
        Some(Ipv4Addr::from(0x0a00_0000 + number as u32).into())
    }

    #[test]
    fn the_oldest_of_an_address_goes_and_those_who_have_greeted_stay() {
        let (gone, mut all) = (Rc::default(), Applicants::new());
        let mut add = |number, from, greets| {
            let greets = Rc::new(Cell::new(greets));
            all.admit(host(from), FakeApplicant { number, greets, gone: Rc::clone(&gone) }, &KEY);
            all.iter().count()
        };
        (0..10).for_each(|number| assert!(add(number, 0, true) <= 10));
        assert_eq!((10..100).map(|number| add(number, 1, false)).max(), Some(10 + MOST_OF_ONE));
        assert_eq!(*gone.borrow(), (10..36).collect::<Vec<_>>());
        assert_eq!((100..1100).map(|number| add(number, number, false)).max(), Some(MOST));
        assert!(gone.borrow().iter().all(|number| *number >= 10), "one that had greeted went");
        assert_eq!((gone.borrow().len(), all.strangers()), (1100 - MOST, 1100 - MOST as u64));
    }
}
