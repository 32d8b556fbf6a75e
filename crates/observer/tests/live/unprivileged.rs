//! Tests of the observations without root: sockets of the same user are reported completely, and those of other users
//! without their process and with a note.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use super::common::{OpenWatch, in_new_namespace, reads};
use landspeed_record::{FlowWatch, LinkSettings, ProcessWatch, QdiscWatch, WatchTarget};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

/// Removes all capabilities from the calling thread, and with them root's privileges.
fn drop_capabilities() {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).expect("capabilities may always be dropped");
}

/// A process with all capabilities that holds one end of a connection.
struct StrangerProcess {
    child: Child,
    at: SocketAddr,
    _client: TcpStream,
}

impl StrangerProcess {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        let at = server.local_addr().unwrap();
        let stdin = Stdio::from(OwnedFd::from(server));
        let child = Command::new("cat").stdin(stdin).stdout(Stdio::null()).spawn().unwrap();
        reads(&child);
        StrangerProcess { child, at, _client: client }
    }
}

impl Drop for StrangerProcess {
    fn drop(&mut self) {
        // A process of the same user may be killed even without capabilities.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn other_users_flows_are_seen_without_their_process_and_with_a_note() {
    in_new_namespace(|| {
        let stranger = StrangerProcess::start();
        drop_capabilities();
        let target = WatchTarget::Flow { at: stranger.at };
        let (mut flows, processes) = (OpenWatch::on("flows", target), OpenWatch::on("processes", target));
        flows.sample();
        let (flows, processes) = (flows.close(), processes.close());
        let pid_of = |own: bool| {
            let flow = flows
                .get::<Vec<FlowWatch>>()
                .iter()
                .find(|f| (f.key.local == stranger.at) != own)
                .expect("both ends");
            assert_eq!(flow.samples.len(), 3, "{flow:?}");
            assert!(flow.samples[0].tcp.is_some(), "TCP_INFO needs no privilege");
            flow.pid
        };
        assert_eq!((pid_of(true), pid_of(false)), (Some(std::process::id()), None));
        for seen in [&flows, &processes] {
            assert!(seen.unseen.iter().any(|line| line.contains("root sees them")), "{:?}", seen.unseen);
        }
        assert_eq!(processes.get::<Vec<ProcessWatch>>().len(), 1, "the own one: {:?}", processes);
    });
}

#[test]
fn watching_another_users_process_is_refused_with_a_reason() {
    in_new_namespace(|| {
        let stranger = StrangerProcess::start();
        drop_capabilities();
        let pid = stranger.child.id();
        let subject =
            landspeed_observer::WatchSubject { target: WatchTarget::Pid { pid }, ..Default::default() };
        let opened = landspeed_observer::observer("flows").unwrap().watch("lo").open(&subject);
        let error = opened.unwrap_err().to_string();
        assert!(error.contains(&format!("process {pid} belongs to another user: only root may")), "{error}");

        // Its state is public, except for where it sleeps.
        let mut window = OpenWatch::on("processes", WatchTarget::Pid { pid });
        window.sample();
        let seen = window.close();
        assert_eq!(seen.get::<Vec<ProcessWatch>>()[0].name, "cat");
        assert!(seen.unseen.iter().any(|line| line.contains("wchan")), "{seen:?}");
    });
}

#[test]
fn links_and_queues_need_no_privilege() {
    in_new_namespace(|| {
        drop_capabilities();
        assert!(!OpenWatch::on("qdisc", WatchTarget::Top).close().get::<Vec<QdiscWatch>>().is_empty());
        let seen = OpenWatch::on("settings", WatchTarget::Top).close();
        assert!(
            !seen.get::<Vec<LinkSettings>>()[0].features.is_empty() && seen.unseen.is_empty(),
            "{seen:?}"
        );
    });
}
