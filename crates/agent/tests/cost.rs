//! Tests that the processor time of one end of a trial is all that its agent's process runs for the trial, and no more.
//! It is a separate binary with one test, because the whole process is counted.

mod common;

use std::cell::Cell;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_agent::Agent;
use landspeed_agent::session::{Reply, Request, RequestHandler, SessionKey};
use landspeed_record::units::Nanos;
use landspeed_record::{CpuUsage, Role};
use landspeed_transport::used_by_thread;
use landspeed_workload::stream;

use common::{listen, run};

/// Returns the client's processor time in a trial.
fn trial(agent: &Arc<Agent>) -> CpuUsage {
    let key = SessionKey::random();
    let port = listen(agent, &key);
    let run = |role| {
        let request = run(role, port, &key, stream::spec(Nanos::millis(500)));
        let agent = Arc::clone(agent);
        std::thread::spawn(move || agent.handle(request))
    };
    let ends = [Role::Server, Role::Client].map(run);
    let [_, client] = ends.map(|end| match end.join().expect("no panic") {
        Reply::Outcome { outcome } => outcome.observed.get::<CpuUsage>().clone(),
        other => panic!("{other:?}"),
    });
    agent.handle(Request::Close { port });
    client
}

/// Returns the first of ten trials whose helpers cost less than a twentieth of its window.
///
/// The windows of the two ends do not open at the same moment. Work of the other end between the two moments counts as
/// a helper's, and on a busy machine this can take any time. If the other end's work always counted as a helper's, all
/// ten trials would show it.
fn without_helpers(trial: impl Fn() -> CpuUsage) -> CpuUsage {
    let quiet = |usage: &CpuUsage| usage.helpers_ns.0 < usage.window_ns.0 / 20;
    (0..10).map(|_| trial()).find(quiet).expect("a trial in which only its own end works")
}

/// A process that spins until it is dropped, at most for some seconds.
struct Spinner(Child);

impl Spinner {
    /// Returns the processor time that it used so far. A clock tick is 10 ms.
    fn used(&self) -> Nanos {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).expect("it runs");
        let after_name = stat.rsplit_once(')').expect("a name").1;
        let ticks = after_name.split_whitespace().skip(11).take(2);
        Nanos(ticks.map(|ticks| ticks.parse::<u64>().expect("a number") * 10_000_000).sum())
    }

    fn start() -> Self {
        let script = "i=0; while [ $i -lt 9000000 ]; do i=$((i+1)); done";
        Spinner(Command::new("sh").args(["-c", script]).spawn().expect("a shell"))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it is ours");
    }
}

#[test]
fn a_spinning_helper_thread_and_a_forked_child_appear_in_the_cost() {
    let agent = Agent::new(false);
    let quiet = without_helpers(|| trial(&agent));
    assert!(quiet.workload_ns.0 > 0 && quiet.children_ns.0 == 0, "{quiet:?}");

    // The scheduler decides how much of a processor the spinning thread and the spinning child get. The window is most
    // of the time for which they spin.
    let over = AtomicBool::new(false);
    let (helped, spun) = std::thread::scope(|scope| {
        let spinning = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            used_by_thread()
        });
        let helped = trial(&agent);
        over.store(true, Ordering::Relaxed);
        (helped, spinning.join().expect("no panic"))
    });
    assert!(helped.helpers_ns.0 > spun.0 / 4, "{helped:?}, spun for {spun}");

    let spun = Cell::new(Nanos(0));
    let forked = without_helpers(|| {
        let child = Spinner::start();
        let forked = trial(&agent);
        spun.set(child.used());
        forked
    });
    assert!(
        forked.children_ns.0 > 0 && forked.children_ns.0 > spun.get().0 / 4,
        "{forked:?}, spun for {}",
        spun.get()
    );
    assert_eq!(forked.own(), forked.workload_ns + forked.helpers_ns + forked.children_ns);
}
