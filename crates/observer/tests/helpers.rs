//! Tests of the processor time that one end of a trial uses besides its workers. They are a separate test binary,
//! because this time is that of the whole process, including other tests.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use landspeed_observer::{WatchSubject, Watcher, leave_out_this_thread, observer};
use landspeed_record::CpuUsage;
use parking_lot::Mutex;

/// The minimum run time of each spinning thread.
const SPIN: Duration = Duration::from_millis(60);
/// A run time in ns: a tick, and far more than a window itself costs.
const LITTLE: u64 = 15_000_000;
/// A time limit that no step of these tests reaches, even on a busy machine.
const LONG: Duration = Duration::from_secs(20);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn own_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Returns the time of the CPU clock `id`, which must exist.
fn clock(id: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to fill.
    assert_eq!(unsafe { libc::clock_gettime(id, &raw mut time) }, 0);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).expect("below a second"))
}

/// Keeps the calling thread busy for [`SPIN`].
fn spin() {
    let end = clock(libc::CLOCK_THREAD_CPUTIME_ID) + SPIN;
    while clock(libc::CLOCK_THREAD_CPUTIME_ID) < end {}
}

/// Returns the observed processor time of a window in which `work` runs beside an idle worker.
fn window(work: impl FnOnce()) -> CpuUsage {
    window_over(None, work)
}

/// Like [`window`], but over a link that these threads carry.
fn window_over(link_threads: Option<[i32; 2]>, work: impl FnOnce()) -> CpuUsage {
    let (tell, told) = mpsc::channel();
    let (over, wait) = mpsc::channel::<()>();
    let worker = std::thread::spawn(move || {
        tell.send(own_thread()).expect("the test waits");
        wait.recv().expect_err("it is dropped");
    });
    let threads = [told.recv().expect("a worker")];
    let mut watcher = Watcher::with(&[observer("cpu").expect("registered")], "lo");
    watcher.open(&WatchSubject { threads: &threads, link_threads, ..WatchSubject::default() });
    work();
    let seen = watcher.close();
    drop(over);
    worker.join().expect("no panic");
    seen.get::<CpuUsage>().clone()
}

/// Runs `test` while no other test runs. The calling thread is left out of the observed processor time.
fn alone(test: impl FnOnce()) {
    let _alone = ONE_AT_A_TIME.lock();
    leave_out_this_thread();
    test();
}

fn is_spin(nanos: u64) -> bool {
    (SPIN.as_nanos() as u64 - LITTLE..SPIN.as_nanos() as u64 * 3).contains(&nanos)
}

#[test]
fn a_thread_that_helps_is_counted_whether_it_lives_or_not() {
    alone(|| {
        let ended = window(|| std::thread::spawn(spin).join().expect("no panic"));
        assert!(is_spin(ended.helpers_ns.0), "{ended:?}");
        let (go, wait) = mpsc::channel::<()>();
        let (tell, done) = mpsc::channel();
        // A transport's own thread is older than the trial, and remains.
        let helper = std::thread::spawn(move || {
            for () in wait {
                spin();
                tell.send(()).expect("the test waits");
            }
        });
        let stays = window(|| {
            go.send(()).expect("it waits");
            done.recv().expect("it spins");
        });
        drop(go);
        helper.join().expect("no panic");
        assert!(is_spin(stays.helpers_ns.0), "{stays:?}");
        assert!(stays.workload_ns.0 < LITTLE && stays.children_ns.0 < LITTLE, "{stays:?}");
        assert_eq!(stays.own(), stays.workload_ns + stays.helpers_ns + stays.children_ns);
    });
}

#[test]
fn a_thread_that_is_no_trials_is_not() {
    alone(|| {
        let seen = window(|| {
            spin();
            let other = std::thread::spawn(|| {
                leave_out_this_thread();
                spin();
            });
            other.join().expect("no panic");
        });
        assert!(seen.own().0 < LITTLE, "{seen:?}");
    });
}

