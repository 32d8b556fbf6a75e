//! Tests of real programs over paths below their sockets, on loopback and between network namespaces.

mod bursts;
mod carried;
mod ends;
mod killed;
mod left;
mod listeners;
mod mptcp;
mod namespaces;
mod programs;
mod rsocket;
mod run;
mod smc;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

/// Environment variable that makes the test binary run a program: a word and its arguments.
const PROGRAM: &str = "LANDSPEED_PATH_PROGRAM";
/// Environment variable with the IPv4 address on which programs listen, or to which they connect; loopback by default.
const ADDRESS: &str = "LANDSPEED_PATH_ADDRESS";
/// Time limit, longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);
/// Lifetime of a program in seconds, longer than `make path-bursts` takes. It ends programs whose test was killed.
const LIFETIME: u32 = 3600;

/// Runs as one of the programs that run over paths. Does nothing if the variable [`PROGRAM`] is not set.
#[test]
fn program() {
    let Ok(does) = std::env::var(PROGRAM) else { return };
    // SAFETY: alarm(2) takes a number.
    unsafe { libc::alarm(LIFETIME) };
    let words: Vec<&str> = does.split(' ').collect();
    let number = |at: usize| words[at].parse::<usize>().expect("a number");
    match words[0] {
        "serve" => programs::serve(number(1), number(2)),
        "ask" => (0..number(2)).for_each(|_| programs::ask(number(1), number(3))),
        "ask-in-epoll" => programs::entangled(number(1), true),
        "ask-duplicated" => programs::entangled(number(1), false),
        "ask-without-waiting" => programs::ask_without_waiting(number(1)),
        "ask-twice-without-waiting" => programs::ask_twice_without_waiting(number(1)),
        "ask-itself-in-signals" => programs::ask_itself_in_signals(number(1)),
        "ask-slowly" => programs::ask_slowly(number(1)),
        "ask-on" => programs::ask_on(number(1), number(2)),
        "serve-from-children" => listeners::serve_from_children(&words[1..]),
        "serve-deferred" => listeners::serve_deferred(),
        "accept-on" => listeners::accept_on(number(1) as i32),
        "serve-on" => bursts::serve_on(),
        "greet-on" => bursts::greet_on(),
        "burst" => (0..number(2)).for_each(|_| bursts::burst(number(1), number(3))),
        "greeted" => (0..number(2)).for_each(|_| bursts::greeted(number(1))),
        "connect-timed" => bursts::connect_timed(number(1), number(2)),
        "ask-restricted" => programs::ask_restricted(number(1)),
        "tcp" => programs::tries(number(1)),
        "ask-undumpable" => programs::ask_undumpable(number(1)),
        "wait-for" => programs::wait_for(number(1)),
        other => panic!("{other}"),
    }
    std::process::exit(0);
}
