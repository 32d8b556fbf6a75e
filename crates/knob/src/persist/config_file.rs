//! A file that root's programs read, and how landspeed recognises its own files.

use landspeed_record::units::EscapedText;
use serde::Serialize;

/// The beginning of the first comment of every file, by which landspeed recognises its own files.
const OURS: &str = "# Written by landspeed persist";

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ConfigFile {
    /// Absolute path.
    pub path: String,
    /// Whole contents.
    pub text: String,
    /// Permission bits.
    #[serde(skip)]
    pub mode: u32,
    /// Shell commands that apply the file without a reboot, as root.
    pub apply: Vec<String>,
    /// Shell commands that remove the file and restore the earlier settings, as far as commands can.
    pub remove: Vec<String>,
}

impl ConfigFile {
    /// Returns true if an existing file with the text `found` has the same settings. Comments are ignored, because they
    /// name the source.
    pub fn says_the_same(&self, found: &str) -> bool {
        settings_of(&self.text).eq(settings_of(found))
    }

    /// Returns the settings of an existing file with the text `found` that this file lacks, one line each.
    pub fn drops<'a>(&self, found: &'a str) -> Vec<&'a str> {
        let kept: Vec<&str> = settings_of(&self.text).collect();
        settings_of(found).filter(|line| !kept.contains(line)).collect()
    }
}

fn settings_of(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns true if landspeed wrote a file with this text.
pub fn is_ours(text: &str) -> bool {
    text.lines().take(2).any(|line| line.starts_with(OURS))
}

/// Returns the first lines of every file. Each line of `origin`, whatever it contains, becomes one comment line.
pub(super) fn heading(origin: &str) -> String {
    let origin: String = origin.lines().map(|line| format!("# {}\n", EscapedText::from(line))).collect();
    format!("{OURS}. Kept because they were measured to help:\n{origin}")
}
