//! How a setting is made to last.

/// Where a setting is kept at boot, or who keeps it. A factor that has several takes the first that holds its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persist {
    /// Keys of systemd.link(5), how they spell the value, and the systemd that knows them first.
    Link(&'static [&'static str], Spelling, u32),
    /// A file of each queue of the device: "rx" and "rps_cpus".
    Queues(&'static str, &'static str),
    /// A file of the device below /sys/class/net.
    Attribute(&'static str),
    /// A setting of `ip link set`.
    IpLink(&'static str),
    /// A feature of `ethtool -K`.
    Feature(&'static str),
    /// A setting of `ethtool -C`.
    Coalesce(&'static str),
    Qdisc,
    /// The processors of each of the device's interrupts.
    Interrupts,
    /// A file of each processor, which takes 0 for "on" and 1 for "off", or the word itself.
    Processors(&'static str),
    /// What an application does, for a setting of the flow.
    Application(&'static str),
}

/// How systemd.link(5) spells a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    Switch,
    Number(u64, u64),
    /// Microseconds, over zero.
    Micros,
}
