//! TCP with one promise broken at a time, to check that each check fails.

use std::io;
use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use landspeed_record::factor::Factor;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{SettingMismatch, Settings};
use landspeed_transport::{
    AckProgress, CancelFlag, ConnectRequest, Error, Flow, Listener, Patience, ProofKey, Receiver,
    ReservedPort, Sender, Transport, TransportProperties, ZeroCopyCompletions, find,
};

use crate::loopback::{KEY, LONG, SHORT};

/// A fault of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransportFault {
    Corrupts,
    Misnumbers,
    LacksItsSwitches,
    Acknowledges,
    NeverCompletes,
    HalfFinishes,
    FinishesAlone,
    Lingers,
    SleepsOn,
    WaitsForRoom,
    AnswersForAll,
    TakesAnyKey,
    CannotBeCancelled,
    LeavesAThread,
    FailsByStrangers,
}

/// Each fault with the promise that it breaks.
pub(crate) static FAULTS: &[(TransportFault, &str)] = &[
    (TransportFault::Corrupts, "what is sent comes, both ways"),
    (TransportFault::Misnumbers, "what is sent comes, both ways"),
    (TransportFault::LacksItsSwitches, "every switch of its own carries the same"),
    (TransportFault::Corrupts, "flows are kept apart"),
    (TransportFault::Acknowledges, "what the peer has is acknowledged"),
    (TransportFault::NeverCompletes, "sends complete"),
    (TransportFault::HalfFinishes, "a flow finishes in order"),
    (TransportFault::FinishesAlone, "finishing alone fails"),
    (TransportFault::Lingers, "a stream's abrupt end is noticed"),
    (TransportFault::SleepsOn, "a receiver can be woken"),
    (TransportFault::WaitsForRoom, "a sender gives up after its time limit, and leaves"),
    (TransportFault::AnswersForAll, "a port that is not listened on refuses"),
    (TransportFault::TakesAnyKey, "another key opens nothing"),
    (TransportFault::Lingers, "ports can be had again at once"),
    (TransportFault::CannotBeCancelled, "waiting can be cancelled"),
    (TransportFault::FailsByStrangers, "strangers keep no flow out"),
    (TransportFault::LeavesAThread, "no thread is left behind"),
];

/// TCP with one promise broken.
pub(crate) struct BrokenTransport(pub(crate) TransportFault);

fn tcp() -> &'static dyn Transport {
    find("tcp").expect("tcp is registered")
}

impl BrokenTransport {
    fn flow(&self, flow: Result<Box<dyn Flow>, Error>) -> Result<Box<dyn Flow>, Error> {
        Ok(Box::new(BrokenFlow { fault: self.0, flow: ManuallyDrop::new(flow?) }))
    }
}

impl Transport for BrokenTransport {
    fn about(&self) -> &'static TransportProperties {
        tcp().about()
    }

    fn factors(&self) -> Vec<&'static Factor> {
        tcp().factors()
    }

    fn can_run(&self, settings: &Settings) -> Result<(), String> {
        tcp().can_run(settings)
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn ReservedPort>, Error> {
        let port = tcp().reserve(at)?;
        if self.0 == TransportFault::AnswersForAll {
            let early: &'static mut dyn Listener = Box::leak(port.listen(&Settings::new(), &KEY)?);
            std::thread::spawn(move || {
                let _ = early.accept(&Patience {
                    until: std::time::Instant::now() + SHORT,
                    cancel: &CancelFlag::new(),
                });
            });
        }
        Ok(Box::new(BrokenPort { fault: self.0, port }))
    }

    fn connect(&self, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        if self.0 == TransportFault::LeavesAThread {
            std::thread::spawn(|| std::thread::sleep(2 * LONG));
        }
        let key = if self.0 == TransportFault::TakesAnyKey { &KEY } else { call.key };
        let (other, until) = (CancelFlag::new(), patience.until);
        let deaf = Patience { until, cancel: &other };
        let patience = if self.0 == TransportFault::CannotBeCancelled { &deaf } else { patience };
        self.flow(tcp().connect(&ConnectRequest { key, ..*call }, patience))
    }
}

