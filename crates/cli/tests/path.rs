//! Programs over paths below their sockets: real programs, on loopback and between network namespaces.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use support::ours::{signal, within};
use support::{LANDSPEED, text};

/// What the test's own program does, where it is run as one: a word and its arguments.
const PROGRAM: &str = "LANDSPEED_PATH_PROGRAM";
/// Where it listens, or connects to: the host itself, unless this says otherwise.
const ADDRESS: &str = "LANDSPEED_PATH_ADDRESS";
/// Nothing here takes longer.
const LIMIT: Duration = Duration::from_secs(20);

/// The programs that run over paths. As a test it does nothing.
#[test]
fn program() {
    let Ok(does) = std::env::var(PROGRAM) else { return };
    let words: Vec<&str> = does.split(' ').collect();
    let number = |at: usize| words[at].parse::<usize>().expect("a number");
    match words[0] {
        "serve" => serve(number(1), number(2)),
        "ask" => (0..number(2)).for_each(|_| ask(number(1), number(3))),
        "ask-in-epoll" => entangled(number(1), true),
        "ask-duplicated" => entangled(number(1), false),
        "ask-without-waiting" => ask_without_waiting(number(1)),
        "ask-itself-in-signals" => ask_itself_in_signals(number(1)),
        "serve-on" => serve_on(),
        "greet-on" => greet_on(),
        "burst" => (0..number(2)).for_each(|_| burst(number(1), number(3))),
        "greeted" => (0..number(2)).for_each(|_| greeted(number(1))),
        "ask-timed" => ask_timed(number(1)),
        "connect-timed" => connect_timed(number(1), number(2)),
        "ask-slowly" => ask_slowly(number(1)),
        "ask-on" => ask_on(number(1), number(2)),
        other => panic!("{other}"),
    }
    std::process::exit(0);
}

fn at(port: usize) -> SocketAddr {
    let address =
        std::env::var(ADDRESS).map_or(Ipv4Addr::LOCALHOST, |text| text.parse().expect("an address"));
    SocketAddr::from((address, port as u16))
}

/// Sends back what comes, connection after connection. Says its port first.
fn serve(connections: usize, port: usize) {
    let listener = TcpListener::bind(at(port)).expect("a port");
    println!("\nport {}", listener.local_addr().expect("an address").port());
    let mut answering = Vec::new();
    for _ in 0..connections {
        let (mut stream, from) = listener.accept().expect("a connection");
        assert_eq!(stream.peer_addr().expect("an address"), from);
        stream.set_nodelay(true).expect("an option of TCP");
        answering.push(std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = stream.read(&mut bytes)
                && count > 0
                && stream.write_all(&bytes[..count]).is_ok()
            {}
        }));
    }
    // The last answers are still under way.
    answering.into_iter().for_each(|thread| drop(thread.join()));
}

/// Sends back what comes, in many threads that all accept, until it is killed.
fn serve_on() {
    let listener = TcpListener::bind(at(0)).expect("a port");
    println!("\nport {}", listener.local_addr().expect("an address").port());
    std::thread::scope(|threads| {
        for _ in 0..16 {
            threads.spawn(|| {
                for stream in listener.incoming() {
                    let mut stream = stream.expect("a connection");
                    std::thread::spawn(move || std::io::copy(&mut stream.try_clone()?, &mut stream));
                }
            });
        }
    });
}

/// Speaks first, and closes first, until it is killed.
fn greet_on() {
    let listener = TcpListener::bind(at(0)).expect("a port");
    println!("\nport {}", listener.local_addr().expect("an address").port());
    for stream in listener.incoming() {
        stream.expect("a connection").write_all(b"220 hello\r\n").expect("sent");
    }
}

fn greeted(port: usize) {
    let mut came = Vec::new();
    connected(port).read_to_end(&mut came).expect("all of it");
    assert_eq!(came, b"220 hello\r\n");
}

/// So many connections at once, each with bytes of its own.
fn burst(port: usize, connections: usize) {
    std::thread::scope(|threads| {
        (0..connections).for_each(|own| drop(threads.spawn(move || ask(port, 20 + own))));
    });
}

