//! Checks of programs over SMC between the guests, with RDMA in software.

use anyhow::{Context, Result, ensure};

use super::battery::{Check, keeps_settings};
use super::command::{said, succeeded};
use super::exec_counts::{ExecCounts, can_exec};
use super::guests::Guests;
use super::rdma::{self, RdmaCounts, SendUser, SentPackets};
use super::soft_rdma::{self, SMC};
use super::wait::{started, until_counted};

pub(super) const CHECKS: &[Check] =
    &[Check { name: "exec --path smc", is_short: false, look: |guests| keeps_settings(guests, exec_smc) }];

/// The command lines of the server on guest 2, of its clients on guest 1, and what finds that the server serves.
const SERVER: &str = "redis-server --bind 198.18.0.2 --port 6400 --protected-mode no --save ''";
const SERVES: &str = "grep -qs 'Ready to accept' /run/smc";
/// What the server prints on guest 2, and landspeed of it.
const LOG: &str = "/run/smc";
const PING: &str = "redis-cli -h 198.18.0.2 -p 6400 ping";
const BENCHMARK: &str = "redis-benchmark -h 198.18.0.2 -p 6400 -t set,get --csv";
const TEAR_DOWN: &str = "pkill redis-server";
const BULK_TEAR_DOWN: &str = "pkill -KILL -x iperf";
/// The server and the client of a large transfer, its bytes, and what finds that the server listens.
const BULK_SERVER: &str = "iperf --server --bind 198.18.0.2 --port 5010";
const BULK_CLIENT: &str = "iperf --client 198.18.0.2 --port 5010 --num 16M";
const BULK_BYTES: u64 = 16 << 20;
const BULK_LISTENS: &str = "ss -ltn | grep -q :5010";
/// The clients of a benchmark, of which each opens a connection for each of two tests.
const CLIENTS: u64 = 20;
/// The packets that a guest sends by RDMA for thousands of requests, at least.
const PACKETS: u64 = 1000;

/// Redis over RDMA between the guests, then over TCP because one guest has no RDMA device any more.
fn exec_smc(guests: &Guests) -> Result<String> {
    let program = guests.installed(1)?;
    guests.installed(2)?;
    let found = SMC.with_devices(guests, || {
        let found = carried_and_not(guests, program);
        guests.try_on_both(&format!("{TEAR_DOWN}; {BULK_TEAR_DOWN}"))?;
        found
    })?;
    found.map_or_else(|| is_refused(guests, program), Ok)
}

fn carried_and_not(guests: &Guests, program: &str) -> Result<String> {
    can_exec(guests, program, "smc")?;
    let carried = over_rdma(guests, program)?;
    let bulk = bulk(guests, program)?;
    let left = without_rdma(guests, program)?;
    Ok(format!("{carried}; {bulk}; {left}"))
}

/// Runs `look` while both guests have an RDMA device that SMC can use. Returns what it found, or that there is no SMC
/// here.
pub(super) fn with_devices(guests: &Guests, look: impl FnOnce() -> Result<String>) -> Result<String> {
    Ok(SMC.with_devices(guests, look)?.unwrap_or_else(|| "this kernel has no SMC".to_owned()))
}

