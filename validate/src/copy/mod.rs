//! `make copy-bench`: `landspeed copy` beside other programs that copy, by turns, between two network namespaces of this
//! machine over ssh. Cost is bytes per second of processor time of both ends.

pub(crate) mod cost;
pub(crate) mod kills;
pub(crate) mod memory;
mod site;
pub(crate) mod trees;
pub(crate) mod truth;

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_record::units::Bytes;
use landspeed_stats::estimate;

use crate::landspeed::landspeed;
use crate::table::{self, BrokenPromises};
use site::Site;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Turns of each program
    #[arg(long, default_value_t = 5)]
    turns: u32,
    /// The content, in MiB
    #[arg(long, default_value_t = 2048)]
    mib: u64,
    /// Copy this many small files in place of one large one
    #[arg(long, default_value_t = 0)]
    files: u64,
    /// The folder in which all is copied; one on a disk measures the disk too
    #[arg(long, default_value = "/dev/shm")]
    folder: std::path::PathBuf,
}

/// A program that copies.
struct Mover {
    name: &'static str,
    /// The program that must be installed.
    needs: &'static str,
    /// The command, in which SSH is ssh with its options, FROM the source's folder, TO the target's, and HOST the host.
    command: &'static str,
    /// The least ratio of cost and of rate that is promised beside this program, for one large file; zero for none.
    promised: [f64; 2],
}

const MOVERS: [Mover; 4] = [
    Mover {
        name: "landspeed copy",
        needs: "landspeed",
        command: "landspeed copy SSH_OPTIONS FROM/ HOST:TO",
        promised: [0.0; 2],
    },
    Mover {
        name: "rsync -aW, aes128-gcm",
        needs: "rsync",
        command: "rsync -aW -e 'SSH -c aes128-gcm@openssh.com' FROM/ HOST:TO/",
        promised: [2.3, 2.6],
    },
    Mover {
        name: "scp, aes128-gcm",
        needs: "scp",
        command: "scp -q -r -c aes128-gcm@openssh.com SCP_OPTIONS FROM/. HOST:TO/",
        promised: [2.0, 2.5],
    },
    Mover {
        name: "tar over ssh, aes128-gcm",
        needs: "tar",
        command: "tar -C FROM -c . | SSH -c aes128-gcm@openssh.com HOST tar -C TO -x",
        promised: [0.0; 2],
    },
];

/// What a turn has taken.
#[derive(Debug, Clone, Copy)]
struct Turn {
    seconds: f64,
    /// Processor time of both ends.
    cpu_seconds: f64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    let site = Site::new(&options.folder, &landspeed)?;
    let bytes = site.fill(options.mib, options.files)?;
    let here: Vec<&Mover> = MOVERS.iter().filter(|mover| site.has(mover.needs)).collect();
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); here.len()];
    for turn in 0..options.turns {
        // Each turn begins with another program.
        for place in 0..here.len() {
            let number = (place + turn as usize) % here.len();
            turns[number].push(one(&site, here[number])?);
        }
    }
    report(&here, &turns, bytes, options.files)
}

/// Copies once into an empty folder, and compares what has arrived.
fn one(site: &Site, mover: &Mover) -> Result<Turn> {
    site.empty_target()?;
    let before = cpu_of_children()?;
    let sshd = site.start_sshd()?;
    let begun = Instant::now();
    let status = site.run(mover.command)?;
    let seconds = begun.elapsed().as_secs_f64();
    sshd.end()?;
    let cpu_seconds = cpu_of_children()? - before;
    ensure!(status.success(), "{}: {status}", mover.name);
    site.compare().with_context(|| mover.name.to_owned())?;
    Ok(Turn { seconds, cpu_seconds })
}

/// Returns the processor time of this program's children that have ended, with theirs (proc_pid_stat(5)).
fn cpu_of_children() -> Result<f64> {
    /// Ticks of that file in a second, on every Linux (USER_HZ).
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields = text.rsplit_once(") ").context("a line of proc_pid_stat")?.1;
    let mut ticks = fields.split(' ').skip(13).take(2).map(str::parse::<f64>);
    let mut next = || ticks.next().context("fields of proc_pid_stat").and_then(|ticks| Ok(ticks?));
    Ok((next()? + next()?) / TICKS)
}

fn report(movers: &[&Mover], turns: &[Vec<Turn>], bytes: u64, files: u64) -> Result<()> {
    let mut broken = BrokenPromises::default();
    table::head("program | rate, MiB/s | CPU-s per GiB | rate beside it | cost beside it | promise");
    for (mover, own) in movers.iter().zip(turns) {
        let mean = |figure: fn(&Turn) -> f64| own.iter().map(figure).sum::<f64>() / own.len().max(1) as f64;
        let rate = bytes as f64 / f64::from(1 << 20) / mean(|turn| turn.seconds);
        let cost = mean(|turn| turn.cpu_seconds) * f64::from(1 << 30) / bytes as f64;
        let beside = |figure: fn(&Turn) -> f64| {
            let pairs = turns[0].iter().zip(own);
            estimate(
                &pairs.map(|(ours, other)| (figure(other) / figure(ours)).ln()).collect::<Vec<_>>(),
                0.95,
            )
        };
        let (rates, costs) = (beside(|turn| turn.seconds), beside(|turn| turn.cpu_seconds));
        let promised = mover.promised[0] > 0.0 && files == 0;
        let holds = costs.low >= mover.promised[0] && rates.low >= mover.promised[1];
        let promise = match promised {
            true => {
                format!("cost {}, rate {}: {}", mover.promised[0], mover.promised[1], broken.check(holds))
            }
            false => "-".to_owned(),
        };
        table::row(&[
            &mover.name,
            &format!("{rate:.0}"),
            &format!("{cost:.2}"),
            &table::ratio(Some(rates)),
            &table::ratio(Some(costs)),
            &promise,
        ]);
    }
    println!("\n{}, {} turns each.", Bytes(bytes), turns[0].len());
    broken.sum_up()
}
