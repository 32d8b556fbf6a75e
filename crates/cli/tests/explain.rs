//! Tests of `landspeed explain` that need the whole machine: on faults created in a lab, on a path without faults, on its own
//! stream, and on flows of other programs. The tests of `explain_beside` do not.

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use landspeed_analysis::verdict::is_limit;
use landspeed_lab::faults::{FaultLab, FaultScenario, fault};
use landspeed_record::{Cause, ExplainReport, Finding, PathRate};
use parking_lot::Mutex;
use support::explained::{BackgroundFlow, explain, explain_by};
use support::mostly::mostly;
use support::{LANDSPEED, needs_root, text};

/// A lock that allows one lab at a time, because the load of one test would disturb another.
static ALONE: Mutex<()> = Mutex::new(());

/// The start of a command that runs a program with priority over all others on the machine, including those of `make
/// disturbed`. Other programs take processor time from a flow, but a test of the verdict on a quiet path needs a quiet
/// path. Niceness is not enough, because it only applies within a scheduling group.
const AHEAD: [&str; 3] = ["chrt", "--rr", "60"];

/// The causes that other programs on the machine can have. A verdict that names one of them is right.
const OTHERS: [Cause; 2] = [Cause::Steal, Cause::CompetingLoad];

/// Returns true if programs can get priority here; otherwise reports a skipped test.
fn gets_ahead() -> bool {
    let works = Command::new(AHEAD[0]).args(&AHEAD[1..]).arg("true").output();
    let works = works.is_ok_and(|output| output.status.success());
    if !works {
        support::skip("needs chrt, and a host whose root may schedule in real time");
    }
    works
}

/// Returns the explanation of a path with the given faults.
fn explained(names: &[&str], strength: f64) -> ExplainReport {
    let faults: Vec<(&str, f64)> = names.iter().map(|name| (*name, strength)).collect();
    let scenario = FaultScenario::with(&faults).unwrap();
    let program: Vec<String> = AHEAD.into_iter().chain([LANDSPEED, "play"]).map(str::to_owned).collect();
    let stage = FaultLab::set(&scenario, &program).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let [a, b] = stage.names();
    let at = stage.at().to_string();
    let mut ahead = Command::new(AHEAD[0]);
    ahead.args(&AHEAD[1..]).arg(LANDSPEED);
    explain_by(ahead, &[&a, &b, "--flow", &at, "--time", "3s", "--no-limits", "--no-trace"])
}

/// Tests faults that show in different places, so that a correct verdict is not chance. `make faults` tests all of
/// them, at all strengths and in pairs.
#[test]
fn faults_are_named_first() {
    needs_root!();
    if !gets_ahead() {
        return;
    }
    let _alone = ALONE.lock();
    for name in ["slow-reader", "rate-limit", "random-loss"] {
        // In one of several runs, a hypervisor that takes the cores may limit the flow more than the fault does.
        let judged = mostly(3, || {
            let verdict = explained(&[name], 1.0).verdict;
            let first = verdict.first().expect("a verdict is never empty");
            assert!(!first.evidence.is_empty() && !first.remedies.is_empty(), "{first:?}");
            if first.cause == fault(name).unwrap().cause { Ok(()) } else { Err(verdict) }
        });
        judged.unwrap_or_else(|verdict| panic!("{name}: {verdict:#?}"));
    }
}

#[test]
fn a_path_with_nothing_wrong_has_a_limit_and_no_fault() {
    needs_root!();
    if !gets_ahead() {
        return;
    }
    let _alone = ALONE.lock();
    let is_fine = |cause| is_limit(cause) || OTHERS.contains(&cause);
    // In one of several runs, other programs may limit the flow.
    let judged = mostly(3, || {
        let verdict = explained(&[], 0.0).verdict;
        assert!(!verdict.is_empty());
        if verdict.iter().all(|finding| is_fine(finding.cause)) { Ok(()) } else { Err(verdict) }
    });
    judged.unwrap_or_else(|verdict| panic!("{verdict:#?}"));
}

/// Two hosts and a router that lets 200 Mb/s through, made by other tools; removed on drop.
struct ShapedRouter {
    id: String,
}

