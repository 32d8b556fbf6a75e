//! Tests of the observer `cost` with live traffic over loopback and between two namespaces.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landspeed_lab::topology::Lab;
use landspeed_observer::{Observer, Watch, WatchSubject, observer};
use landspeed_record::{CostClass, CostProfile, Observations, WatchTarget};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Returns the observer; if it cannot run on this host, prints the reason and returns `None`.
fn cost() -> Option<&'static Observer> {
    let cost = observer("cost").expect("it is in the table");
    match cost.can_run() {
        Ok(()) => Some(cost),
        Err(why) => {
            eprintln!("SKIP: {why}");
            None
        }
    }
}

fn own_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Moves this thread into a network namespace.
fn enter(netns: &str) {
    let namespace = std::fs::File::open(format!("/run/netns/{netns}")).expect("open the namespace");
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .expect("enter the namespace");
}

/// A stream between two threads, until it is dropped.
struct LoopbackStream {
    tids: [i32; 2],
    stop: Arc<AtomicBool>,
    ends: Vec<JoinHandle<()>>,
}

impl LoopbackStream {
    /// Starts the sender in the namespace `from` and the receiver, which listens on `address`, in `to`; `None` is the
    /// caller's namespace.
    fn between(from: Option<&str>, to: Option<&str>, address: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = std::sync::mpsc::channel();
        let (address, to) = (address.to_owned(), to.map(str::to_owned));
        let receiver = std::thread::spawn(move || {
            to.iter().for_each(|netns| enter(netns));
            let listener = TcpListener::bind((address.as_str(), 0)).expect("listen");
            tell.send((own_thread(), listener.local_addr().expect("own address"))).expect("tell");
            let (mut stream, mut buffer) = (listener.accept().expect("accept").0, vec![0; 1 << 16]);
            while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
        });
        let (receiver_tid, at) = told.recv().expect("receiver starts");
        let (tell, told) = std::sync::mpsc::channel();
        let (from, stopped) = (from.map(str::to_owned), Arc::clone(&stop));
        let sender = std::thread::spawn(move || {
            from.iter().for_each(|netns| enter(netns));
            let (mut stream, buffer) = (TcpStream::connect(at).expect("connect"), vec![7; 1 << 14]);
            tell.send(own_thread()).expect("tell");
            while !stopped.load(Ordering::Relaxed) && stream.write_all(&buffer).is_ok() {}
        });
        let tids = [told.recv().expect("sender starts"), receiver_tid];
        LoopbackStream { tids, stop, ends: vec![sender, receiver] }
    }
}

impl Drop for LoopbackStream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for end in self.ends.drain(..) {
            end.join().expect("an end of the stream");
        }
    }
}

/// Length of a window in which a spinning thread gets many samples, also where other programs have most of the processors.
const SECOND: Duration = Duration::from_secs(1);

/// Watches `threads` for one window of `length`.
fn window(watch: &mut dyn Watch, threads: &[i32], length: Duration) -> CostProfile {
    watch.open(&WatchSubject { threads, ..WatchSubject::default() }).expect("open");
    std::thread::sleep(length);
    close(watch)
}

/// Watches windows of increasing length, and returns the profile of the first one with enough samples. On a busy
/// machine the threads may get little processor time, and a few samples prove nothing.
fn full_window(watch: &mut dyn Watch, threads: &[i32]) -> CostProfile {
    const ENOUGH: u64 = 200;
    let mut seen = CostProfile::default();
    for length in (1..=12).map(|n| Duration::from_millis(700 * n)) {
        seen = window(watch, threads, length);
        if seen.samples >= ENOUGH {
            break;
        }
    }
    seen
}

fn close(watch: &mut dyn Watch) -> CostProfile {
    let mut seen = Observations::default();
    watch.close(&mut seen).expect("close");
    seen.get::<Option<CostProfile>>().clone().expect("a profile")
}

fn by_class(profile: &CostProfile) -> BTreeMap<CostClass, u64> {
    profile.classes.iter().map(|row| (row.class, row.samples)).collect()
}

/// Checks the properties that every profile has.
fn check(profile: &CostProfile) {
    assert_eq!(profile.classes.iter().map(|row| row.samples).sum::<u64>(), profile.samples, "{profile:?}");
    assert!(profile.kernel_samples <= profile.samples);
    let unknown: u64 = profile.unclassified.iter().map(|row| row.samples).sum();
    assert!(unknown <= by_class(profile).get(&CostClass::Other).copied().unwrap_or(0), "{profile:?}");
    assert!(profile.stacks.iter().map(|row| row.samples).sum::<u64>() <= profile.samples);
    assert!(profile.stacks.is_sorted_by(|a, b| a.samples >= b.samples));
    assert!((0.0..=1.0).contains(&profile.steal_share), "{}", profile.steal_share);
}

/// Returns the share of the kernel's samples that the table classifies.
fn known(profile: &CostProfile) -> f64 {
    let unknown: u64 = profile.unclassified.iter().map(|row| row.samples).sum();
    1.0 - unknown as f64 / profile.kernel_samples.max(1) as f64
}

