//! Linux's own congestion controls: those that landspeed never loads by BPF, and those that replace its own on a kernel
//! that cannot load any. Most distributions have them as modules.

use std::fs;
use std::path::Path;

use rustix::net::{AddressFamily, SocketType, socket, sockopt};

use super::allowed;
use super::state::available;
use crate::Error;
use crate::control::Control;

/// The folder of each kernel's modules.
const MODULES: &str = "/lib/modules";
const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// A congestion control of Linux's own that sockets of this host can choose, or could if a module were loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinuxControl {
    /// The name for `TCP_CONGESTION`: landspeed's name without `ls_`.
    pub name: &'static str,
    /// The module that must be loaded first; `None` if sockets can choose the control already.
    pub module: Option<&'static str>,
    /// The reason why this kernel cannot load landspeed's control of the same name; `None` if landspeed has none of its
    /// own to load.
    pub because: Option<String>,
}

/// Returns Linux's own control of the name of `row`, if this host has it, and if landspeed has no control of its own of
/// that name which this kernel can load.
pub fn linuxs_own(row: &Control) -> Option<LinuxControl> {
    let because = if row.is_kernels() { None } else { Some(allowed::kernel_can_load().err()?) };
    chosen(row, because, &available(), has_module)
}

fn chosen(
    row: &Control,
    because: Option<String>,
    available: &[String],
    has_module: impl Fn(&str) -> bool,
) -> Option<LinuxControl> {
    let is_there = available.iter().any(|name| name == row.name);
    let module = row.module.filter(|module| !is_there && has_module(module));
    // Where landspeed has FAST and Linux has none, another program's control of that name is another control.
    let is_linuxs = row.is_kernels() || row.module.is_some();
    let is_had = module.is_some() || is_there;
    (is_linuxs && is_had).then_some(LinuxControl { name: row.name, module, because })
}

/// Returns true if the running kernel was built with this module.
fn has_module(module: &str) -> bool {
    let release = fs::read_to_string(RELEASE).unwrap_or_default();
    let listed = fs::read_to_string(Path::new(MODULES).join(release.trim()).join("modules.dep"));
    listed.is_ok_and(|listed| lists(&listed, module))
}

/// Returns true if a file modules.dep(5) lists the module: "kernel/net/ipv4/tcp_htcp.ko.xz:".
fn lists(listed: &str, module: &str) -> bool {
    let files = listed.lines().filter_map(|line| line.split(':').next()?.rsplit('/').next());
    files.filter_map(|file| file.split_once(".ko")).any(|(name, _)| name == module)
}

impl LinuxControl {
    /// Makes the kernel load the control's module, by choosing the control for a socket (tcp_ca_find_autoload of
    /// net/ipv4/tcp_cong.c). The module stays loaded.
    ///
    /// # Errors
    /// Returns an error if the kernel does not have the control after that.
    pub fn load(&self) -> Result<(), Error> {
        let chosen = socket(AddressFamily::INET, SocketType::STREAM, None)
            .and_then(|socket| sockopt::set_tcp_congestion(&socket, self.name));
        chosen.map_err(|error| Error::Kernel { name: self.name, why: error.to_string() })
    }

    /// Returns a note for readers of a comparison; `None` if none is needed.
    pub fn note(&self) -> Option<String> {
        let module = self.module.map(|module| format!("the module {module} was loaded for it, and stays"));
        match (&self.because, module) {
            (None, module) => Some(format!("{}: {}", self.name, module?)),
            (Some(because), module) => {
                let module = module.map(|module| format!("; {module}")).unwrap_or_default();
                Some(format!("{}: Linux's own control, not landspeed's: {because}{module}", self.name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CONTROLS;

    fn asked(
        name: &str,
        available: &[&str],
        modules: &[&str],
    ) -> Option<(&'static str, Option<&'static str>)> {
        let row = CONTROLS.iter().find(|row| row.name == name).unwrap();
        let available: Vec<String> = available.iter().map(|name| (*name).to_owned()).collect();
        let found = chosen(row, Some("old".to_owned()), &available, |module| modules.contains(&module));
        found.map(|control| (control.name, control.module))
    }

    #[test]
    fn linuxs_own_is_taken_where_it_is_there_or_can_be_loaded() {
        assert_eq!(asked("htcp", &["reno", "htcp"], &["tcp_htcp"]), Some(("htcp", None)));
        assert_eq!(asked("htcp", &["reno"], &["tcp_htcp"]), Some(("htcp", Some("tcp_htcp"))));
        assert_eq!(asked("htcp", &["reno"], &["tcp_bic"]), None);
        assert_eq!(asked("fast", &["fast"], &["tcp_fast"]), None, "Linux has no FAST");
        assert_eq!(asked("bbr", &["reno"], &["tcp_bbr"]), Some(("bbr", Some("tcp_bbr"))));
        assert_eq!(asked("reno", &["reno"], &[]), Some(("reno", None)));
    }

    #[test]
    fn a_module_is_found_however_it_is_packed() {
        let listed = "kernel/net/ipv4/tcp_htcp.ko.xz:\nkernel/tcp_bic.ko: kernel/a.ko\nb/tcp_veno.ko.zst:\n";
        let is_listed = |module: &str| lists(listed, module);
        assert!(is_listed("tcp_htcp") && is_listed("tcp_bic") && is_listed("tcp_veno"));
        assert!(!is_listed("tcp_h") && !is_listed("a"));
    }

    #[test]
    fn a_note_names_linuxs_own_control_and_the_loaded_module() {
        let said = |module, because: Option<&str>| {
            LinuxControl { name: "htcp", module, because: because.map(str::to_owned) }.note()
        };
        assert_eq!(said(None, None), None);
        let loaded = "the module tcp_htcp was loaded for it, and stays";
        assert_eq!(said(Some("tcp_htcp"), None), Some(format!("htcp: {loaded}")));
        let own = "htcp: Linux's own control, not landspeed's: it is old";
        assert_eq!(said(None, Some("it is old")).as_deref(), Some(own));
        assert_eq!(said(Some("tcp_htcp"), Some("it is old")), Some(format!("{own}; {loaded}")));
    }
}
