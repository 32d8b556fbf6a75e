//! The notes that a supervisor leaves for its keeper, in memory that both map.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::socket::{from_bytes, to_bytes};

/// The largest number of threads of a supervisor.
pub(crate) const THREADS: usize = 1024;
/// Number of slots for the addresses of carried sockets.
const PLACES: usize = 1 << 16;
/// Number of adjacent slots, in one of which a socket's addresses are stored.
const NEAR: usize = 16;
/// The value of `cookie` while a slot is being written. It is larger than any socket's cookie.
const BUSY: u64 = u64::MAX;
/// Number of 8-byte words that store an address: one byte for its length, and up to 28 bytes of address.
const WORDS: usize = 4;

/// The layout of the shared memory. Memory of zeros holds no notes.
#[repr(C)]
struct NotesLayout {
    /// The kernel's number of the call that was noted last. Later calls have the next numbers.
    last: AtomicU64,
    /// The call that each thread of the supervisor answers.
    calls: [CallNote; THREADS],
    names: [AddressSlot; PLACES],
}

/// A call that is being answered.
#[repr(C)]
struct CallNote {
    /// The kernel's number of the call; 0 for none.
    id: AtomicU64,
    stage: AtomicU64,
    what: [AtomicU64; CALL],
    /// The numbers that describe what the thread holds for the call. The first one is the kind, 0 for nothing.
    held: [AtomicU64; HELD],
}

/// The numbers that describe what a path holds for a call. Some are numbers of descriptors, which are open in the
/// keeper too, because the keeper shares the supervisor's table of descriptors.
pub(crate) type HeldNumbers = [u64; HELD];
/// The number of elements of [`HeldNumbers`].
pub(crate) const HELD: usize = 12;

/// The number of values that describe a call: thread, system call and six arguments.
pub(crate) const CALL: usize = 8;

/// A slot for the addresses of a carried socket. The kernel allocates pages of slots only when they are used.
#[repr(C)]
struct AddressSlot {
    /// The socket's unique cookie (SO_COOKIE); 0 if the slot is free.
    cookie: AtomicU64,
    own: [AtomicU64; WORDS],
    peer: [AtomicU64; WORDS],
}

/// The notes of a supervisor, mapped into this process.
pub struct SupervisorNotes {
    memory: OwnedFd,
    at: NonNull<NotesLayout>,
}

// SAFETY: the shared memory contains only atomics, and stays mapped as long as `SupervisorNotes` exists.
unsafe impl Send for SupervisorNotes {}
// SAFETY: as above.
unsafe impl Sync for SupervisorNotes {}

/// The stage that a supervisor has reached in processing a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStage {
    /// The call has had no effect yet that the program could notice.
    Open,
    /// The call has succeeded, and will return 0.
    Done,
    /// The program is about to get a descriptor of the socket with this inode number.
    Gives(u64),
}

impl CallStage {
    fn to_word(self) -> u64 {
        match self {
            CallStage::Open => 0,
            CallStage::Done => 1,
            CallStage::Gives(inode) => inode << 2 | 2,
        }
    }

    fn from_word(word: u64) -> Self {
        match word & 3 {
            1 => CallStage::Done,
            2 => CallStage::Gives(word >> 2),
            _ => CallStage::Open,
        }
    }
}

impl SupervisorNotes {
    pub(crate) fn new() -> io::Result<Self> {
        let memory = rustix::fs::memfd_create("landspeed-path", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&memory, size_of::<NotesLayout>() as u64)?;
        SupervisorNotes::of(memory)
    }

    pub(crate) fn of(memory: OwnedFd) -> io::Result<Self> {
        if rustix::fs::fstat(&memory)?.st_size as usize != size_of::<NotesLayout>() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping of the file's whole length.
        let at = unsafe {
            mmap(std::ptr::null_mut(), size_of::<NotesLayout>(), flags, MapFlags::SHARED, &memory, 0)?
        };
        Ok(SupervisorNotes { memory, at: NonNull::new(at.cast()).ok_or(io::ErrorKind::InvalidData)? })
    }