#[test]
fn a_stream_over_loopback_shows_its_layers() {
    let Some(cost) = cost() else { return };
    let stream = LoopbackStream::between(None, None, "127.0.0.1");
    let mut watch = cost.watch("lo");
    let seen = full_window(watch.as_mut(), &stream.tids);
    check(&seen);
    let classes = by_class(&seen);
    assert_eq!((seen.scope.as_str(), seen.period_ns.0), ("tasks", 1_001_001));
    assert!(seen.samples > 50, "{seen:?}");
    for class in [CostClass::Copy, CostClass::Tcp, CostClass::Memory] {
        assert!(classes.get(&class).is_some_and(|samples| *samples > 0), "no {class:?} in {classes:?}");
    }
    assert!(known(&seen) > 0.9, "too much that no rule knows: {:?}", seen.unclassified);
    assert!(seen.stacks.iter().any(|row| row.stack.contains("tcp_sendmsg_[k]")), "{:?}", seen.stacks);
    // A second window starts from zero.
    let again = window(watch.as_mut(), &stream.tids, Duration::from_millis(100));
    check(&again);
    assert!(again.samples < seen.samples, "{} {}", again.samples, seen.samples);
}

#[test]
fn a_stream_between_namespaces_is_nearly_all_known() {
    let Some(cost) = cost() else { return };
    let lab = match Lab::open("lab:back-to-back") {
        Ok(lab) => lab,
        Err(why) => return eprintln!("SKIP: {why}"),
    };
    let [a, b] = lab.hosts() else { panic!("{:?}", lab.hosts()) };
    // The driver then runs for each segment: with a call for each 64 KB, a few hundred samples may not include one.
    let segments = ["netns", "exec", &a.netns, "ethtool", "-K", &a.device, "tso", "off", "gso", "off"];
    assert!(Command::new("ip").args(segments).status().expect("ip").success());
    let stream = LoopbackStream::between(Some(&a.netns), Some(&b.netns), &b.v4.to_string());
    let (netns, device, sender) = (a.netns.clone(), a.device.clone(), stream.tids[0]);
    let seen = std::thread::spawn(move || {
        enter(&netns);
        full_window(cost.watch(&device).as_mut(), &[sender])
    });
    let seen = seen.join().expect("watching thread");
    check(&seen);
    assert_eq!(seen.scope, "tasks", "a namespace of a lab shares its machine");
    assert!(by_class(&seen).get(&CostClass::Driver).is_some_and(|samples| *samples > 0), "{seen:?}");
    assert!(known(&seen) > 0.9, "too much that no rule knows: {:?}", seen.unclassified);
}

#[test]
fn a_thread_that_is_not_the_workloads_is_not_counted() {
    let Some(cost) = cost() else { return };
    let (stop, ready) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(2)));
    let (stopped, spinning) = (Arc::clone(&stop), Arc::clone(&ready));
    let spinner = std::thread::spawn(move || {
        spinning.wait();
        let end = Instant::now() + Duration::from_secs(20);
        while !stopped.load(Ordering::Relaxed) && Instant::now() < end {}
    });
    ready.wait();
    let mut watch = cost.watch("lo");
    // No process holds a flow of this address, so that the whole machine counts.
    let nobodys = "127.0.0.1:9".parse().unwrap();
    // This thread sleeps, so that the spinning thread would have nearly all samples.
    let tasks = window(watch.as_mut(), &[own_thread()], SECOND);
    watch
        .open(&WatchSubject { target: WatchTarget::Flow { at: nobodys }, ..WatchSubject::default() })
        .expect("open");
    std::thread::sleep(SECOND);
    let machine = close(watch.as_mut());
    let mut of_process = |pid| {
        watch
            .open(&WatchSubject { target: WatchTarget::Pid { pid }, ..WatchSubject::default() })
            .expect("open");
        std::thread::sleep(SECOND);
        close(watch.as_mut())
    };
    let mut sleeper = std::process::Command::new("sleep").arg("20").spawn().expect("sleep");
    let (own, foreign) = (of_process(std::process::id()), of_process(sleeper.id()));
    sleeper.kill().and_then(|()| sleeper.wait()).expect("end sleep");
    stop.store(true, Ordering::Relaxed);
    spinner.join().expect("spinner");
    [&tasks, &machine, &own, &foreign].into_iter().for_each(check);
    assert_eq!((tasks.scope.as_str(), machine.scope.as_str()), ("tasks", "machine"));
    assert!(machine.samples > 20, "{machine:?}");
    assert!(tasks.samples < machine.samples / 2, "{} of {}", tasks.samples, machine.samples);
    assert_eq!((own.scope.as_str(), foreign.scope.as_str()), ("process", "process"));
    assert!(own.samples > 20, "the spinner is of this process: {own:?}");
    assert!(foreign.samples < own.samples / 2, "{} of {}", foreign.samples, own.samples);
}

#[test]
fn a_window_that_is_thrown_away_leaves_nothing_behind() {
    let Some(cost) = cost() else { return };
    let readers = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("own threads").flatten();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.trim() == format!("cost-{}", own_thread())).count()
    };
    // A thread names itself when it starts, and is still listed for a moment after it was joined.
    let eventually = |count| {
        let end = Instant::now() + Duration::from_secs(20);
        while readers() != count && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(readers(), count);
    };
    let mut watch = cost.watch("lo");
    for _ in 0..3 {
        watch.open(&WatchSubject::default()).expect("open");
        eventually(1);
    }
    drop(watch);
    eventually(0);
}
