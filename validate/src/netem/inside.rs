//! What the guest does: runs over both links by turns, in random order. It prints a line of JSON for each run.

use std::net::UdpSocket;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use landspeed_lab::topology::{HostSet, Lab, LabHost, with_namespace};
use landspeed_stats::Random;

use super::condition::{LINKS, LOADS, LinkKind, OfferedLoad};
use super::figures::LinkRun;
use super::traffic::{exchange, greet};

/// The time at the start of a run that does not count, in seconds.
const WARM_UP: u32 = 1;
/// Room for all that can wait at a receiver.
const RECEIVE_BUFFER: usize = 16 << 20;

/// How much is measured.
#[derive(Debug, Args)]
pub(crate) struct StudySize {
    /// Turns; each has one run over each link under each load.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    turns: u32,
    /// Seconds of each run.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// Draws the order of the runs and what the emulator loses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl StudySize {
    /// Returns the command line's words for this size.
    pub(super) fn words(&self) -> String {
        let StudySize { turns, seconds, seed } = self;
        format!("--turns {turns} --seconds {seconds} --seed {seed}")
    }

    /// Returns the number of runs.
    pub(super) fn runs(&self) -> usize {
        self.turns as usize * LINKS.len() * LOADS.len()
    }
}

pub(crate) fn run(size: &StudySize) -> Result<()> {
    let mut random = Random::new(size.seed);
    for turn in 0..size.turns {
        let mut due: Vec<(LinkKind, OfferedLoad)> =
            LINKS.into_iter().flat_map(|link| LOADS.map(|load| (link, load))).collect();
        random.shuffle(&mut due);
        for (link, load) in due {
            eprintln!("turn {}: {link}, {load} the rate", turn + 1);
            let run = measured(turn, size.seconds, link, load, random.draw());
            let run = run.with_context(|| format!("{link}, {load} the rate"))?;
            println!("{}", serde_json::to_string(&run)?);
        }
    }
    Ok(())
}

fn measured(turn: u32, seconds: u32, link: LinkKind, load: OfferedLoad, seed: u64) -> Result<LinkRun> {
    let lab = Lab::open(&match link {
        LinkKind::Emulator => load.emulator_words(seed),
        LinkKind::Netem => "lab:back-to-back".to_owned(),
    })?;
    let [a, b] = lab.hosts() else { bail!("a lab of two hosts has {} hosts", lab.hosts().len()) };
    let (near, far) = sockets(a, b)?;
    greet(&near, &far)?;
    if link == LinkKind::Netem {
        // netem would also delay and lose what the hosts ask for each other's address.
        add_netem(a, load)?;
    }
    if let Some(link) = lab.link() {
        link.mark();
    }
    let per_second = load.packets_per_second();
    let [first, sent] = [WARM_UP, WARM_UP + seconds].map(|time| (f64::from(time) * per_second) as u32);
    let arrivals = exchange(&near, &far, sent, per_second)?;
    let emulator = lab.link().map(|link| link.since_mark().0.a_to_b);
    Ok(LinkRun { turn, link, load, sent, first, arrivals, emulator })
}

/// Returns a socket on each host, connected to the other.
fn sockets(a: &LabHost, b: &LabHost) -> Result<(UdpSocket, UdpSocket)> {
    let socket = |host: &LabHost| -> Result<UdpSocket> {
        Ok(with_namespace(&host.netns, || UdpSocket::bind((host.v4, 0)))??)
    };
    let (near, far) = (socket(a)?, socket(b)?);
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&far, RECEIVE_BUFFER)?;
    Ok((near, far))
}

/// Puts netem in front of a host's link.
fn add_netem(host: &LabHost, load: OfferedLoad) -> Result<()> {
    let mut command = Command::new("tc");
    command.args(["qdisc", "add", "dev", &host.device, "root"]).args(load.netem_arguments().split(' '));
    let output = with_namespace(&host.netns, || command.output())?.context("run tc")?;
    ensure!(output.status.success(), "tc: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        size: StudySize,
    }

    #[test]
    fn the_guest_reads_the_size_that_the_host_says() {
        let size = StudySize { turns: 3, seconds: 7, seed: u64::MAX };
        let words = format!("validate {}", size.words());
        let read = <Line as clap::Parser>::try_parse_from(words.split(' ')).unwrap().size;
        assert_eq!((read.turns, read.seconds, read.seed), (3, 7, u64::MAX));
        assert_eq!(read.runs(), 12);
    }

    /// The emulator alone, because the kernels of most machines have no netem.
    #[test]
    fn a_run_over_the_emulator_counts_what_is_lost() {
        if let Err(why) = landspeed_lab::topology::find(&["lab:wan".to_owned()]).unwrap().can_run() {
            println!("SKIP: {why}");
            return;
        }
        let run = measured(0, 1, LinkKind::Emulator, OfferedLoad::Below, 7).unwrap();
        assert_eq!((run.first, run.sent), (1600, 3200));
        let stats = run.emulator.unwrap();
        let lost = u64::from(run.sent) - run.arrivals.len() as u64;
        assert!(stats.loss_drops > 0 && lost >= stats.loss_drops, "{lost} of {stats:?}");
    }
}
