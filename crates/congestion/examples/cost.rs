//! What a call of each control costs, natively and (as root) in the kernel: `cargo run --release --example cost -p
//! landspeed-congestion`. Times of a machine that does nothing else; the kernel's hold its own counting too, some 50 ns.

use std::hint::black_box;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Instant;

use landspeed_congestion::{AckSample, CONTROLS, Row, Sock, can_load, load, native};

/// Acknowledgements natively; bytes over loopback in the kernel.
const ACKS: u32 = 5_000_000;
const BYTES: usize = 4 << 30;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for row in CONTROLS.iter().filter(|row| !row.is_rate_based) {
        println!("{:10} natively {:4.1} ns an acknowledgement", row.name, natively(row));
    }
    if let Err(reason) = can_load() {
        println!("not in the kernel: {reason}");
        return Ok(());
    }
    let _counting = counting()?;
    for row in CONTROLS.iter().filter(|row| !row.is_kernels()) {
        in_kernel(row)?;
    }
    Ok(())
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

fn in_kernel(row: &'static Row) -> Result<(), Box<dyn std::error::Error>> {
    let loaded = load(row.name)?;
    over_loopback(row.kernel_name)?;
    for cost in loaded.cost().iter().filter(|cost| cost.calls > 0) {
        let each = cost.time.0 as f64 / cost.calls as f64;
        println!("{:10} kernel {:22} {:8} calls, {each:5.0} ns each", row.name, cost.callback, cost.calls);
    }
    Ok(())
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
