//! The check that a program sees the same over SMC and rsockets between the guests as over TCP, but for what is listed.

mod bulk;
mod checks;
mod costs;
mod end;
mod forking;
mod program;

use anyhow::{Context, Result, ensure};
use landspeed_record::PathCost;
use landspeed_record::units::Nanos;

use super::battery::{Check, keeps_settings};
use super::command::{is_due, succeeded};
use super::exec_counts::{ExecCounts, can_exec};
use super::guests::Guests;
use super::soft_rdma::{RSOCKET, SMC};
use super::wait::{started, until_counted};

pub(crate) use program::{ProgramOptions, run};

pub(super) const CHECKS: &[Check] = &[Check {
    name: "sockets over RDMA beside TCP",
    is_short: false,
    look: |guests| keeps_settings(guests, compared),
}];

/// This program on the guests, and what its server and landspeed print on guest 2.
const PROGRAM: &str = "/run/validate";
const LOG: &str = "/run/alike";
/// The address of the server.
const ADDRESS: &str = "198.18.0.2";
pub(super) const TEAR_DOWN: &str = "pkill -KILL -f '[v]alidate sockets-alike'";

/// What both ends saw over a path.
pub(super) struct Seen {
    /// A line each: the end, the check, what, and the value.
    lines: Vec<String>,
    /// What the path costs the program.
    pub(super) cost: PathCost,
}

/// Runs the program over TCP and over each path. Bytes that arrive changed, an end that hangs and a connection that
/// stays on TCP fail; other differences are listed, with what the paths cost beside TCP.
fn compared(guests: &Guests) -> Result<String> {
    let landspeed = installed(guests)?;
    let tcp = over(guests, landspeed, "kernel")?;
    let mut found = Vec::new();
    for path in [SMC, RSOCKET] {
        let name = path.name;
        found.push(match path.with_devices(guests, || over_rdma(guests, landspeed, name)) {
            Err(why) if is_due(&why, guests.release()) => format!("{name} refused: {why:#}"),
            seen => match seen.context(name)? {
                Some(seen) => beside(&tcp, &seen),
                None => format!("{name}: not on this kernel"),
            },
        });
    }
    Ok(format!("{} lines; {}", tcp.lines.len(), found.join("; ")))
}

/// Copies landspeed and this program to both guests, and returns landspeed's path there.
pub(super) fn installed(guests: &Guests) -> Result<&'static str> {
    let own = std::env::current_exe().context("find this program")?;
    (1..=2).try_for_each(|number| guests.copied(&own, number, PROGRAM))?;
    guests.installed(1)?;
    guests.installed(2)
}

/// Returns the command line of an end of the program whose server forks.
pub(super) fn forking_command(end: &str) -> String {
    format!("{PROGRAM} sockets-alike {end} {ADDRESS} --forking")
}

fn over_rdma(guests: &Guests, landspeed: &str, path: &str) -> Result<Seen> {
    can_exec(guests, landspeed, path)?;
    over(guests, landspeed, path)
}

/// Runs both ends of the program over a path, and checks that the path carried all of their connections.
pub(super) fn over(guests: &Guests, landspeed: &str, path: &str) -> Result<Seen> {
    let seen = both_ends(guests, landspeed, path);
    // A client that was cut off may still run.
    guests.try_on_both(TEAR_DOWN)?;
    seen
}

