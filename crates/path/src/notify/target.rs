//! A system call that waits for its answer, and access to the process that made it.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_long, seccomp_notif};

use super::{NotifyListener, SyscallAnswer};
use crate::late::late;
use crate::shared::{CALL, HeldNumbers, SupervisorNotes};
use crate::socket::{from_bytes, inode};

/// Flag of pidfd_open(2) that opens one thread instead of its process (Linux 6.9).
const PIDFD_THREAD: u32 = libc::O_EXCL as u32;

thread_local! {
    /// A cache of the last calling thread's ID and pidfd. The same thread nearly always makes the next call.
    static PROCESS: RefCell<Option<(i32, OwnedFd)>> = const { RefCell::new(None) };
}

/// A system call that waits for its answer.
pub struct NotifiedCall<'a> {
    listener: &'a NotifyListener,
    /// The kernel's number of this call.
    pub(crate) id: u64,
    /// The ID of the calling thread.
    pub(crate) thread: i32,
    /// The number of the system call.
    pub(crate) number: c_long,
    arguments: [u64; 6],
    noted: Option<(&'a SupervisorNotes, usize)>,
}

impl<'a> NotifiedCall<'a> {
    pub(super) fn new(listener: &'a NotifyListener, asked: seccomp_notif) -> Self {
        NotifiedCall {
            listener,
            id: asked.id,
            thread: asked.pid as i32,
            number: c_long::from(asked.data.nr),
            arguments: asked.data.args,
            noted: None,
        }
    }

    /// Takes over a system call whose notification another process, such as a killed supervisor, has received and not
    /// answered. `id` is the kernel's number of the notification; `what` holds the thread, the number of the system
    /// call and its arguments.
    pub(crate) fn left(listener: &'a NotifyListener, id: u64, what: [u64; CALL]) -> Self {
        let [thread, number, arguments @ ..] = what;
        NotifiedCall { listener, id, thread: thread as i32, number: number as c_long, arguments, noted: None }
    }

    /// Returns the call as numbers: the thread, the number of the system call and its arguments.
    pub(crate) fn what(&self) -> [u64; CALL] {
        let [a, b, c, d, e, f] = self.arguments;
        [self.thread as u64, self.number as u64, a, b, c, d, e, f]
    }

    pub(crate) fn noted_by(&mut self, notes: &'a SupervisorNotes, thread: usize) {
        self.noted = Some((notes, thread));
    }

    /// Records in the notes that the call has succeeded. If this process is then killed, the keeper lets the call
    /// return 0.
    pub(crate) fn is_done(&self) {
        if let Some((noted, thread)) = self.noted {
            noted.done(thread);
        }
    }

    /// Records in the notes which descriptors and values this process holds for the call from now on. If this process
    /// is killed, the keeper reads them.
    pub(crate) fn holds(&self, held: HeldNumbers) {
        if let Some((noted, thread)) = self.noted {
            noted.holds(thread, held);
        }
    }

    /// Returns the argument with this index, from 0, as a number.
    pub(crate) fn int(&self, argument: usize) -> i32 {
        self.arguments[argument] as i32
    }

    /// Returns the argument with this index, from 0, as an address in the program's memory.
    pub(crate) fn address(&self, argument: usize) -> u64 {
        self.arguments[argument]
    }

    /// Returns true if the call still waits. Check it after reading data of the calling thread: if the call no longer
    /// waits, the thread's ID may belong to another process.
    pub(crate) fn waits(&self) -> bool {
        self.listener.waits(self.id)
    }

    /// Answers the call. Returns true if the call still waited and got the answer.
    pub(crate) fn answer(&self, answer: SyscallAnswer) -> bool {
        late();
        self.listener.answer(self.id, answer)
    }

    /// Adds a copy of `fd` to the program's descriptors, and returns its number there. `closes` sets FD_CLOEXEC.
    pub(crate) fn give(&self, fd: &OwnedFd, closes: bool) -> io::Result<RawFd> {
        late();
        if let (Some((shared, thread)), Some(inode)) = (self.noted, inode(fd)) {
            shared.gives(thread, inode);
        }
        self.listener.give(self.id, fd, closes)
    }

    /// Replaces the program's descriptor `at` by a copy of `fd`, as dup2(2) does. `closes` sets FD_CLOEXEC.
    pub(crate) fn replace(&self, fd: &OwnedFd, at: RawFd, closes: bool) -> io::Result<()> {
        late();
        self.listener.replace(self.id, fd, at, closes)
    }