/// Asks until its input ends, and says how long the slowest answer took.
fn ask_timed(port: usize) {
    let over = until_input_ends();
    println!("\nasking");
    let mut slowest = Duration::ZERO;
    while !over() {
        let began = std::time::Instant::now();
        ask(port, 10);
        slowest = slowest.max(began.elapsed());
    }
    println!("\nslowest {}", slowest.as_millis());
}

/// Opens connections, and says how long the slowest took.
fn connect_timed(port: usize, connections: usize) {
    let mut all = Vec::new();
    let timed = |_| {
        let began = std::time::Instant::now();
        all.push(connected(port));
        began.elapsed()
    };
    let slowest = (0..connections).map(timed).max().expect("some");
    println!("\nslowest {}", slowest.as_millis());
}

fn until_input_ends() -> impl Fn() -> bool {
    let (ended, until) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(ended);
    });
    move || until.try_recv() != Err(std::sync::mpsc::TryRecvError::Empty)
}

fn connected(port: usize) -> TcpStream {
    let stream = TcpStream::connect(at(port)).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).expect("an option");
    assert_eq!(stream.peer_addr().expect("an address"), at(port));
    assert!(stream.local_addr().expect("an address").port() > 0);
    stream
}

/// Sends bytes, and wants the same ones back, and then the end.
fn ask(port: usize, bytes: usize) {
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

/// A byte there and back, each time that a line comes in.
fn ask_slowly(port: usize) {
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

/// Asks in so many threads until its input ends. A connection may fail, and says so; it may not hang, lose bytes or change them.
fn ask_on(port: usize, threads: usize) {
    let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    println!("\nasking");
    let ask_on = move |over: Arc<std::sync::atomic::AtomicBool>| {
        let mut asked = 0_u32;
        while !over.load(std::sync::atomic::Ordering::Acquire) {
            match try_ask(port) {
                Ok(()) => asked += 1,
                Err(why) => println!("\nfailed: after {asked}: {why}"),
            }
        }
        asked
    };
    let all: Vec<_> = (0..threads)
        .map(|_| {
            std::thread::spawn({
                let over = Arc::clone(&over);
                move || ask_on(over)
            })
        })
        .collect();
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    over.store(true, std::sync::atomic::Ordering::Release);
    let asked: u32 = all.into_iter().map(|thread| thread.join().expect("a thread")).sum();
    println!("\nasked {asked}");
}

fn try_ask(port: usize) -> std::io::Result<()> {
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

/// Connects a socket that is more than one descriptor.
fn entangled(port: usize, in_epoll: bool) {
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

/// Connects to itself while signals come all the time, with a handler that has calls made again (SA_RESTART).
fn ask_itself_in_signals(connections: usize) {
    signal_hook::flag::register(libc::SIGALRM, Arc::default()).expect("a handler");
    // SAFETY: a number.
    let own = unsafe { libc::pthread_self() };
    std::thread::spawn(move || {
        loop {
            // SAFETY: that thread ends with this process.
            unsafe { libc::pthread_kill(own, libc::SIGALRM) };
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

/// Connects as event loops do, and looks at what the socket says that it is.
fn ask_without_waiting(port: usize) {
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
    let mut stream = TcpStream::from(fd);
    stream.set_nonblocking(false).expect("an option");
    stream.write_all(b"x").expect("sent");
    stream.read_exact(&mut [0]).expect("came");
}

/// One of the programs, alone or over a path, with the options that follow its name.
fn command(over: Option<&str>, does: &str) -> Command {
    let own = std::env::current_exe().expect("this program");
    let mut command = match over {
        Some(path) => {
            let mut command = Command::new(LANDSPEED);
            command.args(["exec", "--json", "--path"]).args(path.split(' ')).arg("--").arg(own);
            command
        }
        None => Command::new(own),
    };
    command.args(["--exact", "program", "--nocapture", "--quiet"]).env(PROGRAM, does);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server that runs; it is killed in the end, whatever happens.
struct Server {
    child: Child,
    port: u16,
    out: BufReader<ChildStdout>,
}

impl Server {
    fn start(over: Option<&str>, connections: usize) -> Self {
        Server::of(command(over, &format!("serve {connections} 0")))
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().expect("it runs");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let port = said(&mut out, "port ").parse().expect("a port");
        Server { child, port, out }
    }

    /// What its path counted, once it has ended.
    fn counts(mut self) -> Value {
        assert!(within_mut(|| self.child.try_wait().expect("a child").is_some()), "the server goes on");
        let mut err = String::new();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
        counts(&err)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Told to end, landspeed tells its program.
        if matches!(self.child.try_wait(), Ok(None)) {
            signal(self.child.id() as i32, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

fn within_mut(mut holds: impl FnMut() -> bool) -> bool {
    let until = std::time::Instant::now() + LIMIT;
    while std::time::Instant::now() < until {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// The rest of the first line that begins like this.
fn said(out: &mut impl BufRead, begin: &str) -> String {
    let mut lines = out.lines().map(|line| line.expect("a line"));
    lines.find_map(|line| line.strip_prefix(begin).map(str::to_owned)).expect("it is said")
}

fn counts(err: &str) -> Value {
    let line = err.lines().find(|line| line.starts_with("{\"path\"")).unwrap_or_else(|| panic!("{err}"));
    serde_json::from_str(line).expect("JSON")
}

/// A client that ends well, and what its path counted.
fn client(over: Option<&str>, does: &str) -> Value {
    let out = run(over, does);
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    over.map(|_| counts(&err)).unwrap_or_default()
}

fn run(over: Option<&str>, does: &str) -> Output {
    command(over, does).output().expect("it runs")
}

/// Whether the kernel lets programs have their calls answered by others.
fn carries() -> bool {
    can("local")
}

/// Whether this host has what a path needs.
fn can(path: &str) -> bool {
    let out = run(Some(path), "ask 1 0 0");
    if !out.status.success() {
        support::skip(&text(&out).1);
    }
    out.status.success()
}

#[test]
fn programs_that_both_run_over_the_path_are_carried_and_see_the_addresses_of_tcp() {
    if !carries() {
        return;
    }
    let server = Server::start(Some("local"), 20);
    let port = server.port;
    let seen = client(Some("local"), &format!("ask {port} 20 300000"));
    assert_eq!((&seen["carried"], &seen["left"]), (&20.into(), &serde_json::json!({})), "{seen}");
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]), (&20.into(), &serde_json::json!({})), "{seen}");
}

#[test]
fn a_connection_without_a_peer_on_the_path_stays_on_tcp_and_is_counted_with_the_reason() {
    if !carries() {
        return;
    }
    let server = Server::start(None, 3);
    let does = format!("ask {} 3 100000", server.port);
    let seen = client(Some("local"), &does);
    assert_eq!((&seen["carried"], &seen["left"]["no-peer"]), (&0.into(), &3.into()), "{seen}");

    let server = Server::start(Some("local"), 3);
    client(None, &format!("ask {} 3 100000", server.port));
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]["stranger"]), (&0.into(), &3.into()), "{seen}");
}

#[test]
fn a_socket_that_is_more_than_one_descriptor_stays_on_tcp() {
    if !carries() {
        return;
    }
    let server = Server::start(Some("local"), 2);
    for (does, why) in [("ask-in-epoll", "in-epoll"), ("ask-duplicated", "duplicated")] {
        let seen = client(Some("local"), &format!("{does} {}", server.port));
        assert_eq!((&seen["carried"], &seen["left"][why]), (&0.into(), &1.into()), "{seen}");
    }
}

#[test]
fn connections_that_were_not_chosen_stay_on_tcp_and_are_not_counted() {
    if !carries() {
        return;
    }
    let server = Server::start(Some("local"), 5);
    let does = format!("ask {} 1 100000", server.port);
    let over = |only: &str| {
        let seen = client(Some(&format!("local {only}")), &does);
        assert_eq!(seen["left"], serde_json::json!({}), "{seen}");
        seen["carried"].as_u64().expect("a count")
    };
    assert_eq!(over(&format!("--only {}", server.port)), 1);
    assert_eq!(over("--only 1 --only 127.0.0.0/8 --require"), 1);
    assert_eq!(over("--only 1"), 0);
    assert_eq!(over("--only 10.0.0.0/8 --only fd00::/8"), 0);
    assert_eq!(over("--only ::ffff:127.0.0.1"), 1);
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]["stranger"]), (&3.into(), &2.into()), "{seen}");

    // And where the one who accepts chooses, the other end goes on over TCP at once.
    let server = Server::start(Some("local --only 10.0.0.0/8 --only 1"), 2);
    let seen = client(Some("local"), &format!("ask {} 2 100000", server.port));
    assert_eq!((&seen["carried"], &seen["left"]["not-accepted"]), (&0.into(), &2.into()), "{seen}");
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]), (&0.into(), &serde_json::json!({})), "{seen}");
}

#[test]
fn a_choice_that_is_none_or_that_a_path_cannot_make_is_refused() {
    for (over, says) in [
        ("local --only 70000", "a port is a number from 1 to 65535"),
        ("local --only http", "this is neither a port (6379) nor a network"),
        ("local --only 10.0.0.1/8", "write 10.0.0.0/8"),
        ("mptcp --only 80", "mptcp cannot choose between connections: a socket is made before"),
    ] {
        let out = run(Some(over), "ask 1 0 0");
        let (_, err) = text(&out);
        assert!(!out.status.success() && err.contains(says), "{over}: {err}");
    }
}

#[test]
fn bytes_of_carried_connections_are_counted() {
    if !support::root() {
        return;
    }
    for path in ["local", "mptcp"].into_iter().filter(|path| can(path)) {
        let over = format!("{path} --bytes");
        let server = Server::start(Some(&over), 4);
        let seen = client(Some(&over), &format!("ask {} 3 300000", server.port));
        if let Some(why) = seen["no_bytes"].as_str() {
            return support::skip(why);
        }
        assert_eq!(
            (&seen["bytes_sent"], &seen["bytes_received"]),
            (&900_000.into(), &900_000.into()),
            "{seen}"
        );
        if path == "mptcp" {
            let seen = client(Some(&over), &format!("ask-without-waiting {}", server.port));
            assert_eq!((&seen["bytes_sent"], &seen["bytes_received"]), (&1.into(), &1.into()), "{seen}");
        } else {
            client(Some(&over), &format!("ask {} 1 1", server.port));
        }
        let seen = server.counts();
        assert_eq!(
            (&seen["bytes_sent"], &seen["bytes_received"]),
            (&900_001.into(), &900_001.into()),
            "{seen}"
        );
        // What stays on TCP is not counted.
        let server = Server::start(None, 1);
        let seen = client(Some(&over), &format!("ask {} 1 1000", server.port));
        assert_eq!((&seen["bytes_sent"], &seen["bytes_received"]), (&0.into(), &0.into()), "{seen}");
    }
}

#[test]
fn where_bytes_cannot_be_counted_connections_are_and_the_reason_is_said() {
    if !support::root() || !carries() {
        return;
    }
    // Root without any of its rights.
    let ours = command(Some("local --bytes"), "ask 1 0 0");
    let mut without = Command::new("setpriv");
    without.args(["--inh-caps=-all", "--bounding-set=-all"]).arg(ours.get_program()).args(ours.get_args());
    let out = without.env(PROGRAM, "ask 1 0 0").output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    let seen = counts(&err);
    assert!(seen["no_bytes"].as_str().is_some_and(|why| why.contains("run landspeed as root")), "{seen}");
    assert_eq!((&seen["carried"], seen.get("bytes_sent")), (&0.into(), None), "{seen}");
}

#[test]
fn sockets_become_those_of_multipath_tcp_and_the_program_does_not_see_it() {
    if !can("mptcp") {
        return;
    }
    let server = Server::start(Some("mptcp"), 20);
    let seen = client(Some("mptcp"), &format!("ask {} 20 300000", server.port));
    assert_eq!((&seen["carried"], &seen["left"]), (&20.into(), &serde_json::json!({})), "{seen}");
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]), (&20.into(), &serde_json::json!({})), "{seen}");

    let server = Server::start(Some("mptcp"), 1);
    client(Some("mptcp"), &format!("ask-without-waiting {}", server.port));
    assert_eq!(server.counts()["carried"], 1);
}

