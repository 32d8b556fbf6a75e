//! The congestion controls that the machine restricts.

use std::collections::BTreeSet;

use crate::kernel_file::KernelFile;
use crate::{Error, HostKnob, KnobTarget};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// The value where nothing is restricted.
const NOTHING: &str = "none";

/// The loaded congestion controls that are not in the list of allowed ones. The list itself is no good value: a control
/// that another program loads and allows to everyone changes it, and writing an old list would restrict that control.
#[derive(Debug, Clone, Copy)]
pub(super) struct RestrictedControls {
    knob: &'static str,
}

impl RestrictedControls {
    pub(super) const fn new(knob: &'static str) -> Self {
        RestrictedControls { knob }
    }

    fn names(&self, path: &str) -> Result<BTreeSet<String>, Error> {
        let text = KernelFile::absolute(self.knob, path).read()?;
        Ok(text.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// Returns the loaded controls that are not in `names`, separated by a space.
    fn without(&self, names: &BTreeSet<String>) -> Result<String, Error> {
        let available = self.names(AVAILABLE)?;
        Ok(available.difference(names).map(String::as_str).collect::<Vec<_>>().join(" "))
    }

    fn allowed(&self, restricted: &str) -> Result<String, Error> {
        self.without(&restricted.split(' ').map(str::to_owned).collect())
    }
}

impl HostKnob for RestrictedControls {
    fn read(&self, _: &KnobTarget) -> Result<String, Error> {
        let restricted = self.without(&self.names(ALLOWED)?)?;
        Ok(if restricted.is_empty() { NOTHING.to_owned() } else { restricted })
    }

    fn write(&self, _: &KnobTarget, value: &str) -> Result<(), Error> {
        KernelFile::absolute(self.knob, ALLOWED).write(&self.allowed(value)?)
    }

    fn spelled(&self, value: &str) -> Option<String> {
        self.allowed(value).ok()
    }

    fn can_write(&self, _: &KnobTarget) -> Result<(), Error> {
        KernelFile::absolute(self.knob, ALLOWED).writable()
    }
}
