//! Sends prepared packets from a memory ring that is shared with the kernel, without a copy and without a qdisc
//! (packet(7), Documentation/networking/packet_mmap.rst).

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use landspeed_kernel::sockopt::{bind_to_link, set_option};
use landspeed_record::units::Bytes;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socket_with};

use super::source::{BurstCounts, PacketSource};
use super::veth_pair::VethPair;
use crate::capacity::Error;

/// The EtherType for local experiments (IEEE 802). No protocol handler accepts it, so the far end discards the packet
/// immediately.
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];

/// The offset in bytes of the packet's data in a frame to send (linux/if_packet.h): TPACKET2_HDRLEN minus the size of
/// the address, which only received frames have.
const DATA: usize = libc::TPACKET2_HDRLEN - size_of::<libc::sockaddr_ll>();

/// The number of frames in a ring: enough to make the cost of the system call per packet small, and few enough to stay
/// in a cache.
const FRAMES: usize = 64;

/// The smallest size of a frame, in bytes. 64 frames of this size fill whole blocks, and whole pages for every page
/// size of Linux.
const LEAST_FRAME: usize = 2048;

pub(super) struct RingSource {
    socket: OwnedFd,
    memory: NonNull<u8>,
    frame: usize,
    packet: u32,
}

impl RingSource {
    pub(super) fn open(pair: &VethPair, size: Bytes) -> Result<Self, Error> {
        let refused = |error| Error::io("set up", "a packet ring", error);
        let opened = RingSource::set_up(pair, size.0 as usize).map_err(refused)?;
        opened.write(pair);
        Ok(opened)
    }

    fn set_up(pair: &VethPair, packet: usize) -> io::Result<Self> {
        // With protocol 0, the kernel passes no received packets to this socket.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let frame = frame_for(packet);
        let ring = request(frame)?;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1)?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_TX_RING, &ring)?;
        bind_to_link(&socket, pair.index, 0)?;
        // SAFETY: this makes a new mapping of the ring at an address that the kernel chooses, so it affects no other
        // memory.
        let memory = unsafe {
            mmap(
                std::ptr::null_mut(),
                frame * FRAMES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &socket,
                0,
            )
        }?;
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(RingSource { socket, memory, frame, packet: packet as u32 })
    }

    /// Writes the packet into every frame. It is written only once, because the kernel does not change the packets.
    fn write(&self, pair: &VethPair) {
        let header = [&pair.far.0[..], &pair.near.0[..], &ETHER_TYPE].concat();
        for index in 0..FRAMES {
            let frame = self.frame_at(index);
            // SAFETY: the frame is inside the mapping, is aligned to its size, and has room for header and packet. The
            // kernel does not read the frame before its status is TP_STATUS_SEND_REQUEST.
            unsafe {
                let head = frame.cast::<libc::tpacket2_hdr>();
                (*head).tp_len = self.packet;
                (*head).tp_snaplen = self.packet;
                std::ptr::copy_nonoverlapping(header.as_ptr(), frame.add(DATA), header.len());
            }
        }
    }

    fn frame_at(&self, index: usize) -> *mut u8 {
        debug_assert!(index < FRAMES, "bug: no such frame");
        // SAFETY: `index` is below FRAMES, and the mapping has FRAMES frames.
        unsafe { self.memory.as_ptr().add(index * self.frame) }
    }

    /// Returns the status word of a frame, with which the kernel and this program pass the frame to each other.
    fn status(&self, index: usize) -> &AtomicU32 {
        // SAFETY: tp_status is the first word of a frame. It is aligned, and mapped as long as `self` exists. This
        // program and the kernel access it only as one word.
        unsafe { AtomicU32::from_ptr(self.frame_at(index).cast()) }
    }
}

impl PacketSource for RingSource {
    fn burst(&mut self) -> io::Result<BurstCounts> {
        let mut given = 0;
        for index in 0..FRAMES {
            match self.status(index).load(Ordering::Acquire) {
                libc::TP_STATUS_AVAILABLE => {}
                // The device layer has not finished this frame of the last burst.
                libc::TP_STATUS_SENDING | libc::TP_STATUS_SEND_REQUEST => continue,
                refused => {
                    return Err(io::Error::other(format!(
                        "the kernel refused a frame (status {refused:#x})"
                    )));
                }
            }
            self.status(index).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
            given += 1;
        }
        match send(&self.socket, &[], SendFlags::empty()) {
            // If the transmit queue is full, the remaining frames are sent with the next burst.
            Ok(_) | Err(rustix::io::Errno::NOBUFS | rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
                Ok(BurstCounts { packets: given, buffers: given })
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for RingSource {
    fn drop(&mut self) {
        // SAFETY: set_up made this mapping with this length, and nothing uses it any more.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.frame * FRAMES) };
    }
}

/// Returns the size in bytes of the frame for a packet of `packet` bytes. It is a power of two, so that frames fill
/// whole blocks.
fn frame_for(packet: usize) -> usize {
    (DATA + packet).next_power_of_two().max(LEAST_FRAME)
}

/// Returns the description of a ring of [`FRAMES`] frames of `frame` bytes, in two or more blocks of 64 KiB.
fn request(frame: usize) -> io::Result<libc::tpacket_req> {
    const BLOCK: usize = 64 << 10;
    let number =
        |n: usize| libc::c_uint::try_from(n).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    Ok(libc::tpacket_req {
        tp_block_size: number(BLOCK)?,
        tp_block_nr: number(frame * FRAMES / BLOCK)?,
        tp_frame_size: number(frame)?,
        tp_frame_nr: number(FRAMES)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_fill_whole_blocks() {
        for packet in [60, 1514, 8160, 9014] {
            let frame = frame_for(packet);
            let ring = request(frame).unwrap();
            assert_eq!(ring.tp_block_size % ring.tp_frame_size, 0);
            assert_eq!(ring.tp_block_size / ring.tp_frame_size * ring.tp_block_nr, ring.tp_frame_nr);
            assert!(ring.tp_frame_nr as usize == FRAMES && frame >= DATA + packet);
        }
    }
}
