//! The promises, and the checks of each.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use landspeed_transport::{CancelFlag, Delivery, Error, Flow, Listener, Transport};

use crate::flood::{Flood, MOST_HELD};
use crate::loopback::{FlowPair, KEY, LONG, Loopback, SHORT, V4, V6, hold, patience, soon, text};
use crate::transfer::{FEW, carries, messages, receive, send};

type PromiseCheck = fn(&dyn Transport) -> Result<(), String>;

/// The promises of every transport, with their checks.
pub(crate) static PROMISES: &[(&str, PromiseCheck)] = &[
    ("what is sent comes, both ways", comes_both_ways),
    ("every switch of its own carries the same", switches),
    ("flows are kept apart", kept_apart),
    ("what the peer has is acknowledged", acknowledged),
    ("sends complete", complete),
    ("a flow finishes in order", finishes),
    ("finishing alone fails", does_not_finish_alone),
    ("a stream's abrupt end is noticed", ends_abruptly),
    ("a receiver can be woken", wakes),
    ("a sender gives up after its time limit, and leaves", gives_up),
    ("a port that is not listened on refuses", refuses),
    ("another key opens nothing", turns_strangers_away),
    ("strangers keep no flow out", withstands),
    ("ports can be had again at once", frees_ports),
    ("waiting can be cancelled", cancels),
    ("no thread is left behind", leaves_no_thread),
];

fn delivers(transport: &dyn Transport) -> Delivery {
    transport.about().delivery
}

/// Returns `all` repetitions of a check, or `few` for a transport over another row's stream: the row beneath has all of them,
/// and the rows above it have what they add in common.
fn repetitions<T>(transport: &dyn Transport, all: T, few: T) -> T {
    let is_above = transport.encrypts().is_some_and(|beneath| beneath != transport.name());
    if is_above { few } else { all }
}

fn comes_both_ways(transport: &dyn Transport) -> Result<(), String> {
    for address in [V4, V6] {
        let (there, here) = Loopback::at(transport, address)?.pair(5)?;
        hold((there.number(), here.number()) == (5, 5), "its number is another")?;
        hold(there.not_as_asked().is_empty(), format!("{:?}", there.not_as_asked()))?;
        carries(there.as_ref(), here.as_ref())?;
        carries(here.as_ref(), there.as_ref())?;
    }
    Ok(())
}

fn switches(transport: &dyn Transport) -> Result<(), String> {
    let switches = transport.factors().into_iter().filter(|factor| factor.default == "off");
    for switch in switches {
        let mut loopback = Loopback::at(transport, V4)?;
        loopback.settings.insert(switch.name.to_owned(), "on".to_owned());
        if let Err(reason) = transport.can_run(&loopback.settings) {
            println!("SKIP {} with {}: {reason}", transport.name(), switch.name);
            continue;
        }
        let (there, here) = loopback.pair(0)?;
        let wrong = |why| format!("{}: {why}", switch.name);
        carries(there.as_ref(), here.as_ref()).map_err(wrong)?;
    }
    Ok(())
}

fn kept_apart(transport: &dyn Transport) -> Result<(), String> {
    let loopback = Loopback::at(transport, V4)?;
    let mut listener = loopback.listen()?;
    let first = loopback.pair_through(listener.as_mut(), 0)?;
    let second = loopback.pair_through(listener.as_mut(), 1)?;
    send(first.0.as_ref(), &messages(1))?;
    let strayed = receive_briefly(second.1.as_ref())?;
    hold(strayed == 0, format!("{strayed} bytes came over another flow"))?;
    carries(second.0.as_ref(), second.1.as_ref())
}

/// Returns how many bytes arrive within 20 ms.
fn receive_briefly(to: &dyn Flow) -> Result<usize, String> {
    let mut receiver = to.receiver().map_err(text)?;
    thread::sleep(Duration::from_millis(20));
    match receiver.try_receive(&mut [0; 65_536]) {
        Ok(got) => Ok(got),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(text(error)),
    }
}

fn acknowledged(transport: &dyn Transport) -> Result<(), String> {
    let (there, here) = Loopback::at(transport, V4)?.pair(0)?;
    carries(there.as_ref(), here.as_ref())?;
    let bytes = FEW as u64 * 1000;
    let all = || there.progress().is_ok_and(|progress| progress.acked.0 >= bytes && !progress.outstanding);
    hold(soon(all), format!("{:?} after all {bytes} bytes came", there.progress()))
}

fn complete(transport: &dyn Transport) -> Result<(), String> {
    let mut loopback = Loopback::at(transport, V4)?;
    if transport.factors().iter().any(|factor| factor.name == "zerocopy-send") {
        loopback.settings.insert("zerocopy-send".to_owned(), "on".to_owned());
    }
    let (there, here) = loopback.pair(0)?;
    let message = vec![7; 1000];
    let mut sender = there.sender().map_err(text)?;
    sender.send(&message, 1).map_err(text)?;
    receive(here.as_ref(), 1000)?;
    let mut seen = sender.completions();
    let done = soon(|| {
        seen = sender.completions();
        seen.pending == 0
    });
    hold(done && seen.copied <= seen.done, format!("{seen:?} after all came"))
}

