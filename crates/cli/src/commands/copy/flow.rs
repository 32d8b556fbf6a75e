//! The flows of a copy: their transport, which encrypts, and their settings.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use landspeed_engine::{ComparisonDone, Pair, PortRange};
use landspeed_record::factor::FactorTable;
use landspeed_record::{CopyComparison, Settings};
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{TRANSPORTS, Transport, encrypted, is_tcp};
use schemars::JsonSchema;
use serde::Serialize;

use crate::groups::choices;
use crate::hosts::parse;
use crate::output::usage;

/// The default settings of a copy's flows, if the transport has them. The end of a message is sent without waiting for
/// the acknowledgement of earlier data, because the other end may have nothing else to do.
const USUAL: [(&str, &str); 2] = [("tls-cipher", "auto"), ("nodelay", "on")];

/// The transports that a copy over TCP may try against losses.
const OTHERS: [&str; 1] = ["udt"];

/// The options of a copy's flows.
#[derive(Debug, Clone, Args)]
pub(crate) struct CopyFlowArgs {
    /// Carry the data by this transport, always encrypted
    ///
    /// quic encrypts by itself; the others carry TLS 1.3. If neither host reaches the other, only tcp and mptcp are
    /// relayed. The default is tcp, and a long copy that losses limit may find that udt is faster (--choose).
    #[arg(
        long, value_name = "NAME", value_parser = streams(), conflicts_with = "clean", help_heading = "Flow"
    )]
    transport: Option<String>,
    /// Set each flow at both ends, such as socket-congestion=bbr
    ///
    /// `landspeed knobs` lists the settings. The result names those that a socket did not accept as requested. A
    /// different congestion control than requested ends the copy.
    #[arg(long, value_name = "NAME=VALUE,...", conflicts_with = "clean", help_heading = "Flow")]
    set: Vec<String>,
    /// Take data ports from this range at the host that accepts the flows, which its firewall must leave open
    ///
    /// The first free port carries the proof of the path, by TCP. A port after it carries the flows of --transport, by
    /// TCP or UDP. A range of 4 ports serves every transport.
    #[arg(
        long, value_name = "FIRST-LAST", value_parser = range, conflicts_with = "clean", help_heading = "Path"
    )]
    ports: Option<[u16; 2]>,
}

/// Parses a range of ports: "5000-5010".
fn range(text: &str) -> Result<[u16; 2], String> {
    let ends =
        text.split_once('-').map(|(first, last)| [first, last].map(|end| end.parse::<u16>().unwrap_or(0)));
    let ends = ends.filter(|[first, last]| *first > 0 && first <= last);
    ends.ok_or_else(|| "expected FIRST-LAST, as in 5000-5010".to_owned())
}

/// Returns the parser of the names of the transports whose streams can be encrypted.
fn streams() -> PossibleValuesParser {
    let carried = |name: &'static str| Some((name, encrypted(name)?.about().line));
    choices(TRANSPORTS.iter().filter_map(|transport| carried(transport.name())))
}

/// The chosen transport and settings of the flows.
pub(super) struct CopyFlow {
    transport: &'static dyn Transport,
    /// The settings that differ from the transport's defaults, and the name of the transport.
    pub(super) settings: Settings,
    /// The range of ports for the flows; `None` for any port.
    pub(super) ports: Option<PortRange>,
    /// True if the user chose any of them.
    is_chosen: bool,
    /// True if the user named the transport, any setting or the ports.
    is_named: bool,
}

impl CopyFlowArgs {
    /// Returns the arguments that choose the same flows again.
    pub(super) fn again(&self) -> Vec<String> {
        let transport = ["--transport".to_owned(), self.transport().to_owned()];
        let set = self.set.iter().flat_map(|set| ["--set".to_owned(), set.clone()]);
        let ports = self.ports.iter().map(|[first, last]| format!("--ports={first}-{last}"));
        transport.into_iter().chain(set).chain(ports).collect()
    }

    fn transport(&self) -> &str {
        self.transport.as_deref().unwrap_or(TRANSPORT.default)
    }

