//! What a call of each control costs, natively and (as root) in the kernel while it carries a stream over loopback:
//! `make cc-cost`. Times of a machine that does nothing else; the kernel's hold its own counting too, some 50 ns. A
//! control whose calls take longer than 200 ns in the mean fails.

use std::hint::black_box;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Instant;

use landspeed_congestion::{AckSample, CONTROLS, CallbackCost, Row, Sock, can_load, load, native};

/// Acknowledgements natively; bytes over loopback in the kernel.
const ACKS: u32 = 5_000_000;
const BYTES: usize = 4 << 30;

/// The most that a call may take in the mean of a control's calls, in ns.
const ALLOWED: f64 = 200.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for row in CONTROLS.iter().filter(|row| !row.is_rate_based) {
        println!("{:10} natively {:4.1} ns an acknowledgement", row.name, natively(row));
    }
    if let Err(reason) = can_load() {
        println!("not in the kernel: {reason}");
        return Ok(());
    }
    let _counting = counting()?;
    let mut over = Vec::new();
    for row in CONTROLS.iter().filter(|row| !row.is_kernels()) {
        let costs = in_kernel(row)?;
        let each = mean(&costs);
        let parts: Vec<_> = costs.iter().map(shown).collect();
        println!("{:10} in the kernel {each:4.0} ns a call: {}", row.name, parts.join(", "));
        if each > ALLOWED {
            over.push(row.name);
        }
    }
    if over.is_empty() {
        return Ok(());
    }
    Err(format!("over {ALLOWED} ns a call: {}", over.join(", ")).into())
}

fn mean(costs: &[CallbackCost]) -> f64 {
    let (time, calls) = costs.iter().fold((0, 0), |sum, cost| (sum.0 + cost.time.0, sum.1 + cost.calls));
    time as f64 / calls.max(1) as f64
}

fn shown(cost: &CallbackCost) -> String {
    let each = mean(std::slice::from_ref(cost));
    format!("{} {each:.0} ({} calls)", cost.callback, cost.calls)
}

/// pkts_acked and cong_avoid in congestion avoidance, the window put back after each.
fn natively(row: &Row) -> f64 {
    let control = native(row.name).expect("a row");
    let mut sk = Sock { snd_ssthresh: 2, srtt_us: 800_000, rtt_min: 100_000, ..Sock::default() };
    control.init(&mut sk).expect("timestamps are on");
    sk.set_cwnd_limited(true);
    let start = Instant::now();
    for ack in 0..ACKS {
        sk.snd_cwnd = 10_000;
        sk.tcp_mstamp += 10;
        sk.delivered = ack;
        let sample = AckSample { pkts_acked: 1, rtt_us: 100_000, in_flight: 10_000 };
        control.pkts_acked(&mut sk, black_box(&sample));
        control.cong_avoid(&mut sk, ack, 1);
    }
    black_box(&sk);
    start.elapsed().as_nanos() as f64 / f64::from(ACKS)
}

/// The callbacks that were called, while the control carried a stream.
fn in_kernel(row: &'static Row) -> Result<Vec<CallbackCost>, Box<dyn std::error::Error>> {
    let loaded = load(row.name)?;
    over_loopback(row.kernel_name)?;
    let mut costs = loaded.cost();
    costs.retain(|cost| cost.calls > 0);
    Ok(costs)
}

/// The kernel counts the time of programs as long as this lives.
fn counting() -> std::io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn over_loopback(control: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let length = libc::socklen_t::try_from(control.len()).expect("a short name");
    // SAFETY: the kernel reads `length` bytes of a live string.
    let rc = unsafe {
        libc::setsockopt(
            near.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            control.as_ptr().cast(),
            length,
        )
    };
    if rc != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let (mut far, _) = listener.accept()?;
    let reader = std::thread::spawn(move || std::io::copy(&mut far, &mut std::io::sink()));
    let chunk = vec![0; 64 << 10];
    for _ in 0..BYTES / chunk.len() {
        near.write_all(&chunk)?;
    }
    drop(near);
    reader.join().expect("the reader does not panic").map(drop)
}
