//! What Ctrl-C, SIGTERM and a closed terminal do.
//!
//! Where there is something to finish, to put back or to report, they ask for an orderly end ([`Stop`]): the
//! trial at hand is finished, everything is put back, what is known is reported. Where there is not
//! ([`Leave`]), this process's labs are taken down and it ends at once, with 128 and the signal's number.

use std::io;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::labs;

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The thread that ends this process holds it.
static ENDING: Mutex<()> = Mutex::new(());

/// Set once the user asked to stop.
#[derive(Clone)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn on_signals() -> io::Result<Stop> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in SIGNALS {
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Stop(asked))
    }

    /// What is set then, for those who look by themselves.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn wait(&self) {
        while !self.asked() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A process that a signal ends at once.
pub(crate) struct Leave(Arc<AtomicBool>);

impl Leave {
    pub(crate) fn on_signals() -> io::Result<Leave> {
        let mut signals = Signals::new(SIGNALS)?;
        let at_once = Arc::new(AtomicBool::new(true));
        let leave = Leave(Arc::clone(&at_once));
        let listen = move || {
            let mut asked = signals.forever().filter(|_| at_once.load(Ordering::Relaxed));
            if let Some(signal) = asked.next() {
                end(signal);
            }
        };
        std::thread::Builder::new().name("leave".into()).spawn(listen)?;
        Ok(leave)
    }

    pub(crate) fn into_stop(self) -> io::Result<Stop> {
        let stop = Stop::on_signals()?;
        self.0.store(false, Ordering::Relaxed);
        Ok(stop)
    }
}

/// Waits for ever where a signal is ending this process, which is then not for the caller to end: it may have
/// failed only because its lab went.
pub(crate) fn unless_leaving() {
    drop(ENDING.lock().unwrap_or_else(PoisonError::into_inner));
}

fn end(signal: i32) {
    let _ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = labs::leave() {
        eprintln!("landspeed: {}", landspeed_report::safe(&format!("{error:#}")));
    }
    exit(128 + signal)
}
