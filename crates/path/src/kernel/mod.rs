//! The path that leaves programs on the kernel's TCP.

use std::sync::Arc;

use crate::notify::{Answer, Call, Rule};
use crate::{Carrier, Counts, Error, Options, Path, Shared, Why};

/// The path that changes nothing.
pub(crate) struct Kernel;

impl Path for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn describe(&self) -> &'static str {
        "TCP as it is, to compare with"
    }

    fn rules(&self) -> &'static [Rule] {
        &[]
    }

    fn carrier(&self, _shared: &Arc<Shared>, _options: &Options) -> Result<Box<dyn Carrier>, Error> {
        Ok(Box::new(Plain))
    }

    fn alone(&self, _shared: &Arc<Shared>) -> Box<dyn Carrier> {
        Box::new(Plain)
    }
}

struct Plain;

impl Carrier for Plain {
    fn answer(&self, _call: &Call<'_>) -> Answer {
        Answer::Continue
    }

    fn left(&self, _why: Why) {}

    fn counts(&self) -> Counts {
        Counts::default()
    }
}