#[test]
fn calls_that_signals_end_are_made_again() {
    if can("mptcp") {
        let seen = client(Some("mptcp"), "ask-itself-in-signals 300");
        assert_eq!((&seen["carried"], &seen["left"]), (&600.into(), &serde_json::json!({})), "{seen}");
    }
}

#[test]
fn multipath_tcp_with_an_end_that_speaks_tcp_is_counted_as_a_fallback() {
    if !can("mptcp") {
        return;
    }
    let server = Server::start(None, 3);
    let seen = client(Some("mptcp"), &format!("ask {} 3 100000", server.port));
    assert_eq!((&seen["carried"], &seen["left"]["plain-peer"]), (&0.into(), &3.into()), "{seen}");

    let server = Server::start(Some("mptcp"), 3);
    client(None, &format!("ask {} 3 100000", server.port));
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]["plain-peer"]), (&0.into(), &3.into()), "{seen}");
}

#[test]
fn require_fails_where_a_connection_stayed_on_tcp() {
    let why = [
        ("local", "no program on this host that runs over this path listens there"),
        ("mptcp", "the other end, or something on the way, does not speak Multipath TCP"),
    ];
    for (path, why) in why.into_iter().filter(|(path, _)| can(path)) {
        let server = Server::start(None, 1);
        let own = std::env::current_exe().expect("this program");
        let mut required = Command::new(LANDSPEED);
        required.args(["exec", "--path", path, "--require", "--"]).arg(own);
        required.args(["--exact", "program", "--nocapture"]);
        let out = required.env(PROGRAM, format!("ask {} 1 10", server.port)).output().expect("it runs");
        let (_, err) = text(&out);
        assert_eq!(out.status.code(), Some(1), "{err}");
        assert!(err.contains(&format!("{path} carried 0 of 1 connection\n")), "{err}");
        assert!(err.contains(&format!("1 stayed on TCP: {why}")), "{err}");
    }
}