    fn layout(&self) -> &NotesLayout {
        // SAFETY: the mapping has this length, and is unmapped with `self`; every bit pattern is valid.
        unsafe { self.at.as_ref() }
    }

    /// Records that a thread of the supervisor begins to answer the call with number `id`. `what` holds the calling
    /// thread, the system call and its arguments.
    pub(crate) fn note(&self, thread: usize, id: u64, what: [u64; CALL]) {
        let noted = &self.layout().calls[thread];
        self.layout().last.store(id, Ordering::Release);
        // The ID is 0 while the note is written, so that no reader uses a half-written note.
        noted.id.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        noted.held[0].store(0, Ordering::Relaxed);
        noted.stage.store(CallStage::Open.to_word(), Ordering::Relaxed);
        noted.what.iter().zip(what).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
        noted.id.store(id, Ordering::Release);
    }

    /// Returns the number of the call that was noted last, even if its note is incomplete; 0 for none.
    pub(crate) fn last(&self) -> u64 {
        self.layout().last.load(Ordering::Acquire)
    }

    /// Records that the call that a thread answers has succeeded.
    pub(crate) fn done(&self, thread: usize) {
        self.layout().calls[thread].stage.store(CallStage::Done.to_word(), Ordering::Release);
    }

    /// Records that the program is about to get a descriptor of the socket with this inode number.
    pub(crate) fn gives(&self, thread: usize, inode: u64) {
        self.layout().calls[thread].stage.store(CallStage::Gives(inode).to_word(), Ordering::Release);
    }

    /// Records what a thread of the supervisor holds for its call.
    pub(crate) fn holds(&self, thread: usize, held: HeldNumbers) {
        let noted = &self.layout().calls[thread];
        // The first number is 0 until the others are written, so that no reader uses half-written numbers.
        noted.held[0].store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        noted.held.iter().zip(held).skip(1).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
        noted.held[0].store(held[0], Ordering::Release);
    }

    /// Returns the last noted call of each thread: its number, its description, its stage, and what was held for it.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (u64, [u64; CALL], CallStage, HeldNumbers)> {
        let all = self.layout().calls.iter();
        all.map(|noted| {
            let id = noted.id.load(Ordering::Acquire);
            let what = noted.what.each_ref().map(|word| word.load(Ordering::Relaxed));
            let first = noted.held[0].load(Ordering::Acquire);
            let mut held = noted.held.each_ref().map(|word| word.load(Ordering::Relaxed));
            held[0] = first;
            (id, what, CallStage::from_word(noted.stage.load(Ordering::Acquire)), held)
        })
        .filter(|(id, ..)| *id != 0)
    }

    /// Stores a socket's own and its peer's address. If all slots for the socket are in use, the addresses of the
    /// oldest socket in them are overwritten.
    pub(crate) fn keep_names(&self, cookie: u64, own: SocketAddr, peer: SocketAddr) {
        let place = self.claimed(cookie);
        fence(Ordering::Release);
        write(&place.own, own);
        write(&place.peer, peer);
        place.cookie.store(cookie, Ordering::Release);
    }

    /// Claims a slot for a socket, so that no other thread writes it. Prefers a free slot, and otherwise takes the slot
    /// of the oldest socket, which has the lowest cookie.
    fn claimed(&self, cookie: u64) -> &AddressSlot {
        let age = |place: &AddressSlot| place.cookie.load(Ordering::Relaxed);
        loop {
            let Some(place) = self.near(cookie).min_by_key(|place| age(place)) else { continue };
            let old = age(place);
            let claim = place.cookie.compare_exchange(old, BUSY, Ordering::Acquire, Ordering::Relaxed);
            if old != BUSY && claim.is_ok() {
                return place;
            }
            std::thread::yield_now();
        }
    }

    /// Returns the stored addresses of the socket with this cookie: its own and its peer's. `None` if none are stored.
    pub(crate) fn names(&self, cookie: u64) -> Option<(SocketAddr, SocketAddr)> {
        let place = self.near(cookie).find(|place| place.cookie.load(Ordering::Acquire) == cookie)?;
        let found = (read(&place.own)?, read(&place.peer)?);
        fence(Ordering::Acquire);
        (place.cookie.load(Ordering::Relaxed) == cookie).then_some(found)
    }

    fn near(&self, cookie: u64) -> impl Iterator<Item = &AddressSlot> {
        let first = cookie as usize % PLACES;
        (0..NEAR).map(move |more| &self.layout().names[(first + more) % PLACES])
    }
}

