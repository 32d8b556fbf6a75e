//! The word that decides if a connection is carried or stays on TCP, in memory that both supervisors and their keepers
//! map.
//!
//! A word is first offered. Then either the accepting end takes it, or the connecting end withdraws it. The first
//! compare-and-swap decides for both ends. Time limits, killed processes and bytes in a stream do not change the
//! decision.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::late::late;
use crate::socket::SOON;

/// The largest number of open offers of a supervisor.
const WORDS: usize = 1024;
/// The seals of the memory. They fix its length, because other processes map it.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Mask of a word's state. The bits above hold the number of the offer, so that an old offer is not taken for a new
/// one.
const STATE: u64 = 0xff;
const WITHDRAWN: u64 = 0;
const OFFERED: u64 = 1;
/// The state of an offer that the supervisor with index 0 has taken. The state for index n is `TAKEN + n`.
const TAKEN: u64 = 2;
/// Flag of the state, which is set once the accepting end has recorded the result in its own notes. Before that, its
/// keeper may have to read the word, so the word cannot be used for a new offer.
const SETTLED: u64 = 0x80;
/// The largest number of supervisors to which one connection is offered.
pub(super) const MOST: usize = 6;

/// The words of one supervisor's offers.
pub(super) struct OfferWords {
    memory: OwnedFd,
    at: NonNull<[AtomicU64; WORDS]>,
    free: Mutex<Vec<usize>>,
}

// SAFETY: the shared memory contains only atomics, and stays mapped as long as `OfferWords` exists.
unsafe impl Send for OfferWords {}
// SAFETY: as above.
unsafe impl Sync for OfferWords {}

/// The word of one offer.
#[derive(Clone)]
pub(super) struct OfferWord {
    words: Arc<OfferWords>,
    pub(super) place: usize,
    /// Number of the offer.
    pub(super) number: u64,
}

/// An offer that this supervisor has made. Dropping it withdraws the offer if it is still open, and frees its word.
pub(super) struct OpenOffer(pub(super) OfferWord);

impl OfferWords {
    pub(super) fn new() -> io::Result<Self> {
        let memory = memfd_create("landspeed-words", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&memory, size_of::<[AtomicU64; WORDS]>() as u64)?;
        fcntl_add_seals(&memory, SEALS)?;
        OfferWords::of(memory)
    }

    /// Maps the memory of a supervisor's words. Returns an error if it has another length or may shrink.
    pub(super) fn of(memory: OwnedFd) -> io::Result<Self> {
        let length = size_of::<[AtomicU64; WORDS]>();
        if fstat(&memory)?.st_size as usize != length
            || !fcntl_get_seals(&memory)?.contains(SealFlags::SHRINK)
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping of the file's whole length, which is sealed.
        let at = unsafe { mmap(std::ptr::null_mut(), length, flags, MapFlags::SHARED, &memory, 0)? };
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(OfferWords { memory, at, free: Mutex::new((0..WORDS).rev().collect()) })
    }

    fn word(&self, place: usize) -> &AtomicU64 {
        // SAFETY: the mapping has this length, and is unmapped with `self`; every bit pattern is valid.
        unsafe { &self.at.as_ref()[place % WORDS] }
    }

    fn is_unsettled(&self, place: usize) -> bool {
        let state = self.word(place).load(Ordering::Acquire) & STATE;
        (TAKEN..SETTLED).contains(&state)
    }

    /// Returns an offer with an unused word; `None` if all words are in use.
    pub(super) fn offer(self: &Arc<Self>) -> Option<OpenOffer> {
        let place = {
            let mut free = self.free.lock();
            let at = free.iter().rposition(|place| !self.is_unsettled(*place))?;
            free.remove(at)
        };
        let word = self.word(place);
        let number = (word.load(Ordering::Relaxed) >> 8) + 1;
        word.store(number << 8 | OFFERED, Ordering::Release);
        Some(OpenOffer(OfferWord { words: Arc::clone(self), place, number }))
    }
}

impl Drop for OfferWords {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this length, and nothing refers to it any more.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), size_of::<[AtomicU64; WORDS]>()) };
    }
}

impl AsFd for OfferWords {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

impl OfferWord {
    pub(super) fn of(words: &Arc<OfferWords>, place: usize, number: u64) -> Self {
        OfferWord { words: Arc::clone(words), place, number }
    }

    pub(super) fn memory(&self) -> BorrowedFd<'_> {
        self.words.as_fd()
    }

    fn at(&self) -> &AtomicU64 {
        self.words.word(self.place)
    }

    fn said(&self) -> u64 {
        let now = self.at().load(Ordering::Acquire);
        if now >> 8 == self.number { now & STATE } else { WITHDRAWN }
    }

    pub(super) fn is_open(&self) -> bool {
        self.said() == OFFERED
    }