#[test]
fn a_program_outlives_its_supervisor_and_what_was_carried_goes_on() {
    ["local", "mptcp"].into_iter().filter(|path| can(path)).for_each(outlives);
}

fn outlives(path: &str) {
    let mut server = Server::start(Some(path), 100);
    let mut asking = command(Some(path), &format!("ask-slowly {}", server.port));
    let mut asking = asking.stdin(Stdio::piped()).spawn().expect("it runs");
    let mut to = asking.stdin.take().expect("a pipe");
    let mut from = BufReader::new(asking.stdout.take().expect("a pipe"));
    let mut ask = |word: &str| {
        writeln!(to, "{word}").expect("a line");
        assert_eq!(said(&mut from, "came "), format!("{word} from {}", server.port));
    };
    ask("before");
    for (number, supervisor) in [asking.id(), server.child.id()].into_iter().enumerate() {
        signal(supervisor as i32, Signal::KILL);
        ask(&format!("after-{number}"));
    }
    drop(to);
    asking.wait().expect("a child");
    // The server's own program goes on too, until it is ended by its port.
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).is_ok());
    for _ in 0..100 {
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port));
    }
    let gone = || TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).is_err();
    assert!(within(LIMIT, gone), "the server goes on");
    let mut rest = String::new();
    server.out.read_to_string(&mut rest).expect("text");
}

