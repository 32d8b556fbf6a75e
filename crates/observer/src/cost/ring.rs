//! The ring that the kernel writes records to, mapped: "mmap layout" of perf_event_open(2).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// Room for records: over a second of deep stacks at 1 kHz. With its page of control a ring is 516 KiB,
/// what kernel.perf_event_mlock_kb allows each processor without privilege.
pub(super) const DATA_BYTES: usize = 512 << 10;

/// Fields of `struct perf_event_mmap_page`, which is one page long.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// The ring of one event. The kernel stops writing when it is full and counts what it could not write.
#[derive(Debug)]
pub(super) struct Ring {
    base: NonNull<u8>,
    page: usize,
    /// The record at hand, copied out of the ring in one piece.
    record: Vec<u64>,
}

// SAFETY: the mapping belongs to this value alone and to no thread; all access goes through `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of `event`. The kernel keeps it until it is dropped, also after the event is closed.
    pub(super) fn map(event: BorrowedFd<'_>) -> io::Result<Self> {
        let page = rustix::param::page_size();
        // SAFETY: a new mapping at an address that the kernel chooses; nothing else refers to it.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                page + DATA_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Ring { base, page, record: Vec::new() })
    }

    /// Gives every record that is there to `take`, as whole 64-bit words, the header first; then its room
    /// back to the kernel.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&[u64])) {
        // Acquire: the records up to `head` were written before it (perf_output_put_handle).
        let head = self.counter(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.counter(DATA_TAIL).load(Ordering::Relaxed);
        while tail < head {
            let words = self.length_at(tail).div_ceil(8);
            // Records are whole words and lie below the head: anything else is a broken ring.
            if words == 0 || words as u64 * 8 > head - tail {
                break;
            }
            self.record.clear();
            for word in 0..words as u64 {
                let value = self.word(tail + word * 8);
                self.record.push(value);
            }
            take(&self.record);
            tail += words as u64 * 8;
        }
        // Release: the records have been read before their room is given back.
        self.counter(DATA_TAIL).store(head, Ordering::Release);
    }

    /// `size` of the `struct perf_event_header` at `at`: the last two of its eight bytes.
    fn length_at(&self, at: u64) -> usize {
        let [.., low, high] = self.word(at).to_ne_bytes();
        usize::from(u16::from_ne_bytes([low, high]))
    }

    /// The word at `at`, counted from the ring's beginning and wrapped. Records are aligned to words, so no
    /// word is split by the end of the ring.
    fn word(&self, at: u64) -> u64 {
        let offset = (at % DATA_BYTES as u64) as usize & !7;
        // SAFETY: `offset` is a multiple of 8 below DATA_BYTES, and the data area of that length begins one
        // page into the mapping, so the read is aligned and inside. The kernel writes here only beyond the
        // head, which callers stay below.
        unsafe { self.base.add(self.page + offset).cast::<u64>().read() }
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the two offsets are aligned fields inside the first page of the mapping, which lives as
        // long as `self`; the kernel too only accesses them as whole words.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast().as_ptr()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `map` mapped; no reference into it outlives a method call.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page + DATA_BYTES) };
    }
}
