//! The trait of a knob: a factor that is a setting of the host.

use crate::{Error, Factor};

/// Makes a row of a family: `knob!(BASE_ROW, "name", Setting(its own arguments), { row fields })`. The name is the
/// first argument of the setting, whose errors contain it.
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

/// A knob: its declaration, and how it is read and written.
#[derive(Clone, Copy)]
pub struct Knob {
    /// The declaration: name, domain, proposals and so on.
    pub factor: Factor,
    /// How the knob is read and written.
    pub setting: &'static dyn HostKnob,
}

/// The target of a knob: a device in this process's network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnobTarget {
    /// The device that faces the peer.
    pub device: String,
}

/// A setting of the host, read and written where the kernel keeps it. The [`journal`](crate::journal) module journals
/// writes, verifies them and restores values.
pub trait HostKnob: Sync {
    /// Returns the current value in the domain's spelling.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] with the reason if this host lacks the knob.
    fn read(&self, target: &KnobTarget) -> Result<String, Error>;

    /// Writes `value`, which is in the domain, and changes nothing else. It is also called when the knob already has
    /// this value: an offload that is off only because it lacks another one then stays off when that one is switched
    /// on.
    fn write(&self, target: &KnobTarget, value: &str) -> Result<(), Error>;

    /// Checks whether a write could succeed, as far as that is possible without changing anything.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] with the reason if a write would fail.
    fn can_write(&self, _place: &KnobTarget) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the limits of this host for the knob's values.
    fn limits(&self, _place: &KnobTarget) -> Result<KnobLimits, Error> {
        Ok(KnobLimits::default())
    }
}

/// Limits of a host for a knob's values, beyond the table's domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnobLimits {
    /// The greatest value that the host accepts.
    pub most: Option<u64>,
    /// The values that the host offers; empty if it does not list them.
    pub choices: Vec<String>,
    /// Number of members (queues, features, processors) that one value covers.
    pub members: u32,
}

impl Default for KnobLimits {
    fn default() -> Self {
        KnobLimits { most: None, choices: Vec::new(), members: 1 }
    }
}