/// The program that a supervisor runs.
fn program_of(supervisor: u32) -> i32 {
    let children = format!("/proc/{supervisor}/task/{supervisor}/children");
    let read = || std::fs::read_to_string(&children).unwrap_or_default();
    let is_program = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.starts_with(b"/proc/self/exe"))
    };
    let found = || read().split_whitespace().filter_map(|pid| pid.parse().ok()).find(is_program);
    assert!(within(LIMIT, || found().is_some()), "it has no program");
    found().expect("a program")
}

#[test]
fn whoever_is_killed_nothing_hangs_and_no_byte_is_lost() {
    ["local", "mptcp"].into_iter().filter(|path| can(path)).for_each(kills);
}

fn kills(path: &str) {
    // `make kills` draws more of them.
    let count: u64 = std::env::var("LANDSPEED_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    for number in 0..count {
        let mut server = Server::start(Some(path), 1_000_000);
        let threads = if path == "local" { 8 } else { 1 };
        let mut asking = command(Some(path), &format!("ask-on {} {threads}", server.port));
        let mut asking = asking.stdin(Stdio::piped()).spawn().expect("it runs");
        let (own, others) = (asking.id(), server.child.id());
        let programs = [program_of(own), program_of(others)];
        let mut from = BufReader::new(asking.stdout.take().expect("a pipe"));
        crate::said(&mut from, "asking");
        // The moments of one victim are spread over a good many connections.
        std::thread::sleep(Duration::from_micros(5_000 + number * 7_919 % 60_000));
        let victim = number % 4;
        let killed = [own as i32, others as i32, programs[0], programs[1]][victim as usize];
        signal(killed, Signal::KILL);
        std::thread::sleep(Duration::from_millis(60));
        drop(asking.stdin.take());
        if victim == 2 {
            ask(server.port.into(), 5000);
        }
        let mut said = String::new();
        from.read_to_string(&mut said).expect("text");
        asking.wait().expect("a child");
        programs.iter().for_each(|pid| signal(*pid, Signal::KILL));
        let mut err = String::new();
        let mut told = server.child.stderr.take().expect("a pipe");
        told.read_to_string(&mut err).expect("text");
        let failed = said.lines().filter(|line| line.starts_with("failed")).count();
        match victim {
            // What the supervisor had accepted at that moment, and not noted yet, is reset.
            0 | 1 => assert!(failed <= 1 && said.contains("\nasked "), "{path}: {victim}: {said}{err}"),
            _ => assert!(victim == 2 || said.contains("\nasked "), "{said}{err}"),
        }
    }
}

