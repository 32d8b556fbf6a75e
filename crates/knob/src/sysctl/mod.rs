//! Settings under /proc/sys/net.
//!
//! /proc/sys/net shows the network namespace of the thread that opens it, whatever the mount, so these settings need
//! no private mount.
//!
//! To add a sysctl, add a row to the file whose first line names its subject. Its base is `NAMESPACED` if a new network
//! namespace can write the sysctl (`unshare -n sysctl -w NAME=VALUE`), else `MACHINE`. `interacts` names at least one
//! other factor, as the test `every_factor_is_whole_and_has_a_name_of_its_own` of the engine (`factors_tests.rs`)
//! requires; one of the two rows is enough. The name is the sysctl's without `tcp_`, unless the rest alone is ambiguous.
//! `kernel` has the version whose commit added the sysctl to ip-sysctl.rst. The number after proposed values is their
//! rank (`Proposal::rank`). A sysctl from which no source expects a gain has `nothing`: `--vary` and `--set` turn it,
//! `tune` does not try it. `disturbs` names what else a write changes; the conformance suite fails if something is missing.

use crate::{Factor, FactorScope, Knob};

/// Expands to a knob of this family: `sysctl!(BASE_ROW, "name", "path below net", FileEncoding, { row fields },
/// propose)`. With `Bit`, the domain is that of the base row: on and off. `Plain` needs a `domain`. A file that calls
/// the macro imports `FileSetting`.
macro_rules! sysctl {
    (
        $base:ident, $name:literal, $path:literal, $encoding:ident,
        { $($field:ident: $value:expr),* $(,)? }, $propose:expr
    ) => {
        knob!(
            $base, $name,
            FileSetting(
                crate::file::FileEncoding::$encoding,
                |_| Ok(crate::file::MemberFiles::one(concat!("/proc/sys/net/", $path)))
            ),
            {
                system: $crate::SystemSetting::Sysctl(concat!("net/", $path)),
                protocol: $crate::sysctl::protocol($path),
                $($field: $value,)*
                propose: $propose
            }
        )
    };
}

pub(crate) mod congestion;
mod detail;
mod host;
mod restricted;
mod windows;

pub(crate) const KNOBS: &[&[Knob]] = &[windows::KNOBS, congestion::KNOBS, detail::KNOBS, host::KNOBS];

/// Common fields of a network namespace's sysctls. New connections use a new value immediately, so the knobs need no
/// time to settle.
const NAMESPACED: Factor = Factor { source: "Documentation/networking/ip-sysctl.rst", ..Factor::KNOB };

const MACHINE: Factor =
    Factor { scope: FactorScope::Host, source: "Documentation/admin-guide/sysctl/net.rst", ..NAMESPACED };

/// Returns the protocol that a sysctl concerns: "tcp" for "ipv4/tcp_rmem", which also applies over IPv6.
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