/// The link's threads belong to the controller's process, not to an end of a trial.
#[test]
fn threads_of_the_link_are_counted_apart() {
    alone(|| {
        let (go, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let link = std::thread::spawn(move || {
            leave_out_this_thread();
            tell.send(own_thread()).expect("the test waits");
            for () in wait {
                spin();
                tell.send(own_thread()).expect("the test waits");
            }
        });
        let threads = [told.recv().expect("a thread"), own_thread()];
        let carry = || {
            go.send(()).expect("it waits");
            told.recv().expect("it spins");
        };
        let seen = window_over(Some(threads), carry);
        assert!(seen.link_ns.is_some_and(|ran| is_spin(ran.0)) && seen.own().0 < LITTLE, "{seen:?}");
        drop(go);
        link.join().expect("no panic");
        let unreadable = window_over(Some([own_thread(), 0]), || {});
        assert_eq!((unreadable.link_ns, window(|| {}).link_ns), (None, None), "no thread has the number 0");
    });
}

#[test]
fn another_trials_workers_are_not() {
    alone(|| {
        let one = || {
            let threads = [own_thread()];
            let mut watcher = Watcher::with(&[observer("cpu").expect("registered")], "lo");
            watcher.open(&WatchSubject { threads: &threads, ..WatchSubject::default() });
            spin();
            watcher.close().get::<CpuUsage>().clone()
        };
        let mut theirs = CpuUsage::default();
        let ours = window(|| theirs = std::thread::spawn(one).join().expect("no panic"));
        assert!(is_spin(theirs.workload_ns.0) && theirs.helpers_ns.0 < LITTLE, "{theirs:?}");
        assert!(ours.own().0 < LITTLE, "{ours:?}");
    });
}

/// A script that spins for a few tenths of a second; `LONGER` spins for some seconds.
const A_WHILE: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
const LONGER: &str = "i=0; while [ $i -lt 9000000 ]; do i=$((i+1)); done";

/// A child process that is killed when this value is dropped.
struct Shell(Child);

impl Shell {
    fn run(script: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Shell(shell.spawn().expect("a shell"))
    }

    /// Waits until the shell has printed a line.
    fn said(&mut self) {
        let line = self.0.stdout.as_mut().expect("a pipe").read_exact(&mut [0]);
        line.expect("the shell says a line");
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it is ours");
    }
}

/// Lets a process run for at least another [`SPIN`], and stops it. Returns for how long it has run, before and now: on a busy
/// machine this thread stops it late.
fn let_run(Shell(child): &Shell) -> [Duration; 2] {
    let (pid, mut id) = (child.id().cast_signed(), 0);
    // SAFETY: `id` is a valid clockid for the call to fill.
    assert_eq!(unsafe { libc::clock_getcpuclockid(pid, &raw mut id) }, 0);
    let (before, patience) = (clock(id), Instant::now() + LONG);
    send(pid, libc::SIGCONT);
    while clock(id) < before + SPIN {
        assert!(Instant::now() < patience, "the child runs");
        std::thread::sleep(Duration::from_millis(2));
    }
    send(pid, libc::SIGSTOP);
    while !std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is ours").contains(") T ") {
        assert!(Instant::now() < patience, "the child stops");
        std::thread::sleep(Duration::from_millis(2));
    }
    [before, clock(id)]
}

fn send(pid: i32, signal: i32) {
    // SAFETY: kill(2) takes numbers. The process is a child that was not waited for yet.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// Returns true if the observed time is about that between two times of a clock.
fn is_about(nanos: u64, [before, now]: [Duration; 2]) -> bool {
    nanos.abs_diff((now - before).as_nanos() as u64) < LITTLE
}

#[test]
fn children_are_counted_while_they_live_and_when_they_have_ended() {
    alone(|| {
        let child = Shell::run(LONGER);
        let mut ran = let_run(&child);
        let lives = window(|| ran = let_run(&child));
        assert!(is_about(lives.children_ns.0, ran), "{lives:?}, ran {ran:?}");
        let ends = window(|| {
            ran = let_run(&child);
            drop(child);
        });
        assert!(
            is_about(ends.children_ns.0, ran),
            "what it ran before is not of this window: {ends:?}, ran {ran:?}"
        );
        let whole = window(|| {
            let child = Shell::run(LONGER);
            ran = let_run(&child);
            drop(child);
        });
        let [_, now] = ran;
        assert!(is_about(whole.children_ns.0, [Duration::ZERO, now]), "{whole:?}, ran {ran:?}");
        assert!(whole.helpers_ns.0 < LITTLE, "{whole:?}");
    });
}

#[test]
fn children_of_children_are_counted() {
    alone(|| {
        // The shell waits for a spinning subshell, prints a line, and remains.
        let mut shell = None;
        let seen = window(|| shell.insert(Shell::run(&format!("({A_WHILE}); echo; read end"))).said());
        assert!(seen.children_ns.0 > 2 * LITTLE, "{seen:?}");
    });
}
