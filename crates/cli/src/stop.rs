//! What Ctrl-C, SIGTERM and a closed terminal do.
//!
//! At first they end this process at once, with 128 and the signal's number: its labs are taken down, and nothing else
//! was changed. Once there is something to finish, to restore or to report ([`Stop::in_order`]), the first signal asks
//! for an orderly end and says so; a second Ctrl-C ends the process at once all the same, and agents and guardians
//! restore what it leaves.

use std::io::{self, Write};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use landspeed_report::live;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::labs;

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The thread that ends this process holds it.
static ENDING: Mutex<()> = Mutex::new(());

/// Set once the user asked for an orderly end.
#[derive(Clone)]
pub(crate) struct Stop {
    asked: Arc<AtomicBool>,
    manner: Arc<Mutex<Manner>>,
    /// When the first signal came.
    since: Arc<OnceLock<Instant>>,
}

/// A second signal within this time is the first one again: timeout(1) and sudo send it to a process and to its group.
const AGAIN: Duration = Duration::from_millis(500);

/// How a signal ends the process, and what is said then.
#[derive(Clone)]
enum Manner {
    AtOnce(Arc<dyn Fn() -> String + Send + Sync>),
    InOrder(&'static str),
}

impl Stop {
    /// Signals end this process at once from here on.
    pub(crate) fn on_signals() -> io::Result<Stop> {
        let mut signals = Signals::new(SIGNALS)?;
        let stop = Stop {
            asked: Arc::default(),
            since: Arc::default(),
            manner: Arc::new(Mutex::new(Manner::AtOnce(Arc::new(String::new)))),
        };
        let heard = stop.clone();
        let listen = move || signals.forever().for_each(|signal| heard.hear(signal));
        std::thread::Builder::new().name("signals".into()).spawn(listen)?;
        Ok(stop)
    }

    /// A signal ends this process at once and says `what`.
    pub(crate) fn at_once(&self, what: &'static str) {
        self.at_once_saying(|| what.to_owned());
    }

    /// The same, where what there is to say, or to tidy up, is known only then.
    pub(crate) fn at_once_saying(&self, what: impl Fn() -> String + Send + Sync + 'static) {
        *self.manner() = Manner::AtOnce(Arc::new(what));
    }

    /// From here on the first signal asks for an orderly end, and says `what` is done then.
    pub(crate) fn in_order(&self, what: &'static str) {
        *self.manner() = Manner::InOrder(what);
    }

    fn manner(&self) -> std::sync::MutexGuard<'_, Manner> {
        self.manner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, signal: i32) {
        let manner = self.manner().clone();
        let is_second = self.since.get_or_init(Instant::now).elapsed() >= AGAIN;
        match manner {
            Manner::AtOnce(what) => end(signal, &what()),
            Manner::InOrder(what) if !self.asked.swap(true, Ordering::Relaxed) => tell(what),
            Manner::InOrder(_) if signal == SIGINT && is_second => {
                end(signal, "ended at once: hosts restore themselves")
            }
            Manner::InOrder(_) => {}
        }
    }

    /// What is set then, for those who look by themselves.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    pub(crate) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn wait(&self) {
        while !self.asked() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Waits for ever where a signal is ending this process, which is then not for the caller to end: it may have
/// failed only because its lab went.
pub(crate) fn unless_leaving() {
    drop(ENDING.lock().unwrap_or_else(PoisonError::into_inner));
}

fn tell(what: &str) {
    if !what.is_empty() {
        let _ = writeln!(io::stderr(), "{}{what}", live::over_the_line());
    }
}

fn end(signal: i32, what: &str) {
    let _ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    tell(what);
    if let Err(error) = labs::leave() {
        eprintln!("landspeed: {}", landspeed_report::safe(&format!("{error:#}")));
    }
    exit(128 + signal)
}
