//! Settings under /proc/sys/net.
//!
//! /proc/sys/net shows the network namespace of the thread that opens it, whatever mount it is reached by,
//! so these need no mount of their own.

use crate::file::KernelFile;
use crate::{Error, Factor, HostKnob, Knob, Place, Scope};

/// A knob of this family: `sysctl!(BASE_ROW, "name", "path below net", Text, { row fields }, propose)`.
macro_rules! sysctl {
    (
        $base:ident, $name:literal, $path:literal, $text:ident,
        { $($field:ident: $value:expr),* $(,)? }, $propose:expr
    ) => {
        $crate::Knob { factor: $crate::Factor { name: $name, protocol: $crate::sysctl::protocol($path), $($field: $value,)* propose: $propose, ..$base }, setting: &$crate::sysctl::Sysctl {
                knob: $name,
                path: concat!("/proc/sys/net/", $path),
                text: $crate::sysctl::Text::$text,
            } }
    };
}

pub(crate) mod congestion;
mod detail;
mod host;
mod windows;

pub(crate) const KNOBS: &[&[Knob]] = &[windows::KNOBS, congestion::KNOBS, detail::KNOBS, host::KNOBS];

/// What rows of a namespace's sysctls have in common. New connections take the value: nothing to settle.
const NAMESPACED: Factor = Factor { source: "Documentation/networking/ip-sysctl.rst", ..Factor::KNOB };

/// What rows of the machine's sysctls have in common.
const MACHINE: Factor =
    Factor { scope: Scope::Host, source: "Documentation/admin-guide/sysctl/net.rst", ..NAMESPACED };

/// The protocol that a sysctl is of: "ipv4/tcp_rmem" of TCP, over IPv6 too.
const fn protocol(path: &str) -> &'static str {
    let (path, prefix) = (path.as_bytes(), b"ipv4/tcp_");
    let mut at = 0;
    while at < prefix.len() {
        if at >= path.len() || path[at] != prefix[at] {
            return "";
        }
        at += 1;
    }
    "tcp"
}

/// What a sysctl's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    /// As in the table.
    Plain,
    /// 0 and 1 for off and on.
    Bit,
}

/// One file under /proc/sys/net.
#[derive(Debug)]
struct Sysctl {
    knob: &'static str,
    path: &'static str,
    text: Text,
}

impl HostKnob for Sysctl {
    fn read(&self, _: &Place) -> Result<String, Error> {
        let text = KernelFile::absolute(self.knob, self.path).read()?;
        match (self.text, text.as_str()) {
            (Text::Plain, _) => Ok(text),
            (Text::Bit, "0") => Ok("off".into()),
            (Text::Bit, "1") => Ok("on".into()),
            (Text::Bit, other) => Err(Error::Unavailable(format!(
                "{} holds {other}, which is neither 0 nor 1 and could not be put back exactly",
                self.path
            ))),
        }
    }

    fn write(&self, _: &Place, value: &str) -> Result<(), Error> {
        let text = match (self.text, value) {
            (Text::Bit, "on") => "1",
            (Text::Bit, _) => "0",
            (Text::Plain, value) => value,
        };
        KernelFile::absolute(self.knob, self.path).write(text)
    }

    fn can_write(&self, _: &Place) -> Result<(), Error> {
        KernelFile::absolute(self.knob, self.path).writable()
    }

    fn sysctl(&self) -> Option<&'static str> {
        self.path.strip_prefix("/proc/sys/")
    }
}