    /// Duplicates the program's descriptor `fd` into this process.
    pub(crate) fn descriptor(&self, fd: RawFd) -> io::Result<OwnedFd> {
        let got = PROCESS.with_borrow_mut(|last| {
            // If the thread has ended, its pidfd fails, even if a new thread has the same ID.
            if let Some((thread, process)) = last
                && *thread == self.thread
                && let Ok(got) = get(process, fd)
            {
                return Ok(got);
            }
            let (_, process) = last.insert((self.thread, self.pidfd()?));
            get(process, fd)
        })?;
        if self.waits() { Ok(got) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    }

    /// Returns the program's descriptor of the socket with the inode number `wanted`; `None` if there is none.
    pub(crate) fn number_of(&self, wanted: u64) -> Option<RawFd> {
        let all = std::fs::read_dir(format!("/proc/{}/fd", self.thread)).ok()?;
        let mut numbers = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.find(|number| self.descriptor(*number).ok().and_then(inode) == Some(wanted))
    }

    /// Opens a pidfd of the calling thread, or of its process if the kernel is older than Linux 6.9. The pidfd is
    /// readable once that thread or process has ended.
    pub(crate) fn pidfd(&self) -> io::Result<OwnedFd> {
        open(self.thread, PIDFD_THREAD).or_else(|_| open(self.process(), 0))
    }

    /// Returns the ID of the calling thread's process.
    pub(crate) fn process(&self) -> i32 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.thread)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
        line.and_then(|id| id.trim().parse().ok()).unwrap_or(self.thread)
    }

    /// Reads the program's memory at `address` until `bytes` is full.
    pub(crate) fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        let own = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let other = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
        // SAFETY: our side is valid for its length; the kernel checks the other one.
        let done = unsafe { libc::process_vm_readv(self.thread, &raw const own, 1, &raw const other, 1, 0) };
        whole(done, bytes.len())
    }

    /// Writes all of `bytes` into the program's memory at `address`.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        let own = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let other = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
        // SAFETY: as above.
        let done = unsafe { libc::process_vm_writev(self.thread, &raw const own, 1, &raw const other, 1, 0) };
        whole(done, bytes.len())
    }

    /// Returns the destination of a call of connect(2); `None` if it is not an IP address.
    pub(crate) fn destination(&self) -> Option<SocketAddr> {
        let mut bytes = [0; 28];
        let length = usize::try_from(self.int(2)).ok()?.min(bytes.len());
        self.read(self.address(1), &mut bytes[..length]).ok()?;
        from_bytes(&bytes[..length])
    }

    /// Writes `value` into the program's memory as the result of getsockopt(2), cut to the length that the program
    /// gave. Returns the call's answer.
    pub(crate) fn return_option(&self, value: &[u8]) -> SyscallAnswer {
        let written = || -> io::Result<()> {
            let mut room = [0; 4];
            self.read(self.address(4), &mut room)?;
            let room = usize::try_from(i32::from_ne_bytes(room));
            let fits = room.map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?.min(value.len());
            self.write(self.address(3), &value[..fits])?;
            self.write(self.address(4), &(fits as u32).to_ne_bytes())
        };
        match written() {
            Ok(()) => SyscallAnswer::Return(0),
            Err(error) => SyscallAnswer::Errno(error.raw_os_error().unwrap_or(libc::EFAULT)),
        }
    }

    /// Writes the address `name`, in the kernel's format, and its length into the memory to which arguments 1 and 2
    /// point, as accept(2) does. An address that is longer than the program's buffer is cut.
    pub(crate) fn write_address(&self, name: &[u8]) -> io::Result<()> {
        let (to, length) = (self.address(1), self.address(2));
        if to == 0 || length == 0 {
            return Ok(());
        }
        let mut room = [0; 4];
        self.read(length, &mut room)?;
        let room = usize::try_from(i32::from_ne_bytes(room))
            .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        self.write(to, &name[..name.len().min(room)])?;
        self.write(length, &(name.len() as u32).to_ne_bytes())
    }
}

fn get(process: &OwnedFd, fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the arguments are numbers; the returned descriptor is new, and ours alone.
    unsafe {
        match libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) {
            -1 => Err(io::Error::last_os_error()),
            got => Ok(OwnedFd::from_raw_fd(got as i32)),
        }
    }
}

fn whole(done: isize, length: usize) -> io::Result<()> {
    match usize::try_from(done) {
        Ok(done) if done == length => Ok(()),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

fn open(id: i32, flags: u32) -> io::Result<OwnedFd> {
    // SAFETY: the arguments are numbers; the returned descriptor is ours.
    unsafe {
        match libc::syscall(libc::SYS_pidfd_open, id, flags) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd as i32)),
        }
    }
}
