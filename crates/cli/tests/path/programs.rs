//! The programs that run over paths.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{ADDRESS, LIMIT};

/// Exit code of a program that may not start another thread.
pub(crate) const NO_THREAD: i32 = 75;

pub(crate) fn at(port: usize) -> SocketAddr {
    let address =
        std::env::var(ADDRESS).map_or(Ipv4Addr::LOCALHOST, |text| text.parse().expect("an address"));
    SocketAddr::from((address, port as u16))
}

/// Prints its port, then accepts `connections` and echoes what arrives on them.
pub(crate) fn serve(connections: usize, port: usize) {
    let listener = TcpListener::bind(at(port)).expect("a port");
    println!("\nport {}", listener.local_addr().expect("an address").port());
    let mut answering = Vec::new();
    for _ in 0..connections {
        let (stream, from) = listener.accept().expect("a connection");
        assert_eq!(stream.peer_addr().expect("an address"), from);
        stream.set_nodelay(true).expect("an option of TCP");
        answering.push(std::thread::spawn(move || answer(stream)));
    }
    // The last answers may not be sent yet.
    answering.into_iter().for_each(|thread| drop(thread.join()));
}

/// Echoes what arrives until the stream ends.
pub(crate) fn answer(mut stream: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(count) = stream.read(&mut bytes)
        && count > 0
        && stream.write_all(&bytes[..count]).is_ok()
    {}
}

pub(crate) fn connected(port: usize) -> TcpStream {
    let stream = TcpStream::connect(at(port)).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).expect("an option");
    assert_eq!(stream.peer_addr().expect("an address"), at(port));
    assert!(stream.local_addr().expect("an address").port() > 0);
    stream
}

/// Sends bytes, and expects the same bytes and then the end of the stream.
pub(crate) fn ask(port: usize, bytes: usize) {
    let mut stream = connected(port);
    let sent: Vec<u8> = (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect();
    let writer = stream.try_clone().expect("a socket");
    let came = std::thread::scope(|threads| {
        threads.spawn(|| {
            (&writer).write_all(&sent).expect("sent");
            writer.shutdown(Shutdown::Write).expect("half closed");
        });
        let mut came = Vec::new();
        stream.read_to_end(&mut came).expect("all of it");
        came
    });
    assert!(came == sent, "{} of {} bytes", came.len(), sent.len());
}

/// Sends each line of its input, and expects the same line.
pub(crate) fn ask_slowly(port: usize) {
    let mut stream = connected(port);
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        stream.write_all(line.as_bytes()).expect("sent");
        let mut came = vec![0; line.len()];
        stream.read_exact(&mut came).expect("came");
        connected(port);
        println!(
            "\ncame {} from {}",
            String::from_utf8_lossy(&came),
            stream.peer_addr().expect("an address").port()
        );
    }
}

/// Sends requests in `threads` threads until its input ends. A connection may fail, which is printed. It must not hang,
/// and must not lose or change bytes.
pub(crate) fn ask_on(port: usize, threads: usize) {
    let over = AtomicBool::new(false);
    println!("\nasking");
    let ask_on = || {
        let mut asked = 0_u32;
        while !over.load(Ordering::Acquire) {
            match try_ask(port) {
                Ok(()) => asked += 1,
                Err(why) => println!("\nfailed: after {asked}: {why}"),
            }
        }
        asked
    };
    let asked: u32 = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(ask_on)).collect();
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        over.store(true, Ordering::Release);
        all.into_iter().map(|thread| thread.join().expect("a thread")).sum()
    });
    println!("\nasked {asked}");
}

pub(crate) fn try_ask(port: usize) -> std::io::Result<()> {
    let sent: Vec<u8> = (0..5000).map(|at| (at * 7 + at / 251) as u8).collect();
    let mut stream = TcpStream::connect(at(port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(&sent)?;
    stream.shutdown(Shutdown::Write)?;
    let mut came = Vec::new();
    let end = stream.read_to_end(&mut came);
    assert!(sent.starts_with(&came), "other bytes");
    match end {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("it hangs"),
        Err(error) => Err(error),
        Ok(_) if came.len() < sent.len() => Err(std::io::ErrorKind::UnexpectedEof.into()),
        Ok(_) => Ok(()),
    }
}

/// Connects a socket that has more than one descriptor, or is in an epoll set.
pub(crate) fn entangled(port: usize, in_epoll: bool) {
    use rustix::event::epoll;
    use rustix::net::{AddressFamily, SocketType, connect, socket};
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll set");
    let mut other = None;
    if in_epoll {
        epoll::add(&set, &fd, epoll::EventData::new_u64(7), epoll::EventFlags::IN).expect("added");
    } else {
        other = Some(fd.try_clone().expect("a descriptor"));
    }
    connect(&fd, &at(port)).expect("a connection");
    let mut stream = TcpStream::from(other.unwrap_or(fd));
    stream.write_all(b"x").expect("sent");
    stream.read_exact(&mut [0]).expect("came");
    let _ = stream.as_raw_fd();
}

/// Connects to itself under constant signals, whose handler has calls restarted (SA_RESTART). SIGALRM is left to the alarm
/// that ends this program.
pub(crate) fn ask_itself_in_signals(connections: usize) {
    signal_hook::flag::register(libc::SIGUSR1, Arc::default()).expect("a handler");
    // SAFETY: the call returns a number.
    let own = unsafe { libc::pthread_self() };
    std::thread::spawn(move || {
        loop {
            // SAFETY: the thread `own` exists as long as this process.
            unsafe { libc::pthread_kill(own, libc::SIGUSR1) };
            std::thread::sleep(Duration::from_micros(300));
        }
    });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut byte = [0];
            let _ = stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte));
        }
    });
    (0..connections).for_each(|_| ask(port.into(), 1));
}

