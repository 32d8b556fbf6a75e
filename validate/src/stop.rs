//! Signals as requests to end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Returns a flag that is set by Ctrl-C, SIGTERM and a closed terminal. They no longer end the program by themselves.
pub(crate) fn on_signals() -> Result<Arc<AtomicBool>> {
    on(&[SIGINT, SIGTERM, SIGHUP])
}

/// Returns a flag that is set by any of `signals`. The signals no longer end the program by themselves.
pub(crate) fn on(signals: &[i32]) -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for &signal in signals {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot take signals over")?;
    }
    Ok(stop)
}