impl ShapedRouter {
    fn new() -> ShapedRouter {
        let id = format!("lsr{}", std::process::id());
        support::sh(&format!(
            "set -e
            for n in {id}a {id}b {id}r; do ip netns add $n; ip -n $n link set lo up; done
            for host in 'a 1' 'b 2'; do set -- $host
                ip -n {id}$1 link add dev e type veth peer name $1 netns {id}r
                ip -n {id}$1 addr add 10.77.$2.1/24 dev e; ip -n {id}r addr add 10.77.$2.254/24 dev $1
                ip -n {id}$1 link set dev e up; ip -n {id}r link set dev $1 up
                ip -n {id}$1 route add default via 10.77.$2.254; done
            ip netns exec {id}r sysctl -qw net.ipv4.ip_forward=1
            tc -n {id}r qdisc add dev b root tbf rate 200mbit burst 64kb latency 20ms"
        ));
        ShapedRouter { id }
    }
}

impl Drop for ShapedRouter {
    fn drop(&mut self) {
        for host in ["a", "b", "r"] {
            support::output(&format!("ip netns del {}{host}", self.id));
        }
    }
}

/// Tests that a router between the hosts is named as the cause, even if other programs use the cores.
#[test]
fn a_router_that_shapes_is_named_with_its_rate() {
    needs_root!();
    if !gets_ahead() {
        return;
    }
    let _alone = ALONE.lock();
    let router = ShapedRouter::new();
    let [a, b] = ["a", "b"].map(|host| format!("netns:{}{host}", router.id));
    // In one of several runs, a hypervisor that takes the cores may limit the flow.
    let judged = mostly(3, || {
        let mut ahead = Command::new(AHEAD[0]);
        ahead.args(&AHEAD[1..]).arg(LANDSPEED);
        let report = explain_by(ahead, &[&a, &b, "-4", "--time", "2s", "--no-limits", "--no-trace"]);
        // 200 Mb/s of frames are 191 Mb/s of payload.
        let is_its = |path: &PathRate| (150e6..205e6).contains(&path.rate_bps.0);
        let is_named = report.path_rate.as_ref().is_some_and(is_its);
        let is_first = report.verdict.first().is_some_and(|first| first.cause == Cause::LinkLimit);
        if is_named && is_first { Ok(()) } else { Err((report.path_rate, report.verdict)) }
    });
    judged.unwrap_or_else(|found| panic!("{found:#?}"));
}

#[test]
fn its_own_stream_is_explained_within_a_minute() {
    needs_root!();
    let _alone = ALONE.lock();
    let began = Instant::now();
    let report = explain(&[]);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert!(report.goodput_bps.0 > 0.0 && !report.verdict.is_empty());
    assert_eq!(report.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["A", "B"]);
    let flow = report.windows.first().expect("a flow of TCP is held against the window model");
    assert!(flow.moved_bytes.0 > 0 && flow.rules.iter().any(|figure| figure.holds), "{flow:#?}");
    assert_eq!(report.wan, None, "no link in user space");
    for host in &report.hosts {
        let shares: f64 = host.cost.values().map(|figure| figure.share).sum();
        assert!((shares - 1.0).abs() < 0.01, "{}: {shares}", host.name);
        assert!(host.limits.as_ref().is_some_and(|limits| !limits.memory.is_empty()));
    }
    assert!(report.staircase.len() > 2, "{:?}", report.staircase);
}

/// Tests that a watch of existing flows measures nothing beside them, which would take longer than the watch.
#[test]
fn existing_flows_are_watched_and_nothing_else_is_measured() {
    let _alone = ALONE.lock();
    let busy = BackgroundFlow::new(Duration::ZERO);
    let at = busy.at.to_string();
    let report = explain(&["--flow", &at, "--time", "2s"]);
    assert!(report.hosts.iter().all(|host| host.limits.is_none()), "nothing beside the flow");
    assert!(report.staircase.is_empty(), "{:?}", report.staircase);
    let pid = std::process::id().to_string();
    let mine = explain(&["--pid", &pid, "--time", "500ms", "--no-trace"]);
    assert!(!mine.verdict.is_empty());
    let none = Command::new(LANDSPEED).args(["explain", "--pid", "no-such-program"]).output().unwrap();
    let none = text(&none).1;
    assert!(none.contains("called 'no-such-program'"), "{none}");
    assert!(none.contains(&at) && none.contains(&format!("(pid {pid})")), "flows there, with owners: {none}");
}