    /// Returns the transport and the settings of the flows.
    pub(super) fn chosen(&self) -> Result<CopyFlow> {
        let transport = encrypted(self.transport()).context("clap takes the names of the table")?;
        // The other settings that all transports have concern the calls of a measurement.
        let table = FactorTable::of(transport.factors());
        let mut settings = usual(transport, &table);
        settings.extend(parse(&self.set, &table)?);
        let is_chosen = self.transport() != TRANSPORT.default || !self.set.is_empty();
        let is_named = self.transport.is_some() || !self.set.is_empty() || self.ports.is_some();
        Ok(CopyFlow { transport, settings, ports: self.range(transport)?, is_chosen, is_named })
    }

    fn range(&self, transport: &dyn Transport) -> Result<Option<PortRange>> {
        let Some([first, last]) = self.ports else { return Ok(None) };
        let range = PortRange { first, last, transport: transport.name() };
        match range.of_proofs() {
            Some(_) => Ok(Some(range)),
            None => Err(usage(format!(
                "--ports {first}-{last} has too few: over {} a copy needs {} in a row",
                self.transport(),
                range.needed()
            ))),
        }
    }
}

/// Returns the default settings of a copy's flows over a transport.
fn usual(transport: &dyn Transport, table: &FactorTable<'_>) -> Settings {
    let usual = USUAL.iter().filter(|(name, _)| table.find(name).is_ok());
    let usual = usual.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    usual.chain([(TRANSPORT.name.to_owned(), transport.name().to_owned())]).collect()
}

impl CopyFlow {
    /// Returns the transports that a copy may try instead of its own, with the settings of their flows. Returns none if
    /// the user named anything about the flows, because that may apply to this transport only.
    pub(super) fn others(&self) -> BTreeMap<String, Settings> {
        let may_try = OTHERS.iter().filter(|_| !self.is_named);
        let with_settings = |name: &&str| {
            let transport = encrypted(name)?;
            let usual = usual(transport, &FactorTable::of(transport.factors()));
            Some(((*name).to_owned(), landspeed_engine::flow(transport, &usual).ok()?))
        };
        may_try.filter_map(with_settings).collect()
    }

    /// Returns all settings of a flow, with the defaults of the settings that were not chosen.
    pub(super) fn all(&self) -> Result<Settings> {
        Ok(landspeed_engine::flow(self.transport, &self.settings)?)
    }

    /// Returns an error if these flows cannot be opened between the hosts of a pair.
    pub(super) fn check(&self, pair: &Pair<'_>) -> Result<()> {
        let name = self.transport.name();
        if pair.is_relayed() && !is_tcp(name) {
            bail!(
                "data pass through this machine, which relays TCP: leave --transport out, or let one host in at the other"
            );
        }
        let [a, b] = [pair.a, pair.b].map(|host| &host.facts.boot_id);
        if self.transport.encrypts() == Some("unix") && !a.is_empty() && !b.is_empty() && a != b {
            let (a, b) = (&pair.a.name, &pair.b.name);
            bail!(
                "AF_UNIX joins processes of one machine, and {a} and {b} are two: take --transport tcp, mptcp, udt or quic"
            );
        }
        Ok(())
    }

    /// Returns the line about the flows; `None` if the user chose none of their options.
    pub(super) fn line(&self, flows: u32) -> Option<String> {
        let shown: Vec<String> =
            self.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.is_chosen.then(|| format!("flows: {flows}, each with {}", shown.join(", ")))
    }
}

/// The flows of a comparison, which are like those of the copy.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ComparedFlow {
    /// The transport of each flow, and its settings that differ from the transport's defaults.
    flow: Settings,
    /// The number of flows.
    flows: u32,
    /// Settings of the flows that the kernels did not accept as requested: the host and the socket's value, one line
    /// each.
    not_as_asked: Vec<String>,
    /// The line about the flows, if the user chose any of their options.
    #[serde(skip)]
    conditions: Option<String>,
}

impl ComparedFlow {
    /// Returns the result of a comparison over these flows, and the part of it that describes the flows.
    pub(super) fn of(flow: &CopyFlow, flows: u32, done: ComparisonDone) -> (CopyComparison, Self) {
        let (settings, conditions) = (flow.settings.clone(), flow.line(flows));
        let ComparisonDone { outcome, not_as_asked } = done;
        (outcome, ComparedFlow { flow: settings, flows, not_as_asked, conditions })
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.conditions.iter().cloned().chain(not_as_asked(&self.not_as_asked))
    }
}

