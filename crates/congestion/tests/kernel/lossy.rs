//! Every control over a path that loses packets: what it does at a loss runs in the kernel too, and what each call
//! costs is printed.
//!
//! ```text
//!   a  ==== veth ====  lab:wan, one packet in 500 lost  ==== veth ====  b
//! ```

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd};

use landspeed_congestion::{CallbackCost, Row, load};
use landspeed_topology::{Lab, find, with_namespace};

use crate::transfer::{Flow, Report};
use crate::{KERNEL, can, ours};

const PATH: &str = "lab:wan:rate=200M,rtt=4ms,loss=0.2%";

/// The kernel counts calls and time of programs as long as this lives; none where it does not let us ask for that.
fn counting() -> Option<OwnedFd> {
    // SAFETY: no memory is passed.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        println!("SKIP counting calls: BPF_ENABLE_STATS: {}", std::io::Error::last_os_error());
        return None;
    }
    // SAFETY: the kernel has just made it for us.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn transfer(lab: &Lab, row: &Row) -> std::io::Result<Report> {
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    let bind = || TcpListener::bind(SocketAddr::new(b.v4.into(), 0));
    let listener = with_namespace(&b.netns, bind).expect("namespace b")?;
    let address = listener.local_addr()?;
    let near = with_namespace(&a.netns, || TcpStream::connect(address)).expect("namespace a")?;
    Flow::between(row.kernel_name, near, &listener)?.send(4 << 20)
}

#[test]
fn every_control_gets_over_losses_in_another_namespace() {
    let _one = KERNEL.lock();
    if !can("every_control_gets_over_losses_in_another_namespace") {
        return;
    }
    let topology = find(&[PATH.to_owned()]).expect("a lab of this kind");
    if let Err(reason) = topology.can_run() {
        println!("SKIP every_control_gets_over_losses_in_another_namespace: {reason}");
        return;
    }
    let lab = Lab::open(PATH).expect("a lab");
    let counting = counting();
    for row in ours() {
        let loaded = load(row.name).unwrap_or_else(|error| panic!("{error}"));
        let report = transfer(&lab, row).expect("a transfer");
        assert_eq!(report.control, row.kernel_name);
        assert!(report.sent_again > 0, "{}: nothing was lost: {report:?}", row.name);
        if counting.is_none() {
            continue;
        }
        let costs = loaded.cost();
        let called = |part: &str| costs.iter().any(|cost| cost.callback.contains(part) && cost.calls > 0);
        assert!(called("cong_avoid") && (called("ssthresh") || called("on_loss")), "{}: {costs:?}", row.name);
        costs.iter().for_each(show);
    }
}

/// For the reader: a shared machine's times prove nothing.
fn show(cost: &CallbackCost) {
    let each = cost.time.0.checked_div(cost.calls).unwrap_or(0);
    println!("{:26} {:8} calls, {each:6} ns each", cost.callback, cost.calls);
}
