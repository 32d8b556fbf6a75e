//! A proven TCP flow.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};

use landspeed_record::Settings;
use landspeed_units::{Bytes, Nanos};
use socket2::Socket;

use super::options::{OPTIONS, ZEROCOPY_RECEIVE, ZEROCOPY_SEND};
use super::{receive, send};
use crate::Error;
use crate::noun::{Flow, Progress, Receiver, Sender};
use crate::raw::{self, Plain};

/// A proven TCP flow.
pub(super) struct TcpFlow {
    socket: Socket,
    number: u32,
    set_up: Nanos,
    zerocopy_send: bool,
    zerocopy_receive: bool,
    not_as_asked: Vec<String>,
}

impl TcpFlow {
    /// A flow from its socket, whose options are read back against `settings`.
    pub(super) fn new(socket: Socket, number: u32, settings: &Settings, set_up: Nanos) -> Self {
        let not_as_asked = OPTIONS.read_back(&socket, settings);
        TcpFlow {
            socket,
            number,
            set_up,
            zerocopy_send: ZEROCOPY_SEND.is_on(settings),
            zerocopy_receive: ZEROCOPY_RECEIVE.is_on(settings),
            not_as_asked,
        }
    }

    fn name(&self) -> String {
        format!("flow {}", self.number)
    }
}

impl Drop for TcpFlow {
    /// SO_LINGER is heeded only when the last of all who hold the socket closes it, and a child of this program holds
    /// it from its fork until it becomes another program. Dissolving the association (connect(2), AF_UNSPEC) does
    /// at once what an abrupt close does: RST, no TIME_WAIT, ports free. What is not connected needs it not.
    fn drop(&mut self) {
        let _ = rustix::net::connect_unspec(&self.socket);
    }
}

impl Flow for TcpFlow {
    fn number(&self) -> u32 {
        self.number
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn set_up(&self) -> Nanos {
        self.set_up
    }

    fn not_as_asked(&self) -> &[String] {
        &self.not_as_asked
    }

    fn sender(&self) -> Result<Box<dyn Sender + '_>, Error> {
        let fd = self.socket.as_fd();
        Ok(if self.zerocopy_send {
            Box::new(send::ZeroCopySender::new(fd))
        } else {
            Box::new(send::Plain(fd))
        })
    }

    fn receiver(&self) -> Result<Box<dyn Receiver + '_>, Error> {
        let fd = self.socket.as_fd();
        if !self.zerocopy_receive {
            return Ok(Box::new(receive::Plain(fd)));
        }
        let mapped = receive::MappingReceiver::new(fd);
        Ok(Box::new(
            mapped.map_err(|source| Error::refused("map the receive queue of", self.name(), source))?,
        ))
    }

    fn progress(&self) -> io::Result<Progress> {
        let info: TcpInfo = raw::get(&self.socket, libc::IPPROTO_TCP, libc::TCP_INFO)?;
        Ok(Progress {
            acked: Bytes(info.bytes_acked),
            delivered: info.delivered.into(),
            resent: info.total_retrans.into(),
            outstanding: info.unacked > 0 || info.notsent_bytes > 0,
            rtt: Nanos::micros(info.rtt_us.into()),
        })
    }

    fn wake_receiver(&self) {
        // SHUT_RD sends nothing; an error means that the flow has ended, and nobody waits in it.
        let _ = self.socket.shutdown(Shutdown::Read);
    }

    fn abort(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// The beginning of `struct tcp_info` (include/uapi/linux/tcp.h), as far as it is used here; libc's ends
/// before the fields that are. What an older kernel does not fill (`delivered` came with Linux 4.18) is zero.
#[repr(C)]
#[derive(Clone, Copy)]
struct TcpInfo {
    flags: [u8; 8],
    times_and_sizes: [u32; 4],
    unacked: u32,
    counts_and_ages: [u32; 10],
    rtt_us: u32,
    windows: [u32; 7],
    total_retrans: u32,
    pacing_rate: [u64; 2],
    bytes_acked: u64,
    bytes_received: u64,
    segments: [u32; 2],
    notsent_bytes: u32,
    min_rtt_us: u32,
    data_segments: [u32; 2],
    rate_and_times: [u64; 4],
    delivered: u32,
    delivered_ce: u32,
}

// SAFETY: integers only, aligned without gaps: 8 + 24 * 4 + 4 * 8 + 6 * 4 + 4 * 8 + 2 * 4 = 200 bytes (checked
// below).
unsafe impl Plain for TcpInfo {}
const _: () = assert!(size_of::<TcpInfo>() == 200);
const _: () = assert!(std::mem::offset_of!(TcpInfo, rtt_us) == 68);
const _: () = assert!(std::mem::offset_of!(TcpInfo, total_retrans) == 100);
const _: () = assert!(std::mem::offset_of!(TcpInfo, bytes_acked) == 120);
const _: () = assert!(std::mem::offset_of!(TcpInfo, notsent_bytes) == 144);
const _: () = assert!(std::mem::offset_of!(TcpInfo, delivered) == 192);
