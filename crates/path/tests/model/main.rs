//! Models the protocol of `local`, and checks every order of its steps.
//!
//! The model has a client and a server program, each with a supervisor and a keeper. Supervisors and keepers are called
//! helpers. Every helper can be late, stopped, continued or killed between any two of its steps, and time limits may
//! expire at any time. All reachable states are checked. Each step is one system call or one access to shared memory.

mod steps;

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

/// The socket that a program has as its end of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum ModelEnd {
    /// Nothing yet, because its call still waits.
    Waits,
    Tcp,
    Pair,
    /// An error: a reset connection, or the end of a pair that the other program does not use.
    Broken,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum WordState {
    None,
    Offered,
    Taken,
    Withdrawn,
}

/// The position and the condition of a helper.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct HelperState {
    at: u8,
    lives: bool,
    stopped: bool,
}

/// The four helpers: supervisor and keeper of the client, supervisor and keeper of the server.
const SC: usize = 0;
const KC: usize = 1;
const SS: usize = 2;
const KS: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct ModelState {
    helpers: [HelperState; 4],
    word: WordState,
    /// The offer has arrived at the server's supervisor.
    sent: bool,
    /// The client's supervisor has noted its offer for its keeper; the server's supervisor has noted the accepted
    /// connection.
    noted: [bool; 2],
    /// The TCP connection exists.
    made: bool,
    /// The TCP connection waits to be accepted.
    queued: bool,
    /// The TCP connection was reset.
    reset: bool,
    /// The present socket of the client's descriptor, even before its call has returned.
    descriptor: ModelEnd,
    /// The end that accept is about to return.
    given: ModelEnd,
    /// The result of the client program's call.
    client: ModelEnd,
    /// The result of the server program's call.
    server: ModelEnd,
    /// The pair was shut down on purpose.
    shut: bool,
    /// Another thread of the client has sent a byte before connect returned.
    early: bool,
    /// The TCP stream contains a byte that a supervisor has sent.
    ours: bool,
    /// A signal has ended the client's call, and its program makes the call again.
    signal: bool,
    /// The server's supervisor was killed after it accepted and before it noted the connection.
    unnoted: bool,
}

/// A fault that is put into the protocol, to test that the model detects it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ProtocolFault {
    None,
    /// The client's supervisor gives up at its time limit, whatever the word says.
    LeavesAlone,
    /// The server's supervisor gives up at its time limit after it has taken the offer.
    LeavesAfterTaking,
    /// The server's supervisor proves the connection by bytes sent through it.
    ProvesByBytes,
    /// The client's keeper only answers, and ignores the offer.
    ForgetsTheOffer,
    /// The server's keeper drops the accepted connection.
    ForgetsTheAccepted,
    /// The client's supervisor does not check if another thread has sent bytes over TCP.
    LosesEarlyBytes,
    /// The server's supervisor waits for the client's.
    WaitsForTheClient,
}

const FAULTS: [ProtocolFault; 7] = [
    ProtocolFault::LeavesAlone,
    ProtocolFault::LeavesAfterTaking,
    ProtocolFault::ProvesByBytes,
    ProtocolFault::ForgetsTheOffer,
    ProtocolFault::ForgetsTheAccepted,
    ProtocolFault::LosesEarlyBytes,
    ProtocolFault::WaitsForTheClient,
];

fn first() -> ModelState {
    ModelState {
        helpers: [HelperState { at: 0, lives: true, stopped: false }; 4],
        word: WordState::None,
        sent: false,
        noted: [false; 2],
        made: false,
        queued: false,
        reset: false,
        descriptor: ModelEnd::Tcp,
        given: ModelEnd::Waits,
        client: ModelEnd::Waits,
        server: ModelEnd::Waits,
        shut: false,
        early: false,
        ours: false,
        signal: false,
        unnoted: false,
    }
}

impl ModelState {
    fn runs(&self, who: usize) -> bool {
        let helper = self.helpers[who];
        // A keeper works only once its supervisor is dead.
        helper.lives && !helper.stopped && (who.is_multiple_of(2) || !self.helpers[who - 1].lives)
    }

    fn at(mut self, who: usize, at: u8) -> ModelState {
        self.helpers[who].at = at;
        self
    }

    fn connect(&mut self) {
        if !self.made {
            self.made = true;
            self.queued = true;
        }
    }

    fn reset(&mut self, fault: ProtocolFault) {
        self.reset = true;
        self.queued = false;
        if self.early && fault != ProtocolFault::LosesEarlyBytes {
            self.shut = true;
        }
    }

    fn take(&mut self) -> bool {
        let is_open = self.word == WordState::Offered;
        if is_open {
            self.word = WordState::Taken;
        }
        is_open
    }

    fn withdraw(&mut self) -> bool {
        if self.word == WordState::Offered {
            self.word = WordState::Withdrawn;
        }
        self.word != WordState::Taken
    }

    /// Returns the states to which a helper's next step may lead.
    fn steps(self, who: usize, fault: ProtocolFault) -> Vec<ModelState> {
        if !self.runs(who) {
            return Vec::new();
        }
        match who {
            SC => self.client_supervisor(fault),
            KC => self.client_keeper(fault),
            SS => self.server_supervisor(fault),
            _ => self.server_keeper(fault),
        }
    }

