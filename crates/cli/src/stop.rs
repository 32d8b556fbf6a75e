//! The effects of Ctrl-C, SIGTERM and a closed terminal.
//!
//! At first, a signal ends this process immediately, with status 128 plus the signal's number. Its labs are removed,
//! and nothing else has been changed. Once there is something to finish, to restore or to report
//! ([`StopRequest::in_order`]), the first signal requests an orderly end and prints a message. A second Ctrl-C still
//! ends the process immediately, and agents and guardians restore the settings.

use std::io;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use landspeed_report::live::{over_the_line, print_if_room};
use parking_lot::Mutex;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{in_one_line, take_kept};
use crate::labs;

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// A lock that the signal thread holds while it ends this process.
static ENDING: Mutex<()> = Mutex::new(());

/// The user's request for an orderly end. A signal sets it.
#[derive(Clone)]
pub(crate) struct StopRequest {
    asked: Arc<AtomicBool>,
    action: Arc<Mutex<SignalAction>>,
    /// Time of the first signal.
    since: Arc<OnceLock<Instant>>,
}

/// Time within which a second signal counts as the first one, because timeout(1) and sudo send a signal to a process
/// and to its group.
const AGAIN: Duration = Duration::from_millis(500);

/// How a signal ends the process, and the message that it prints.
#[derive(Clone)]
enum SignalAction {
    AtOnce(Arc<dyn Fn() -> String + Send + Sync>),
    InOrder(&'static str),
}

impl StopRequest {
    /// Handles signals from here on; they end this process immediately.
    pub(crate) fn on_signals() -> io::Result<StopRequest> {
        let mut signals = Signals::new(SIGNALS)?;
        let stop = StopRequest {
            asked: Arc::default(),
            since: Arc::default(),
            action: Arc::new(Mutex::new(SignalAction::AtOnce(Arc::new(String::new)))),
        };
        let heard = stop.clone();
        let listen = move || signals.forever().for_each(|signal| heard.hear(signal));
        std::thread::Builder::new().name("signals".into()).spawn(listen)?;
        Ok(stop)
    }

    /// Makes a signal end this process immediately and print `what`.
    pub(crate) fn at_once(&self, what: &'static str) {
        self.at_once_saying(|| what.to_owned());
    }

    /// Makes a signal end this process immediately, after `what` has cleaned up and returned the message.
    pub(crate) fn at_once_saying(&self, what: impl Fn() -> String + Send + Sync + 'static) {
        *self.action.lock() = SignalAction::AtOnce(Arc::new(what));
    }

    /// Makes the first signal after this call request an orderly end and print `what`.
    pub(crate) fn in_order(&self, what: &'static str) {
        *self.action.lock() = SignalAction::InOrder(what);
    }

    fn hear(&self, signal: i32) {
        let action = self.action.lock().clone();
        let is_second = self.since.get_or_init(Instant::now).elapsed() >= AGAIN;
        match action {
            SignalAction::AtOnce(what) => end(signal, &what()),
            SignalAction::InOrder(what) if !self.asked.swap(true, Ordering::Relaxed) => tell(what),
            SignalAction::InOrder(_) if signal == SIGINT && is_second => {
                end(signal, "ended at once: hosts restore themselves")
            }
            SignalAction::InOrder(_) => {}
        }
    }

    /// Returns the flag that a request sets, for code that checks it directly.
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

/// Blocks forever if a signal is already ending this process. The caller must not report its error and exit, because
/// the removal of its lab may have caused the error.
pub(crate) fn unless_leaving() {
    drop(ENDING.lock());
}

/// Prints a message if there is room for it. A signal ends this process even if the reader of standard error has
/// stopped.
fn tell(what: &str) {
    if !what.is_empty() {
        print_if_room(&format!("{}{what}\n", over_the_line()));
    }
}

fn end(signal: i32, what: &str) {
    let _ending = ENDING.lock();
    tell(what);
    if let Err(error) = labs::leave() {
        tell(&format!("landspeed: {}", landspeed_report::safe(&in_one_line(&error))));
    }
    for line in take_kept() {
        print_if_room(&line);
    }
    exit(128 + signal)
}