    /// Returns the index of the supervisor that has taken the offer; `None` if none has.
    pub(super) fn taken_by(&self) -> Option<usize> {
        (self.said() & !SETTLED).checked_sub(TAKEN).map(|which| which as usize)
    }

    /// Marks the word as settled: the accepting end has recorded that it took the offer, and no longer reads the word.
    pub(super) fn settle(&self, which: usize) {
        let taken = self.number << 8 | (TAKEN + which as u64);
        let _ = self.at().compare_exchange(taken, taken | SETTLED, Ordering::AcqRel, Ordering::Relaxed);
    }

    fn decide(&self, state: u64) -> bool {
        let (from, to) = (self.number << 8 | OFFERED, self.number << 8 | state);
        let decided = self.at().compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if decided {
            futex(self.at(), libc::FUTEX_WAKE, i32::MAX as u32, None);
        }
        decided
    }

    /// Takes the offer for the supervisor with index `which`. Returns true if this supervisor has taken the offer, now
    /// or before. Both ends use the pair only if the result is true.
    pub(super) fn take(&self, which: usize) -> bool {
        late();
        self.decide(TAKEN + which as u64) || self.taken_by() == Some(which)
    }

    /// Withdraws the offer. Returns the index of the supervisor that has already taken it, or `None` if none has.
    pub(super) fn withdraw(&self) -> Option<usize> {
        late();
        if self.decide(WITHDRAWN) { None } else { self.taken_by() }
    }

    /// Waits until the offer is taken or withdrawn, or until the time `until`.
    pub(super) fn wait(&self, until: Instant) {
        let soon = Instant::now() + SOON;
        while self.is_open() && Instant::now() < soon.min(until) {
            std::thread::yield_now();
        }
        while self.is_open() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            futex(self.at(), libc::FUTEX_WAIT, (self.number << 8 | OFFERED) as u32, Some(left));
        }
    }
}

impl Drop for OpenOffer {
    fn drop(&mut self) {
        self.0.withdraw();
        self.0.words.free.lock().push(self.0.place);
    }
}

/// Calls futex(2) on the lower 32 bits of a word, which contain the state.
fn futex(word: &AtomicU64, what: i32, value: u32, time: Option<Duration>) {
    let half = word.as_ptr().cast::<u32>().wrapping_add(usize::from(cfg!(target_endian = "big")));
    let time = time.map(|time| libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel reads a word and a time that live during the call. The caller reads the word again, whatever
    // the result.
    unsafe { libc::syscall(libc::SYS_futex, half, what, value, time) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> (Arc<OfferWords>, Arc<OfferWords>) {
        let words = Arc::new(OfferWords::new().unwrap());
        let other = OfferWords::of(words.as_fd().try_clone_to_owned().unwrap()).unwrap();
        (words, Arc::new(other))
    }

    #[test]
    fn of_two_who_decide_one_does() {
        let (words, theirs) = both();
        let mut taken = 0;
        for _ in 0..2000 {
            let offered = words.offer().unwrap();
            let word = OfferWord::of(&theirs, offered.0.place, offered.0.number);
            let (took, by) = std::thread::scope(|threads| {
                let takes = threads.spawn(|| word.take(3));
                let by = offered.0.withdraw();
                (takes.join().unwrap(), by)
            });
            assert_eq!(took, by == Some(3));
            taken += u32::from(took);
        }
        eprintln!("taken {taken} of 2000");
    }

    #[test]
    fn an_old_offer_is_not_taken_for_a_new_one_and_who_waits_is_woken() {
        let (words, theirs) = both();
        let first = words.offer().unwrap();
        let old = OfferWord::of(&theirs, first.0.place, first.0.number);
        drop(first);
        let new = words.offer().unwrap();
        assert_eq!(old.place, new.0.place);
        assert!(!old.is_open() && !old.take(0) && new.0.is_open());
        let word = OfferWord::of(&theirs, new.0.place, new.0.number);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                word.take(1)
            });
            new.0.wait(Instant::now() + Duration::from_secs(20));
        });
        assert_eq!(new.0.withdraw(), Some(1));
    }

    #[test]
    fn a_word_that_was_taken_is_used_again_once_the_end_that_took_it_has_noted_so() {
        let (words, theirs) = both();
        let offered = words.offer().unwrap();
        let word = OfferWord::of(&theirs, offered.0.place, offered.0.number);
        assert!(word.take(2));
        drop(offered);
        let others: Vec<_> = std::iter::from_fn(|| words.offer()).collect();
        assert_eq!((others.len(), word.taken_by(), word.take(2)), (WORDS - 1, Some(2), true));
        word.settle(2);
        assert_eq!(word.taken_by(), Some(2));
        assert!(words.offer().is_some());
    }

    #[test]
    fn memory_whose_length_may_change_is_not_mapped() {
        let memory = memfd_create("other", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, size_of::<[AtomicU64; WORDS]>() as u64).unwrap();
        assert!(OfferWords::of(memory).is_err());
    }
}