/// Returns the lines about settings that a socket did not accept as requested.
pub(super) fn not_as_asked(lines: &[String]) -> impl Iterator<Item = String> + '_ {
    lines.iter().map(|line| format!("not as asked: {}", landspeed_report::safe(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(transport: &str, set: &[&str]) -> Result<CopyFlow> {
        let set = set.iter().map(|text| (*text).to_owned()).collect();
        CopyFlowArgs { transport: Some(transport.to_owned()), set, ports: None }.chosen()
    }

    #[test]
    fn a_copy_whose_flows_the_user_has_not_named_may_try_udt() {
        let args = || CopyFlowArgs { transport: None, set: Vec::new(), ports: None };
        let others = |args: CopyFlowArgs| args.chosen().unwrap().others();
        let udt = others(args()).remove("udt").expect("it may try it");
        assert_eq!((udt["transport"].as_str(), udt["tls-cipher"].as_str()), ("tls-udt", "auto"));
        assert_eq!(args().again()[..2], ["--transport", "tcp"]);
        for named in [
            CopyFlowArgs { transport: Some("tcp".to_owned()), ..args() },
            CopyFlowArgs { set: vec!["rcvbuf=1M".to_owned()], ..args() },
            CopyFlowArgs { ports: Some([5000, 5003]), ..args() },
        ] {
            assert!(others(named).is_empty());
        }
    }

    #[test]
    fn flows_are_encrypted_over_every_transport() {
        for (name, carried) in [
            ("tcp", "tls"),
            ("mptcp", "tls-mptcp"),
            ("udt", "tls-udt"),
            ("unix", "tls-unix"),
            ("quic", "quic"),
        ] {
            let flow = chosen(name, &[]).unwrap();
            assert_eq!(flow.settings["transport"], carried);
            let all = flow.all().unwrap();
            assert_eq!(all.contains_key("tls-cipher"), name != "quic", "{name}");
            assert!(all.get("nodelay").is_none_or(|nodelay| nodelay == "on"), "{name}");
        }
    }

    #[test]
    fn what_a_flow_of_a_copy_does_not_have_is_refused_by_name() {
        let flow = chosen("tcp", &["socket-congestion=reno,rcvbuf=1M", "nodelay=off"]).unwrap();
        assert_eq!((flow.settings["rcvbuf"].as_str(), flow.settings["nodelay"].as_str()), ("1048576", "off"));
        assert_eq!(
            flow.line(4).as_deref(),
            Some(
                "flows: 4, each with nodelay=off, rcvbuf=1048576, socket-congestion=reno, tls-cipher=auto, transport=tls"
            )
        );
        assert_eq!(chosen("tcp", &[]).unwrap().line(4), None);
        for (transport, set) in [
            ("tcp", "write-size=1M"),
            ("tcp", "transport=udp"),
            ("tcp", "udt-buffer=1M"),
            ("quic", "nodelay=on"),
        ] {
            let error = chosen(transport, &[set]).err().expect("it is refused").to_string();
            let name = set.split('=').next().unwrap();
            assert!(error.contains(&format!("{name} is not a setting of this flow")), "{error}");
        }
        assert!(chosen("tcp", &["nodelay=perhaps"]).is_err() && chosen("tcp", &["warp=1"]).is_err());
    }

    #[test]
    fn a_range_of_ports_is_large_enough_for_the_transport() {
        for text in ["5000", "5000-", "0-5000", "5001-5000", "5000-70000", "a-b", ""] {
            assert!(range(text).is_err(), "{text}");
        }
        // The help has this example.
        assert_eq!(range("5000-5003"), Ok([5000, 5003]));
        for name in ["tcp", "mptcp", "udt", "unix", "quic"] {
            let args = |ports| CopyFlowArgs {
                transport: Some(name.to_owned()),
                set: Vec::new(),
                ports: Some(ports),
            };
            assert!(args([5000, 5003]).chosen().unwrap().ports.is_some(), "{name}");
            let error = args([5000, 5000]).chosen().err().expect("one is too few").to_string();
            assert!(error.contains("--ports 5000-5000 has too few"), "{error}");
        }
    }
}
