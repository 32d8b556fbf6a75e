//! Checks of programs over rsockets between the guests, with RDMA in software.

use anyhow::{Context, Result, ensure};

use super::alike;
use super::battery::{Check, keeps_settings};
use super::command::{failure, said, succeeded};
use super::exec_counts::{ExecCounts, can_exec};
use super::guests::Guests;
use super::rdma::{self, RdmaCounts, SendUser, SentPackets};
use super::soft_rdma::{self, RSOCKET};
use super::wait::{started, until_counted};

pub(super) const CHECKS: &[Check] = &[Check {
    name: "exec --path rsocket",
    is_short: false,
    look: |guests| keeps_settings(guests, exec_rsocket),
}];

/// The command lines of the server on guest 2, and of the client on guest 1. The server's address is that of rxe0.
const SERVER: &str = "iperf --server --bind 198.18.0.2 --port 5010";
const CLIENT: &str = "iperf --client 198.18.0.2 --port 5010 --num 16M";
/// Succeed once a server listens, over RDMA or over TCP.
const LISTENS: &str = "rdma resource show cm_id | grep -q LISTEN";
const LISTENS_ON_TCP: &str = "ss -ltn | grep -q :5010";
/// What the server prints on guest 2, and landspeed of it.
const LOG: &str = "/run/rsocket";
const REDIS: &str =
    "timeout 120 redis-server --bind 198.18.0.2 --port 6400 --protected-mode no --save '' </dev/null";
const TEAR_DOWN: &str = "pkill -KILL -x iperf";

/// The bytes of [`CLIENT`].
const BYTES: u64 = 16 << 20;
/// The time within which both ends of a forking server's connection must end.
const FORKED_S: u32 = 180;
/// The most segments that TCP may send meanwhile, because commands go over ssh. The client's bytes would be 1,875.
const SEGMENTS: u64 = 1_000;

/// iperf between the guests by RDMA and over TCP, then Redis, whose epoll the library of Debian 12 lacks, and at last
/// without an RDMA device.
fn exec_rsocket(guests: &Guests) -> Result<String> {
    let program = alike::installed(guests)?;
    let refused = is_refused(guests, 1, program)?;
    let found = RSOCKET.with_devices(guests, || {
        let found = carried_and_not(guests, program);
        guests.try_on_both(TEAR_DOWN)?;
        found
    })?;
    Ok(found.unwrap_or(refused))
}

fn carried_and_not(guests: &Guests, program: &str) -> Result<String> {
    can_exec(guests, program, "rsocket")?;
    let carried = over_rdma(guests, program)?;
    let left = to_a_server_on_tcp(guests, program)?;
    lacks_epoll(guests, program)?;
    let forked = forking_server(guests, program)?;
    guests.on(2, soft_rdma::REMOVE)?;
    let refused = is_refused(guests, 2, program)?;
    let other = to_a_host_without_devices(guests, program)?;
    Ok(format!("{carried}; {left}; Redis told that epoll is missing; {forked}; {refused}; {other}"))
}

