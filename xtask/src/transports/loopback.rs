//! Runs one flow over loopback, with both ends in this process: landspeed's own commands take two hosts, and loopback
//! joins none.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use landspeed_record::Settings;
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{CancelFlag, ConnectRequest, Flow, Patience, find};

use super::FlowResult;
use crate::bench::udp::ran_s;

/// Size of writes and reads in bytes, as a flow's defaults are.
const BUFFER: usize = 128 << 10;
/// Time limit of a set-up.
const LONG: Duration = Duration::from_secs(10);
/// How long a sender waits for room before it checks whether the run is over.
const LOOK: Duration = Duration::from_millis(50);

/// Measures what a flow carries in the window after the warm-up.
pub(super) fn run(settings: &Settings, warm_up: Duration, window: Duration) -> Result<FlowResult> {
    let (there, here) = pair(settings)?;
    let (over, received) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| send(there.as_ref(), &over));
        let receiving = scope.spawn(|| receive(here.as_ref(), &over, &received));
        std::thread::sleep(warm_up);
        let (begun, before, ran) =
            (Instant::now(), received.load(Ordering::Relaxed), ran_s(libc::RUSAGE_SELF)?);
        std::thread::sleep(window);
        let run = FlowResult {
            seconds: begun.elapsed().as_secs_f64(),
            bytes: (received.load(Ordering::Relaxed) - before) as f64,
            cores: (ran_s(libc::RUSAGE_SELF)? - ran) / begun.elapsed().as_secs_f64(),
        };
        over.store(true, Ordering::Relaxed);
        here.wake_receiver();
        sending.join().expect("no panic").context("the sender")?;
        receiving.join().expect("no panic").context("the receiver")?;
        Ok(run)
    })
}

fn pair(settings: &Settings) -> Result<(Box<dyn Flow>, Box<dyn Flow>)> {
    let transport = find(TRANSPORT.of(settings)).context("no such transport")?;
    let (key, cancel) = ([7; 32], CancelFlag::new());
    let port = transport.reserve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let mut listener = port.listen(settings, &key)?;
    let patience = Patience { until: Instant::now() + LONG, cancel: &cancel };
    let call = ConnectRequest { server: port.address(), number: 1, source_port: 0, settings, key: &key };
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| transport.connect(&call, &patience));
        let here = listener.accept(&patience)?;
        while !calling.is_finished() {
            // Reading the progress sends lost parts of the proof again.
            here.progress()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok((calling.join().expect("no panic")?, here))
    })
}

fn send(flow: &dyn Flow, over: &AtomicBool) -> io::Result<()> {
    let mut sender = flow.sender().map_err(io::Error::other)?;
    sender.give_up_after(LOOK)?;
    let message = vec![7; BUFFER];
    while !over.load(Ordering::Relaxed) {
        match sender.send(&message, 1) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn receive(flow: &dyn Flow, over: &AtomicBool, received: &AtomicU64) -> io::Result<()> {
    let mut receiver = flow.receiver().map_err(io::Error::other)?;
    let mut buffer = vec![0; BUFFER];
    while !over.load(Ordering::Relaxed) {
        received.fetch_add(receiver.receive(&mut buffer)? as u64, Ordering::Relaxed);
    }
    Ok(())
}
