//! Accepting: waiting for flows that prove the key, whatever they are made of.

use std::net::SocketAddr;
use std::time::Duration;

use crate::noun::{Flow, Listener};
use crate::{Error, Patience};

/// A listening port's own part of a [`Listener`].
pub(crate) trait Door: Send {
    /// What proven flows are.
    type Flow: Flow + 'static;

    /// Where it listens.
    fn at(&self) -> SocketAddr;

    /// Takes the next flow that has proven the key.
    fn proven(&mut self) -> Option<Self::Flow>;

    /// How many were turned away so far.
    fn turned_away(&self) -> u64;

    /// Waits for what comes, at most `slice`, and lets every proof under way go on as far as it can.
    fn look(&mut self, slice: Duration) -> Result<(), Error>;
}

impl<D: Door> Listener for D {
    fn accept(&mut self, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        loop {
            if let Some(flow) = self.proven() {
                return Ok(Box::new(flow));
            }
            let Some(slice) = patience.slice()? else {
                return Err(Error::NobodyCame { at: self.at(), strangers: self.turned_away() });
            };
            self.look(slice)?;
        }
    }

    fn strangers(&self) -> u64 {
        self.turned_away()
    }
}
