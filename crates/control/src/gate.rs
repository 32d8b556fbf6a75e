//! Who is let in at a listening agent: one controller, with the token, in time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::Token;
use crate::token::Side;

/// Wrong tokens after which the agent ends.
const TRIES: u32 = 3;

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// A controller is connected; the token is used up.
    Busy,
    /// The token was not used in time.
    Expired,
    /// A wrong token, so many by now.
    Wrong(u32),
}

impl Denied {
    /// The line for the one who is denied.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Denied::Busy => "busy: another controller is connected",
            Denied::Expired => "the token has expired: start the agent again and paste its new line",
            Denied::Wrong(_) => "wrong token: paste the line that the agent printed when it was last started",
        }
    }

    /// Whether somebody guesses.
    pub(crate) fn guessed_out(self) -> bool {
        matches!(self, Denied::Wrong(tries) if tries >= TRIES)
    }
}

/// The token and what has become of it.
pub(crate) struct Gate {
    token: Token,
    expires: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: bool,
    wrong: u32,
}

impl Gate {
    pub(crate) fn new(token: Token, expires: Instant) -> Gate {
        Gate { token, expires, state: Mutex::default() }
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// Whether a controller was let in.
    pub(crate) fn taken(&self) -> bool {
        self.lock().taken
    }

    /// Whether it is worth hearing a proof now.
    pub(crate) fn open(&self, now: Instant) -> Result<(), Denied> {
        if self.taken() {
            return Err(Denied::Busy);
        }
        if now >= self.expires { Err(Denied::Expired) } else { Ok(()) }
    }

    /// Lets a controller in, once; the answer is the agent's own proof.
    pub(crate) fn enter(&self, proof: &str, binding: &[u8; 32], now: Instant) -> Result<String, Denied> {
        self.open(now)?;
        let mut state = self.lock();
        if state.taken {
            return Err(Denied::Busy);
        }
        if state.wrong >= TRIES {
            return Err(Denied::Wrong(state.wrong));
        }
        if !self.token.proves(Side::Controller, binding, proof) {
            state.wrong += 1;
            return Err(Denied::Wrong(state.wrong));
        }
        state.taken = true;
        Ok(self.token.prove(Side::Agent, binding))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
