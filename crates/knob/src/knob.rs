//! The trait of a knob: a factor that is a setting of the host.

use crate::{Error, Factor};

/// A row of a family: `knob!(BASE_ROW, "name", Setting(its own arguments), { row fields })`. Errors of the setting name
/// the knob, so it takes the name first.
macro_rules! knob {
    (
        $base:ident, $name:literal,
        $setting:ident($($argument:expr),*)$(.$with:ident($($more:expr),*))*,
        { $($field:ident: $value:expr),* $(,)? }
    ) => {
        $crate::Knob {
            factor: $crate::Factor { name: $name, $($field: $value,)* ..$base },
            setting: &$setting::new($name, $($argument),*)$(.$with($($more),*))*,
        }
    };
}

/// A knob: what is known of it, and how it is read and turned.
#[derive(Clone, Copy)]
pub struct Knob {
    /// What is known of it.
    pub factor: Factor,
    /// How it is read and turned.
    pub setting: &'static dyn HostKnob,
}

/// Where a system knob is turned: this process's network namespace, and a device in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The device that faces the peer.
    pub device: String,
}

/// A setting of the host, read and written where the kernel keeps it. Journal, verification and
/// rollback are not its business: see the journal module.
pub trait HostKnob: Sync {
    /// The value now, in the domain's spelling. [`Error::Unavailable`] says why this host lacks it.
    fn read(&self, place: &Place) -> Result<String, Error>;

    /// Writes `value`, which lies in the domain, and nothing else. Also to be called where it reads so
    /// already: an offload that is off only for want of another is made to stay off.
    fn write(&self, place: &Place, value: &str) -> Result<(), Error>;

    /// Whether a write could succeed, as far as can be told without one: nothing is changed.
    /// [`Error::Unavailable`] says why not.
    fn can_write(&self, _place: &Place) -> Result<(), Error> {
        Ok(())
    }

    /// What this host says of the values that it takes.
    fn limits(&self, _place: &Place) -> Result<Limits, Error> {
        Ok(Limits::default())
    }
}

/// What a host says of a knob's values, beyond the table's domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The greatest value that it takes.
    pub most: Option<u64>,
    /// The values that it offers; empty where it does not say.
    pub choices: Vec<String>,
    /// How many members (queues, features, processors) one value stands for.
    pub members: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { most: None, choices: Vec::new(), members: 1 }
    }
}
