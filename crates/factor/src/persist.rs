//! How a setting is made to last.

/// What keeps a setting at boot beside the system's own files and commands ([`crate::System`]), which hold the values that
/// nothing here does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persist {
    /// Keys of systemd.link(5), how they spell the value, and the systemd that knows them first.
    Link(&'static [&'static str], Spelling, u32),
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
