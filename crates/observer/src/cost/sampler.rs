//! Samples all processors during one window.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use landspeed_record::units::cpu_list;
use perf_event::Sampler as Ring;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::event::{self, RING_BYTES, SampleEvent};
use super::tally::{SampleScope, StackCounts};
use crate::{Error, procfile};

/// The open sampling events of all processors, and the thread that reads their ring buffers. The thread sleeps until a
/// ring is half full, so it runs only about once a second and hardly disturbs the measurement.
#[derive(Debug)]
pub(super) struct CostSampler {
    events: Arc<Vec<OwnedFd>>,
    stop: Arc<OwnedFd>,
    reader: Option<ReaderThread>,
}

type ReaderThread = JoinHandle<io::Result<StackCounts>>;

impl CostSampler {
    /// Starts to sample all processors with `event`. The samples of threads in `scope` count.
    pub(super) fn start(event: SampleEvent, scope: SampleScope) -> Result<Self, Error> {
        let (mut events, mut rings) = (Vec::new(), Vec::new());
        for cpu in online()? {
            let object = || format!("of processor {cpu}");
            let opened = match event.open(cpu) {
                // The processor went offline after the list was read.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                opened => opened.map_err(|e| Error::io("open the sampling event", object(), e))?,
            };
            let ring = opened.sampled(RING_BYTES);
            let ring = ring.map_err(|e| Error::io("map the sample ring", object(), e))?;
            // SAFETY: the ring owns the descriptor and exists during the whole statement.
            let event = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }.try_clone_to_owned();
            events.push(event.map_err(|e| Error::io("duplicate the sampling event", object(), e))?);
            rings.push(ring);
        }
        let stop =
            eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| Error::io("make", "an event descriptor", e))?;
        let (events, stop) = (Arc::new(events), Arc::new(stop));
        let reader = read_in_background(&events, &stop, rings, scope)?;
        let sampler = CostSampler { events, stop, reader: Some(reader) };
        sampler.each(event::enable).map_err(|e| Error::io("start", "the sampling events", e))?;
        Ok(sampler)
    }

    /// Stops sampling immediately. Call [`CostSampler::finish`], which takes longer, afterwards.
    pub(super) fn pause(&self) -> Result<(), Error> {
        self.each(event::disable).map_err(|e| Error::io("stop", "the sampling events", e))
    }

    /// Ends the reading thread and returns the counts of all samples.
    pub(super) fn finish(mut self) -> Result<StackCounts, Error> {
        self.join()
            .unwrap_or_else(|| Err(io::Error::other("it was joined before")))
            .map_err(|source| Error::io("end", "the thread that reads the samples", source))
    }

    fn each(&self, act: fn(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<()> {
        self.events.iter().try_for_each(|event| act(event.as_fd()))
    }

    fn join(&mut self) -> Option<io::Result<StackCounts>> {
        let reader = self.reader.take()?;
        let told = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        Some(told.map_err(io::Error::from).and_then(|_| {
            reader
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("it panicked, which is a bug of landspeed")))
        }))
    }
}

impl Drop for CostSampler {
    /// Ends the reading thread if [`CostSampler::finish`] was not called, because the window was discarded.
    fn drop(&mut self) {
        self.join();
    }
}

fn online() -> Result<Vec<u32>, Error> {
    const PATH: &str = "/sys/devices/system/cpu/online";
    let cpus = cpu_list(&procfile::read(PATH)?).filter(|cpus| !cpus.is_empty());
    cpus.ok_or_else(|| Error::shape(PATH, "it is no list of processors"))
}

fn read_in_background(
    events: &Arc<Vec<OwnedFd>>,
    stop: &Arc<OwnedFd>,
    rings: Vec<Ring>,
    scope: SampleScope,
) -> Result<ReaderThread, Error> {
    let (events, stop) = (Arc::clone(events), Arc::clone(stop));
    let opened_by = rustix::thread::gettid().as_raw_nonzero();
    std::thread::Builder::new()
        .name(format!("cost-{opened_by}"))
        .spawn(move || read(&events, &stop, rings, scope))
        .map_err(|e| Error::io("start", "the thread that reads the samples", e))
}

/// Reads the rings until `stop` is signalled, and then once more. Returns the counted stacks.
fn read(
    events: &[OwnedFd],
    stop: &OwnedFd,
    mut rings: Vec<Ring>,
    scope: SampleScope,
) -> io::Result<StackCounts> {
    let mut tally = StackCounts::new(scope, rustix::thread::gettid().as_raw_nonzero().get());
    let mut waits: Vec<_> = std::iter::once(stop)
        .chain(events)
        .map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN))
        .collect();
    loop {
        match poll(&mut waits, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for ring in &mut rings {
            while let Some(record) = ring.next_record() {
                // A record that cannot be parsed is ignored, because it is of a kind that was not requested.
                if let Ok(record) = record.parse_record() {
                    tally.add(record);
                }
            }
        }
        if waits[0].revents().contains(PollFlags::IN) {
            return Ok(tally);
        }
        // If a processor goes offline, its event reports POLLHUP, and every poll(2) with this event would return
        // immediately.
        waits.retain(|wait| !wait.revents().intersects(PollFlags::HUP | PollFlags::ERR));
    }
}
