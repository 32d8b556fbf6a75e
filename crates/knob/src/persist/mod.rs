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
mod change;
mod check;
mod config_file;
mod confirmed;
mod destination;
mod link_file;
mod script;
mod sysctl;

use landspeed_record::factor::FactorTable;
use landspeed_record::{Cell, LinkFacts, Side};

use crate::{PersistMethod, SystemSetting};
pub(crate) use change::shown;
pub use change::{KeptChange, PersistError, UnpersistedSetting, changes};
use check::CheckedLink;
pub use config_file::{ConfigFile, is_ours};
pub use confirmed::{KnobNeeds, confirmed};
use destination::PersistDestination;
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

#[cfg(test)]
mod tests;