fn write(to: &[AtomicU64; WORDS], address: SocketAddr) {
    let bytes = to_bytes(address);
    let mut all = [0; 8 * WORDS];
    all[0] = bytes.len() as u8;
    all[1..=bytes.len()].copy_from_slice(&bytes);
    for (word, bytes) in to.iter().zip(all.as_chunks::<8>().0) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
}

fn read(from: &[AtomicU64; WORDS]) -> Option<SocketAddr> {
    let mut all = [0; 8 * WORDS];
    for (word, bytes) in from.iter().zip(all.as_chunks_mut::<8>().0) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
    from_bytes(all[1..].get(..usize::from(all[0]))?)
}

impl AsFd for SupervisorNotes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

impl Drop for SupervisorNotes {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this length, and nothing refers to it any more.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), size_of::<NotesLayout>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_visible_to_other_maps_of_the_memory_and_old_ones_go_first() {
        let shared = SupervisorNotes::new().unwrap();
        let other = SupervisorNotes::of(shared.as_fd().try_clone_to_owned().unwrap()).unwrap();
        let (own, peer) = ("10.0.0.1:80".parse().unwrap(), "[fe80::1%2]:9".parse().unwrap());
        shared.keep_names(7, own, peer);
        assert_eq!((other.names(7), other.names(8)), (Some((own, peer)), None));
        // These cookies all map to the same slots.
        let places = PLACES as u64;
        (1..=NEAR as u64).for_each(|round| shared.keep_names(7 + round * places, peer, own));
        assert_eq!((other.names(7), other.names(7 + places)), (None, Some((peer, own))));
    }

    #[test]
    fn names_that_many_threads_keep_at_once_are_all_kept() {
        let shared = SupervisorNotes::new().unwrap();
        let (threads, rounds) = (2_u64, 20_000);
        let name = |cookie: u64| SocketAddr::from(([10, 0, (cookie >> 8) as u8, cookie as u8], 80));
        let come = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for own in 1..=threads {
                let (shared, come) = (&shared, &come);
                scope.spawn(move || {
                    for round in 0..rounds {
                        // A spinning barrier starts the threads together; one that sleeps would not.
                        come.fetch_add(1, Ordering::AcqRel);
                        while come.load(Ordering::Acquire) < threads * (round + 1) {
                            std::hint::spin_loop();
                        }
                        let cookie = round * threads + own;
                        shared.keep_names(cookie, name(cookie), name(own));
                        assert_eq!(shared.names(cookie), Some((name(cookie), name(own))), "{cookie}");
                    }
                });
            }
        });
    }

    #[test]
    fn calls_are_noted_for_the_keeper() {
        let shared = SupervisorNotes::new().unwrap();
        let what = [1, 2, 3, 4, 5, 6, 7, 8];
        shared.note(3, 99, [0; CALL]);
        shared.note(4, 100, what);
        shared.done(4);
        assert_eq!(
            shared.calls().collect::<Vec<_>>(),
            [(99, [0; CALL], CallStage::Open, [0; HELD]), (100, what, CallStage::Done, [0; HELD])]
        );
        shared.gives(3, 77);
        shared.holds(3, [9; HELD]);
        assert_eq!(shared.calls().next(), Some((99, [0; CALL], CallStage::Gives(77), [9; HELD])));
        shared.note(3, 99, what);
        assert_eq!(shared.calls().next().map(|(.., held)| held[0]), Some(0));
        shared.note(4, 101, what);
        assert_eq!(shared.calls().last(), Some((101, what, CallStage::Open, [0; HELD])));
        // A supervisor that is killed while it notes a call has already stored the call's number.
        shared.layout().calls[4].id.store(0, Ordering::Relaxed);
        assert_eq!((shared.calls().count(), shared.last()), (1, 101));
    }
}
