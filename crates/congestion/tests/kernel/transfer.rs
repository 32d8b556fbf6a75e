//! Transfers over loopback with a chosen congestion control, and the kernel's report about the connection.

use std::io::{self, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread::{self, JoinHandle};

/// The kernel's report about a connection after a transfer.
#[derive(Debug)]
pub(crate) struct TransferReport {
    /// The value of `TCP_CONGESTION`.
    pub(crate) control: String,
    /// The value of `tcpi_snd_cwnd`, in packets.
    pub(crate) window: u32,
    /// The value of `tcpi_total_retrans`, in packets.
    pub(crate) sent_again: u32,
}

/// A connection over loopback whose far end reads everything that arrives.
pub(crate) struct LoopbackFlow {
    near: TcpStream,
    far: JoinHandle<io::Result<TcpStream>>,
}

impl LoopbackFlow {
    pub(crate) fn open(control: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let near = TcpStream::connect(listener.local_addr()?)?;
        LoopbackFlow::between(control, near, &listener)
    }

    /// Opens a flow from `near`, which uses `control`, to `listener`.
    pub(crate) fn between(control: &str, near: TcpStream, listener: &TcpListener) -> io::Result<Self> {
        choose(&near, control)?;
        let (mut peer, _) = listener.accept()?;
        let far = thread::spawn(move || io::copy(&mut peer, &mut io::sink()).map(|_| peer));
        Ok(LoopbackFlow { near, far })
    }

    pub(crate) fn send(mut self, bytes: usize) -> io::Result<TransferReport> {
        let chunk = vec![0; bytes.min(64 << 10)];
        for _ in 0..bytes.div_ceil(chunk.len()) {
            self.near.write_all(&chunk)?;
        }
        // The report is about all of it: how much has been sent when the last write returns depends on the machine. The peer
        // stays open, because the kernel forgets a connection that both ends have closed.
        self.near.shutdown(Shutdown::Write)?;
        let _peer = self.far.join().expect("the reader does not panic")?;
        report(&self.near)
    }
}

pub(crate) fn over_loopback(control: &str, bytes: usize) -> io::Result<TransferReport> {
    LoopbackFlow::open(control)?.send(bytes)
}

fn choose(stream: &TcpStream, control: &str) -> io::Result<()> {
    let length = libc::socklen_t::try_from(control.len()).expect("a short name");
    // SAFETY: the kernel reads `length` bytes of a live string.
    let rc = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            control.as_ptr().cast(),
            length,
        )
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn chosen(stream: &TcpStream) -> io::Result<String> {
    let mut name = [0u8; 16];
    ask(stream, libc::TCP_CONGESTION, &mut name)?;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// Reads `tcpi_snd_cwnd` at byte 80 and `tcpi_total_retrans` at byte 100 of struct tcp_info
/// (include/uapi/linux/tcp.h).
fn report(stream: &TcpStream) -> io::Result<TransferReport> {
    let mut info = [0u8; 104];
    ask(stream, libc::TCP_INFO, &mut info)?;
    let field = |at: usize| u32::from_ne_bytes(info[at..at + 4].try_into().expect("four bytes"));
    Ok(TransferReport { control: chosen(stream)?, window: field(80), sent_again: field(100) })
}

fn ask(stream: &TcpStream, option: libc::c_int, into: &mut [u8]) -> io::Result<()> {
    let mut length = libc::socklen_t::try_from(into.len()).expect("a short buffer");
    // SAFETY: the kernel writes at most `length` bytes, the buffer's length.
    let rc = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            into.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Changes this thread's user to `nobody`. The raw system call changes this thread alone; the library's function would
/// change all threads.
pub(crate) fn drop_privileges() {
    const NOBODY: libc::c_long = 65534;
    // SAFETY: no memory is passed.
    let rc = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
    // If it fails because this is not root, there are no privileges to drop.
    assert!(rc == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM));
}
