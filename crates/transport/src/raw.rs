//! getsockopt and setsockopt for options that no crate wraps.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

/// A type that may be read from and written to a socket option as plain bytes.
///
/// # Safety
/// Every bit pattern must be a valid value and there must be no padding.
pub(crate) unsafe trait PlainOldData: Copy {}
// SAFETY: an integer has no invalid bit pattern and no padding.
unsafe impl PlainOldData for u32 {}
// SAFETY: an integer has no invalid bit pattern and no padding.
unsafe impl PlainOldData for u64 {}
// SAFETY: an array of integers has no invalid bit pattern and no padding.
unsafe impl<const N: usize> PlainOldData for [u32; N] {}

pub(crate) fn set<T: PlainOldData>(socket: impl AsFd, level: i32, name: i32, value: T) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is valid during the call and has `len` bytes; the kernel only reads them.
    let rc = unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), len) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option. If the kernel's value is shorter, the remaining bytes are zero.
pub(crate) fn get<T: PlainOldData>(socket: impl AsFd, level: i32, name: i32) -> io::Result<T> {
    // SAFETY: `T: PlainOldData` is valid as zeros.
    let mut value: T = unsafe { MaybeUninit::zeroed().assume_init() };
    exchange(socket, level, name, &mut value)?;
    Ok(value)
}

/// Reads an option whose buffer also carries a request to the kernel. `value` contains the request before the call, and
/// the kernel's answer after it. Returns the number of bytes that the kernel wrote.
pub(crate) fn exchange<T: PlainOldData>(
    socket: impl AsFd,
    level: i32,
    name: i32,
    value: &mut T,
) -> io::Result<usize> {
    let fd = socket.as_fd().as_raw_fd();
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is exclusively borrowed and has `len` bytes; the kernel writes at most `len`, and any bytes are
    // a valid `T: PlainOldData`.
    let rc = unsafe { libc::getsockopt(fd, level, name, (&raw mut *value).cast(), &mut len) };
    if rc == 0 { Ok(len as usize) } else { Err(io::Error::last_os_error()) }
}
