//! Functions for socket options and addresses that no crate wraps.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, socklen_t};

/// Reads a socket option into `value`. Returns the number of bytes that the kernel wrote to it.
pub fn get_option(socket: impl AsFd, level: c_int, name: c_int, value: &mut [u8]) -> io::Result<usize> {
    let (fd, mut length) = (socket.as_fd().as_raw_fd(), value.len() as socklen_t);
    // SAFETY: the kernel writes at most `length` bytes to `value`, and `value` has `length` bytes.
    checked(unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut length) })?;
    Ok(length as usize)
}

pub fn set_option<T: ?Sized>(socket: impl AsFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let (fd, length) = (socket.as_fd().as_raw_fd(), size_of_val(value) as socklen_t);
    // SAFETY: `value` outlives the call, `length` is its size, and the kernel only reads it.
    checked(unsafe { libc::setsockopt(fd, level, name, (&raw const *value).cast(), length) })
}

/// Binds a packet socket to the link with this index. The socket then receives the frames with the EtherType
/// `protocol`; with 0 it receives none.
pub fn bind_to_link(socket: impl AsFd, index: u32, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let (fd, length) = (socket.as_fd().as_raw_fd(), size_of::<libc::sockaddr_ll>() as socklen_t);
    // SAFETY: `address` outlives the call, and `length` is its size.
    checked(unsafe { libc::bind(fd, (&raw const address).cast(), length) })
}

fn checked(code: c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