fn both_ends(guests: &Guests, landspeed: &str, path: &str) -> Result<Seen> {
    let exec = |end: &str| {
        format!(
            "timeout --kill-after 10 600 {landspeed} exec --path {path} --json -- {PROGRAM} sockets-alike {end} {ADDRESS}"
        )
    };
    let listens = format!("grep -qs ^{} {LOG}", program::LISTENS);
    guests.on(2, &started(&exec("server"), &listens, LOG)).context("the server")?;
    let client = succeeded(guests.try_on(1, &format!("{} 2>&1 </dev/null", exec("client")))?)?;
    guests.on(2, &until_counted(LOG)).context("the server")?;
    let said = [guests.on(2, &format!("cat {LOG}"))?, String::from_utf8_lossy(&client.stdout).into_owned()];
    let mut lines = Vec::new();
    for (end, said) in ["server", "client"].into_iter().zip(&said) {
        let counts = ExecCounts::read(said)?;
        let (carried, all) = (counts.carried, counts.all);
        ensure!(
            path == "kernel" || carried == all && all > 0,
            "the {end}: {carried} of {all} carried, {}",
            counts.left
        );
        lines.extend(
            said.lines().filter_map(|line| line.strip_prefix("saw ")).map(|line| format!("{end} {line}")),
        );
    }
    ensure!(
        lines.last().is_some_and(|line| line.starts_with("client many-connections")),
        "the client ended early"
    );
    Ok(Seen { lines, cost: costs::parsed(path, &said[1])? })
}

/// Returns what differs, such as "client refused connect: ECONNRESET and not ECONNREFUSED".
fn differing(tcp: &Seen, other: &Seen) -> Vec<String> {
    // A name has three words: the end, the check, and what it saw.
    let parts = |line: &str| {
        let at = line.match_indices(' ').nth(2).map_or(line.len(), |(at, _)| at);
        (line[..at].to_owned(), line[at..].trim().to_owned())
    };
    let differ = tcp.lines.iter().zip(&other.lines).filter(|(tcp, other)| tcp != other);
    let lines = differ.map(|(tcp, other)| {
        let ((what, over_tcp), (other_what, value)) = (parts(tcp), parts(other));
        if what == other_what {
            format!("{what}: {value} and not {over_tcp}")
        } else {
            format!("{other} and not {tcp}")
        }
    });
    let missing = (tcp.lines.len() != other.lines.len()).then(|| format!("{} lines", other.lines.len()));
    lines.chain(missing).collect()
}

/// Returns what differs from TCP, and what the path costs beside it. Each cost is of one run.
fn beside(tcp: &Seen, other: &Seen) -> String {
    let differs = match differing(tcp, other).as_slice() {
        [] => "as over TCP".to_owned(),
        some => some.join(", "),
    };
    let time = |of: fn(&PathCost) -> Nanos| of(&other.cost).as_secs_f64() / of(&tcp.cost).as_secs_f64();
    let (connect, message) = (time(|cost| cost.connect_ns), time(|cost| cost.message_ns));
    let rate = other.cost.rate_bps.0 / tcp.cost.rate_bps.0;
    format!(
        "{}: {differs}; once, connect took {connect:.2}, a byte {message:.2}, and a stream carried {rate:.2} of TCP's",
        other.cost.path
    )
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;

    use super::*;

    #[test]
    fn a_difference_is_listed_with_both_values() {
        let seen = |lines: &[&str]| Seen {
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            cost: PathCost::default(),
        };
        let tcp = seen(&["server echo reads hello", "client names own 198.18.0.1 another"]);
        assert!(differing(&tcp, &tcp).is_empty());
        let other = seen(&["server echo reads hello", "client names own 198.18.0.1 the server's"]);
        assert_eq!(
            differing(&tcp, &other),
            ["client names own: 198.18.0.1 the server's and not 198.18.0.1 another"]
        );
        assert_eq!(differing(&tcp, &seen(&["server echo reads hello"])), ["1 lines"]);
    }

    #[test]
    fn what_a_path_costs_is_beside_what_tcp_does() {
        let seen = |path: &str, connect: u64, message: u64, rate: f64| Seen {
            lines: vec!["client echo reads hello".to_owned()],
            cost: PathCost {
                path: path.into(),
                connect_ns: Nanos(connect),
                message_ns: Nanos(message),
                rate_bps: BitRate(rate),
            },
        };
        assert_eq!(
            beside(&seen("kernel", 100, 50, 1e9), &seen("smc", 250, 40, 5e8)),
            "smc: as over TCP; once, connect took 2.50, a byte 0.80, and a stream carried 0.50 of TCP's"
        );
    }
}
