//! Makes a run of the study.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use landspeed_record::units::BitRate;
use landspeed_record::{CopyArm, CopyChoice};
use serde::Deserialize;

use super::Options;
use super::links::ChoiceLink;
use super::runs::{ChoiceRun, ChoiceWork};
use crate::copy::allowed::AllowedControls;
use crate::copy::site::{Site, Sshd, shell};
use crate::copy::turns::printed;

/// The number of attempts to copy over a link that is the path that it is to be.
const TRIES: u32 = 3;
/// The folders of the content of short and of long copies.
const SHORT: &str = "short";
const LONG: &str = "long";

/// What `landspeed copy --json` prints, as far as it is read here.
#[derive(Debug, Deserialize)]
struct ChoiceDocument {
    goodput_bps: BitRate,
    choice: CopyChoice,
}

/// The hosts at the ends of a link, with what is copied.
pub(super) struct LinkSite<'a> {
    site: Site,
    pub(super) link: &'a ChoiceLink,
    options: &'a Options,
    _allowed: AllowedControls,
}

impl<'a> LinkSite<'a> {
    /// Makes the link, or returns why that cannot be done here.
    pub(super) fn open(
        link: &'a ChoiceLink,
        options: &'a Options,
        landspeed: &Path,
    ) -> Result<Result<LinkSite<'a>, String>> {
        let allowed = match AllowedControls::with(link.control) {
            Ok(allowed) => allowed,
            Err(error) => return Ok(Err(format!("a namespace may not use {}: {error:#}", link.control))),
        };
        let site = Site::over(&options.folder, landspeed, link.lab)?;
        let site = LinkSite { site, link, options, _allowed: allowed };
        site.set(0, &format!("net.ipv4.tcp_congestion_control={}", link.control))?;
        link.target.map_or(Ok(()), |sysctl| site.set(1, sysctl))?;
        site.fill(SHORT, options.look_seconds)?;
        site.fill(LONG, options.seconds)?;
        Ok(Ok(site))
    }

    fn set(&self, end: usize, sysctl: &str) -> Result<()> {
        shell(&format!("ip netns exec {} sysctl -qw '{sysctl}'", self.site.namespace(end)))
    }

    /// Makes the content that fills the link for this time.
    fn fill(&self, name: &str, seconds: u64) -> Result<()> {
        let folder = self.site.source().join(name);
        fs::create_dir(&folder)?;
        self.site.fill(self.link.mib(seconds), 0)?;
        // It was made beside the folder.
        Ok(fs::rename(self.site.source().join("large"), folder.join("large"))?)
    }

    pub(super) fn start_sshd(&self) -> Result<Sshd> {
        self.site.start_sshd()
    }

    /// Copies once. A copy over a link that was another path than it was to be does not count, and is made again.
    pub(super) fn made(&self, work: ChoiceWork, number: u32, best: Option<CopyArm>) -> Result<ChoiceRun> {
        let (content, seconds) = match work {
            ChoiceWork::Look(_) => (SHORT, self.options.look_seconds),
            ChoiceWork::Beside | ChoiceWork::Chooses => (LONG, self.options.seconds),
        };
        let setting = match work {
            ChoiceWork::Look(setting) => super::links::settings().get(setting as usize).cloned(),
            ChoiceWork::Beside => best,
            ChoiceWork::Chooses => None,
        };
        let command = command(setting.as_ref(), content);
        for _ in 0..TRIES {
            let ChoiceDocument { goodput_bps, choice } = self.copied(&command, content)?;
            let Some(why) = self.site.unfit().into_iter().next() else {
                let link = self.link.name.to_owned();
                let kept = choice.kept;
                return Ok(ChoiceRun { link, seconds, work, number, goodput_bps: goodput_bps.0, kept });
            };
            eprintln!("{}: a copy does not count: {why}", self.link.name);
        }
        bail!("{}: the link was not the path that it was to be, {TRIES} times in a row", self.link.name)
    }

    /// Copies into an empty folder, and compares what has arrived.
    fn copied(&self, command: &str, content: &str) -> Result<ChoiceDocument> {
        self.site.empty_target()?;
        self.site.mark();
        let said = printed(&self.site, command)?;
        let [source, target] = [self.site.source().join(content), self.site.target()];
        shell(&format!("diff -r {} {} > /dev/null", source.display(), target.display()))
            .context("the copy differs from its source")?;
        serde_json::from_slice(&said).context("read what the copy prints")
    }
}

/// Returns the command of a copy that keeps a setting, or that chooses. The best of twelve settings is known, all of
/// TCP: so no copy tries another transport.
fn command(setting: Option<&CopyArm>, content: &str) -> String {
    let fixed = setting.map_or_else(String::new, |arm| {
        let control = arm.control.as_ref().map(|control| format!(" --set socket-congestion={control}"));
        format!(" --choose never --flows {}{}", arm.flows, control.unwrap_or_default())
    });
    let fixed = format!(" --transport tcp{fixed}");
    format!("landspeed copy --no-record --json{fixed} SSH_OPTIONS FROM/{content}/ HOST:TO")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_chooses_unless_it_has_a_setting() {
        let arm = CopyArm { flows: 8, control: Some("bbr".to_owned()), ..CopyArm::default() };
        assert_eq!(
            command(Some(&arm), LONG),
            "landspeed copy --no-record --json --transport tcp --choose never --flows 8 --set socket-congestion=bbr \
             SSH_OPTIONS FROM/long/ HOST:TO"
        );
        assert_eq!(
            command(None, LONG),
            "landspeed copy --no-record --json --transport tcp SSH_OPTIONS FROM/long/ HOST:TO"
        );
    }

    #[test]
    fn a_copy_says_what_it_kept() {
        let said =
            br#"{"goodput_bps": 9e7, "choice": {"kept": {"flows": 8, "control": null}, "untried": ""}}"#;
        let document: ChoiceDocument = serde_json::from_slice(said).unwrap();
        assert_eq!(
            (document.goodput_bps, document.choice.kept.map(|arm| arm.flows)),
            (BitRate(9e7), Some(8))
        );
    }
}
