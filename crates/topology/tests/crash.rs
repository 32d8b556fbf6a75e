//! A lab whose owner was killed: found, and taken down with what still runs in it. One process, no test
//! threads, so that it can start itself again in the parts of owner and agent.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};

use landspeed_topology::lab::{self, LabId, Which};
use landspeed_topology::{Lab, enter, exists};

/// A child that is killed when the test ends, however it ends.
struct Kept(Child);

impl Kept {
    /// Starts this program again in another part; returns it and the first line that it says.
    fn start(part: &[&str]) -> (Self, String) {
        let program = std::env::current_exe().unwrap();
        let mut child = Kept(Command::new(program).args(part).stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (child, line.trim().to_owned())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The lab of a killed owner, taken down when the test ends, however it ends.
struct Orphan(LabId);

impl Drop for Orphan {
    fn drop(&mut self) {
        let _ = lab::down(&Which::Id(self.0.clone()));
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["owner", kind] => {
            let lab = Lab::create(kind.parse().unwrap()).unwrap();
            println!("{}", lab.id());
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        ["agent", netns] => {
            enter(netns).unwrap();
            let links: Vec<_> =
                std::fs::read_dir("/sys/class/net").unwrap().flatten().map(|e| e.file_name()).collect();
            println!("{links:?}");
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        _ => ["lab:back-to-back", "lab:wan:rate=10M,rtt=20ms"]
            .into_iter()
            .filter(|kind| common::can_run(kind))
            .for_each(killed_owners_leave_a_lab_that_is_found_and_taken_down),
    }
    ExitCode::SUCCESS
}

fn killed_owners_leave_a_lab_that_is_found_and_taken_down(kind: &str) {
    let (mut owner, id) = Kept::start(&["owner", kind]);
    let orphan = Orphan(id.parse().unwrap());
    let find = || lab::list().unwrap().into_iter().find(|info| info.id == orphan.0);
    let info = find().expect("the child's lab is listed");
    assert!(info.alive && info.owner_pid == owner.0.id());

    let (mut agent, seen) = Kept::start(&["agent", &info.hosts[0]]);
    assert!(seen.contains("\"ls-a\"") && seen.contains("\"lo\""), "/sys/class/net shows {seen}");
    let mut stranger = Kept(in_namespace(&info.hosts[0], "sleep", "60"));

    // While the owner lives, sweeping up leaves its lab alone.
    lab::down(&Which::Stale).unwrap();
    assert!(exists(&info.hosts[0]));

    owner.0.kill().unwrap();
    owner.0.wait().unwrap();
    assert!(!find().unwrap().alive);
    let removed = lab::down(&Which::Stale).unwrap();
    let removed = removed.iter().find(|removed| removed.id == orphan.0).expect("the orphan is taken down");
    assert_eq!(removed.ended, [agent.0.id()]);
    assert_eq!(removed.left, [stranger.0.id()]);
    assert!(!agent.0.wait().unwrap().success(), "ended by a signal");
    assert!(stranger.0.try_wait().unwrap().is_none(), "somebody else's process goes on");
    assert!(!info.hosts.iter().any(|name| exists(name)) && find().is_none());
    assert!(!exists(&format!("ls-{}-wan", orphan.0)), "the link's own namespace goes too");
    println!("killed_owners_leave_a_lab_that_is_found_and_taken_down ({kind}) ... ok");
}

/// A program in a namespace, once it is seen to be there.
fn in_namespace(netns: &str, program: &str, argument: &str) -> Child {
    landspeed_topology::with_namespace(netns, || Command::new(program).arg(argument).spawn().unwrap())
        .unwrap()
}
