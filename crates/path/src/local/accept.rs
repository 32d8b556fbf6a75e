//! Answers accept(2) and accept4(2) for the path `local`.

use std::os::fd::{AsFd, OwnedFd};

use super::LocalCarrier;
use super::ends::AddressPair;
use super::rendezvous::Rendezvous;
use super::resume::{of_accepted, of_given};
use crate::FallbackReason;
use crate::accept::AcceptedConnection;
use crate::late::late;
use crate::notify::{NotifiedCall, SyscallAnswer};
use crate::socket::{DescriptorKind, kind, own, peer};

impl LocalCarrier {
    pub(super) fn accept(&self, rendezvous: &Rendezvous, call: &NotifiedCall<'_>) -> SyscallAnswer {
        let Ok(listener) = call.descriptor(call.int(0)) else { return SyscallAnswer::Continue };
        if kind(&listener) != DescriptorKind::Tcp {
            return SyscallAnswer::Continue;
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
        call: &NotifiedCall<'_>,
    ) -> Result<AcceptedConnection<'_>, SyscallAnswer> {
        let guard = rendezvous.wake_guard();
        let read = || rendezvous.listen();
        self.accepts.next(listener, call, guard.as_ref().map(|guard| (guard.as_fd(), &read as &dyn Fn())))
    }

    /// Returns the socket that the program gets for an accepted connection: its end of the pair if an offer of the
    /// connection is taken, and otherwise the TCP socket.
    fn end_of(
        &self,
        rendezvous: &Rendezvous,
        call: &NotifiedCall<'_>,
        tcp: OwnedFd,
        names: AddressPair,
    ) -> OwnedFd {
        let (at, from) = names;
        let offer = rendezvous.offered(&tcp, names);
        if !self.only.admits(from, at) {
            // The other end then continues over TCP without waiting.
            offer.map(|offer| offer.word.withdraw());
            return tcp;
        }
        // Stores the addresses for a keeper: once the offer is taken, the other end may reset the TCP socket, which
        // then has no addresses.
        offer.iter().for_each(|offer| self.keep_names(&offer.pair, at, from));
        call.holds(of_accepted(&tcp, offer.as_ref()));
        match offer {
            Some(offer) if offer.take() => {
                let end = self.taken(call, tcp, offer.pair, names);
                offer.word.settle(offer.which);
                return end;
            }
            Some(_) => self.count.left(FallbackReason::NotAccepted),
            None => {
                // Registers the listener if listen(2) could not, because the kernel chose its port only in that call.
                rendezvous.enter(&tcp, at, call.process());
                self.count.left(FallbackReason::Stranger);
            }
        }
        tcp
    }

    /// Prepares and returns the accepting end of a pair that replaces the connection `tcp`. The TCP socket is kept open
    /// until its peer closes.
    pub(super) fn taken(
        &self,
        call: &NotifiedCall<'_>,
        tcp: OwnedFd,
        pair: OwnedFd,
        (at, from): AddressPair,
    ) -> OwnedFd {
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
