//! The cost of a trial's end is everything that its agent's process runs for it, and no more. A separate binary with
//! one test, because the whole process is counted.

mod common;

use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_agent::Agent;
use landspeed_record::{CpuUsage, Role};
use landspeed_session::{Reply, Request, RequestHandler, SessionKey};
use landspeed_units::Nanos;
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

    let over = AtomicBool::new(false);
    let helped = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let helped = trial(&agent);
        over.store(true, Ordering::Relaxed);
        helped
    });
    assert!(helped.helpers_ns.0 > helped.window_ns.0 / 10, "{helped:?}");

    let forked = without_helpers(|| {
        let _child = Spinner::start();
        trial(&agent)
    });
    assert!(forked.children_ns.0 > forked.window_ns.0 / 10, "{forked:?}");
    assert_eq!(forked.own(), forked.workload_ns + forked.helpers_ns + forked.children_ns);
}
