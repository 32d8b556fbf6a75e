//! The names of protocols in the literature.

/// The name of a protocol as a contestant, and in the literature.
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

/// Returns the name of a protocol in the literature, short enough for a table; its own name where none is known.
pub fn title(protocol: &str) -> &str {
    TITLES.iter().find(|(name, _)| *name == protocol).map_or(protocol, |(_, title)| title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_of_the_host_keeps_its_name() {
        assert_eq!((title("htcp"), title("vegas")), ("H-TCP", "vegas"));
    }
}