/// Checks that landspeed says that a guest has no RDMA device, and runs nothing.
fn is_refused(guests: &Guests, number: u32, program: &str) -> Result<String> {
    let output = guests.try_on(number, &format!("{program} exec --path rsocket -- true"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let line = errors.lines().find(|line| line.contains("no RDMA device on any interface"));
    let Some(line) = line else { return Err(failure(&output)) };
    ensure!(!output.status.success(), "it ran all the same: {line}");
    Ok("refused without a device".to_owned())
}

/// Checks that both ends count the connection as carried, that rxe0 of the client sent the bytes, and that TCP did not.
fn over_rdma(guests: &Guests, program: &str) -> Result<String> {
    let server = format!("{program} exec --path rsocket --json -- {SERVER}");
    guests.on(2, &started(&server, LISTENS, LOG))?;
    let before = RdmaCounts::read(guests)?;
    let client = asked(guests, &format!("{program} exec --path rsocket --require --json -- {CLIENT}"))?;
    let [own, peer] = RdmaCounts::risen(guests, before)?;
    let server = ExecCounts::read(&guests.on(2, &format!("{TEAR_DOWN}; {}", until_counted(LOG)))?)?;
    for (end, counts) in [("client", &client), ("server", &server)] {
        let (carried, all) = (counts.carried, counts.all);
        ensure!(carried == all && all == 1, "the {end}: {carried} of {all} carried, {}", counts.left);
    }
    let sent = SentPackets::new(&own, &peer, SendUser::Manager);
    let share = sent.share(BYTES, rdma::path_mtu(guests)?).with_context(|| format!("{own:?} {peer:?}"))?;
    ensure!(peer.packets > 0, "the server's rxe0 sent nothing");
    ensure!([own, peer].iter().all(|end| end.segments < SEGMENTS), "TCP sent too: {own:?} {peer:?}");
    let SentPackets { data, others } = sent;
    Ok(format!("{data} packets of data by RDMA, {share:.2} times what they fill, {others} others"))
}

/// Checks that a client reaches a server that does not run over rsockets, and why landspeed counts it as left on TCP.
fn to_a_server_on_tcp(guests: &Guests, program: &str) -> Result<String> {
    guests.on(2, &started(SERVER, LISTENS_ON_TCP, LOG))?;
    for (before, why) in [("", "no-rdma-connection"), ("env -u LD_PRELOAD", "not-preloaded")] {
        let counts = asked(guests, &format!("{program} exec --path rsocket --json -- {before} {CLIENT}"))?;
        ensure!(counts.carried == 0 && counts.left[why] == 1, "not {why}: {}", counts.left);
    }
    guests.on(2, TEAR_DOWN)?;
    Ok("the others counted as left on TCP".to_owned())
}

/// Checks that landspeed says why Redis cannot work with the library of Debian 12.
fn lacks_epoll(guests: &Guests, program: &str) -> Result<()> {
    let output = guests.try_on(2, &format!("{program} exec --path rsocket --json -- {REDIS}"))?;
    let counts = ExecCounts::of(&output)?;
    let times = counts.lacks["epoll"].as_u64().unwrap_or_default();
    ensure!(times > 0, "nothing is missing for Redis: {}", said(&output));
    Ok(())
}

/// Checks that landspeed counts the fork of a server that answers a connection in a child, and that neither end hangs.
fn forking_server(guests: &Guests, program: &str) -> Result<String> {
    let exec = |end: &str| {
        format!(
            "timeout --kill-after 10 {FORKED_S} {program} exec --path rsocket --json -- {}",
            alike::forking_command(end)
        )
    };
    guests.on(2, &started(&exec("server"), LISTENS, LOG))?;
    let client = guests.try_on(1, &format!("{} 2>&1 </dev/null", exec("client")))?;
    let server = guests.on(2, &until_counted(LOG));
    let said = String::from_utf8_lossy(&client.stdout).into_owned();
    guests.try_on_both(alike::TEAR_DOWN)?;
    let (client, server) = (ExecCounts::read(&said)?, ExecCounts::read(&server?)?);
    ensure!(
        server.lacks["fork"].as_u64().unwrap_or_default() > 0,
        "the fork is not counted: {}",
        server.lacks
    );
    let (carried, all) = (client.carried, client.all);
    ensure!(carried == all && all == 1, "{carried} of {all} carried, {}", client.left);
    let saw =
        said.lines().find_map(|line| line.strip_prefix("saw forking ")).context("the client saw nothing")?;
    Ok(format!("a forking server counted, its client {saw}"))
}

/// Checks that a client whose peer has no RDMA device is counted as left on TCP.
fn to_a_host_without_devices(guests: &Guests, program: &str) -> Result<String> {
    guests.on(2, &started(SERVER, LISTENS_ON_TCP, LOG))?;
    let counts = asked(guests, &format!("{program} exec --path rsocket --json -- {CLIENT}"));
    guests.on(2, TEAR_DOWN)?;
    let counts = counts?;
    let why = "no-rdma-connection";
    ensure!(counts.carried == 0 && counts.left[why] == 1, "not {why}: {}", counts.left);
    Ok("without a device at the server counted too".to_owned())
}

/// Runs a client on guest 1 to its end, and returns what landspeed counted.
fn asked(guests: &Guests, command: &str) -> Result<ExecCounts> {
    let output = succeeded(guests.try_on(1, &format!("timeout 600 {command} </dev/null"))?)?;
    ExecCounts::of(&output)
}
