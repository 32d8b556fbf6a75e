//! Keeps the accepting ends of replaced TCP connections open until their other ends close. Until then, the connecting
//! program may still use its TCP socket.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::epoll;

/// Pause before sockets are closed, so that the thread does not wake up for each of them.
const PAUSE: Duration = Duration::from_millis(10);

/// TCP sockets that stay open until their other ends close.
pub(super) struct ParkedSockets {
    epoll: OwnedFd,
    all: Mutex<BTreeMap<RawFd, OwnedFd>>,
}

impl ParkedSockets {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let parked = Arc::new(ParkedSockets { epoll, all: Mutex::default() });
        let own = Arc::clone(&parked);
        thread::Builder::new().name("path-parked".into()).spawn(move || own.work())?;
        Ok(parked)
    }

    pub(super) fn park(&self, tcp: OwnedFd) {
        let key = tcp.as_raw_fd();
        let data = epoll::EventData::new_u64(key as u64);
        let mut all = self.all.lock();
        if epoll::add(&self.epoll, &tcp, data, epoll::EventFlags::RDHUP).is_ok() {
            all.insert(key, tcp);
        }
    }

    fn work(&self) {
        let mut events = [MaybeUninit::uninit(); 64];
        loop {
            if let Ok((gone, _)) = epoll::wait(&self.epoll, &mut events[..], None) {
                // The other end sends a FIN just before its reset. If this end closed in between, the other end would
                // enter TIME-WAIT.
                thread::sleep(PAUSE);
                let mut all = self.all.lock();
                gone.iter().for_each(|event| drop(all.remove(&(event.data.u64() as RawFd))));
            }
        }
    }
}
