//! Tests of a group of three hosts. Each host is a thread with its own loopback address, and results are compared
//! with the plain computation.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use landspeed_helpers::filter::{
    Error, ISO_PLACEMENT, QueryKind, QueryOptions, QueryOutcome, SlideUpdate, VM_PLACEMENT, run,
};
use landspeed_proof::Secret;

/// Returns the addresses 127.0.0.1 to 127.0.0.3.
fn hosts() -> Vec<IpAddr> {
    (1..=3).map(|last| Ipv4Addr::new(127, 0, 0, last).into()).collect()
}

/// Returns the first of three consecutive free ports, below those that the kernel assigns.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 1000) as u16 * 20;
    loop {
        let port = first + NEXT.fetch_add(3, Ordering::Relaxed) % 2000;
        let is_free = |(n, host): (u16, IpAddr)| TcpListener::bind((host, port + n)).is_ok();
        if (0..).zip(hosts()).all(is_free) {
            return port;
        }
    }
}

fn args(query: QueryKind, size: u32, chunk: u32) -> QueryOptions {
    QueryOptions {
        query,
        host: 0,
        hosts: hosts(),
        port: free_port(),
        placement: None,
        copies: None,
        size,
        chunk,
        seed: 42,
        units: 3,
        ahead: 2,
        token: Secret::of("a shared secret", "filters").unwrap(),
        verify: true,
        join: Duration::from_secs(60),
        limit: Duration::from_secs(120),
    }
}

/// Runs all hosts and returns their results. `change` adapts each host's arguments.
fn run_all(args: &QueryOptions, change: impl Fn(&mut QueryOptions)) -> Vec<Result<QueryOutcome, Error>> {
    let parts = (0..args.hosts.len()).map(|host| {
        let mut own = QueryOptions { host, ..args.clone() };
        change(&mut own);
        thread::spawn(move || run(&own))
    });
    let parts: Vec<_> = parts.collect();
    parts.into_iter().map(|part| part.join().unwrap()).collect()
}

/// Runs all hosts, which must succeed, and returns the first host's outcome.
fn outcome(args: &QueryOptions) -> QueryOutcome {
    let mut all: Vec<QueryOutcome> = run_all(args, |_| {}).into_iter().map(Result::unwrap).collect();
    let first = all.swap_remove(0);
    assert_eq!(first.is_equal, Some(true));
    assert_eq!(first.seconds.len(), args.units as usize);
    assert!(first.peak <= first.bound, "{:?} of {:?}", first.peak, first.bound);
    assert!(first.peak.0 > 0 && first.network.0 > 0 && first.buffers > 0);
    first
}

/// Returns the placement with round robin for all filters.
fn in_turn(placement: &str) -> String {
    placement.replace("[[filter]]", "[[filter]]\ndistribution = 'round-robin'")
}

#[test]
fn the_surface_is_the_same_with_any_number_of_copies() {
    let mut hashes = Vec::new();
    for copies in [1, 2, 4] {
        for placement in [ISO_PLACEMENT.to_owned(), in_turn(ISO_PLACEMENT)] {
            let one = QueryOptions {
                copies: Some(copies),
                placement: Some(placement),
                ..args(QueryKind::Iso, 32, 8)
            };
            hashes.push(outcome(&one).hash);
        }
    }
    hashes.dedup();
    assert_eq!(hashes.len(), 1);
}

#[test]
fn the_view_is_the_same_with_any_number_of_copies() {
    for update in [SlideUpdate::Complete, SlideUpdate::Partial] {
        let mut hashes = Vec::new();
        for (copies, placement) in
            [(1, VM_PLACEMENT.to_owned()), (2, in_turn(VM_PLACEMENT)), (4, VM_PLACEMENT.to_owned())]
        {
            let one = QueryOptions {
                copies: Some(copies),
                placement: Some(placement),
                ..args(QueryKind::Vm(update), 256, 24)
            };
            hashes.push(outcome(&one).hash);
        }
        hashes.dedup();
        assert_eq!(hashes.len(), 1);
    }
}

#[test]
fn a_group_of_one_host_needs_no_network() {
    let placement = ISO_PLACEMENT.replace("[1, 2]", "[0, 0]");
    let hosts = vec![Ipv4Addr::LOCALHOST.into()];
    let one = QueryOptions { hosts, placement: Some(placement), units: 1, ..args(QueryKind::Iso, 20, 4) };
    let outcome = run(&one).unwrap();
    assert_eq!((outcome.is_equal, outcome.network.0), (Some(true), 0));
}

#[test]
fn strangers_at_the_door_change_nothing() {
    let one = args(QueryKind::Vm(SlideUpdate::Partial), 128, 32);
    let addresses: Vec<_> = (0..).zip(hosts()).map(|(n, host)| (host, one.port + n)).collect();
    let stranger = thread::spawn(move || {
        let mut held = Vec::new();
        for address in addresses {
            // A host may not listen yet.
            let mut stream = (0..1000).find_map(|_| {
                TcpStream::connect(address).map_err(|_| thread::sleep(Duration::from_millis(1))).ok()
            });
            stream.iter_mut().for_each(|stream| drop(stream.write_all(&[0; 200])));
            held.extend(stream);
        }
        held
    });
    outcome(&one);
    drop(stranger.join().unwrap());
}

/// Checks that every host fails and that its error names another host. The first host that connects reports `why`. A
/// host that connects later may find that the other one is gone.
fn assert_joining_failed(ended: Vec<Result<QueryOutcome, Error>>, why: &str) {
    let texts: Vec<String> = ended.into_iter().map(|ended| ended.unwrap_err().to_string()).collect();
    assert!(texts.iter().any(|text| text.contains(why)), "{texts:?}");
    assert!(texts.iter().all(|text| text.contains("(127.0.0.")), "{texts:?}");
}

#[test]
fn another_token_is_refused() {
    let one = QueryOptions { join: Duration::from_secs(5), ..args(QueryKind::Iso, 16, 4) };
    let other = Secret::of("another secret", "filters").unwrap();
    let ended = run_all(&one, |own| {
        if own.host == 2 {
            own.token = other;
        }
    });
    assert_joining_failed(ended, "has another token; set LANDSPEED_TOKEN");
}

#[test]
fn hosts_that_were_started_differently_do_not_join() {
    let one = QueryOptions { join: Duration::from_secs(5), ..args(QueryKind::Iso, 16, 4) };
    let ended = run_all(&one, |own| own.seed += u64::from(own.host == 1));
    assert_joining_failed(ended, "was started with other parameters");
}

#[test]
fn arguments_out_of_range_are_refused() {
    let text = |change: fn(&mut QueryOptions)| {
        let mut one = args(QueryKind::Iso, 16, 4);
        change(&mut one);
        run(&one).unwrap_err().to_string()
    };
    for (text, part) in [
        (text(|args| args.host = 3), "there is no host 3; the hosts are 0 to 2"),
        (text(|args| args.port = 65534), "3 hosts need ports"),
        (text(|args| args.units = 0), "at least one unit"),
        (text(|args| args.size = 2), "give 4 to 512"),
        (text(|args| args.chunk = 65), "give 2 to 64"),
        (text(|args| args.query = QueryKind::Vm(SlideUpdate::Complete)), "give a multiple of 8, 64 to 16384"),
        (text(|args| args.copies = Some(17)), "17 copies of extract: give 1 to 16"),
        (
            text(|args| args.placement = Some("color = 1".to_owned())),
            "placement, line 1: unknown field `color`",
        ),
    ] {
        assert!(text.contains(part), "{text}");
    }
}
