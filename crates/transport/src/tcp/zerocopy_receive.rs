//! Receives with TCP_ZEROCOPY_RECEIVE.

use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use landspeed_record::units::Bytes;
use rustix::net::RecvFlags;
use socket2::Socket;

use crate::raw::{self, PlainOldData};
use crate::stream;
use crate::transport::Receiver;

/// The size of the address space for mapped pages, in bytes. One call maps at most this much.
const REGION: usize = 1 << 20;

/// A receiver that maps whole pages of payload if the kernel can, and copies the rest. The kernel can map payload
/// that the device delivers in whole, aligned pages. That needs header split, and an MSS that is a multiple of the
/// page size.
pub(super) struct MappingReceiver<'a> {
    socket: &'a Socket,
    region: NonNull<libc::c_void>,
    mapped: u64,
}

impl<'a> MappingReceiver<'a> {
    /// Returns a receiver for `socket`, after mapping the address space for its pages.
    pub(super) fn new(socket: &'a Socket) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice affects no existing memory.
        let region = unsafe {
            libc::mmap(std::ptr::null_mut(), REGION, libc::PROT_READ, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        if region == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let region = NonNull::new(region).ok_or_else(|| io::Error::other("mmap returned a null address"))?;
        Ok(MappingReceiver { socket, region, mapped: 0 })
    }

    /// Maps the payload that can be mapped now, and releases the pages of the previous call.
    fn map(&self) -> io::Result<TcpZeroCopyReceive> {
        let mut request = TcpZeroCopyReceive {
            address: self.region.as_ptr() as u64,
            length: REGION as u32,
            ..TcpZeroCopyReceive::default()
        };
        raw::exchange(self.socket, libc::IPPROTO_TCP, libc::TCP_ZEROCOPY_RECEIVE, &mut request)?;
        Ok(request)
    }
}

impl Receiver for MappingReceiver<'_> {
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // TCP_ZEROCOPY_RECEIVE never waits, so poll(2) waits first. The copying receiver does not need this call. Its
        // cost is part of the cost of this option, and is measured with it.
        wait_readable(self.socket)?;
        self.try_receive(into)
    }

    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let answer = self.map()?;
        if answer.length > 0 {
            self.mapped += u64::from(answer.length);
            return Ok(answer.length as usize);
        }
        // What cannot be mapped must be read: `recv_skip_hint` bytes, or the end of the flow.
        let most = match answer.recv_skip_hint as usize {
            0 => into.len(),
            hint => hint.min(into.len()),
        };
        stream::receive(self.socket, &mut into[..most], RecvFlags::DONTWAIT)
    }

    fn mapped(&self) -> Bytes {
        Bytes(self.mapped)
    }
}

impl Drop for MappingReceiver<'_> {
    fn drop(&mut self) {
        // SAFETY: `region` is a mapping of this length, and no reference into it was ever handed out.
        unsafe { libc::munmap(self.region.as_ptr(), REGION) };
    }
}

fn wait_readable(socket: &Socket) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut ready = [PollFd::new(socket, PollFlags::IN)];
    match poll(&mut ready, None) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// `struct tcp_zerocopy_receive` (include/uapi/linux/tcp.h) up to `err` (Linux 5.7). Older kernels fill less of it,
/// newer ones accept this length.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct TcpZeroCopyReceive {
    address: u64,
    length: u32,
    recv_skip_hint: u32,
    inq: u32,
    err: i32,
}

// SAFETY: integers only, without padding (checked below).
unsafe impl PlainOldData for TcpZeroCopyReceive {}
const _: () = assert!(size_of::<TcpZeroCopyReceive>() == 24);
