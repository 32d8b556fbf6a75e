//! Sysctls as a file of sysctl.d(5).

use super::change::{KeptChange, PersistError};
use super::config_file::{ConfigFile, heading};

const PATH: &str = "/etc/sysctl.d/90-landspeed.conf";

pub(super) struct SysctlLine {
    key: String,
    to: String,
    from: Option<String>,
}

/// Returns the line of one change. The key is checked although it comes from the knob table.
pub(super) fn line(change: &KeptChange<'_>, key: &str) -> Result<SysctlLine, PersistError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.');
    let key = key.replace('/', ".");
    if key.is_empty() || !key.starts_with("net.") || !key.chars().all(plain) {
        return Err(change.wrong("a setting with a sysctl below net"));
    }
    let to = text(change.to).ok_or_else(|| change.wrong("numbers or one word"))?;
    Ok(SysctlLine { key, to, from: change.from.and_then(text) })
}

/// Returns a value as the kernel accepts it: numbers separated by spaces, or a word.
fn text(value: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
    let fits = (1..=100).contains(&value.len()) && value.chars().all(plain) && value.trim() == value;
    fits.then(|| match value {
        "on" => "1".into(),
        "off" => "0".into(),
        other => other.into(),
    })
}

pub(super) fn file(lines: &[SysctlLine], origin: &str) -> Option<ConfigFile> {
    if lines.is_empty() {
        return None;
    }
    let mut text = heading(origin);
    for line in lines {
        if let Some(from) = &line.from {
            text += &format!("\n# was: {from}");
        }
        text += &format!("\n{} = {}\n", line.key, line.to);
    }
    let back = |line: &SysctlLine| Some(format!("sysctl -w '{}={}'", line.key, line.from.as_ref()?));
    let remove = std::iter::once(format!("rm {PATH}")).chain(lines.iter().filter_map(back)).collect();
    Some(ConfigFile {
        path: PATH.into(),
        text,
        mode: 0o644,
        apply: vec![format!("sysctl -p {PATH}")],
        remove,
    })
}
