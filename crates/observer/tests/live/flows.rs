//! Tests what the observers of flows report about real faults, over loopback in separate namespaces.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use super::common::{OpenWatch, eventually, in_new_namespace, reads};
use landspeed_observer::WatchSubject;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{FlowWatch, IpProtocol, ListenerWatch, Observations, ProcessWatch, WatchTarget};
use rustix::net::{AddressFamily, SocketType, bind, listen, socket, sockopt};

fn pair() -> (TcpStream, TcpStream) {
    pair_on("127.0.0.1:0")
}

fn pair_on(address: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(address).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn flow_at(seen: &Observations, local: SocketAddr) -> &FlowWatch {
    let found = seen.get::<Vec<FlowWatch>>().iter().find(|flow| flow.key.local == local);
    found.unwrap_or_else(|| panic!("{local} in {:?}, {:?}", seen.get::<Vec<FlowWatch>>(), seen.unseen))
}

/// Writes until the kernel accepts no more.
fn fill(stream: &mut TcpStream) -> u64 {
    stream.set_nonblocking(true).unwrap();
    let mut written = 0;
    loop {
        match stream.write(&[7; 65_536]) {
            Ok(bytes) => written += bytes as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return written,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_reader_that_does_not_read_shows_at_both_ends() {
    in_new_namespace(|| {
        let (mut client, server) = pair();
        let (near, far) = (client.local_addr().unwrap(), server.local_addr().unwrap());
        let mut window = OpenWatch::on("flows", WatchTarget::Flow { at: far });
        let written = fill(&mut client);
        // The kernel chooses when the sent data arrives.
        eventually("data arrives", || rustix::io::ioctl_fionread(&server).unwrap() > 32 * 1024);
        window.sample();
        let seen = window.close();
        let (sender, receiver) = (flow_at(&seen, near), flow_at(&seen, far));
        assert_eq!(seen.get::<Vec<FlowWatch>>().len(), 2, "both ends are of this host");

        let waits: Vec<_> = receiver.samples.iter().map(|sample| sample.receive_queue_bytes).collect();
        assert_eq!(waits[0], Bytes(0));
        assert!(waits[1] > Bytes::kib(32), "{waits:?}");
        let [.., last] = receiver.samples.as_slice() else { panic!("no sample") };
        assert!(last.receive_memory_bytes > Bytes(0) && last.receive_buffer_bytes > Bytes(0), "{last:?}");

        let [first, .., last] = sender.samples.as_slice() else { panic!("no sample") };
        assert_eq!((sender.key.remote, sender.key.protocol), (far, IpProtocol::TCP));
        assert_eq!((sender.pid, sender.congestion.is_empty()), (Some(std::process::id()), false));
        assert!(first.at_ns == Nanos(0) && last.at_ns > Nanos(0));
        let tcp = last.tcp.as_ref().expect("TCP_INFO");
        assert!(tcp.acked_bytes > Bytes(0) && tcp.acked_bytes.0 <= written + 1, "the SYN counts: {tcp:?}");
        assert!(last.send_queue_bytes > Bytes(0) && last.send_memory_bytes > Bytes(0), "{last:?}");
        assert!(tcp.send_mss_bytes > Bytes(500) && tcp.cwnd_segments > 0 && tcp.rtt_ns > Nanos(0), "{tcp:?}");
        assert_eq!(tcp.options & 0b111, 0b111, "timestamps, SACK and window scaling: {tcp:?}");
        assert_eq!(seen.unseen, [""; 0]);
    });
}

#[test]
fn ipv6_and_ipv4_over_ipv6_sockets_are_found() {
    in_new_namespace(|| {
        if let Err(error) = TcpListener::bind("[::1]:0") {
            println!("SKIP: no IPv6 here: {error}");
            return;
        }
        let (_client, server) = pair_on("[::1]:0");
        let at = server.local_addr().unwrap();
        let seen = OpenWatch::on("flows", WatchTarget::Flow { at }).close();
        assert_eq!(flow_at(&seen, at).key.remote, server.peer_addr().unwrap());

        let listener = TcpListener::bind("[::]:0").unwrap();
        let at = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
        let client = TcpStream::connect(at).unwrap();
        let _server = listener.accept().unwrap();
        let seen = OpenWatch::on("flows", WatchTarget::Flow { at }).close();
        assert_eq!(flow_at(&seen, at).key.remote, client.local_addr().unwrap(), "IPv4 is shown as IPv4");
        assert_eq!(flow_at(&seen, at).samples.len(), 2, "found again by its id");
        assert_eq!(seen.get::<Vec<ListenerWatch>>().len(), 1, "{seen:?}");
    });
}

#[test]
fn a_backlog_that_overflows_shows_at_the_listener() {
    in_new_namespace(|| {
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        listen(&listener, 1).unwrap();
        let at = TcpListener::from(listener.try_clone().unwrap()).local_addr().unwrap();

        let mut window = OpenWatch::on("flows", WatchTarget::Flow { at });
        // A backlog of one holds two connections: the kernel compares with "greater".
        let waiting: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(at).unwrap()).collect();
        // Some clients may believe that they are connected, where the kernel drops only the handshake's last packet.
        let more: Vec<_> =
            (0..3).map(|_| TcpStream::connect_timeout(&at, Duration::from_millis(20))).collect();
        window.sample();
        let seen = window.close();
        let [seen_at] = seen.get::<Vec<ListenerWatch>>().as_slice() else { panic!("{seen:?}") };
        assert_eq!((seen_at.local, seen_at.pid), (at, Some(std::process::id())));
        assert_eq!((seen_at.backlog, seen_at.most_waiting), (1, 2));
        assert!(seen_at.drops >= 1, "{seen_at:?}");
        drop((waiting, more));
    });
}

/// Returns the number of datagrams that the socket on this port has dropped, from the last column of the kernel's
/// table.
fn dropped(port: u16) -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/udp").unwrap();
    let line = table.lines().find(|line| line.contains(&format!(":{port:04X} 00000000:0000 ")));
    line.and_then(|line| line.split_ascii_whitespace().last()?.parse().ok()).unwrap_or(0)
}

#[test]
fn datagrams_that_find_no_room_show_as_drops() {
    in_new_namespace(|| {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        sockopt::set_socket_recv_buffer_size(&receiver, 4096).unwrap();
        let at = receiver.local_addr().unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(at).unwrap();
        let mut window = OpenWatch::on("flows", WatchTarget::Flow { at });
        for _ in 0..100 {
            sender.send(&[0; 1000]).unwrap();
        }
        eventually("all are dropped or wait", || dropped(at.port()) > 50);
        window.sample();
        let seen = window.close();
        let receiving = flow_at(&seen, at);
        assert_eq!(receiving.key.protocol, IpProtocol::UDP);
        assert!(receiving.key.remote.ip().is_unspecified(), "{:?}", receiving.key);
        let [first, .., last] = receiving.samples.as_slice() else { panic!("no sample") };
        assert!((50..100).contains(&(last.drops - first.drops)), "{receiving:?}");
        assert!(last.receive_queue_bytes > Bytes(0) && last.tcp.is_none(), "{last:?}");
        assert_eq!(flow_at(&seen, sender.local_addr().unwrap()).key.remote, at, "the connected end as well");
    });
}

#[test]
fn the_workloads_flows_come_in_its_order_with_its_listeners() {
    in_new_namespace(|| {
        let pairs: Vec<_> = (0..12).map(|_| pair()).collect();
        let stranger = pair();
        let sockets: Vec<_> =
            (0..).zip(pairs.iter().rev()).map(|(flow, (client, _))| (flow, client.as_fd())).collect();
        let mut window =
            OpenWatch::open("flows", "lo", &WatchSubject { sockets: &sockets, ..WatchSubject::default() });
        window.sample();
        let seen = window.close();
        let order: Vec<_> = seen.get::<Vec<FlowWatch>>().iter().map(|flow| flow.key.local).collect();
        let expected: Vec<_> = pairs.iter().rev().map(|(client, _)| client.local_addr().unwrap()).collect();
        assert_eq!(order, expected);
        assert!(
            seen.get::<Vec<FlowWatch>>()
                .iter()
                .all(|flow| flow.samples.len() == 3 && flow.pid == Some(std::process::id()))
        );
        drop(stranger);
    });
}

#[test]
fn the_busiest_flow_is_found_among_idle_ones() {
    in_new_namespace(|| {
        let idle = pair();
        let (mut client, mut server) = pair();
        let (near, far) = (client.local_addr().unwrap(), server.local_addr().unwrap());
        let (tell, flows) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            while server.read(&mut [0; 65_536]).is_ok_and(|n| n > 0) {
                let _ = tell.send(());
            }
        });
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let writer = std::thread::spawn(move || {
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                client.write_all(&[7; 65_536]).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // The threads may get their first turn late.
        flows.recv().expect("it flows");
        let mut window = OpenWatch::on("flows", WatchTarget::Top);
        let processes = OpenWatch::on("processes", WatchTarget::Top);
        window.sample();
        let (seen, running) = (window.close(), processes.close());
        let link = landspeed_observer::busiest_link(WatchTarget::Top).unwrap();
        stop.send(()).unwrap();
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(link.as_deref(), Some("lo"));
        assert_eq!(seen.get::<Vec<FlowWatch>>().len(), 2, "both ends, and none of the idle flow: {seen:?}");
        let moved = |flow: &FlowWatch| flow.samples.last().and_then(|s| s.tcp.clone()).unwrap();
        assert!(moved(flow_at(&seen, near)).acked_bytes > Bytes(65_536));
        assert!(moved(flow_at(&seen, far)).received_bytes > Bytes(65_536));
        assert_eq!(running.get::<Vec<ProcessWatch>>()[0].pid, std::process::id(), "{:?}", running.unseen);
        drop(idle);
    });
}

#[test]
fn a_process_is_watched_by_its_id() {
    in_new_namespace(|| {
        let (client, server) = pair();
        let at = server.local_addr().unwrap();
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::from(OwnedFd::from(server)))
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id();
        reads(&child);
        let target = WatchTarget::Pid { pid };
        let (mut flows, mut processes) = (OpenWatch::on("flows", target), OpenWatch::on("processes", target));
        for _ in 0..20 {
            flows.sample();
            processes.sample();
            std::thread::sleep(Duration::from_millis(1));
        }
        let (flows, processes) = (flows.close(), processes.close());
        drop(client);
        child.wait().unwrap();
        let [flow] = flows.get::<Vec<FlowWatch>>().as_slice() else { panic!("{flows:?}") };
        assert_eq!((flow.key.local, flow.pid), (at, Some(pid)));
        let [process] = processes.get::<Vec<ProcessWatch>>().as_slice() else { panic!("{processes:?}") };
        assert_eq!((process.pid, process.name.as_str()), (pid, "cat"));
        assert!(!process.allowed_cores.is_empty());
        let waited: u32 = process.waiting_in.values().sum();
        assert!(waited >= 20, "{process:?}");
        // It sleeps in the kernel's function that waits for a socket's data, whose name depends on the version.
        assert!(process.waiting_in.keys().any(|place| place.contains("wait")), "{process:?}");
    });
}

/// A copy of `cat` under a name that no other program has, which holds a flow as the child of a shell.
struct CatFamily {
    _folder: tempfile::TempDir,
    name: String,
    shell: std::process::Child,
    client: Option<TcpStream>,
    at: SocketAddr,
}

impl CatFamily {
    /// Starts the shell, which runs the commands `before` and then the copy.
    fn start(before: &str) -> CatFamily {
        let folder = tempfile::tempdir().unwrap();
        // As long as the kernel keeps names, and one longer.
        let name = format!("a-cat-{:09}", std::process::id());
        let copy = folder.path().join(format!("{name}s"));
        std::fs::copy("/bin/cat", &copy).unwrap();
        let (client, server) = pair();
        let at = server.local_addr().unwrap();
        let shell = std::process::Command::new("sh")
            .args(["-c", &format!("{before} \"$0\" > /dev/null; true")])
            .arg(&copy)
            .stdin(std::process::Stdio::from(OwnedFd::from(server)))
            .spawn()
            .unwrap();
        CatFamily { _folder: folder, name, shell, client: Some(client), at }
    }

    fn by_name(&self) -> WatchTarget {
        WatchTarget::Name { name: self.name.as_str().into() }
    }

    /// Waits until the copy runs and reads.
    fn reads(&self) {
        eventually("the copy reads", || {
            let children = format!("/proc/{0}/task/{0}/children", self.shell.id());
            let child = std::fs::read_to_string(children).unwrap_or_default();
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
            stat.is_ok_and(|stat| stat.contains(&format!("({}) S", self.name)))
        });
    }
}

impl Drop for CatFamily {
    fn drop(&mut self) {
        drop(self.client.take());
        let _ = self.shell.wait();
    }
}

#[test]
fn the_children_of_a_process_and_all_of_a_name_are_followed() {
    in_new_namespace(|| {
        let family = CatFamily::start("");
        family.reads();
        for target in [WatchTarget::Pid { pid: family.shell.id() }, family.by_name()] {
            let (mut flows, mut processes) =
                (OpenWatch::on("flows", target), OpenWatch::on("processes", target));
            flows.sample();
            processes.sample();
            let (flows, processes) = (flows.close(), processes.close());
            let [flow] = flows.get::<Vec<FlowWatch>>().as_slice() else { panic!("{target:?}: {flows:?}") };
            assert_eq!(flow.key.local, family.at, "{target:?}");
            let names = processes.get::<Vec<ProcessWatch>>().iter().map(|process| &process.name);
            assert!(names.into_iter().any(|name| *name == family.name), "{target:?}: {processes:?}");
        }
    });
}

#[test]
fn a_child_that_begins_within_the_window_is_followed() {
    in_new_namespace(|| {
        let family = CatFamily::start("sleep 0.2;");
        let mut window = OpenWatch::on("processes", WatchTarget::Pid { pid: family.shell.id() });
        family.reads();
        for _ in 0..40 {
            window.sample();
            std::thread::sleep(Duration::from_millis(10));
        }
        let seen = window.close();
        let mut watched = seen.get::<Vec<ProcessWatch>>().iter();
        let copy = watched.find(|process| process.name == family.name);
        let copy = copy.unwrap_or_else(|| panic!("{seen:?}"));
        assert!(copy.waiting_in.values().sum::<u32>() > 0, "{copy:?}");
    });
}

#[test]
fn missing_targets_are_reported() {
    in_new_namespace(|| {
        let seen = OpenWatch::on("flows", WatchTarget::Flow { at: "127.0.0.1:9".parse().unwrap() }).close();
        assert_eq!(seen.unseen, ["flows: no socket matches what is to be watched"]);
        for row in ["flows", "processes"] {
            let mut watch = landspeed_observer::observer(row).unwrap().watch("lo");
            let target = WatchTarget::Pid { pid: u32::MAX >> 2 };
            let outcome = watch.open(&WatchSubject { target, ..WatchSubject::default() });
            let mut seen = Observations::default();
            watch.close(&mut seen).unwrap();
            let said = outcome.err().map(|error| error.to_string()).into_iter().chain(seen.unseen);
            assert!(said.collect::<String>().contains("1073741823"), "{row}");
        }
        // A process of the namespace that this thread left.
        let seen = landspeed_observer::observer("flows").unwrap().watch("lo").open(&WatchSubject {
            target: WatchTarget::Pid { pid: std::process::id() },
            ..WatchSubject::default()
        });
        let error = seen.unwrap_err().to_string();
        assert!(error.contains("another network namespace"), "{error}");
    });
}
