//! Tests that a lab whose owner was killed is found, and taken down with the processes in it, by its keeper or by
//! another landspeed. The test is one process without test threads, so that it can start itself again as owner, keeper
//! and agent.

mod common;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use landspeed_kernel::daemon::ProcessIdentity;
use landspeed_lab::topology::lab::{self, LabId, LabInfo, LabSelection, RUN_DIR_VARIABLE};
use landspeed_lab::topology::{Lab, Namespace, enter, exists};
use rustix::process::{Pid, Signal, kill_process};

/// A child that is killed when the test ends, even by a panic.
struct ChildGuard(Child);

impl ChildGuard {
    /// Starts this program again with the arguments `part`. Returns the child and the first line that it prints.
    fn start(part: &[&str]) -> (Self, String) {
        let mut child =
            ChildGuard(Command::new(program()).args(part).stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (child, line.trim().to_owned())
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The lab of a killed owner, taken down when the test ends, even by a panic.
struct OrphanedLab(LabId);

impl Drop for OrphanedLab {
    fn drop(&mut self) {
        let _ = lab::down(&LabSelection::Id(self.0.clone()));
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["owner", kind] => own(kind),
        ["kept-owner", kind] => {
            lab::keep_with(vec![program().into(), "keeper".into()]);
            own(kind);
        }
        ["keeper"] if lab::outlive_owner() => drop(lab::down(&LabSelection::Stale).unwrap()),
        ["keeper"] => return ExitCode::FAILURE,
        ["agent", netns] => {
            enter(netns).unwrap();
            let links: Vec<_> =
                std::fs::read_dir("/sys/class/net").unwrap().flatten().map(|e| e.file_name()).collect();
            println!("{links:?}");
            std::thread::sleep(Duration::from_secs(60));
        }
        ["tests"] => tests(),
        _ => return apart(),
    }
    ExitCode::SUCCESS
}

/// Runs the tests with their own folder of labs, which no other landspeed on this machine uses.
fn apart() -> ExitCode {
    let folder = std::env::temp_dir().join(format!("ls-crash-{}", std::process::id()));
    let mut tests = Command::new(program());
    let passed = tests.arg("tests").env(RUN_DIR_VARIABLE, &folder).status().unwrap().success();
    let _ = std::fs::remove_dir_all(&folder);
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tests() {
    let kinds = ["lab:back-to-back", "lab:wan:rate=10M,rtt=20ms"];
    for kind in kinds.into_iter().filter(|kind| common::can_run(kind)) {
        killed_owners_leave_a_lab_that_is_found_and_taken_down(kind);
        a_keeper_takes_down_the_lab_of_a_killed_owner(kind);
    }
    if common::can_run("lab") {
        every_process_of_a_lab_with_guests_ends();
    }
    a_keeper_without_an_owner_ends();
}

fn program() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// Returns the namespace of the first host of a lab.
fn host_of(info: &LabInfo) -> &str {
    info.namespaces.iter().find(|name| name.ends_with("-a")).expect("a host called a")
}

fn own(kind: &str) {
    let lab = Lab::open(kind).unwrap();
    println!("{}", lab.id());
    std::thread::sleep(Duration::from_secs(60));
}

fn a_keeper_takes_down_the_lab_of_a_killed_owner(kind: &str) {
    let (mut owner, id) = ChildGuard::start(&["kept-owner", kind]);
    let orphan = OrphanedLab(id.parse().unwrap());
    let find = || lab::list().unwrap().into_iter().find(|info| info.id == orphan.0);
    let info = find().expect("the child's lab is listed");
    let (mut agent, _) = ChildGuard::start(&["agent", host_of(&info)]);
    let keeper = keeper_of(&owner);
    // Signals that end sessions and terminals do not end the keeper.
    for signal in [Signal::INT, Signal::HUP, Signal::TERM, Signal::QUIT] {
        kill_process(keeper, signal).unwrap();
    }
    assert!(exists(host_of(&info)) && find().is_some_and(|info| info.alive));
    owner.0.kill().unwrap();
    owner.0.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    // Init may take some time to reap it.
    while ProcessIdentity::find(keeper.as_raw_nonzero().get().unsigned_abs()).is_some() {
        assert!(Instant::now() < end, "the keeper does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(find().is_none() && !info.namespaces.iter().any(|name| exists(name)));
    assert!(!agent.0.wait().unwrap().success(), "ended by a signal");
    println!("a_keeper_takes_down_the_lab_of_a_killed_owner ({kind}) ... ok");
}

/// Finds the keeper of an owner. It has a session of its own, so it is identified by its command and by its pidfd of
/// the owner.
fn keeper_of(owner: &ChildGuard) -> Pid {
    let held = format!("Pid:\t{}\n", owner.0.id());
    let is_keeper = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/3")).unwrap_or_default();
        command == b"landspeed\0keeper\0" && text.contains(&held)
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let keeper = pids.find(is_keeper).expect("a lab has a keeper before it is made");
    // Waits until the keeper ignores signals, so that it can be signalled.
    let comm = format!("/proc/{keeper}/comm");
    while std::fs::read_to_string(&comm).unwrap().trim() != "landspeed-keepe" {
        std::thread::sleep(Duration::from_millis(5));
    }
    Pid::from_raw(keeper).unwrap()
}

fn a_keeper_without_an_owner_ends() {
    let status = Command::new(program()).arg("keeper").status().unwrap();
    assert_eq!(status.code(), Some(1));
    println!("a_keeper_without_an_owner_ends ... ok");
}

fn killed_owners_leave_a_lab_that_is_found_and_taken_down(kind: &str) {
    let (mut owner, id) = ChildGuard::start(&["owner", kind]);
    let orphan = OrphanedLab(id.parse().unwrap());
    let find = || lab::list().unwrap().into_iter().find(|info| info.id == orphan.0);
    let info = find().expect("the child's lab is listed");
    assert!(info.alive && info.owner_pid == owner.0.id());

    let (mut agent, seen) = ChildGuard::start(&["agent", host_of(&info)]);
    assert!(seen.contains("\"ls-a\"") && seen.contains("\"lo\""), "/sys/class/net shows {seen}");
    let mut stranger = ChildGuard(in_namespace(host_of(&info), "sleep", "60"));

    // While the owner lives, its lab is left alone.
    lab::down(&LabSelection::Stale).unwrap();
    assert!(exists(host_of(&info)));

    owner.0.kill().unwrap();
    owner.0.wait().unwrap();
    assert!(!find().unwrap().alive);
    let removed = lab::down(&LabSelection::Stale).unwrap();
    let removed = removed.iter().find(|removed| removed.id == orphan.0).expect("the orphan is taken down");
    assert_eq!(removed.ended, [agent.0.id()]);
    assert_eq!(removed.left, [stranger.0.id()]);
    assert!(!agent.0.wait().unwrap().success(), "ended by a signal");
    assert!(stranger.0.try_wait().unwrap().is_none(), "another user's process continues");
    assert!(!info.namespaces.iter().any(|name| exists(name)) && find().is_none());
    println!("killed_owners_leave_a_lab_that_is_found_and_taken_down ({kind}) ... ok");
}

/// A program takes the place of the QEMU that a killed owner left.
fn every_process_of_a_lab_with_guests_ends() {
    let namespace = Namespace::create("ls-00ab12-vm").unwrap();
    let labs = PathBuf::from(std::env::var_os(RUN_DIR_VARIABLE).unwrap()).join("labs");
    let state = r#"{"id": "00ab12", "kind": "lab:vm:6.12", "has_guests": true, "namespaces": ["ls-00ab12-vm"],
                    "owner": {"pid": 1, "start_ticks": 2, "boot_id": "x"}, "created_unix_s": 3}"#;
    std::fs::write(labs.join("00ab12.json"), state).unwrap();
    let mut qemu = ChildGuard(in_namespace(namespace.name(), "sleep", "60"));
    let removed = lab::down(&LabSelection::Stale).unwrap();
    let removed = removed.iter().find(|removed| removed.id.to_string() == "00ab12").expect("a stale lab");
    assert_eq!((&removed.ended[..], &removed.left[..]), (&[qemu.0.id()][..], &[][..]));
    assert!(!qemu.0.wait().unwrap().success() && !exists(namespace.name()));
    println!("every_process_of_a_lab_with_guests_ends ... ok");
}

/// Starts a program with one argument in a namespace.
fn in_namespace(netns: &str, program: &str, argument: &str) -> Child {
    landspeed_lab::topology::with_namespace(netns, || Command::new(program).arg(argument).spawn().unwrap())
        .unwrap()
}