/// How late supervisors are, in milliseconds at most: now and then, at any of their steps. Not in a release build.
const LATE: &str = "LANDSPEED_PATH_LATE";

#[test]
fn in_bursts_with_late_supervisors_every_byte_is_equal() {
    if !carries() {
        return;
    }
    // `make path-bursts` makes more of them.
    let count: Option<u64> = std::env::var("LANDSPEED_BURSTS").ok().and_then(|text| text.parse().ok());
    let (bursts, connections, late) = count.map_or((3, 60, "120"), |count| (count, 200, "500"));
    let over = Some("local");
    let mut serve = command(over, "serve-on");
    serve.env(LATE, late);
    let server = Server::of(serve);
    let mut client = command(over, &format!("burst {} {bursts} {connections}", server.port));
    let out = client.env(LATE, late).output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    let seen = counts(&err);
    let left: u64 = seen["left"].as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    let carried = seen["carried"].as_u64().expect("a count");
    assert_eq!(carried + left, bursts * connections, "{seen}");
    eprintln!("{carried} of {} carried, supervisors up to {late} ms late", carried + left);
}

#[test]
fn a_stopped_supervisor_stalls_no_program_but_its_own() {
    if !carries() {
        return;
    }
    let over = Some("local");
    let server = Server::start(over, 1_000_000);
    let mut bystander = command(over, &format!("ask-timed {}", server.port));
    let mut bystander = bystander.stdin(Stdio::piped()).spawn().expect("it runs");
    let mut from = BufReader::new(bystander.stdout.take().expect("a pipe"));
    said(&mut from, "asking");
    let mut victim = command(over, &format!("ask-on {} 4", server.port));
    let mut victim = victim.env(LATE, "40").stdin(Stdio::piped()).spawn().expect("it runs");
    said(&mut BufReader::new(victim.stdout.take().expect("a pipe")), "asking");
    for round in 0..5 {
        std::thread::sleep(Duration::from_millis(30 + round * 7));
        signal(victim.id() as i32, Signal::STOP);
        std::thread::sleep(Duration::from_millis(200));
        signal(victim.id() as i32, Signal::CONT);
    }
    signal(program_of(victim.id()), Signal::KILL);
    victim.wait().expect("a child");
    // It goes on while the one of a client is stopped; a second is far more than the 50 ms, and far less than what one waited before.
    drop(bystander.stdin.take());
    let slowest: u64 = said(&mut from, "slowest ").parse().expect("a number");
    bystander.wait().expect("a child");
    assert!(slowest < 1000, "{slowest} ms");

    signal(server.child.id() as i32, Signal::STOP);
    let out = run(over, &format!("connect-timed {} 5", server.port));
    signal(server.child.id() as i32, Signal::CONT);
    let (told, err) = text(&out);
    let slowest: u64 = said(&mut told.as_bytes(), "slowest ").parse().expect("a number");
    assert!(slowest < 1000 && counts(&err)["carried"] == 0, "{slowest} ms, {err}");
}

