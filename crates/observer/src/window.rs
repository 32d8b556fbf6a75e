//! Builds watches from types that are the state of one window.

use landspeed_record::Observations;
use landspeed_record::units::Nanos;

use crate::{Error, Watch, WatchSubject};

/// The state of one observer during one window.
pub(crate) trait OpenWindow: Send {
    fn sample(&mut self, _at: Nanos) -> Result<(), Error> {
        Ok(())
    }

    fn close(self, seen: &mut Observations) -> Result<(), Error>;
}

struct WindowedWatch<Open, W> {
    open: Open,
    window: Option<W>,
}

/// Returns a watch that calls `open` to open a window. It discards a window that is still open before it opens the next
/// one.
pub(crate) fn windows<W: OpenWindow + 'static>(
    open: impl FnMut(&WatchSubject<'_>) -> Result<W, Error> + Send + 'static,
) -> Box<dyn Watch> {
    Box::new(WindowedWatch { open, window: None })
}

impl<W: OpenWindow, Open: FnMut(&WatchSubject<'_>) -> Result<W, Error> + Send> Watch
    for WindowedWatch<Open, W>
{
    fn open(&mut self, subject: &WatchSubject<'_>) -> Result<(), Error> {
        self.window = None;
        self.window = Some((self.open)(subject)?);
        Ok(())
    }

    fn sample(&mut self, at: Nanos) -> Result<(), Error> {
        self.window.as_mut().map_or(Ok(()), |window| window.sample(at))
    }

    fn close(&mut self, seen: &mut Observations) -> Result<(), Error> {
        self.window.take().map_or(Ok(()), |window| window.close(seen))
    }
}

struct CounterWindow<R, Read, Tell> {
    before: R,
    read: Read,
    tell: Tell,
}

/// Returns a watch of counters. `read` reads the counters at the beginning and at the end of a window, and `tell`
/// computes the observations from the two readings.
pub(crate) fn difference<R: Send + 'static>(
    read: impl Fn() -> Result<R, Error> + Clone + Send + 'static,
    tell: impl Fn(&R, &R, &mut Observations) + Copy + Send + 'static,
) -> Box<dyn Watch> {
    windows(move |_| Ok(CounterWindow { before: read()?, read: read.clone(), tell }))
}

impl<R: Send, Read, Tell> OpenWindow for CounterWindow<R, Read, Tell>
where
    Read: Fn() -> Result<R, Error> + Send,
    Tell: Fn(&R, &R, &mut Observations) + Send,
{
    fn close(self, seen: &mut Observations) -> Result<(), Error> {
        (self.tell)(&self.before, &(self.read)()?, seen);
        Ok(())
    }
}
