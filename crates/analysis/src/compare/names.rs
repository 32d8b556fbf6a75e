//! The titles of protocols.

use landspeed_record::Study;

/// The titles of the paper's protocols, and of the protocols in older records, in which studies have no titles.
const TITLES: [(&str, &str); 14] = [
    ("reno", "Reno"),
    ("highspeed", "HSTCP"),
    ("htcp", "H-TCP"),
    ("scalable", "Scalable"),
    ("fast", "FAST"),
    ("ltcp", "LTCP"),
    ("hstcp_lp", "HSTCP-LP"),
    ("bic", "BIC"),
    ("cubic", "CUBIC"),
    ("bbr", "BBR"),
    ("westwood", "Westwood+"),
    ("africa", "TCP-Africa"),
    ("udt", "UDT"),
    ("quic", "QUIC"),
];

/// Returns the title of a protocol in a study, short enough for a table: the recorded one, the usual one, or its name.
pub fn title<'a>(study: &'a Study, protocol: &'a str) -> &'a str {
    study.titles.get(protocol).map_or_else(|| usual(protocol), String::as_str)
}

/// Returns the title of one of the paper's protocols; its own name for any other.
pub(super) fn usual(protocol: &str) -> &str {
    TITLES.iter().find(|(name, _)| *name == protocol).map_or(protocol, |(_, title)| title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_names_its_protocols() {
        let titles = [("veno".to_owned(), "Veno".to_owned())].into();
        let study = Study { titles, ..Study::default() };
        assert_eq!(["htcp", "veno", "bbr+x=1"].map(|name| title(&study, name)), ["H-TCP", "Veno", "bbr+x=1"]);
    }
}
