//! What the system calls a setting, and how a person reads and sets it there.

/// Where the system keeps a setting, by the system's own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Nowhere: a program's own choice.
    Own,
    /// A file below /proc/sys: "net/ipv4/tcp_rmem".
    Sysctl(&'static str),
    /// The option of ethtool(8) that sets it, and what it is called there: "-K", and "gro" before longer names.
    Ethtool(&'static str, &'static [&'static str]),
    /// A setting of `ip link set`.
    Link(&'static str),
    /// The qdisc at the device's root.
    Qdisc,
    /// Files of the device, below its folder in /sys/class/net: "queues/rx-*/rps_cpus".
    Device(&'static str),
    /// The processors of each of the device's interrupts.
    Interrupts,
    /// What it is called, and its files, one for each processor: 0 there is "on" where they say what is disabled.
    Processors(&'static str, &'static str),
    /// An option of setsockopt(2).
    Socket(&'static str),
}

/// Folders that a person may write before a name, or leave out.
const FOLDERS: [&str; 2] = ["/proc/sys/", "/sys/class/net/*/"];

impl System {
    /// Its names, the usual one first.
    pub fn names(&self) -> Vec<String> {
        match *self {
            System::Own => Vec::new(),
            System::Sysctl(path) => {
                let alone = path.strip_prefix("net/ipv4/").map(str::to_owned);
                std::iter::once(path.replace('/', ".")).chain(alone).collect()
            }
            System::Ethtool("-K", names @ [short, longer @ ..]) => {
                let options = names.iter().map(|name| format!("ethtool -K {name}"));
                let alone = longer.iter().map(|name| (*name).to_owned());
                options.chain([format!("ethtool:{short}")]).chain(alone).collect()
            }
            System::Ethtool(option, names) => {
                names.iter().map(|name| format!("ethtool {option} {name}")).collect()
            }
            System::Link(key) => vec![format!("ip link {key}")],
            System::Qdisc => vec!["tc qdisc".to_owned()],
            System::Device(files) => {
                let alone = files.rsplit_once('/').map(|(_, file)| file.to_owned());
                std::iter::once(files.to_owned()).chain(alone).collect()
            }
            System::Interrupts => vec!["smp_affinity_list".to_owned()],
            System::Processors(name, _) | System::Socket(name) => vec![name.to_owned()],
        }
    }

    /// The usual name; empty where the system has none.
    pub fn name(&self) -> String {
        self.names().into_iter().next().unwrap_or_default()
    }

    /// The shell commands that read it and set it to VALUE, which stands for the system's own spelling.
    pub fn commands(&self, device: &str) -> Option<[String; 2]> {
        let files = |files: &str| [format!("grep . {files}"), format!("echo VALUE | tee {files}")];
        Some(match *self {
            System::Own | System::Socket(_) => return None,
            System::Sysctl(path) => {
                let name = path.replace('/', ".");
                [format!("sysctl {name}"), format!("sysctl -w {name}=VALUE")]
            }
            System::Ethtool(option, names) => [
                format!("ethtool {} {device}", option.to_ascii_lowercase()),
                format!("ethtool {option} {device} {} VALUE", names[0]),
            ],
            System::Link(key) => {
                [format!("ip -d link show {device}"), format!("ip link set {device} {key} VALUE")]
            }
            System::Qdisc => {
                [format!("tc qdisc show dev {device}"), format!("tc qdisc replace dev {device} root VALUE")]
            }
            System::Device(path) => files(&format!("/sys/class/net/{device}/{path}")),
            System::Interrupts => {
                let each = |what: &str| {
                    format!(
                        "for n in $(ls /sys/class/net/{device}/device/msi_irqs); \
                         do {what} /proc/irq/$n/smp_affinity_list; done"
                    )
                };
                [each("cat"), each("echo VALUE >")]
            }
            System::Processors(_, paths) => files(paths),
        })
    }
}

/// A name in one spelling: 'net.ipv4.tcp_rmem' is '/proc/sys/net/ipv4/tcp_rmem', and 'tcp_rmem' is 'tcp-rmem'. Case
/// counts: TCP_NOTSENT_LOWAT is a socket's, tcp_notsent_lowat the host's.
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
