//! Settings that are files of the kernel, and the ways in which these spell a value.

use crate::device::Sysfs;
use crate::kernel_file::KernelFile;
use crate::{Error, HostKnob, KnobLimits, KnobTarget};
use landspeed_record::factor::{MAX_CPU, join, parse_cpus, print_cpus, split};

/// The way in which a file of the kernel spells a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileEncoding {
    /// The spelling of the knob's domain.
    Plain,
    /// 0 and 1 for off and on.
    Bit,
    /// 0 and 1 for on and off, because the file states what is disabled.
    Disabled,
    Mask,
    /// A list of processors such as "0-3", with at least one.
    List,
}

impl FileEncoding {
    /// Converts the text of a file to the spelling of the knob's domain. Returns `None` for a text that could not be
    /// restored exactly.
    fn decode(self, text: &str) -> Option<String> {
        match (self, text) {
            (FileEncoding::Plain, _) => Some(text.to_owned()),
            (FileEncoding::Bit, "1") | (FileEncoding::Disabled, "0") => Some("on".into()),
            (FileEncoding::Bit, "0") | (FileEncoding::Disabled, "1") => Some("off".into()),
            (FileEncoding::Bit | FileEncoding::Disabled, _) => None,
            (FileEncoding::Mask, _) => mask_to_list(text),
            (FileEncoding::List, _) => parse_cpus(text).map(|cpus| print_cpus(&cpus)),
        }
    }

    fn encode(self, value: &str) -> Option<String> {
        match self {
            FileEncoding::Plain => Some(value.to_owned()),
            FileEncoding::Bit | FileEncoding::Disabled => {
                Some(u8::from((value == "on") == (self == FileEncoding::Bit)).to_string())
            }
            FileEncoding::Mask => list_to_mask(value),
            FileEncoding::List => Some(value.to_owned()).filter(|list| list != "none"),
        }
    }
}

/// Converts a bitmap of processors to a list such as "0-3". The kernel prints a bitmap (%*pb) as 32-bit words in
/// hexadecimal, highest first, joined by commas. Returns `None` for any other text.
fn mask_to_list(mask: &str) -> Option<String> {
    let mut cpus = Vec::new();
    for (n, word) in mask.split(',').rev().enumerate() {
        let bits = u32::from_str_radix(word, 16).ok()?;
        let first = u32::try_from(n).ok()? * 32;
        cpus.extend((0..32).filter(|bit| bits & (1 << bit) != 0).map(|bit| first + bit));
    }
    cpus.last().is_none_or(|last| *last <= MAX_CPU).then(|| print_cpus(&cpus))
}

/// Converts a list of processors to the hexadecimal mask that /sys accepts: words of 32 bits, highest first. Returns
/// `None` if `list` is no such list.
pub(crate) fn list_to_mask(list: &str) -> Option<String> {
    let cpus = parse_cpus(list)?;
    let mut words = vec![0u32; cpus.last().map_or(1, |last| *last as usize / 32 + 1)];
    for cpu in cpus {
        words[cpu as usize / 32] |= 1 << (cpu % 32);
    }
    Some(words.iter().rev().map(|word| format!("{word:x}")).collect::<Vec<_>>().join(","))
}

/// A setting in one file, or in one file of each member (queue, interrupt, processor).
pub(crate) struct FileSetting {
    knob: &'static str,
    encoding: FileEncoding,
    find: fn(&KnobTarget) -> Result<MemberFiles, Error>,
    obstacle: fn(&KnobTarget) -> Result<(), Error>,
    choices: fn() -> Vec<String>,
}

/// The files of a setting's members, in the order of the members. The paths are relative to the sysfs in the first
/// field, or absolute if that field is `None`.
pub(crate) struct MemberFiles(pub(crate) Option<Sysfs>, pub(crate) Vec<String>);

impl MemberFiles {
    pub(crate) fn one(path: &str) -> MemberFiles {
        MemberFiles(None, vec![path.to_owned()])
    }
}

impl FileSetting {
    /// Returns a setting whose value is in the files that `find` returns. If a target has no such files, `find` returns
    /// an error with the reason.
    pub(crate) const fn new(
        knob: &'static str,
        encoding: FileEncoding,
        find: fn(&KnobTarget) -> Result<MemberFiles, Error>,
    ) -> FileSetting {
        FileSetting { knob, encoding, find, obstacle: |_| Ok(()), choices: Vec::new }
    }

    /// Adds a condition for writing: [`HostKnob::can_write`] also returns the error of `obstacle`.
    pub(crate) const fn unless(self, obstacle: fn(&KnobTarget) -> Result<(), Error>) -> FileSetting {
        FileSetting { obstacle, ..self }
    }

    /// Sets the function that returns the values that this host offers.
    pub(crate) const fn offering(self, choices: fn() -> Vec<String>) -> FileSetting {
        FileSetting { choices, ..self }
    }

    fn each<T>(
        &self,
        MemberFiles(root, paths): &MemberFiles,
        mut work: impl FnMut(usize, KernelFile<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let file = |path| match root {
            Some(sysfs) => sysfs.file(self.knob, path),
            None => KernelFile::absolute(self.knob, path),
        };
        paths.iter().enumerate().map(|(n, path)| work(n, file(path))).collect()
    }
}

impl HostKnob for FileSetting {
    fn read(&self, target: &KnobTarget) -> Result<String, Error> {
        let values = self.each(&(self.find)(target)?, |_, file| {
            let text = file.read()?;
            let odd = || {
                let text = text.escape_default();
                Error::Unavailable(format!(
                    "{} holds '{text}', which could not be put back exactly",
                    file.path
                ))
            };
            self.encoding.decode(&text).ok_or_else(odd)
        })?;
        join(&values).ok_or_else(|| Error::Unavailable("it has no file here".into()))
    }

    fn write(&self, target: &KnobTarget, value: &str) -> Result<(), Error> {
        let members = (self.find)(target)?;
        let count = members.1.len();
        let wrong = || Error::value(self.knob, value, format!("one value, or {count} joined by ';'"));
        let texts = split(value, count).and_then(|values| {
            values.into_iter().map(|value| self.encoding.encode(value)).collect::<Option<Vec<_>>>()
        });
        let texts = texts.ok_or_else(wrong)?;
        self.each(&members, |n, file| file.write(&texts[n])).map(drop)
    }

    fn spelled(&self, value: &str) -> Option<String> {
        self.encoding.encode(value)
    }

    fn can_write(&self, target: &KnobTarget) -> Result<(), Error> {
        (self.obstacle)(target)?;
        self.each(&(self.find)(target)?, |_, file| file.writable()).map(drop)
    }

    fn limits(&self, target: &KnobTarget) -> Result<KnobLimits, Error> {
        let members = u32::try_from((self.find)(target)?.1.len()).unwrap_or(u32::MAX);
        Ok(KnobLimits { choices: (self.choices)(), members, ..KnobLimits::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_lists_are_the_same_sets() {
        let pairs = [
            ("0", "none"),
            ("3", "0-1"),
            ("1,00000000", "32"),
            ("ff,00000001", "0,32-39"),
            ("80000000", "31"),
        ];
        for (mask, list) in pairs {
            assert_eq!(mask_to_list(mask).as_deref(), Some(list));
            assert_eq!(mask_to_list(&list_to_mask(list).unwrap()).as_deref(), Some(list));
        }
        assert_eq!(list_to_mask("0,33").as_deref(), Some("2,1"), "words of 32 bits");
        assert_eq!(mask_to_list("zz"), None);
        assert_eq!(mask_to_list(""), None);
        assert_eq!(list_to_mask("3-1"), None);
    }
}
