//! What a result of the battery is of: a program, and the kernel of the guests.

use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use landspeed_lab::topology::vm;
use serde::{Deserialize, Serialize};

use super::command::succeeded;

/// The program and the kernel that a result is of. What one passed says nothing of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subject {
    /// The program's version.
    pub(super) version: String,
    /// The digest of the program and of the script that reads settings.
    pub(super) digest: String,
    /// The kernel's release.
    pub(super) release: String,
}

impl Subject {
    /// Reads what the next results on this kernel are of.
    pub(super) fn read(scripts: &Path, landspeed: &Path, kernel: &str) -> Result<Subject> {
        let release = vm::folder().join(kernel).join("release");
        let release = fs::read_to_string(release).context("the mirror does not have this kernel")?;
        Ok(Subject {
            version: version(landspeed)?,
            digest: digest(&[landspeed, &scripts.join("snapshot")])?,
            release: release.trim().to_owned(),
        })
    }

    /// Returns the whole subject in a line.
    pub(super) fn key(&self) -> String {
        format!("{} {} on {}", self.version, self.digest, self.release)
    }
}

/// Has the first digits of the digest, for people.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:.8} on {}", self.version, self.digest, self.release)
    }
}

/// Returns 0.1.0 of a program that calls itself "landspeed 0.1.0 (protocol 1)".
fn version(landspeed: &Path) -> Result<String> {
    let output = succeeded(Command::new(landspeed).arg("--version").output().context("run the program")?)?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.split_whitespace().nth(1).map(str::to_owned).context("the program has no version")
}

/// Returns a digest of all these files.
fn digest(files: &[&Path]) -> Result<String> {
    let mut digest = DefaultHasher::new();
    for file in files {
        digest.write(&fs::read(file).with_context(|| format!("read {}", file.display()))?);
    }
    Ok(format!("{:016x}", digest.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_changed_has_another_digest() {
        let folder = tempfile::tempdir().unwrap();
        let [program, script] = ["landspeed", "snapshot"].map(|name| folder.path().join(name));
        let of = |program_text: &str, script_text: &str| {
            fs::write(&program, program_text).unwrap();
            fs::write(&script, script_text).unwrap();
            digest(&[&program, &script]).unwrap()
        };
        let before = of("one", "sysctl -a");
        assert_eq!((before.len(), &of("one", "sysctl -a")), (16, &before));
        assert!(of("two", "sysctl -a") != before && of("one", "tc qdisc") != before);
        assert!(digest(&[&folder.path().join("none")]).is_err());
    }

    #[test]
    fn people_read_the_first_digits_of_the_digest() {
        let subject = Subject {
            version: "0.1.0".into(),
            digest: "0123456789abcdef".into(),
            release: "6.12.117".into(),
        };
        assert_eq!(subject.to_string(), "0.1.0 01234567 on 6.12.117");
        assert_eq!(subject.key(), "0.1.0 0123456789abcdef on 6.12.117");
    }
}
