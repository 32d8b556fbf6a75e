//! The steps of the four helpers.

use super::{KC, KS, ModelEnd, ModelState, ProtocolFault, SC, SS, WordState};

/// Steps of a client's supervisor.
mod client {
    pub(super) const OFFER: u8 = 0;
    pub(super) const NOTE: u8 = 1;
    pub(super) const SEND: u8 = 2;
    pub(super) const CONNECT: u8 = 3;
    pub(super) const WAIT: u8 = 4;
    pub(super) const REPLACE: u8 = 5;
    pub(super) const RESET: u8 = 6;
    pub(super) const ANSWER: u8 = 7;
    pub(super) const DONE: u8 = 8;
}

/// Steps of a server's supervisor.
mod server {
    pub(super) const ACCEPT: u8 = 0;
    pub(super) const NOTE: u8 = 1;
    pub(super) const LOOK: u8 = 2;
    pub(super) const TAKE: u8 = 3;
    pub(super) const GIVE: u8 = 4;
    pub(super) const ANSWER: u8 = 5;
    pub(super) const DONE: u8 = 6;
}

impl ModelState {
    pub(super) fn client_supervisor(mut self, fault: ProtocolFault) -> Vec<ModelState> {
        use client::*;
        match self.helpers[SC].at {
            OFFER => {
                self.word = WordState::Offered;
                vec![self.at(SC, NOTE)]
            }
            NOTE => {
                self.noted[0] = true;
                vec![self.at(SC, SEND)]
            }
            // The other supervisor's queue may be full.
            SEND => [true, false].map(|sent| ModelState { sent, ..self.at(SC, CONNECT) }).to_vec(),
            CONNECT => {
                self.connect();
                vec![self.at(SC, WAIT)]
            }
            // The time limit may expire at any time, and need not.
            WAIT if self.word == WordState::Taken => {
                let late = (fault == ProtocolFault::LeavesAlone).then(|| self.at(SC, ANSWER));
                late.into_iter().chain([self.at(SC, REPLACE)]).collect()
            }
            WAIT if fault == ProtocolFault::LeavesAlone => vec![self.at(SC, ANSWER)],
            WAIT => {
                let stays = self.withdraw();
                vec![self.at(SC, if stays { ANSWER } else { REPLACE })]
            }
            // The kernel does not replace a descriptor for a call that has ended.
            REPLACE => {
                self.descriptor = if self.signal { ModelEnd::Broken } else { ModelEnd::Pair };
                vec![self.at(SC, RESET)]
            }
            RESET => {
                self.reset(fault);
                vec![self.at(SC, ANSWER)]
            }
            ANSWER => {
                self.client = self.descriptor;
                vec![self.at(SC, DONE)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the states after the next step of the client's keeper, which may repeat a step of the supervisor.
    pub(super) fn client_keeper(mut self, fault: ProtocolFault) -> Vec<ModelState> {
        use client::*;
        if self.client != ModelEnd::Waits {
            return Vec::new();
        }
        match self.helpers[KC].at {
            0 if fault == ProtocolFault::ForgetsTheOffer || !self.noted[0] => {
                self.connect();
                vec![self.at(KC, ANSWER)]
            }
            0 => {
                let stays = self.withdraw();
                if stays {
                    self.connect();
                }
                vec![self.at(KC, if stays { ANSWER } else { REPLACE })]
            }
            REPLACE => {
                self.descriptor = if self.signal { ModelEnd::Broken } else { ModelEnd::Pair };
                vec![self.at(KC, RESET)]
            }
            RESET => {
                self.reset(fault);
                vec![self.at(KC, ANSWER)]
            }
            _ => {
                self.client = self.descriptor;
                vec![self.at(KC, DONE)]
            }
        }
    }

    pub(super) fn server_supervisor(mut self, fault: ProtocolFault) -> Vec<ModelState> {
        use server::*;
        match self.helpers[SS].at {
            ACCEPT if self.queued => {
                self.queued = false;
                vec![self.at(SS, NOTE)]
            }
            NOTE => {
                self.noted[1] = true;
                vec![self.at(SS, LOOK)]
            }
            LOOK if self.sent => {
                // A client that has continued over TCP reads the supervisor's byte from the stream.
                self.ours |= fault == ProtocolFault::ProvesByBytes && self.client == ModelEnd::Tcp;
                vec![self.at(SS, TAKE)]
            }
            LOOK => {
                self.given = ModelEnd::Tcp;
                vec![self.at(SS, GIVE)]
            }
            TAKE => {
                self.given = if self.take() { ModelEnd::Pair } else { ModelEnd::Tcp };
                vec![self.at(SS, GIVE)]
            }
            GIVE if fault == ProtocolFault::WaitsForTheClient
                && self.given == ModelEnd::Pair
                && !self.reset =>
            {
                Vec::new()
            }
            GIVE => {
                let mut late = self;
                late.given = ModelEnd::Tcp;
                let late =
                    (fault == ProtocolFault::LeavesAfterTaking && !self.reset).then(|| late.at(SS, ANSWER));
                late.into_iter().chain([self.at(SS, ANSWER)]).collect()
            }
            ANSWER => {
                self.server = self.given;
                vec![self.at(SS, DONE)]
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn server_keeper(mut self, fault: ProtocolFault) -> Vec<ModelState> {
        use server::*;
        if self.server != ModelEnd::Waits {
            return Vec::new();
        }
        let accepted = self.made && !self.queued;
        match self.helpers[KS].at {
            // The keeper accepts as the kernel does, without an offer.
            0 if self.queued => {
                self.queued = false;
                self.given = ModelEnd::Tcp;
                vec![self.at(KS, ANSWER)]
            }
            0 if accepted && fault == ProtocolFault::ForgetsTheAccepted => {
                self.reset = true;
                self.server = ModelEnd::Broken;
                vec![self.at(KS, DONE)]
            }
            // An accepted connection that was not noted is closed. It is the only connection that a kill may break,
            // and its client gets an error.
            0 if accepted && !self.noted[1] => {
                (self.reset, self.unnoted, self.server) = (true, true, ModelEnd::Broken);
                vec![self.at(KS, DONE)]
            }
            0 if accepted => {
                let taken = self.sent && (self.take() || self.word == WordState::Taken);
                self.given = if taken { ModelEnd::Pair } else { ModelEnd::Tcp };
                vec![self.at(KS, ANSWER)]
            }
            ANSWER => {
                self.server = self.given;
                vec![self.at(KS, DONE)]
            }
            _ => Vec::new(),
        }
    }
}