/// Both ends finish, the client once it has sent everything, the server once everything has arrived.
fn finish((there, here): &FlowPair) -> [Result<(), String>; 2] {
    let cancel = CancelFlag::new();
    let patience = patience(&cancel, LONG);
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let came = receive(here.as_ref(), usize::MAX)?;
            here.finish(&patience).map_err(text)?;
            hold(came.len() == 20_000, format!("{} bytes came before the end", came.len()))
        });
        let client = send(there.as_ref(), &messages(20)).and_then(|()| there.finish(&patience).map_err(text));
        if client.is_err() {
            let _ = here.abort();
        }
        [client, server.join().expect("no panic")]
    })
}

fn finishes(transport: &dyn Transport) -> Result<(), String> {
    for address in [V4, V6] {
        let pair = Loopback::at(transport, address)?.pair(0)?;
        let [client, server] = finish(&pair);
        client.and(server)?;
    }
    if delivers(transport) != Delivery::Stream {
        return Ok(());
    }
    let loopback = Loopback::at(transport, V4)?;
    let mut listener = loopback.listen()?;
    (0..repetitions(transport, 1000, 250))
        .try_for_each(|number| finish_and_go(&loopback, listener.as_mut(), number))
}

/// Checks that the peer of an end can still finish if the end is dropped as soon as it has finished. Here the server
/// finishes first.
fn finish_and_go(loopback: &Loopback<'_>, listener: &mut dyn Listener, number: u32) -> Result<(), String> {
    let cancel = CancelFlag::new();
    let patience = &patience(&cancel, LONG);
    thread::scope(|scope| {
        let calling = scope.spawn(|| {
            let flow = loopback.call(number, &KEY, patience).map_err(text)?;
            let mut receiver = flow.receiver().map_err(text)?;
            while receiver.try_receive(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
                thread::sleep(Duration::from_micros(20));
            }
            flow.finish(patience).map_err(text)
        });
        let served = listener.accept(patience).and_then(|flow| flow.finish(patience)).map_err(text);
        served.and(calling.join().expect("no panic"))
    })
}

fn does_not_finish_alone(transport: &dyn Transport) -> Result<(), String> {
    let (there, here) = Loopback::at(transport, V4)?.pair(0)?;
    let cancel = CancelFlag::new();
    hold(there.finish(&patience(&cancel, Duration::from_millis(100))).is_err(), "the peer has not finished")?;
    here.wake_receiver();
    hold(here.finish(&patience(&cancel, LONG)).is_err(), "it was woken, and cannot know what came")
}

fn ends_abruptly(transport: &dyn Transport) -> Result<(), String> {
    let (there, here) = Loopback::at(transport, V4)?.pair(0)?;
    if delivers(transport) != Delivery::Stream {
        return Ok(());
    }
    drop(there);
    let mut receiver = here.receiver().map_err(text)?;
    let ended = || match receiver.try_receive(&mut [0; 8]) {
        Ok(got) => got == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    };
    hold(soon(ended), "the peer does not notice")
}

fn wakes(transport: &dyn Transport) -> Result<(), String> {
    let (_there, here) = Loopback::at(transport, V4)?.pair(0)?;
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut receiver = here.receiver().map_err(text)?;
            loop {
                match receiver.receive(&mut [0; 65_536]) {
                    Ok(0) => return Ok(()),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    other => return Err(format!("{other:?}")),
                }
            }
        });
        thread::sleep(Duration::from_millis(20));
        here.wake_receiver();
        let woken = soon(|| waiting.is_finished());
        let _ = here.abort();
        waiting.join().expect("no panic").and(hold(woken, "it sleeps on"))
    })
}

fn gives_up(transport: &dyn Transport) -> Result<(), String> {
    let (there, _here) = Loopback::at(transport, V4)?.pair(0)?;
    if delivers(transport) != Delivery::Stream {
        return Ok(());
    }
    let filled = CancelFlag::new();
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut sender = there.sender().map_err(text)?;
            sender.give_up_after(Duration::from_millis(20)).map_err(text)?;
            let message = vec![7; 65_536];
            loop {
                match sender.send(&message, 1) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => filled.cancel(),
                    Err(_) => return Ok(()),
                }
            }
        });
        let gave_up = soon(|| filled.is_cancelled());
        let outstanding = there.progress().is_ok_and(|progress| progress.outstanding);
        there.abort().map_err(text)?;
        let left = soon(|| sending.is_finished());
        // A sender that does not return would hang this test; the end of its peer frees it.
        hold(left, "its sender does not leave")?;
        hold(gave_up, "a send waits for longer than its limit")?;
        sending
            .join()
            .expect("no panic")
            .and(hold(outstanding, "nothing is outstanding of what no peer takes"))
    })
}