#[test]
fn connections_in_a_row_need_few_ports_and_leave_no_time_wait() {
    if !support::root() || !carries() {
        return;
    }
    let count: u64 = std::env::var("LANDSPEED_BURSTS").map_or(600, |_| 10_000);
    let namespaces = Namespaces::new("ports");
    let name = &namespaces.0[0];
    let mut narrow = Command::new("ip");
    narrow.args(["netns", "exec", name, "sysctl", "-qw", "net.ipv4.ip_local_port_range=42000 42199"]);
    assert!(narrow.status().expect("it runs").success());
    for (serves, asks) in [("serve-on", "ask PORT COUNT 10"), ("greet-on", "greeted PORT COUNT")] {
        let server = Server::of(namespaces.command(0, "127.0.0.1", Some("local"), serves));
        let does = asks.replace("PORT", &server.port.to_string()).replace("COUNT", &count.to_string());
        let out = namespaces.command(0, "127.0.0.1", Some("local"), &does).output().expect("it runs");
        let (said, err) = text(&out);
        assert!(out.status.success(), "{does}: {said}{err}");
        let sockets = support::sh(&format!("ip netns exec {name} cat /proc/net/tcp"));
        let left = counts(&err)["left"].to_string();
        let waiting = sockets.lines().filter(|line| line.split_whitespace().nth(3) == Some("06")).count();
        assert!(waiting == 0 || left != "{}", "{waiting} in TIME-WAIT, {left}");
    }
}

/// Network namespaces of the test's own, on one network.
struct Namespaces([String; 2]);

impl Namespaces {
    /// Those of one test: others run at the same time.
    fn new(test: &str) -> Self {
        let names = ["a", "b"].map(|end| format!("path-{}-{test}-{end}", std::process::id()));
        let [a, b] = &names;
        for command in [
            format!("ip netns add {a}"),
            format!("ip netns add {b}"),
            format!("ip link add v0 netns {a} type veth peer name v0 netns {b}"),
            format!("ip -n {a} addr add 10.99.7.1/24 dev v0"),
            format!("ip -n {b} addr add 10.99.7.2/24 dev v0"),
        ] {
            support::sh(&command);
        }
        for name in &names {
            support::sh(&format!("ip -n {name} link set lo up"));
            support::sh(&format!("ip -n {name} link set v0 up"));
        }
        Namespaces(names)
    }

