//! Tests of the promises that every observer of the table makes. Each observer is opened and closed twice over
//! loopback. A fake observer that breaks one promise at a time shows that the checks detect it.

mod fake;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use landspeed_observer::{OBSERVERS, Observer, WatchSubject, Watcher};
use landspeed_record::units::Nanos;
use landspeed_record::{Figure, FigureValue, Observations, WatchTarget, decode};

use fake::BREAKS;

/// The number of bytes sent in the first window. In the second window, one byte is sent.
const BYTES: usize = 64 << 20;

/// A flow over loopback; both ends belong to this process.
struct TcpPair(TcpStream, TcpStream);

impl TcpPair {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
        TcpPair(client, listener.accept().expect("it connected").0)
    }

    fn send(&self, bytes: usize) {
        std::thread::scope(|scope| {
            scope.spawn(|| (&self.0).write_all(&vec![7; bytes]).expect("it sends"));
            (&self.1).read_exact(&mut vec![0; bytes]).expect("it arrives");
        });
    }

    /// Returns the observations of a window in which `bytes` bytes are sent, and the time that it took in ns.
    fn window(&self, watcher: &mut Watcher, bytes: usize) -> (Observations, u64) {
        let begun = Instant::now();
        let threads = [rustix::thread::gettid().as_raw_nonzero().get()];
        let sockets = [(0, self.0.as_fd()), (1, self.1.as_fd())];
        watcher.open(&WatchSubject { threads: &threads, sockets: &sockets, ..WatchSubject::default() });
        watcher.sample(Nanos(0));
        self.send(bytes);
        watcher.sample(Nanos::millis(1));
        let seen = watcher.close();
        (seen, Nanos::from(begun.elapsed()).0)
    }
}

/// Returns the first promise that `row` breaks, if any.
fn broken(row: &'static Observer) -> Option<String> {
    let kept = catch_unwind(AssertUnwindSafe(|| {
        two_windows(row)?;
        says_why(row)?;
        if row.own_sockets_only { sees_no_others(row) } else { Ok(()) }
    }));
    kept.unwrap_or_else(|_| Err("panics".into())).err()
}

fn two_windows(row: &'static Observer) -> Result<(), String> {
    let (flow, mut watcher) = (TcpPair::new(), Watcher::with(&[row], "lo"));
    let (first, _) = flow.window(&mut watcher, BYTES);
    let (second, took) = flow.window(&mut watcher, 1);
    let (first, second) = (read_back(row, &first)?, read_back(row, &second)?);
    let carried = |figures: &[Figure], name: &str| {
        let found = figures.iter().find(|figure| figure.name == name);
        matches!(found, Some(Figure { amount: FigureValue::Bytes(bytes), .. }) if bytes.0 >= BYTES as u64)
    };
    let kept = second.0.iter().find(|now| carried(&first.0, &now.name) && carried(&second.0, &now.name));
    if let Some(kept) = kept {
        return Err(format!("keeps what the window before had: {}", kept.name));
    }
    if longest_window(&second.1) > Some(took) {
        return Err("keeps a window open".into());
    }
    Ok(())
}

/// Returns the figures and the JSON of `seen`. Returns an error if there are no figures, or others after the JSON is
/// parsed.
fn read_back(row: &Observer, seen: &Observations) -> Result<(Vec<Figure>, String), String> {
    let text = serde_json::to_string(seen).map_err(|error| error.to_string())?;
    let back: Observations = decode(text.as_bytes()).map_err(|error| error.to_string())?;
    let figures = |seen| row.figures(seen).map_err(|error| error.to_string());
    let (before, after) = (figures(seen)?, figures(&back)?);
    if before.is_empty() {
        return Err(format!("prints nothing; unseen: {:?}", seen.unseen));
    }
    if before != after || serde_json::to_string(&back).ok().as_ref() != Some(&text) {
        return Err(format!("is not read back as it was written: {before:?}, {after:?}"));
    }
    Ok((before, text))
}

/// Returns the longest `window_ns` in the JSON of observations; `None` if it has none.
fn longest_window(json: &str) -> Option<u64> {
    let after = json.split("\"window_ns\":").skip(1);
    after.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).max()
}

/// Returns an error if an observer that needs a link does not report that the link is absent.
fn says_why(row: &'static Observer) -> Result<(), String> {
    let seen = TcpPair::new().window(&mut Watcher::with(&[row], "no-such0"), BYTES).0;
    let said = seen.unseen.iter().any(|line| line.starts_with(row.name));
    let prints = row.figures(&seen).is_ok_and(|figures| !figures.is_empty());
    if said || prints { Ok(()) } else { Err("fails without a word".into()) }
}

fn sees_no_others(row: &Observer) -> Result<(), String> {
    let (flow, mut watch, mut seen) = (TcpPair::new(), row.watch("lo"), Observations::default());
    let opened = watch.open(&WatchSubject { target: WatchTarget::Top, ..WatchSubject::default() });
    flow.send(BYTES);
    opened
        .and_then(|()| watch.sample(Nanos(0)))
        .and_then(|()| watch.close(&mut seen))
        .expect("a live window");
    match row.figures(&seen) {
        Ok(figures) if figures.is_empty() => Ok(()),
        other => Err(format!("sees flows that are not its own: {other:?}")),
    }
}

#[test]
fn every_row_that_can_run_here_keeps_its_promises() {
    for row in OBSERVERS {
        match row.can_run() {
            Ok(()) => assert_eq!(broken(row), None, "{}", row.name),
            Err(why) => println!("SKIP {}: {why}", row.name),
        }
    }
}

#[test]
fn a_broken_promise_is_reported() {
    static FAKE: Observer = fake::FAKE;
    static OWN_ONLY: Observer = Observer { own_sockets_only: true, ..fake::FAKE };
    let broken_promises = |breaks| {
        BREAKS.set(breaks);
        broken(if breaks == "own" { &OWN_ONLY } else { &FAKE }).unwrap_or_default()
    };
    assert_eq!(broken_promises(""), "");
    for (breaks, said) in [
        ("counts", "keeps what"),
        ("window", "keeps a window"),
        ("open", "prints nothing; unseen: [\"fake: loopback is gone: by the test\"]"),
        ("shape", "is not read back"),
        ("word", "fails without"),
        ("own", "sees flows"),
        ("panic", "panics"),
    ] {
        assert!(broken_promises(breaks).starts_with(said), "{breaks}: {}", broken_promises(breaks));
    }
}