    /// Returns the states after an event outside the helpers' steps: a helper is stopped, continued or killed, a
    /// thread of the client sends, a signal arrives, or another program accepts.
    fn events(self) -> Vec<ModelState> {
        let mut all = Vec::new();
        for who in 0..4 {
            if self.helpers[who].lives {
                let (mut stopped, mut killed) = (self, self);
                stopped.helpers[who].stopped ^= true;
                killed.helpers[who].lives = false;
                all.extend([stopped, killed]);
            }
        }
        if self.made && self.client == ModelEnd::Waits && self.descriptor == ModelEnd::Tcp && !self.reset {
            all.push(ModelState { early: true, ..self });
        }
        if self.client == ModelEnd::Waits && !self.signal {
            all.push(ModelState { signal: true, ..self });
        }
        // The connection is accepted without a supervisor: by io_uring, or by a program that was given the listener.
        if self.queued {
            all.push(ModelState { queued: false, server: ModelEnd::Tcp, ..self });
        }
        all
    }

    fn next(self, fault: ProtocolFault) -> Vec<ModelState> {
        (0..4).flat_map(|who| self.steps(who, fault)).chain(self.events()).collect()
    }

    /// Returns true if the supervisor or the keeper of this side lives. If both are dead, the side's calls fail.
    fn helps(&self, side: usize) -> bool {
        self.helpers[2 * side].lives || self.helpers[2 * side + 1].lives
    }

    /// Returns the property that a state violates, or `None`.
    fn wrong(&self, fault: ProtocolFault) -> Option<&'static str> {
        if self.ours {
            return Some("a byte of ours is in the stream");
        }
        let (client, server) = (self.client, self.server);
        if client == ModelEnd::Tcp && self.reset && self.helps(1) && !self.unnoted {
            return Some("a connection that was made is reset");
        }
        // The program repeats the call, which makes another connection. The server's end of this connection gets an end
        // of file without a byte.
        let is_made_again = self.signal && (client, server) == (ModelEnd::Broken, ModelEnd::Pair);
        let is_broken = self.unnoted && (client, server) == (ModelEnd::Tcp, ModelEnd::Broken);
        if ![client, server].contains(&ModelEnd::Waits) && client != server && !is_made_again && !is_broken {
            return Some("one end is on the pair, and the other one on TCP");
        }
        if client == ModelEnd::Pair && self.early && !self.shut {
            return Some("a byte of another thread is lost without an error");
        }
        (0..2).find_map(|side| self.stalls(side, fault))
    }

    /// Returns an error if a side's call waits and its running helper cannot complete it alone.
    fn stalls(&self, side: usize, fault: ProtocolFault) -> Option<&'static str> {
        let call = [self.client, self.server][side];
        let who = [2 * side, 2 * side + 1].into_iter().find(|who| self.runs(*who))?;
        // A server's call may wait as long as there is no connection.
        let has_begun = side == 0 || (self.made && !(self.reset && self.helpers[SS].at == 0));
        if call != ModelEnd::Waits || !has_begun {
            return None;
        }
        let mut now = *self;
        for _ in 0..20 {
            match now.steps(who, fault).pop() {
                Some(next) => now = next,
                None => break,
            }
        }
        let call = [now.client, now.server][side];
        (call == ModelEnd::Waits).then_some("a call waits for another side's helper")
    }
}

struct Exploration {
    states: usize,
    wrong: Option<(&'static str, Vec<ModelState>)>,
}

/// Checks every reachable state, in breadth-first order, until one is wrong.
fn explore(fault: ProtocolFault) -> Exploration {
    let mut came: HashMap<ModelState, Option<ModelState>> = HashMap::from([(first(), None)]);
    let mut left = VecDeque::from([first()]);
    while let Some(state) = left.pop_front() {
        if let Some(wrong) = state.wrong(fault) {
            let way = std::iter::successors(Some(state), |state| came[state]).collect();
            return Exploration { states: came.len(), wrong: Some((wrong, way)) };
        }
        for next in state.next(fault) {
            came.entry(next).or_insert_with(|| {
                left.push_back(next);
                Some(state)
            });
        }
    }
    Exploration { states: came.len(), wrong: None }
}

#[test]
fn whatever_is_late_stopped_or_killed_both_ends_agree_and_no_byte_is_added_or_lost() {
    let began = Instant::now();
    let found = explore(ProtocolFault::None);
    assert!(found.wrong.is_none(), "{:#?}", found.wrong);
    eprintln!("{} states in {:.1?}", found.states, began.elapsed());
    assert!(found.states > 1000);
}

#[test]
fn every_fault_that_is_put_into_the_protocol_is_found() {
    let mut says = HashSet::new();
    for fault in FAULTS {
        let found = explore(fault);
        let (wrong, way) = found.wrong.unwrap_or_else(|| panic!("{fault:?} is not found"));
        eprintln!("{fault:?}: {wrong}, in {} steps", way.len() - 1);
        says.insert(wrong);
    }
    assert_eq!(says.len(), 5, "{says:?}");
}