    /// The program in one of them.
    fn command(&self, at: usize, address: &str, over: Option<&str>, does: &str) -> Command {
        let inner = command(over, does);
        let mut outer = Command::new("ip");
        outer.args(["netns", "exec", &self.0[at]]).arg(inner.get_program()).args(inner.get_args());
        outer.env(PROGRAM, does).env(ADDRESS, address);
        outer.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        outer
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

#[test]
fn two_network_namespaces_are_one_host_and_equal_addresses_in_them_are_two() {
    if !support::root() || !carries() {
        return;
    }
    let namespaces = Namespaces::new("hosts");
    let local = Some("local");
    let server = Server::of(namespaces.command(0, "10.99.7.1", local, "serve 5 0"));
    let does = format!("ask {} 5 100000", server.port);
    let out = namespaces.command(1, "10.99.7.1", local, &does).output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    assert_eq!(counts(&err)["carried"], 5, "{err}");
    assert_eq!(server.counts()["carried"], 5);

    // Both have a server at one address and port; only that of the other namespace runs over the path.
    let other = Server::of(namespaces.command(0, "127.0.0.1", local, "serve 100 0"));
    let own = Server::of(namespaces.command(1, "127.0.0.1", None, &format!("serve 3 {}", other.port)));
    let does = format!("ask {} 3 100000", own.port);
    let out = namespaces.command(1, "127.0.0.1", local, &does).output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    assert_eq!(
        (&counts(&err)["carried"], &counts(&err)["left"]["not-accepted"]),
        (&0.into(), &3.into()),
        "{err}"
    );
}

/// A second link between the namespaces. A shaper makes both narrow, so that one alone does not carry everything.
fn join_again(Namespaces([a, b]): &Namespaces) {
    support::sh(&format!("ip link add v1 netns {a} type veth peer name v1 netns {b}"));
    for (name, number) in [(a, 1), (b, 2)] {
        for command in [
            format!("ip -n {name} addr add 10.99.8.{number}/24 dev v1"),
            format!("ip -n {name} link set v1 up"),
            format!("tc -n {name} qdisc add dev v0 root tbf rate 200mbit burst 64kb latency 50ms"),
            format!("tc -n {name} qdisc add dev v1 root tbf rate 200mbit burst 64kb latency 50ms"),
            // Without checksums, Linux 6.18 gave other bytes in 1 of 150 such connections, also where landspeed had no part in it.
            format!("ip netns exec {name} sysctl -qw net.mptcp.checksum_enabled=1"),
            format!("ip -n {name} mptcp limits set subflow 2 add_addr_accepted 2"),
        ] {
            support::sh(&command);
        }
    }
    support::sh(&format!("ip -n {b} mptcp endpoint add 10.99.8.2 dev v1 subflow"));
}

#[test]
fn multipath_tcp_carries_a_program_over_two_links() {
    if !support::root() || !can("mptcp") {
        return;
    }
    let namespaces = Namespaces::new("links");
    join_again(&namespaces);
    let over = Some("mptcp");
    let server = Server::of(namespaces.command(0, "10.99.7.1", over, "serve 5 0"));
    let sent = |link: &str| {
        let told = support::sh(&format!("ip -n {} -s -j link show {link}", namespaces.0[1]));
        let told: Value = serde_json::from_str(&told).expect("JSON");
        told[0]["stats64"]["tx"]["bytes"].as_u64().expect("a count")
    };
    // A server that is not ready for it refuses a second subflow, and the kernel does not ask again: not all connections have one.
    // The program enters its namespace itself: the sockets must be of that one.
    let does = format!("ask {} 5 4000000", server.port);
    let program = command(None, &does);
    let mut client = Command::new(LANDSPEED);
    client.args(["exec", "--json", "--path", "mptcp", "--", "ip", "netns", "exec", &namespaces.0[1]]);
    client.arg(program.get_program()).args(program.get_args()).env(PROGRAM, does).env(ADDRESS, "10.99.7.1");
    let out = client.output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    assert_eq!(counts(&err)["carried"], 5, "{err}");
    assert_eq!(server.counts()["carried"], 5);
    for link in ["v0", "v1"] {
        assert!(sent(link) > 1_000_000, "{link} carried {}", sent(link));
    }
}
