//! Writing kept settings as files that a distribution applies at boot.
//!
//! | setting | file | applied by |
//! |---|---|---|
//! | a sysctl | sysctl.d(5) | systemd-sysctl, or `sysctl --system` elsewhere |
//! | of a link, as far as systemd.link(5) has it | a .link file | udev, when the device appears |
//! | the rest of the system | a script and a unit that runs it | systemd, when the device appears |
//! | of a flow | none: text for the application | the application |
//!
//! Values come from a record, which may come from anywhere, and end up in files that root's programs read. Before a
//! value is written, it is checked to be of the kind that its setting requires. A value of another kind is an error.

mod application;
mod check;
mod confirmed;
mod link_file;
mod script;
mod sysctl;

use landspeed_record::factor::FactorTable;
use landspeed_record::units::EscapedText;
use landspeed_record::{Cell, LinkFacts, Settings, Side};
use serde::Serialize;

use crate::{PersistMethod, SystemSetting};
use check::CheckedLink;
pub use confirmed::{KnobNeeds, confirmed};
use link_file::LinkLine;

/// The settings to persist: one host's part of a run.
#[derive(Debug, Clone, Copy)]
pub struct PersistInput<'a> {
    /// The setting before the run.
    pub start: &'a Cell,
    /// The setting at the end of the run.
    pub end: &'a Cell,
    /// The host whose settings are written.
    pub side: Side,
    /// The host's link on the path, for settings of devices; `None` if the record does not name it.
    pub link: Option<&'a LinkFacts>,
    /// The source of the settings (record and command), for the comments at the head of the files. It may have several
    /// lines.
    pub origin: &'a str,
}

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

/// A kept setting that no file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct UnpersistedSetting {
    /// Name of the knob.
    pub knob: String,
    /// The reason, and what to do instead.
    pub why: String,
}

/// The result of [`persist`]. All text is safe to print.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersistPlan {
    /// Files to write, in the order in which they take effect.
    pub files: Vec<ConfigFile>,
    /// Settings for the application, as text for people; empty if there are none.
    pub application: String,
    /// Settings that no file holds.
    pub left_out: Vec<UnpersistedSetting>,
}

/// The reason why the settings of a record cannot become files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PersistError {
    /// A value does not have the kind that its setting requires.
    #[error(
        "the record sets {knob} to '{value}', which is not {expected}; nothing was written: check where the record comes from"
    )]
    Value {
        /// The knob, escaped.
        knob: String,
        /// The value, escaped.
        value: String,
        /// The kind of value that is required.
        expected: &'static str,
    },
    /// The link's name cannot be part of a file.
    #[error(
        "the record names the link '{0}', which no interface can be called; nothing was written: check where the record comes from"
    )]
    Link(String),
}

/// A setting that was kept.
#[derive(Debug, Clone, Copy)]
pub struct KeptChange<'a> {
    /// Name of the knob or of the flow's setting.
    pub knob: &'a str,
    /// The value before the run; `None` if the record does not have it.
    pub from: Option<&'a str>,
    /// The kept value.
    pub to: &'a str,
}

impl KeptChange<'_> {
    fn wrong(&self, expected: &'static str) -> PersistError {
        PersistError::Value { knob: shown(self.knob), value: shown(self.to), expected }
    }
}

/// Returns the files that hold the kept settings of one host, and the settings that no file can hold. `table` gives the
/// way in which each setting is persisted. The name of a sysctl comes from its knob.
///
/// # Errors
/// Returns an error, and no file at all, if a value or a name does not have its required form.
pub fn persist(kept: &PersistInput<'_>, table: &FactorTable) -> Result<PersistPlan, PersistError> {
    let device = kept.link.map(CheckedLink::new).transpose()?;
    let mut done = PersistPlan::default();
    let (mut sysctls, mut of_link, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes(kept.start.host(kept.side), kept.end.host(kept.side)) {
        let (ways, system) =
            table.find(change.knob).map_or((&[][..], SystemSetting::Own), |f| (f.persist, f.system));
        if let SystemSetting::Sysctl(key) = system {
            sysctls.push(sysctl::line(&change, key)?);
            continue;
        }
        match destination(&change, ways, system, device.as_ref().map(|device| device.name))? {
            PersistDestination::Link(line) => of_link.push(line),
            PersistDestination::Command(command) => commands.push(command),
            PersistDestination::None(why) => {
                done.left_out.push(UnpersistedSetting { knob: shown(change.knob), why: why.into() })
            }
        }
    }
    let origin = kept.origin;
    done.files.extend(sysctl::file(&sysctls, origin));
    match &device {
        Some(device) => done.files.extend(link_file::file(&of_link, device, origin)),
        None => done.left_out.extend(of_link.iter().map(LinkLine::without_link)),
    }
    done.files.extend(script::files(&commands, device.as_ref(), origin));
    done.application = application::text(changes(&kept.start.flow, &kept.end.flow), table)?;
    Ok(done)
}

enum PersistDestination {
    Link(LinkLine),
    /// In a script, as these lines.
    Command(String),
    /// In no file, for this reason.
    None(&'static str),
}

/// Returns the place for a change: the first of `ways` that can hold its value, or else the script.
fn destination(
    change: &KeptChange<'_>,
    ways: &[PersistMethod],
    system: SystemSetting,
    device: Option<&str>,
) -> Result<PersistDestination, PersistError> {
    for way in ways {
        if let PersistMethod::Link(keys, spelling, since) = *way
            && let Some(line) = link_file::line(change, keys, spelling, since)?
        {
            return Ok(PersistDestination::Link(line));
        }
    }
    script::lines(change, system, device)
}

/// Returns the settings of `end` that differ from `start`.
pub fn changes<'a>(start: &'a Settings, end: &'a Settings) -> impl Iterator<Item = KeptChange<'a>> {
    end.iter().filter_map(|(knob, to)| {
        let from = start.get(knob).map(String::as_str);
        (from != Some(to)).then_some(KeptChange { knob, from, to })
    })
}

/// Returns text of a host or a record for use in a sentence: escaped and cut to 60 characters.
pub(crate) fn shown(text: &str) -> String {
    EscapedText::from(text).cut(60)
}

/// The beginning of the first comment of every file, by which landspeed recognises its own files.
const OURS: &str = "# Written by landspeed persist";

/// Returns the first lines of every file. Each line of `origin`, whatever it contains, becomes one comment line.
fn heading(origin: &str) -> String {
    let origin: String = origin.lines().map(|line| format!("# {}\n", EscapedText::from(line))).collect();
    format!("{OURS}. Kept because they were measured to help:\n{origin}")
}

#[cfg(test)]
mod tests;
