//! Tests that an agent loads congestion controls, and that they are unloaded when it ends, however it ends. A control's
//! name is valid for the whole machine, so only one test runs at a time.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use landspeed_agent::Agent;
use landspeed_agent::session::{Reply, Request, RequestHandler};
use landspeed_congestion::{CONTROLS, Control, can_load};
use parking_lot::Mutex;

static KERNEL: Mutex<()> = Mutex::new(());

/// Time limit of each wait, for a machine that stalls. Normally no step of these tests takes nearly as long.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns `N` controls that are not loaded. If there are fewer, or if none can be loaded here, prints the reason and
/// returns `None`.
fn free<const N: usize>(test: &str) -> Option<[&'static Control; N]> {
    let refused = if rustix::process::geteuid().is_root() {
        can_load().err()
    } else {
        Some("it needs root".to_owned())
    };
    let mut rows =
        CONTROLS.iter().rev().copied().filter(|row| !row.is_kernels() && !kernel_has(row.kernel_name));
    let rows = std::array::from_fn(|_| rows.next());
    match refused {
        None if rows.iter().all(Option::is_some) => Some(rows.map(|row| row.expect("all are there"))),
        None => {
            println!("SKIP {test}: others have loaded so many controls that fewer than {N} are left");
            None
        }
        Some(why) => {
            println!("SKIP {test}: {why}");
            None
        }
    }
}

fn kernel_has(name: &str) -> bool {
    landspeed_congestion::available().iter().any(|known| known == name)
}

/// Waits until the kernel has released the control, which it does shortly after the process is reaped. Returns false if
/// the wait takes too long.
fn gone(name: &str) -> bool {
    let start = Instant::now();
    while kernel_has(name) && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    !kernel_has(name)
}

/// Returns the kernel's names for `names`, or the reason why flows cannot choose them.
fn ask(agent: &Arc<Agent>, names: &[&str]) -> Result<Vec<String>, String> {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    match agent.handle(Request::Controls { names }) {
        Reply::Controls { ready, .. } => Ok(ready),
        Reply::Failed { why } => Err(why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn controls_are_ready_until_the_session_ends() {
    let _one = KERNEL.lock();
    let Some([one, two]) = free("controls_are_ready_until_the_session_ends") else { return };
    let (first, second) = (Agent::new(true), Agent::new(true));
    let asked = ask(&first, &["reno", one.kernel_name, two.name]);
    assert_eq!(asked, Ok(["reno", one.kernel_name, two.kernel_name].map(str::to_owned).to_vec()));
    assert!(kernel_has(one.kernel_name) && kernel_has(two.kernel_name));
    // Both ends of a lab are agents of one machine.
    assert_eq!(ask(&second, &[one.name]), Ok(vec![one.kernel_name.to_owned()]));
    second.gone("the test is over");
    assert!(kernel_has(one.kernel_name), "it is the first one's");
    assert_eq!(ask(&first, &[]), Ok(vec![]));
    assert!(gone(one.kernel_name) && gone(two.kernel_name), "no names let go");
    ask(&first, &[one.name]).expect("again");
    first.gone("the test is over");
    assert!(gone(one.kernel_name), "the end of a session lets go");
}

#[test]
fn all_are_ready_or_none_is_loaded() {
    let _one = KERNEL.lock();
    let Some([one]) = free("all_are_ready_or_none_is_loaded") else { return };
    let agent = Agent::new(true);
    let why = ask(&agent, &[one.name, "warp"]).expect_err("there is no warp");
    assert!(why.contains("warp") && why.contains("cc list"), "{why}");
    assert!(gone(one.kernel_name));
}

#[test]
fn without_permission_loaded_controls_are_ready_and_no_other_is_loaded() {
    let _one = KERNEL.lock();
    let agent = Agent::new(false);
    assert_eq!(ask(&agent, &["reno"]), Ok(vec!["reno".to_owned()]), "every kernel has it");
    let Some([one]) = free("without_permission_loaded_controls_are_ready_and_no_other_is_loaded") else {
        return;
    };
    let why = ask(&agent, &[one.name]).expect_err("no leave");
    assert!(why.contains(one.kernel_name) && why.contains("--allow-tune"), "{why}");
    assert!(!kernel_has(one.kernel_name));
}

/// Environment variable that makes this process the agent below instead of an ordinary test; names the control that it
/// loads.
const HOLDER: &str = "LANDSPEED_TEST_HOLDER";

#[test]
#[ignore = "the agent of the test below, which starts it"]
fn an_agent_to_be_killed() {
    let Ok(name) = std::env::var(HOLDER) else { return };
    let agent = Agent::new(true);
    println!("ready={:?}", ask(&agent, &[&name]));
    std::thread::sleep(PATIENCE);
}

/// A process that is killed when it is dropped.
struct HolderProcess(Child);

impl Drop for HolderProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn controls_go_with_an_agent_that_is_killed() {
    let _one = KERNEL.lock();
    let Some([one]) = free("controls_go_with_an_agent_that_is_killed") else { return };
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--ignored", "--exact", "an_agent_to_be_killed", "--nocapture"]);
    let mut child = command.env(HOLDER, one.name).stdout(Stdio::piped()).spawn().expect("this test runs");
    let said = BufReader::new(child.stdout.take().expect("a pipe"));
    let holder = HolderProcess(child);
    let ready = said.lines().map_while(Result::ok).find(|line| line.contains("ready="));
    let ready = ready.expect("the agent answers");
    assert!(ready.contains("Ok(") && ready.contains(one.kernel_name), "{ready}");
    assert!(kernel_has(one.kernel_name));
    drop(holder);
    assert!(gone(one.kernel_name), "it outlived its owner");
}