/// Checks that landspeed says that this kernel has no SMC.
fn is_refused(guests: &Guests, program: &str) -> Result<String> {
    let output = guests.try_on(1, &format!("{program} exec --path smc -- true"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let line = errors.lines().find(|line| line.contains("this kernel has no SMC"));
    let line = line.with_context(|| said(&output))?;
    ensure!(!output.status.success(), "it ran all the same: {line}");
    Ok(format!("refused: {}", line.trim()))
}

fn over_rdma(guests: &Guests, program: &str) -> Result<String> {
    serve(guests, program)?;
    // The first connection sets the link between the two kernels up, which takes long.
    let pong = guests.on(1, &format!("{program} exec --path smc -- {PING}"))?;
    ensure!(pong.trim() == "PONG", "the server said {pong}");
    let before = RdmaCounts::read(guests)?;
    let client = asked(guests, program, 2000)?;
    let risen = RdmaCounts::risen(guests, before)?.map(|end| end.packets);
    let server = stopped(guests)?;
    for (end, counts) in [("client", &client), ("server", &server)] {
        ensure!(
            counts.carried * 100 >= counts.all * 95,
            "the {end}: {} of {} carried, {}",
            counts.carried,
            counts.all,
            counts.left
        );
    }
    // The ping was one more.
    ensure!(client.all + 1 == server.all, "the client counts {}, the server {}", client.all, server.all);
    ensure!(risen.iter().all(|packets| *packets > PACKETS), "rxe0 sent {risen:?} packets");
    Ok(format!("{} of {} by RDMA, {risen:?} packets", client.carried, client.all))
}

/// Checks that the packets of a large transfer are as many as its bytes fill. Redis' messages fill none.
fn bulk(guests: &Guests, program: &str) -> Result<String> {
    let server = format!("{program} exec --path smc --json -- {BULK_SERVER}");
    guests.on(2, &started(&server, BULK_LISTENS, LOG))?;
    let before = RdmaCounts::read(guests)?;
    let client =
        format!("timeout 600 {program} exec --path smc --require --json -- {BULK_CLIENT} </dev/null");
    let client = succeeded(guests.try_on(1, &client)?)?;
    let [own, peer] = RdmaCounts::risen(guests, before)?;
    guests.on(2, &format!("{BULK_TEAR_DOWN}; {}", until_counted(LOG)))?;
    let counts = ExecCounts::of(&client)?;
    ensure!(counts.carried == 1 && counts.all == 1, "{} carried, {}", counts.carried, counts.left);
    let sent = SentPackets::new(&own, &peer, SendUser::Connection);
    let share =
        sent.share(BULK_BYTES, rdma::path_mtu(guests)?).with_context(|| format!("{own:?} {peer:?}"))?;
    Ok(format!(
        "iperf: {} packets of data, {share:.2} times what they fill, {} others",
        sent.data, sent.others
    ))
}

/// The server starts with an RDMA device, and loses it before a client connects.
fn without_rdma(guests: &Guests, program: &str) -> Result<String> {
    serve(guests, program)?;
    guests.on(2, soft_rdma::REMOVE)?;
    let client = asked(guests, program, 200)?;
    let server = stopped(guests)?;
    for (end, counts) in [("client", &client), ("server", &server)] {
        ensure!(counts.carried == 0, "without RDMA, the {end} carried {} of {}", counts.carried, counts.all);
    }
    ensure!(client.all == server.all, "the client counts {}, the server {}", client.all, server.all);
    Ok(format!("without it {} on TCP: {} and {}", client.all, client.left, server.left))
}

/// Starts the server on guest 2, and waits until it accepts connections.
fn serve(guests: &Guests, program: &str) -> Result<()> {
    let server = format!("{program} exec --path smc --json -- {SERVER}");
    guests.on(2, &started(&server, SERVES, LOG)).map(drop)
}

/// Ends the server on guest 2, and returns what landspeed counted there.
fn stopped(guests: &Guests) -> Result<ExecCounts> {
    ExecCounts::read(&guests.on(2, &format!("{TEAR_DOWN}; {}", until_counted(LOG)))?)
}

/// Runs the benchmark on guest 1 with this many requests in each of its two tests.
fn asked(guests: &Guests, program: &str, requests: u32) -> Result<ExecCounts> {
    let command =
        format!("{program} exec --path smc --json -- {BENCHMARK} -c {CLIENTS} -n {requests} </dev/null");
    let output = succeeded(guests.try_on(1, &command)?)?;
    let figures = String::from_utf8_lossy(&output.stdout);
    for test in ["\"SET\"", "\"GET\""] {
        ensure!(figures.contains(test), "the benchmark tells nothing of {test}: {figures}");
    }
    let counts = ExecCounts::of(&output)?;
    ensure!(counts.all >= 2 * CLIENTS, "only {} connections: {}", counts.all, counts.left);
    Ok(counts)
}
