//! An end that is asked for by a signal.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};

/// A flag that any of `signals` sets; none of them ends the program by itself any more.
pub(crate) fn on(signals: &[i32]) -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for &signal in signals {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot take signals over")?;
    }
    Ok(stop)
}
