//! The system's names for settings, and the commands that read and set them.

/// Where the system keeps a setting, by the system's own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemSetting {
    /// Nowhere. The setting is a choice of the program itself.
    Own,
    /// A file below /proc/sys: "net/ipv4/tcp_rmem".
    Sysctl(&'static str),
    /// The option of ethtool(8) that sets it, such as "-K", and the setting's names for this option. A short name such
    /// as "gro" is first.
    Ethtool(&'static str, &'static [&'static str]),
    /// A setting of `ip link set`.
    Link(&'static str),
    /// The qdisc at the device's root.
    Qdisc,
    /// Files of the device, relative to its folder in /sys/class/net: "queues/rx-*/rps_cpus".
    Device(&'static str),
    /// Bits of a register in the device's PCI configuration space: the register by setpci(8)'s name, and the mask of the
    /// bits in hexadecimal.
    Pci(&'static str, &'static str),
    /// The processors of each of the device's interrupts.
    Interrupts,
    /// The setting's name, and the pattern of its files, which each processor has. In a file named "disable", 0 means
    /// "on".
    Processors(&'static str, &'static str),
    /// An option of setsockopt(2).
    Socket(&'static str),
}

/// Folders that a user may write before the name of a setting. They are ignored.
const FOLDERS: [&str; 2] = ["/proc/sys/", "/sys/class/net/*/"];

impl SystemSetting {
    /// Returns the system's names for the setting, the usual one first.
    pub fn names(&self) -> Vec<String> {
        match *self {
            SystemSetting::Own => Vec::new(),
            SystemSetting::Sysctl(path) => {
                let alone = path.strip_prefix("net/ipv4/").map(str::to_owned);
                std::iter::once(path.replace('/', ".")).chain(alone).collect()
            }
            SystemSetting::Ethtool("-K", names @ [short, longer @ ..]) => {
                let options = names.iter().map(|name| format!("ethtool -K {name}"));
                let alone = longer.iter().map(|name| (*name).to_owned());
                options.chain([format!("ethtool:{short}")]).chain(alone).collect()
            }
            SystemSetting::Ethtool(option, names) => {
                names.iter().map(|name| format!("ethtool {option} {name}")).collect()
            }
            SystemSetting::Link(key) => vec![format!("ip link {key}")],
            SystemSetting::Qdisc => vec!["tc qdisc".to_owned()],
            SystemSetting::Device(files) => {
                let alone = files.rsplit_once('/').map(|(_, file)| file.to_owned());
                std::iter::once(files.to_owned()).chain(alone).collect()
            }
            SystemSetting::Pci(register, _) => vec![format!("setpci {register}")],
            SystemSetting::Interrupts => vec!["smp_affinity_list".to_owned()],
            SystemSetting::Processors(name, _) | SystemSetting::Socket(name) => vec![name.to_owned()],
        }
    }

    /// Returns the usual name, or an empty string if the system has none.
    pub fn name(&self) -> String {
        self.names().into_iter().next().unwrap_or_default()
    }

    /// Returns two shell commands, one that reads the setting and one that sets it. VALUE in the second is a
    /// placeholder for a value in the system's own spelling. Returns `None` if no command reads or sets it.
    pub fn commands(&self, device: &str) -> Option<[String; 2]> {
        let files = |files: &str| [format!("grep . {files}"), format!("echo VALUE | tee {files}")];
        Some(match *self {
            SystemSetting::Own | SystemSetting::Socket(_) => return None,
            SystemSetting::Sysctl(path) => {
                let name = path.replace('/', ".");
                [format!("sysctl {name}"), format!("sysctl -w {name}=VALUE")]
            }
            SystemSetting::Ethtool(option, names) => [
                format!("ethtool {} {device}", option.to_ascii_lowercase()),
                format!("ethtool {option} {device} {} VALUE", names[0]),
            ],
            SystemSetting::Link(key) => {
                [format!("ip -d link show {device}"), format!("ip link set {device} {key} VALUE")]
            }
            SystemSetting::Qdisc => {
                [format!("tc qdisc show dev {device}"), format!("tc qdisc replace dev {device} root VALUE")]
            }
            SystemSetting::Device(path) => files(&format!("/sys/class/net/{device}/{path}")),
            SystemSetting::Pci(register, mask) => {
                let at = format!(
                    "setpci -s \"$(basename \"$(readlink -f /sys/class/net/{device}/device)\")\" {register}"
                );
                [at.clone(), format!("{at}=VALUE:{mask}")]
            }
            SystemSetting::Interrupts => {
                let each = |what: &str| {
                    // The interrupts of a virtio device are one folder up, at its bus.
                    let folder = format!("/sys/class/net/{device}/device");
                    format!(
                        "for n in $(ls {folder}/msi_irqs 2>/dev/null || ls {folder}/../msi_irqs); \
                         do {what} /proc/irq/$n/smp_affinity_list; done"
                    )
                };
                [each("cat"), each("echo VALUE >")]
            }
            SystemSetting::Processors(_, paths) => files(paths),
        })
    }
}

/// Returns `name` in a uniform spelling, in which '/proc/sys/net/ipv4/tcp_rmem' equals 'net.ipv4.tcp_rmem', and
/// 'tcp_rmem' equals 'tcp-rmem'. Case is kept: TCP_NOTSENT_LOWAT is a socket option and tcp_notsent_lowat a sysctl of
/// the host.
pub(crate) fn spelling(name: &str) -> String {
    let name = name.trim();
    let short = FOLDERS.iter().find_map(|folder| name.strip_prefix(folder)).unwrap_or(name);
    let letter = |c: char| match c {
        '_' => '-',
        '/' | ':' | ' ' => '.',
        c => c,
    };
    short.chars().map(letter).collect()
}