/// Connects as event loops do, and inspects the properties of the socket.
pub(crate) fn ask_without_waiting(port: usize) {
    exchange(without_waiting(port));
}

/// Calls connect(2) again once the connection is established, as hiredis does to learn how the first call ended.
pub(crate) fn ask_twice_without_waiting(port: usize) {
    let fd = without_waiting(port);
    rustix::net::connect(&fd, &at(port)).expect("it is connected");
    exchange(fd);
}

/// Returns a non-blocking socket that has been connected.
fn without_waiting(port: usize) -> OwnedFd {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::net::{
        AddressFamily, Protocol, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd =
        socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP)).expect("a socket");
    let descriptor = rustix::io::fcntl_getfd(&fd).expect("flags");
    assert!(descriptor.contains(rustix::io::FdFlags::CLOEXEC));
    assert_eq!(sockopt::socket_protocol(&fd), Ok(Some::<Protocol>(ipproto::TCP)));
    assert_eq!(connect(&fd, &at(port)), Err(rustix::io::Errno::INPROGRESS));
    poll(&mut [PollFd::new(&fd, PollFlags::OUT)], None).expect("an event");
    assert_eq!(sockopt::socket_error(&fd), Ok(Ok(())));
    fd
}

/// Sends a byte over a non-blocking socket, and waits for its echo.
fn exchange(fd: OwnedFd) {
    let mut stream = TcpStream::from(fd);
    stream.set_nonblocking(false).expect("an option");
    stream.write_all(b"x").expect("sent");
    stream.read_exact(&mut [0]).expect("came");
}

/// Forbids itself TCP connections by Landlock (ABI 4), and tries to connect, itself and in a child process.
pub(crate) fn ask_restricted(port: usize) {
    // The handled rights: none for files, and connect(2).
    let handled: [u64; 3] = [0, 2, 0];
    // SAFETY: the kernel reads as many bytes as the length says; the other arguments are numbers.
    let restricted = unsafe {
        let rules =
            libc::syscall(libc::SYS_landlock_create_ruleset, handled.as_ptr(), size_of_val(&handled), 0);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        rules >= 0 && libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) == 0
    };
    if !restricted {
        return println!("\nno Landlock");
    }
    let word = format!("tcp {port}");
    let connects = || {
        let mut child = std::process::Command::new(std::env::current_exe().expect("this program"));
        child
            .args(["--exact", "program", "--nocapture"])
            .env(crate::PROGRAM, &word)
            .status()
            .expect("a child");
    };
    connects();
    println!("\nown {:?}", TcpStream::connect(at(port)).map(drop).map_err(|error| error.kind()));
}

/// Connects, and prints the result.
pub(crate) fn tries(port: usize) {
    println!("\nchild {:?}", TcpStream::connect(at(port)).map(drop).map_err(|error| error.kind()));
}

/// Connects as a process that no other may inspect.
pub(crate) fn ask_undumpable(port: usize) {
    // SAFETY: the call takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    ask(port, 1000);
}

/// Prints its limit of descriptors, starts a thread for each of `connections` that accepts it, and then makes them.
pub(crate) fn wait_for(connections: usize) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let at = listener.local_addr().expect("an address");
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    println!("\nlimit {:?}", limit.current);
    std::thread::scope(|threads| {
        for _ in 0..connections {
            let accepts = || listener.accept().expect("a connection");
            if std::thread::Builder::new().spawn_scoped(threads, accepts).is_err() {
                std::process::exit(NO_THREAD);
            }
        }
        std::thread::sleep(Duration::from_millis(300));
        (0..connections).for_each(|_| drop(TcpStream::connect(at).expect("a connection")));
    });
    println!("\naccepted {connections}");
}
