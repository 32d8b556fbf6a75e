//! A watch over counters: read at both ends of the window, told as their difference.

use landspeed_record::Observations;

use crate::{Error, Scene, Watch};

struct Difference<R, Read, Tell> {
    read: Read,
    tell: Tell,
    before: Option<R>,
}

/// Reads by `read`, and tells by `tell` what lies between two readings.
pub(crate) fn difference<R: Send + 'static>(
    read: impl Fn() -> Result<R, Error> + Send + 'static,
    tell: impl Fn(&R, &R, &mut Observations) + Send + 'static,
) -> Box<dyn Watch> {
    Box::new(Difference { read, tell, before: None })
}

impl<R: Send, Read, Tell> Watch for Difference<R, Read, Tell>
where
    Read: Fn() -> Result<R, Error> + Send,
    Tell: Fn(&R, &R, &mut Observations) + Send,
{
    fn open(&mut self, _scene: &Scene<'_>) -> Result<(), Error> {
        self.before = None;
        self.before = Some((self.read)()?);
        Ok(())
    }

    fn close(&mut self, seen: &mut Observations) -> Result<(), Error> {
        if let Some(before) = self.before.take() {
            (self.tell)(&before, &(self.read)()?, seen);
        }
        Ok(())
    }
}