fn refuses(transport: &dyn Transport) -> Result<(), String> {
    let loopback = Loopback::at(transport, V4)?;
    let cancel = CancelFlag::new();
    let early = loopback.call(0, &KEY, &patience(&cancel, Duration::from_millis(50)));
    hold(matches!(early, Err(Error::NoAnswer { .. })), "somebody answers")?;
    let patience = patience(&cancel, LONG);
    thread::scope(|scope| {
        let calling = scope.spawn(|| loopback.call(0, &KEY, &patience));
        thread::sleep(Duration::from_millis(50));
        let here = loopback.listen()?.accept(&patience).map_err(text)?;
        soon(|| here.progress().is_err() || calling.is_finished());
        calling.join().expect("no panic").map(drop).map_err(|error| format!("no second try: {error}"))
    })
}

fn turns_strangers_away(transport: &dyn Transport) -> Result<(), String> {
    let loopback = Loopback::at(transport, V6)?;
    let mut listener = loopback.listen()?;
    let cancel = CancelFlag::new();
    let reached = thread::scope(|scope| {
        let calling = scope.spawn(|| loopback.call(0, &[4; 32], &patience(&cancel, SHORT)));
        let came = listener.accept(&patience(&cancel, SHORT));
        hold(matches!(came, Err(Error::NobodyCame { .. })), "a flow with another key is proven")?;
        let called = calling.join().expect("no panic");
        hold(matches!(called, Err(Error::Unproven { .. } | Error::NoAnswer { .. })), "it does not know why")?;
        Ok::<_, String>(matches!(called, Err(Error::Unproven { .. })))
    })?;
    // The listener may not yet have read how the client turned it away.
    let is_counted = || listener.strangers() > 0 || listener.accept(&patience(&cancel, SHORT)).is_ok();
    hold(!reached || soon(is_counted) && listener.strangers() > 0, "it is not counted")?;
    loopback.pair_through(listener.as_mut(), 1).map(drop)
}

/// Checks that peers which never prove the key, from one address or many, do not disturb a flow or keep others from
/// opening.
fn withstands(transport: &dyn Transport) -> Result<(), String> {
    for &addresses in repetitions(transport, &[1, 200][..], &[200][..]) {
        let loopback = Loopback::at(transport, V4)?;
        let mut listener = loopback.listen()?;
        let (there, here) = loopback.pair_through(listener.as_mut(), 0)?;
        let flood = Flood::of(&loopback, there.as_ref(), addresses)?;
        for number in 1..4 {
            carries(there.as_ref(), here.as_ref())?;
            let (new, its_end) = loopback.pair_through(listener.as_mut(), number)?;
            carries(its_end.as_ref(), new.as_ref())?;
        }
        let held = flood.held();
        hold(held < MOST_HELD, format!("{held} descriptors for peers that prove nothing"))?;
        let came = flood.end();
        hold(listener.strangers() > 0, format!("none of {came} that came is counted"))?;
    }
    Ok(())
}

/// Returns a different number for each check, because checks run in parallel.
fn unique() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn frees_ports(transport: &dyn Transport) -> Result<(), String> {
    // Below the ports that the kernel assigns.
    let source_port = 20_000 + (std::process::id() % 4000) as u16 + unique();
    let loopback = Loopback { source_port, ..Loopback::at(transport, V4)? };
    let mut held = Vec::new();
    for _ in 0..3 {
        let (there, here) = loopback.pair(0)?;
        // A child process holds such copies between fork and exec.
        for socket in there.sockets().into_iter().chain(here.sockets()) {
            held.push(socket.try_clone_to_owned().map_err(text)?);
        }
        carries(there.as_ref(), here.as_ref())?;
    }
    Ok(())
}

fn cancels(transport: &dyn Transport) -> Result<(), String> {
    let loopback = Loopback::at(transport, V4)?;
    let mut listener = loopback.listen()?;
    let cancel = CancelFlag::new();
    cancel.cancel();
    let patience = patience(&cancel, SHORT);
    hold(matches!(listener.accept(&patience), Err(Error::Cancelled)), "accept goes on")?;
    drop(listener);
    hold(matches!(loopback.call(0, &KEY, &patience), Err(Error::Cancelled)), "connect goes on")
}

fn leaves_no_thread(transport: &dyn Transport) -> Result<(), String> {
    let name = &format!("promise-{}", unique());
    // Threads inherit the name of the thread that starts them, which distinguishes them from other tests' threads.
    let of_that_name = || {
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        tasks
            .filter(|task| {
                std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
            })
            .count()
    };
    thread::scope(|scope| {
        let alone = move || {
            let (there, here) = Loopback::at(transport, V4)?.pair(0)?;
            carries(there.as_ref(), here.as_ref())
        };
        let named = thread::Builder::new().name(name.clone()).spawn_scoped(scope, alone);
        named.expect("a thread").join().expect("no panic")
    })?;
    hold(soon(|| of_that_name() == 0), format!("{} threads are left", of_that_name()))
}