struct BrokenPort {
    fault: TransportFault,
    port: Box<dyn ReservedPort>,
}

impl ReservedPort for BrokenPort {
    fn address(&self) -> SocketAddr {
        self.port.address()
    }

    fn listen(&self, settings: &Settings, key: &ProofKey) -> Result<Box<dyn Listener>, Error> {
        if self.fault == TransportFault::LacksItsSwitches && settings.values().any(|value| value == "on") {
            return Err(Error::Cancelled);
        }
        Ok(Box::new(BrokenListener { fault: self.fault, listener: self.port.listen(settings, key)? }))
    }
}

struct BrokenListener {
    fault: TransportFault,
    listener: Box<dyn Listener>,
}

impl Listener for BrokenListener {
    fn accept(&mut self, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        let accepted = self.listener.accept(patience);
        if self.fault == TransportFault::FailsByStrangers && self.listener.strangers() > 0 {
            return Err(Error::Cancelled);
        }
        BrokenTransport(self.fault).flow(accepted)
    }

    fn strangers(&self) -> u64 {
        self.listener.strangers()
    }
}

struct BrokenFlow {
    fault: TransportFault,
    flow: ManuallyDrop<Box<dyn Flow>>,
}

impl Drop for BrokenFlow {
    fn drop(&mut self) {
        if self.fault != TransportFault::Lingers {
            // SAFETY: the field is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.flow) };
        }
    }
}

impl Flow for BrokenFlow {
    fn number(&self) -> u32 {
        if self.fault == TransportFault::Misnumbers { 0 } else { self.flow.number() }
    }

    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        self.flow.sockets()
    }

    fn set_up(&self) -> Nanos {
        self.flow.set_up()
    }

    fn not_as_asked(&self) -> Vec<SettingMismatch> {
        self.flow.not_as_asked()
    }

    fn adopt(&mut self, settings: &Settings) {
        self.flow.adopt(settings);
    }

    fn sender(&self) -> Result<Box<dyn Sender + '_>, Error> {
        Ok(Box::new(BrokenHalf(self.fault, self.flow.sender()?)))
    }

    fn receiver(&self) -> Result<Box<dyn Receiver + '_>, Error> {
        Ok(Box::new(BrokenHalf(self.fault, self.flow.receiver()?)))
    }

    fn progress(&self) -> io::Result<AckProgress> {
        let progress = self.flow.progress()?;
        let nothing = self.fault == TransportFault::Acknowledges;
        Ok(if nothing { AckProgress { acked: Bytes(0), ..progress } } else { progress })
    }

    fn wake_receiver(&self) {
        if self.fault != TransportFault::SleepsOn {
            self.flow.wake_receiver();
        }
    }

    fn finish(&self, patience: &Patience<'_>) -> Result<(), Error> {
        match self.fault {
            TransportFault::FinishesAlone => Ok(()),
            TransportFault::HalfFinishes => self.flow.abort().map_err(|_| Error::Cancelled),
            _ => self.flow.finish(patience),
        }
    }

    fn abort(&self) -> io::Result<()> {
        self.flow.abort()
    }
}

/// A half of a flow, with the fault.
struct BrokenHalf<T>(TransportFault, T);

impl Sender for BrokenHalf<Box<dyn Sender + '_>> {
    fn send(&mut self, message: &[u8], times: u64) -> io::Result<usize> {
        self.1.send(message, times)
    }

    fn give_up_after(&mut self, wait: Duration) -> io::Result<()> {
        if self.0 == TransportFault::WaitsForRoom { Ok(()) } else { self.1.give_up_after(wait) }
    }

    fn completions(&mut self) -> ZeroCopyCompletions {
        let seen = self.1.completions();
        if self.0 == TransportFault::NeverCompletes {
            ZeroCopyCompletions { pending: 1, ..seen }
        } else {
            seen
        }
    }
}

impl Receiver for BrokenHalf<Box<dyn Receiver + '_>> {
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.1.receive(into)?;
        if self.0 == TransportFault::Corrupts {
            into[..got].reverse();
        }
        Ok(got)
    }

    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.1.try_receive(into)
    }
}
