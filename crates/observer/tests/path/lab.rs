//! The lab `back-to-back`, and traffic between its two hosts.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_lab::topology::{LabHost, with_namespace};
use parking_lot::{Mutex, MutexGuard};

use crate::cost::pin;

/// Serialises the tests, because they count descriptors of the whole process.
static ONE: Mutex<()> = Mutex::new(());

/// Returns the reason why these tests cannot run on this machine; `None` if they can.
pub(crate) fn unable() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".into());
    }
    landspeed_observer::observer("path").expect("it is in the table").can_run().err()
}

/// A host of the lab.
pub(crate) struct ObservedHost(LabHost);

impl ObservedHost {
    pub(crate) fn device(&self) -> &str {
        &self.0.device
    }

    pub(crate) fn address(&self) -> Ipv4Addr {
        self.0.v4
    }

    /// Runs `work` on a thread in the host's namespace.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        with_namespace(&self.0.netns, work).expect("enter")
    }

    /// Runs another program in the host's namespace; it must succeed. LINK is replaced by the host's device.
    pub(crate) fn tool(&self, line: &str) {
        let line = line.replace("LINK", self.device());
        let mut words = line.split(' ');
        let output = self.run(|| {
            let program = words.next().expect("a program");
            Command::new(program).args(words).output().unwrap_or_else(|e| panic!("{program}: {e}"))
        });
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The two hosts, and the lock that excludes other tests.
pub(crate) struct TestLab {
    pub(crate) a: ObservedHost,
    pub(crate) b: ObservedHost,
    _lab: landspeed_lab::topology::Lab,
    _alone: MutexGuard<'static, ()>,
}

impl TestLab {
    /// Creates the lab; if that fails, prints the reason on standard output and returns `None`.
    pub(crate) fn new() -> Option<Self> {
        let alone = ONE.lock();
        if let Some(why) = unable() {
            println!("SKIP: {why}");
            return None;
        }
        let lab = landspeed_lab::topology::Lab::open("lab:back-to-back").expect("a lab");
        let [a, b] = [0, 1].map(|at| ObservedHost(lab.hosts()[at].clone()));
        Some(TestLab { a, b, _lab: lab, _alone: alone })
    }

    /// Opens a connection from A to B.
    pub(crate) fn connection(&self) -> (TcpStream, TcpStream) {
        let listener = self.b.run(|| TcpListener::bind((self.b.address(), 0)).expect("listen"));
        let to = listener.local_addr().expect("bound");
        let client =
            self.a.run(|| TcpStream::connect_timeout(&to, Duration::from_secs(10)).expect("connect"));
        let (server, _) = listener.accept().expect("accept");
        (client, server)
    }
}

/// A transfer that continues until it is dropped.
pub(crate) struct Transfer {
    pub(crate) client: TcpStream,
    pub(crate) server: TcpStream,
    received: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Transfer {
    /// Starts writes of `bytes` from A to B, where they are read in pieces of at most the same size.
    pub(crate) fn start(lab: &TestLab, bytes: usize) -> Self {
        Self::start_on(lab, bytes, None)
    }

    /// Starts writes of `bytes` from A to B. If `core` is given, both ends run on this processor.
    pub(crate) fn start_on(lab: &TestLab, bytes: usize, core: Option<usize>) -> Self {
        let (client, server) = lab.connection();
        let (mut writer, mut reader) = (client.try_clone().expect("dup"), server.try_clone().expect("dup"));
        let received = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&received);
        let write = move || {
            core.into_iter().for_each(pin);
            while writer.write_all(&vec![7; bytes]).is_ok() {}
        };
        let read = move || {
            core.into_iter().for_each(pin);
            let mut buffer = vec![0; bytes];
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                counted.fetch_add(n as u64, Ordering::Relaxed);
            }
        };
        let threads = vec![std::thread::spawn(write), std::thread::spawn(read)];
        Transfer { client, server, received, threads }
    }

    /// Returns the number of bytes read so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(crate) fn server_address(&self) -> SocketAddr {
        self.server.local_addr().expect("bound")
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        for end in [&self.client, &self.server] {
            match end.shutdown(std::net::Shutdown::Both) {
                Err(e) if e.kind() != ErrorKind::NotConnected => println!("shutdown: {e}"),
                _ => {}
            }
        }
        for thread in self.threads.drain(..) {
            thread.join().expect("the transfer's thread");
        }
    }
}

/// A thread that calls a function repeatedly until this value is dropped.
pub(crate) struct RepeatingThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RepeatingThread {
    pub(crate) fn start(mut work: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                work();
            }
        });
        RepeatingThread { stop, thread: Some(thread) }
    }
}

impl Drop for RepeatingThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_some_and(|ended| ended.is_ok()) || std::thread::panicking(), "a thread panicked");
    }
}

/// Returns the number of BPF links and the number of BPF programs that this process has open.
pub(crate) fn held() -> (usize, usize) {
    let own = std::fs::read_dir("/proc/self/fd").expect("descriptors");
    let targets: Vec<_> = own.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok()).collect();
    let count = |what: &str| targets.iter().filter(|target| target.to_string_lossy().contains(what)).count();
    (count("bpf_link") + count("bpf-link"), count("bpf-prog"))
}

/// Makes a tun device of `host`, up, whose packets this process reads without blocking.
pub(crate) fn tun(host: &ObservedHost, name: &str, address: &str) -> File {
    /// The value in linux/if_tun.h.
    const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
    let file = host.run(|| {
        let mut how = File::options();
        let how = how.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let file = how.open("/dev/net/tun").expect("/dev/net/tun");
        // SAFETY: all of ifreq may be zero.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from.cast_signed();
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
        // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
        let rc = unsafe { libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&file), TUNSETIFF, &raw mut request) };
        assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
        file
    });
    host.tool(&format!("ip address add {address} dev {name}"));
    host.tool(&format!("ip link set {name} up"));
    file
}
