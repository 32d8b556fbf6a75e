//! Knobs: factors that are settings of the host, and the trait that reads and writes them.

use crate::device_name::is_plain;
use crate::{Error, Factor};

/// Expands to a [`Knob`], one row of a family: `knob!(BASE_ROW, "name", Setting(its own arguments), { row fields })`.
/// The name also becomes the first argument of the setting's constructor, because the setting's errors contain it.
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
    /// The implementation that reads and writes the knob.
    pub setting: &'static dyn HostKnob,
}

impl Knob {
    /// Returns the shell command that sets the knob to `value` on `device`, to be run as root. Returns `None` if no
    /// single command can do that, if `value` is not in the knob's domain, or if `device` has a character that would
    /// need quotes.
    pub fn command(&self, device: &str, value: &str) -> Option<String> {
        self.factor.check(value).ok()?;
        let text = self.setting.spelled(value)?;
        let [_, command] = self.factor.system.commands(device).filter(|_| is_plain(device))?;
        // Members with different values need a command each.
        (!value.contains(';')).then(|| command.replace("VALUE", &quoted(&text)))
    }
}

/// Returns `text` as one word of a shell, in double quotes if it contains a space. No value of a knob contains another
/// character that needs quotes.
fn quoted(text: &str) -> String {
    if text.contains(' ') { format!("\"{text}\"") } else { text.to_owned() }
}

/// The place where a knob is read and written: a device in this thread's network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnobTarget {
    /// Name of the device on the path to the peer. It may be empty for a knob that belongs to no device.
    pub device: String,
}

/// A setting of the host. An implementation reads and writes the setting itself, without a journal. The
/// [`journal`](crate::journal) module records each write, verifies it and restores the original value.
///
/// A knob that is a file, with "on" and "off" for 1 and 0:
///
/// ```
/// use landspeed_knob::{Error, HostKnob, KnobTarget};
///
/// struct SwitchFile(std::path::PathBuf);
///
/// impl SwitchFile {
///     fn failed(&self, operation: &str, source: std::io::Error) -> Error {
///         Error::Io { knob: "switch".into(), operation: operation.into(), source }
///     }
/// }
///
/// impl HostKnob for SwitchFile {
///     fn read(&self, _: &KnobTarget) -> Result<String, Error> {
///         let text = std::fs::read_to_string(&self.0).map_err(|error| self.failed("read it", error))?;
///         Ok(if text.trim() == "1" { "on" } else { "off" }.to_owned())
///     }
///
///     fn write(&self, _: &KnobTarget, value: &str) -> Result<(), Error> {
///         let text = if value == "on" { "1" } else { "0" };
///         std::fs::write(&self.0, text).map_err(|error| self.failed("write it", error))
///     }
/// }
///
/// let file = std::env::temp_dir().join(format!("switch-{}", std::process::id()));
/// let (knob, here) = (SwitchFile(file.clone()), KnobTarget { device: String::new() });
/// knob.write(&here, "on")?;
/// assert_eq!(knob.read(&here)?, "on");
/// std::fs::remove_file(file).unwrap();
/// # Ok::<(), Error>(())
/// ```
pub trait HostKnob: Sync {
    /// Returns the current value, spelled as in the knob's domain.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] with the reason if this host lacks the knob.
    fn read(&self, target: &KnobTarget) -> Result<String, Error>;

    /// Writes `value`, which is in the domain, and changes nothing else. Also writes a value that the knob already has:
    /// an offload may be off only because another one is off, and writing "off" keeps it off when the other one is
    /// switched on.
    fn write(&self, target: &KnobTarget, value: &str) -> Result<(), Error>;

    /// Returns `value` as the system's own command (sysctl, ethtool, ip, tc) spells it, or `None` if that command
    /// cannot set it.
    fn spelled(&self, value: &str) -> Option<String> {
        Some(value.to_owned())
    }

    /// Checks whether a write could succeed, as far as that is possible without changing anything.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] with the reason if a write would fail.
    fn can_write(&self, _place: &KnobTarget) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the limits that this host sets for the knob's values at this place.
    fn limits(&self, _place: &KnobTarget) -> Result<KnobLimits, Error> {
        Ok(KnobLimits::default())
    }
}

/// Limits that a host sets for a knob's values, in addition to the knob's domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnobLimits {
    /// The greatest value that the host accepts; `None` if it reports none.
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::{Domain, FactorScope};

    /// Returns a value of the domain, with a space in it where the domain allows one.
    fn value(domain: &Domain<'_>) -> String {
        match domain {
            Domain::Int(least, _) => least.to_string(),
            Domain::Signed(least, _) => least.to_string(),
            Domain::Ints(count, least, _) => vec![least.to_string(); *count].join(" "),
            Domain::Name => "fq".to_owned(),
            Domain::NameList => "cubic".to_owned(),
            Domain::CpuList => "0-1".to_owned(),
            Domain::OneOf(words) => words[0].to_owned(),
            Domain::Each(inner) => value(inner),
            _ => "on".to_owned(),
        }
    }

    #[test]
    fn every_knob_has_a_command_that_a_shell_reads_as_one_setting() {
        for knob in crate::all() {
            let name = knob.factor.name;
            let value = value(&knob.factor.domain);
            let command =
                knob.command("eth0", &value).unwrap_or_else(|| panic!("{name} has no command for {value}"));
            assert!(!command.contains("VALUE"), "{command}");
            let named = knob.factor.scope != FactorScope::Device || command.contains("eth0");
            assert!(named, "{command}");
            let read = Command::new("sh").args(["-n", "-c", &command]).output().unwrap();
            assert!(read.status.success(), "{command}: {}", String::from_utf8_lossy(&read.stderr));
            // A value of several words is one word of the shell.
            assert!(!value.contains(' ') || command.contains(&format!("=\"{value}\"")), "{command}");
        }
    }

    #[test]
    fn a_command_spells_values_as_the_system_does() {
        let command = |name: &str, value: &str| crate::find(name).unwrap().command("eth0", value);
        let cases = [
            ("tcp-wmem", "4096 16384 10000000", "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 10000000\""),
            ("window-scaling", "on", "sysctl -w net.ipv4.tcp_window_scaling=1"),
            ("mtu", "9000", "ip link set eth0 mtu 9000"),
            ("tso", "on", "ethtool -K eth0 tso on"),
            ("ring-rx", "4096", "ethtool -G eth0 rx 4096"),
            ("rx-usecs", "0", "ethtool -C eth0 rx-usecs 0"),
            ("qdisc", "fq", "tc qdisc replace dev eth0 root fq"),
            ("rps", "0-3", "echo f | tee /sys/class/net/eth0/queues/rx-*/rps_cpus"),
            ("c-states", "off", "echo 1 | tee /sys/devices/system/cpu/cpu*/cpuidle/state[1-9]*/disable"),
        ];
        for (name, value, expected) in cases {
            assert_eq!(command(name, value).as_deref(), Some(expected));
        }
    }

    #[test]
    fn text_that_a_shell_would_interpret_is_in_no_command() {
        let mtu = crate::find("mtu").unwrap();
        for (device, value) in
            [("eth0;reboot", "9000"), ("eth0", "9000; reboot"), ("e$(id)", "9000"), ("", "9000")]
        {
            assert_eq!(mtu.command(device, value), None, "{device} {value}");
        }
        assert_eq!(crate::find("qdisc").unwrap().command("eth0", "default"), None);
        assert_eq!(crate::find("irq-affinity").unwrap().command("eth0", "0;1"), None);
    }
}
