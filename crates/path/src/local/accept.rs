//! Answers accept(2) and accept4(2).

use std::os::fd::{AsFd, OwnedFd};

use super::Carried;
use super::ends::Names;
use super::rendezvous::Rendezvous;
use super::resume::{of_accepted, of_given};
use crate::Why;
use crate::accept::Accepted;
use crate::late::late;
use crate::notify::{Answer, Call};
use crate::socket::{Kind, kind, own, peer};

impl Carried {
    pub(super) fn accept(&self, rendezvous: &Rendezvous, call: &Call<'_>) -> Answer {
        let Ok(listener) = call.descriptor(call.int(0)) else { return Answer::Continue };
        if kind(&listener) != Kind::Tcp {
            return Answer::Continue;
        }
        let mut accepted = match self.next(rendezvous, &listener, call) {
            Ok(accepted) => accepted,
            Err(answer) => return answer,
        };
        drop(listener);
        call.holds(of_accepted(&accepted.fd, None));
        let names = own(&accepted.fd).zip(peer(&accepted.fd));
        if let Some(names) = names.filter(|_| accepted.is_new) {
            accepted.fd = self.end_of(rendezvous, call, accepted.fd, names);
        }
        let from = names.or_else(|| self.names_of(&accepted.fd)).map(|(_, from)| from);
        self.accepts.deliver(call, accepted, from)
    }

    fn next(
        &self,
        rendezvous: &Rendezvous,
        listener: &OwnedFd,
        call: &Call<'_>,
    ) -> Result<Accepted<'_>, Answer> {
        let hears = rendezvous.hears();
        let read = || rendezvous.listen();
        self.accepts.next(listener, call, hears.as_ref().map(|hears| (hears.as_fd(), &read as &dyn Fn())))
    }

    /// Returns the program's end of a connection: one of a pair, or TCP.
    fn end_of(&self, rendezvous: &Rendezvous, call: &Call<'_>, tcp: OwnedFd, names: Names) -> OwnedFd {
        let (at, from) = names;
        let offer = rendezvous.offered(&tcp, names);
        if !self.only.admits(from, at) {
            // The other program then continues without waiting.
            offer.map(|offer| offer.word.withdraw());
            return tcp;
        }
        // For a keeper: once the offer is taken, the other end may have reset TCP, and TCP then has no addresses any
        // more.
        offer.iter().for_each(|offer| self.keep_names(&offer.pair, at, from));
        call.holds(of_accepted(&tcp, offer.as_ref()));
        match offer {
            Some(offer) if offer.take() => {
                let end = self.taken(call, tcp, offer.pair, names);
                offer.word.settle(offer.which);
                return end;
            }
            Some(_) => self.count.left(Why::NotAccepted),
            None => {
                // A program that let the kernel choose its port is registered here at the latest.
                rendezvous.enter(&tcp, at, call.process());
                self.count.left(Why::Stranger);
            }
        }
        tcp
    }

    /// Returns this end of a pair that both sides use from now on.
    pub(super) fn taken(&self, call: &Call<'_>, tcp: OwnedFd, pair: OwnedFd, (at, from): Names) -> OwnedFd {
        late();
        self.mirror(&tcp, &pair);
        self.keep_names(&pair, at, from);
        self.count.carried(&pair);
        // A parked socket may soon be closed, and its number be reused, so the note must no longer name it.
        call.holds(of_given(&pair));
        if let Some(parked) = &self.parked {
            parked.park(tcp);
        }
        pair
    }
}
