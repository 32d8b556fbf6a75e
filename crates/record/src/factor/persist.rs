//! Ways to make a setting permanent.

/// A way to make a setting permanent other than the files and commands that [`crate::factor::SystemSetting`] describes. Those
/// set the value at boot for everything that has no entry here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersistMethod {
    /// Keys of systemd.link(5), the spelling of their values, and the first version of systemd that supports them.
    Link(&'static [&'static str], SystemdSpelling, u32),
    /// What an application must do, for a setting of the flow.
    Application(&'static str),
    /// What an application must do for one value, where that is something else.
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
