//! What a call of each control costs: natively, and (as root) in the kernel while it carries a stream over loopback,
//! where calls follow each other closely, and over a path that loses packets, where it does all its work and finds its
//! memory out of the caches each time: `make cc-cost`. Times of a machine that does nothing else. The kernel's hold its
//! own counting and the way into BPF too: what is left of them in a control that does nothing is measured first, and
//! said of each control beside its own. A control whose calls take longer than 200 ns in the mean over loopback fails.

use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Instant;

use landspeed_congestion::{AckSample, CONTROLS, CallbackCost, IDLE, Row, Sock, can_load, load_row, native};
use landspeed_topology::{Lab, find, with_namespace};

/// Acknowledgements natively; bytes in the kernel, over loopback and over the path.
const ACKS: u32 = 5_000_000;
const LOOPBACK: usize = 4 << 30;
const OVER_PATH: usize = 100 << 20;

/// Losses often enough that no window gets far beyond what the path takes.
const PATH: &str = "lab:wan:rate=1G,rtt=2ms,loss=0.1%";

/// The most that a call may take in the mean of a control's calls, in ns.
const ALLOWED: f64 = 200.0;

fn main() -> Result<(), Box<dyn Error>> {
    for row in CONTROLS.iter().filter(|row| !row.is_rate_based) {
        println!("{:10} natively {:4.1} ns an acknowledgement", row.name, natively(row));
    }
    if let Err(reason) = can_load() {
        println!("not in the kernel: {reason}");
        return Ok(());
    }
    let _counting = counting()?;
    let lab = lab()?;
    let mut over = Vec::new();
    let mut idle = None;
    for row in std::iter::once(&IDLE).chain(CONTROLS).filter(|row| !row.is_kernels()) {
        let loopback = in_kernel(row, || over_loopback(row.kernel_name))?;
        let path = in_kernel(row, || over_path(&lab, row.kernel_name))?;
        let floor = idle.get_or_insert((loopback.each, path.each));
        loopback.print(row, "loopback", floor.0);
        path.print(row, "the path", floor.1);
        if loopback.each > ALLOWED {
            over.push(row.name);
        }
    }
    if over.is_empty() {
        Ok(())
    } else {
        Err(format!("over {ALLOWED} ns a call: {}", over.join(", ")).into())
    }
}

fn lab() -> Result<Lab, Box<dyn Error>> {
    find(&[PATH.to_owned()])?.can_run()?;
    Ok(Lab::open(PATH)?)
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

struct Calls {
    /// A call in the mean, in ns.
    each: f64,
    costs: Vec<CallbackCost>,
}

impl Calls {
    /// Says what a call took, how much of it is more than a call that does nothing takes, and how long each callback.
    fn print(&self, row: &Row, over: &str, floor: f64) {
        let parts: Vec<_> = self.costs.iter().filter(|cost| cost.calls > 0).map(shown).collect();
        println!(
            "{:10} over {over:8} {:4.0} ns a call, {:+5.0} to idle: {}",
            row.name,
            self.each,
            self.each - floor,
            parts.join(", ")
        );
    }
}

/// What its calls take while the control carries a stream.
fn in_kernel(
    row: &'static Row,
    stream: impl FnOnce() -> std::io::Result<()>,
) -> Result<Calls, Box<dyn Error>> {
    let loaded = load_row(row)?;
    stream()?;
    let costs = loaded.cost();
    Ok(Calls { each: mean(&costs), costs })
}

fn mean(costs: &[CallbackCost]) -> f64 {
    let (time, calls) = costs.iter().fold((0, 0), |sum, cost| (sum.0 + cost.time.0, sum.1 + cost.calls));
    time as f64 / calls.max(1) as f64
}

fn shown(cost: &CallbackCost) -> String {
    let each = mean(std::slice::from_ref(cost));
    format!("{} {each:.0} ({} calls)", cost.callback, cost.calls)
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
    let near = TcpStream::connect(listener.local_addr()?)?;
    carry(control, near, &listener, LOOPBACK)
}

fn over_path(lab: &Lab, control: &str) -> std::io::Result<()> {
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    let bind = || TcpListener::bind(SocketAddr::new(b.v4.into(), 0));
    let listener = with_namespace(&b.netns, bind).map_err(std::io::Error::other)??;
    let address = listener.local_addr()?;
    let near = with_namespace(&a.netns, || TcpStream::connect(address)).map_err(std::io::Error::other)??;
    carry(control, near, &listener, OVER_PATH)
}

/// Sends so many bytes to who listens.
fn carry(control: &str, mut near: TcpStream, listener: &TcpListener, bytes: usize) -> std::io::Result<()> {
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
    for _ in 0..bytes / chunk.len() {
        near.write_all(&chunk)?;
    }
    drop(near);
    reader.join().expect("the reader does not panic").map(drop)
}