/// Tests a client that asks over loopback, and a server that pauses before it answers.
#[test]
fn a_client_that_waits_for_replies_is_no_fault() {
    let _alone = ALONE.lock();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.set_nodelay(true).unwrap();
        while stream.read_exact(&mut [0; 100]).is_ok() {
            std::thread::sleep(Duration::from_millis(3));
            stream.write_all(&[1; 50]).unwrap();
        }
    });
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&stop);
    let client = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(at).unwrap();
        while !ended.load(Ordering::Relaxed) {
            stream.write_all(&[1; 100]).unwrap();
            stream.read_exact(&mut [0; 50]).unwrap();
        }
    });
    std::thread::sleep(Duration::from_millis(100));
    // In one of several runs, other programs may limit the flow.
    let judged = mostly(3, || {
        let verdict = explain(&["--flow", &at.to_string(), "--time", "2s", "--no-trace"]).verdict;
        let is_first = |first: &Finding| {
            first.cause == Cause::RequestReply && first.summary.contains("per request is the network")
        };
        let is_fine = |finding: &Finding| is_limit(finding.cause) || OTHERS.contains(&finding.cause);
        let is_right = verdict.first().is_some_and(is_first) && verdict.iter().all(is_fine);
        if is_right { Ok(()) } else { Err(verdict) }
    });
    stop.store(true, Ordering::Relaxed);
    client.join().unwrap();
    server.join().unwrap();
    judged.unwrap_or_else(|verdict| panic!("{verdict:#?}"));
}

/// Tests a control group's quota in the kernel. The programs run without real-time priority, because a quota does not
/// limit programs that have it.
#[test]
fn a_processor_quota_is_named_with_its_group() {
    needs_root!();
    let _alone = ALONE.lock();
    let scenario = FaultScenario::with(&[("receiver-quota", 0.8)]).unwrap();
    let stage = match FaultLab::set(&scenario, &[LANDSPEED, "play"].map(str::to_owned)) {
        Ok(stage) => stage,
        Err(why) => return support::skip(&why.to_string()),
    };
    std::thread::sleep(Duration::from_millis(500));
    let [a, b] = stage.names();
    let at = stage.at().to_string();
    // In one of several runs, a sender with little processor time may not use up the quota.
    let judged = mostly(3, || {
        let verdict = explain(&[&a, &b, "--flow", &at, "--time", "2s", "--no-trace"]).verdict;
        let is_its = |finding: &Finding| {
            finding.cause == Cause::CpuQuota
                && finding.summary.contains("landspeed-fault-")
                && finding.at.contains(b.trim_start_matches("netns:"))
        };
        if verdict.iter().any(is_its) { Ok(()) } else { Err(verdict) }
    });
    judged.unwrap_or_else(|verdict| panic!("{verdict:#?}"));
}

/// Tests that there is no verdict without data, and that remedies for another program's flow name no settings of
/// landspeed's flows.
#[test]
fn another_programs_flow_is_judged_by_what_it_does() {
    let _alone = ALONE.lock();
    let quick = ["--time", "500ms", "--no-limits", "--no-trace"];
    let failed = |target: &[&str]| {
        let output = Command::new(LANDSPEED).arg("explain").args(target).args(quick).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        support::text(&output).1
    };
    let idle = BackgroundFlow::new(Duration::from_secs(60));
    let (at, gone) = (idle.at.to_string(), format!("127.0.0.9:{}", idle.at.port()));
    // The flow's first write is acknowledged by then.
    std::thread::sleep(Duration::from_millis(50));
    let none = failed(&["--flow", &gone]);
    assert!(none.contains("no such flow") && none.contains(&at), "the nearest flow is named: {none}");
    let still =
        Command::new(LANDSPEED).args(["explain", "--flow", &at, "--time", "100ms", "--no-limits"]).output();
    let still = support::text(&still.unwrap()).1;
    assert!(still.contains("seen only") && still.contains("--time"), "{still}");
    drop(idle);
    let busy = BackgroundFlow::new(Duration::ZERO);
    let report = explain(&[&["--flow", &busy.at.to_string()], &quick[..]].concat());
    let advised: Vec<_> = report.verdict.iter().flat_map(|finding| &finding.remedies).collect();
    assert!(!advised.is_empty(), "{:#?}", report.verdict);
    let flow = landspeed_transport::settings::table(landspeed_transport::find("tcp").unwrap());
    assert!(advised.iter().all(|remedy| flow.find(&remedy.knob).is_err()), "{advised:#?}");
    assert!(
        report.hosts[0]
            .observed
            .get::<Vec<landspeed_record::FlowWatch>>()
            .iter()
            .all(|flow| !flow.congestion.is_empty())
    );
}
