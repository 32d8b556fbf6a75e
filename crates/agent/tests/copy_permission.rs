//! Copies of agents that were started by hand: they read and write only within their folders.

#[path = "common/copies.rs"]
mod copies;

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use landspeed_agent::session::{
    CopyFlows, CopyRoot, CopyRules, PathUse, Reply, Request, RequestHandler, SessionKey,
};
use landspeed_agent::{Agent, CopyPermission, Permissions};
use landspeed_record::units::Nanos;
use landspeed_record::{CopyArm, CopyCheck, CopyKeeping, PathBytes, Role, Settings};

use copies::{bytes, flows, listen, receive, send};

/// A folder to read, one to write, and one that no agent may reach. Links in the first two lead to the third.
struct TestFolders(tempfile::TempDir);

impl TestFolders {
    fn new() -> TestFolders {
        let all = TestFolders(tempfile::tempdir().unwrap());
        ["read/sub", "write", "secret"].iter().for_each(|folder| fs::create_dir_all(all.at(folder)).unwrap());
        ["read/sub/file", "secret/key"].iter().for_each(|file| fs::write(all.at(file), "text").unwrap());
        symlink("sub", all.at("read/link")).unwrap();
        ["read/up", "write/up"].iter().for_each(|link| symlink("../secret", all.at(link)).unwrap());
        symlink(all.at("secret"), all.at("read/absolute")).unwrap();
        all
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns an agent that may read what is beneath one folder, and write beneath another.
    fn agent(&self) -> Arc<Agent> {
        let copy = CopyPermission::beneath(&[self.at("read")], &[self.at("write")]).unwrap();
        Agent::permitting(Permissions { copy, ..Permissions::default() })
    }

    fn bytes(&self, name: &str) -> PathBytes {
        bytes(&self.at(name))
    }
}

/// Returns flows to an end that does not exist. Paths are opened first.
fn no_flows() -> Box<CopyFlows> {
    flows(Role::Client, (Ipv4Addr::LOCALHOST, 9).into(), &SessionKey::random())
}

fn show(folder_hex: PathBytes, check: CopyCheck) -> Request {
    let (keeping, rules, names_hex) = (CopyKeeping::default(), Box::default(), vec![PathBytes::default()]);
    Request::CompareIn { flows: no_flows(), folder_hex, names_hex, check, keeping, rules }
}

fn compare(path_hex: PathBytes) -> Request {
    let roots = vec![CopyRoot { path_hex, name_hex: PathBytes::default() }];
    let (keeping, rules) = (CopyKeeping::default(), Box::<CopyRules>::default());
    Request::CompareOut { flows: no_flows(), roots, check: CopyCheck::Verify, keeping, rules }
}

/// Returns the line with which an agent refuses a request.
fn refusal(agent: &Agent, request: Request) -> String {
    let name = request.name();
    match agent.handle(request) {
        Reply::Failed { why } if why.lines().count() == 1 => why,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn files_go_from_a_folder_that_may_be_read_to_one_that_may_be_written() {
    let folders = TestFolders::new();
    let (reader, writer, key) = (folders.agent(), folders.agent(), SessionKey::random());
    let Reply::Listening { port } = writer.handle(listen(&key)) else { panic!("no port") };
    let [sending, receiving] =
        [Role::Client, Role::Server].map(|role| flows(role, (Ipv4Addr::LOCALHOST, port).into(), &key));
    let received = std::thread::scope(|scope| {
        let received = scope.spawn(|| writer.handle(receive(receiving, folders.bytes("write/new"))));
        // The link stays within the folder.
        let sent = reader.handle(send(sending, folders.bytes("read/link/")));
        assert!(matches!(&sent, Reply::Copied { outcome } if outcome.is_complete()), "{sent:?}");
        received.join().expect("no panic")
    });
    assert_eq!(received, Reply::Done {});
    assert_eq!(fs::read_to_string(folders.at("write/new/file")).unwrap(), "text");
}

#[test]
fn an_agent_without_permission_copies_nothing_and_names_the_option() {
    let (folders, agent) = (TestFolders::new(), Agent::new(false));
    let any = || folders.bytes("read");
    let (arm, time) = (CopyArm { flows: 1, ..CopyArm::default() }, Nanos(0));
    for (request, option) in [
        (Request::CopyLook { paths_hex: vec![any()], to: PathUse::Read }, "--allow-read DIR"),
        (Request::CopyLook { paths_hex: vec![any()], to: PathUse::Write }, "--allow-write DIR"),
        (send(no_flows(), any()), "--allow-read DIR"),
        (receive(no_flows(), any()), "--allow-write DIR"),
        (compare(any()), "--allow-read DIR"),
        (show(any(), CopyCheck::DryRun), "--allow-write DIR"),
        (show(any(), CopyCheck::Verify), "--allow-read DIR"),
        (Request::CopyClean { folder_hex: any(), only_list: true }, "--allow-write DIR"),
        (Request::CopyNames { names_hex: Vec::new(), is_first: true }, "--allow-read DIR"),
        (Request::CopyListed {}, "--allow-read DIR"),
        (Request::CopyProven {}, "--allow-read DIR"),
        (Request::CopyState {}, "--allow-read DIR"),
        (Request::CopyWiden { flows: 1 }, "--allow-read DIR"),
        (Request::CopyOthers { settings: Settings::new(), flows: 1 }, "--allow-read DIR"),
        (Request::CopyLeaveOthers {}, "--allow-read DIR"),
        (Request::CopyTurn { arm, settle_ns: time, count_ns: time }, "--allow-read DIR"),
        (Request::CopyWrites { direct: false }, "--allow-read DIR"),
        (Request::CopySlow { for_ns: time }, "--allow-read DIR"),
    ] {
        let name = request.name();
        let why = refusal(&agent, request);
        assert!(why.contains(option), "{name}: {why}");
    }
}

#[test]
fn permission_to_read_is_none_to_write_and_vice_versa() {
    let (folders, own) = (TestFolders::new(), TestFolders::new());
    let agent = folders.agent();
    for outside in [folders.bytes("write"), folders.bytes("secret"), own.bytes("read")] {
        assert!(refusal(&agent, send(no_flows(), outside.clone())).contains("--allow-read DIR"));
        let look = Request::CopyLook { paths_hex: vec![outside], to: PathUse::Read };
        assert!(refusal(&agent, look).contains("--allow-read DIR"));
    }
    for outside in [folders.bytes("read"), folders.bytes("secret"), own.bytes("write")] {
        assert!(refusal(&agent, receive(no_flows(), outside.clone())).contains("--allow-write DIR"));
        assert!(refusal(&agent, show(outside.clone(), CopyCheck::DryRun)).contains("--allow-write DIR"));
        let clean = Request::CopyClean { folder_hex: outside, only_list: false };
        assert!(refusal(&agent, clean).contains("--allow-write DIR"));
    }
    let seen =
        agent.handle(Request::CopyLook { paths_hex: vec![folders.bytes("read")], to: PathUse::Compare });
    assert!(matches!(seen, Reply::Paths { .. }), "{seen:?}");
}

#[test]
fn neither_dots_nor_links_lead_out_of_the_folder() {
    let folders = TestFolders::new();
    let agent = folders.agent();
    for out in ["read/../secret", "read/sub/../../secret", "read/up/", "read/up/key", "read/absolute/key"] {
        let why = refusal(&agent, send(no_flows(), folders.bytes(out)));
        assert!(why.contains("leads out of the folder"), "{out}: {why}");
        let why = refusal(&agent, compare(folders.bytes(out)));
        assert!(why.contains("leads out of the folder"), "{out}: {why}");
        let look = Request::CopyLook { paths_hex: vec![folders.bytes(out)], to: PathUse::Read };
        assert!(refusal(&agent, look).contains("leads out of the folders"), "{out}");
    }
    for out in ["write/../secret", "write/../secret/new", "write/up", "write/up/", "write/up/new"] {
        for request in [
            receive(no_flows(), folders.bytes(out)),
            show(folders.bytes(out), CopyCheck::DryRun),
            show(folders.bytes(out), CopyCheck::Verify),
            Request::CopyClean { folder_hex: folders.bytes(out), only_list: false },
        ] {
            let why = refusal(&agent, request);
            assert!(why.contains("leads out of the folder"), "{out}: {why}");
        }
    }
    assert_eq!(fs::read_dir(folders.at("secret")).unwrap().count(), 1);
}

/// The agent uses the folder that existed when it was started.
#[test]
fn a_folder_that_is_swapped_for_a_link_opens_nothing_else() {
    let folders = TestFolders::new();
    let agent = folders.agent();
    fs::rename(folders.at("read"), folders.at("old")).unwrap();
    symlink("secret", folders.at("read")).unwrap();
    let why = refusal(&agent, send(no_flows(), folders.bytes("read/key")));
    assert!(why.contains("No such file"), "{why}");
}
