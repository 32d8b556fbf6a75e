//! Admission to a listening agent: one controller is admitted, if it proves the token before the token expires.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::session::Token;
use crate::session::token::Prover;

/// The reason why a connection is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DenialReason {
    /// Another controller has already used the token.
    Busy,
    /// The token was not used in time.
    Expired,
    /// The token is wrong. The number of attempts is not limited, because 128 bits cannot be guessed.
    Wrong,
}

impl DenialReason {
    /// Returns the line for the denied peer.
    pub(crate) fn why(self) -> &'static str {
        match self {
            DenialReason::Busy => "busy: another controller is connected",
            DenialReason::Expired => "the token has expired: start the agent again and paste its new line",
            DenialReason::Wrong => {
                "wrong token: paste the line that the agent printed when it was last started"
            }
        }
    }
}

/// The token, its expiry, and whether a controller has used it.
pub(crate) struct TokenGate {
    token: Token,
    expires: Instant,
    taken: AtomicBool,
}

impl TokenGate {
    pub(crate) fn new(token: Token, expires: Instant) -> TokenGate {
        TokenGate { token, expires, taken: AtomicBool::new(false) }
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    pub(crate) fn taken(&self) -> bool {
        self.taken.load(Ordering::Acquire)
    }

    pub(crate) fn open(&self, now: Instant) -> Result<(), DenialReason> {
        if self.taken() {
            return Err(DenialReason::Busy);
        }
        if now >= self.expires { Err(DenialReason::Expired) } else { Ok(()) }
    }

    /// Admits the first controller whose `proof` is right, and returns the agent's own proof.
    pub(crate) fn enter(
        &self,
        proof: &str,
        binding: &[u8; 32],
        now: Instant,
    ) -> Result<String, DenialReason> {
        self.open(now)?;
        if !self.token.proves(Prover::Controller, binding, proof) {
            return Err(DenialReason::Wrong);
        }
        if self.taken.swap(true, Ordering::AcqRel) {
            return Err(DenialReason::Busy);
        }
        Ok(self.token.prove(Prover::Agent, binding))
    }
}

#[cfg(test)]
mod tests;
