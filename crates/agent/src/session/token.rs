//! The one-time token of a listening agent, and its proof.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use blake3::Hash;
use landspeed_proof::random;

use crate::session::{Error, Invite, Ticket, secret};

/// The end that proves that it knows the token. The two ends' proofs differ, so that a proof cannot be sent back to its
/// sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prover {
    Controller,
    Agent,
}

/// A one-time 128-bit token, 32 hexadecimal digits. `Debug` hides it.
#[derive(Clone)]
pub struct Token(u128);

impl Token {
    /// Returns a new token from the kernel's random source.
    pub fn random() -> Token {
        Token(u128::from_be_bytes(random()))
    }

    /// Returns the digits, for the person who started the agent.
    pub fn reveal(&self) -> String {
        format!("{:032x}", self.0)
    }

    /// Reads the token of the agent of `invite` from a file that only its owner can read. The file has the lines that
    /// one or several agents printed, or only a token.
    pub fn from_file(path: &Path, invite: &Invite) -> Result<Token, Error> {
        let missing = || Error::TokenFile {
            path: path.to_owned(),
            why: format!("it holds neither a token nor the line of the agent at {}", invite.address),
        };
        Token::for_agent(&secret::read(path)?, invite).ok_or_else(missing)
    }

    /// Reads the agent's line, or the token alone, from the terminal without showing it. Returns the token.
    pub fn prompt(invite: &Invite) -> Result<Token, Error> {
        let text = secret::prompt(&format!("paste the line of the agent at {}: ", invite.address))?;
        Token::for_agent(&text, invite).ok_or(Error::Invite { what: "neither a token nor this agent's line" })
    }

    /// Returns the token in `text` for the agent of `invite`; `None` if it has none.
    fn for_agent(text: &str, invite: &Invite) -> Option<Token> {
        if let Ok(token) = text.trim().parse() {
            return Some(token);
        }
        let mut tickets = text.lines().filter_map(|line| line.parse::<Ticket>().ok());
        Some(tickets.find(|ticket| ticket.invite == *invite)?.token)
    }

    /// Returns the proof by `prover` that it knows the token, valid only on the connection with this channel binding.
    pub(crate) fn prove(&self, prover: Prover, binding: &[u8; 32]) -> String {
        self.mac(prover, binding).to_hex().to_string()
    }

    /// Returns true if `proof` is the proof of `prover` for this channel binding. The comparison takes the same time
    /// for any proof.
    pub(crate) fn proves(&self, prover: Prover, binding: &[u8; 32], proof: &str) -> bool {
        // Hashes compare in constant time.
        Hash::from_hex(proof).is_ok_and(|claimed| self.mac(prover, binding) == claimed)
    }

    /// Computes the proof. BLAKE3 derives a key from the token and then computes the MAC of `binding` with it (BLAKE3
    /// paper, sections 2.3 and 6.2).
    fn mac(&self, prover: Prover, binding: &[u8; 32]) -> Hash {
        let context = match prover {
            Prover::Controller => "landspeed protocol 1: token, proven by the controller",
            Prover::Agent => "landspeed protocol 1: token, proven by the agent",
        };
        blake3::keyed_hash(&blake3::derive_key(context, &self.0.to_be_bytes()), binding)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl FromStr for Token {
    type Err = Error;

    fn from_str(text: &str) -> Result<Token, Error> {
        let is_whole = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let token = is_whole.then(|| u128::from_str_radix(text, 16).map(Token)).and_then(Result::ok);
        token.ok_or(Error::Invite { what: "a token is 32 hexadecimal digits" })
    }
}

#[cfg(test)]
mod tests;
