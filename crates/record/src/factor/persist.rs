//! Ways to make a setting permanent.

/// A way to make a setting permanent without the files and commands of [`crate::factor::SystemSetting`]. A setting that
/// has no such way is set at boot, with these files or commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersistMethod {
    /// Keys of systemd.link(5), the spelling of their values, and the first version of systemd that supports them.
    Link(&'static [&'static str], SystemdSpelling, u32),
    /// An instruction for the application, for a setting of the flow.
    Application(&'static str),
    /// An instruction for the application that differs for one value of a setting of the flow: the value and the
    /// instruction.
    ApplicationValue(&'static str, &'static str),
}

/// The spelling of a value in systemd.link(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemdSpelling {
    Switch,
    Number(u64, u64),
    /// Microseconds, at least 1.
    Micros,
}
