//! The links of the study, and the settings that a copy over them can have.

use landspeed_record::CopyArm;

/// What a link is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkQuestion {
    /// Its settings are equal: is one kept?
    Equal,
    /// Another setting is better than the default: is it kept, and when?
    Better,
    /// The default is best, and others are far worse: what do their turns cost?
    Default,
}

/// A link of the lab.
pub(super) struct ChoiceLink {
    pub(super) name: &'static str,
    /// What it is, in words.
    pub(super) about: &'static str,
    pub(super) lab: &'static str,
    /// Its rate in megabits per second.
    pub(super) rate: u64,
    /// The congestion control that the source's host has as its default.
    pub(super) control: &'static str,
    /// A sysctl of the target's host.
    pub(super) target: Option<&'static str>,
    pub(super) asks: LinkQuestion,
    /// The number of copies that choose.
    pub(super) copies: u32,
}

pub(super) static LINKS: [ChoiceLink; 4] = [
    ChoiceLink {
        name: "equal",
        about: "100 Mb/s, 20 ms, a queue of two bandwidth-delay products, which any setting fills",
        lab: "lab:wan:rate=100M,rtt=20ms,queue=2bdp",
        rate: 100,
        control: "cubic",
        target: None,
        asks: LinkQuestion::Equal,
        copies: 40,
    },
    ChoiceLink {
        name: "loss",
        about: "100 Mb/s, 40 ms, one packet of 2,000 is lost",
        lab: "lab:wan:rate=100M,rtt=40ms,loss=0.05%,back.loss=0%",
        rate: 100,
        control: "cubic",
        target: None,
        asks: LinkQuestion::Better,
        copies: 20,
    },
    ChoiceLink {
        name: "window",
        about: "100 Mb/s, 40 ms, the target's receive buffers have 128 KiB",
        lab: "lab:wan:rate=100M,rtt=40ms",
        rate: 100,
        control: "cubic",
        target: Some("net.ipv4.tcp_rmem=4096 65536 131072"),
        asks: LinkQuestion::Better,
        copies: 20,
    },
    ChoiceLink {
        name: "default",
        about: "the link with losses, over which the host uses BBR already",
        lab: "lab:wan:rate=100M,rtt=40ms,loss=0.05%,back.loss=0%",
        rate: 100,
        control: "bbr",
        target: None,
        asks: LinkQuestion::Default,
        copies: 20,
    },
];

/// The number of flows of the default.
const USUAL_FLOWS: u32 = 4;

/// Returns the twelve settings.
pub(super) fn settings() -> Vec<CopyArm> {
    let of_control = |control: &'static str| {
        let setting = move |flows| CopyArm { flows, control: Some(control.to_owned()), ..CopyArm::default() };
        [1, 2, USUAL_FLOWS, 8].into_iter().map(setting)
    };
    ["cubic", "bbr", "reno"].into_iter().flat_map(of_control).collect()
}

impl ChoiceLink {
    /// Returns the setting with which a copy over this link begins.
    pub(super) fn default_setting(&self) -> CopyArm {
        CopyArm { flows: USUAL_FLOWS, control: Some(self.control.to_owned()), ..CopyArm::default() }
    }

    /// Returns the content, in MiB, that fills the link for this time.
    pub(super) fn mib(&self, seconds: u64) -> u64 {
        (self.rate * 1_000_000 * seconds / 8) >> 20
    }
}

/// Returns a setting in words: "8 flows, bbr".
pub(super) fn words(arm: &CopyArm) -> String {
    let control = arm.control.as_deref().unwrap_or("the host's control");
    let direct = if arm.direct { ", direct writes" } else { "" };
    format!("{} flows, {control}{direct}", arm.flows)
}

#[cfg(test)]
mod tests {
    use landspeed_lab::topology;

    use super::*;

    #[test]
    fn every_link_is_one_that_the_lab_can_be() {
        for link in &LINKS {
            assert!(topology::path(&[link.lab.to_owned()]).unwrap().is_some(), "{}", link.name);
            assert!(settings().contains(&link.default_setting()), "{}", link.name);
            assert_eq!(LINKS.iter().filter(|other| other.name == link.name).count(), 1, "{}", link.name);
        }
    }

    #[test]
    fn there_are_as_many_copies_and_settings_as_the_promises_name() {
        let copies =
            |asks| LINKS.iter().filter(|link| link.asks == asks).map(|link| link.copies).sum::<u32>();
        let of = [LinkQuestion::Equal, LinkQuestion::Better, LinkQuestion::Default].map(copies);
        assert_eq!((of, settings().len()), ([40, 40, 20], 12));
        assert_eq!(LINKS[0].mib(300), 3_576);
    }
}
