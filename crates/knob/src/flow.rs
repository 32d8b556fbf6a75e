//! The flow's knobs: fields of [`FlowSettings`] by name.

use landspeed_record::{FlowSettings, Settings};

use crate::table::{all, find};
use crate::{Error, Turn, check};

/// The flow settings that `settings` stand for; knobs that are not named keep their default.
///
/// # Errors
/// For a knob that is unknown or no flow's, and a value outside its domain.
pub fn flow_settings(settings: &Settings) -> Result<FlowSettings, Error> {
    let mut flow = FlowSettings::default();
    for (name, value) in settings {
        check(name, value)?;
        match find(name)?.turn {
            Turn::Flow { set, .. } => set(&mut flow, value)?,
            Turn::Host(_) => {
                return Err(Error::Value {
                    knob: name.clone(),
                    value: value.clone(),
                    expected: "a knob of the flow; this one is a host's".into(),
                });
            }
        }
    }
    Ok(flow)
}

/// Every knob of the flow with its value.
pub fn flow_cell(flow: &FlowSettings) -> Settings {
    all()
        .filter_map(|knob| match knob.turn {
            Turn::Flow { get, .. } => Some((knob.row.name.to_owned(), get(flow))),
            Turn::Host(_) => None,
        })
        .collect()
}

/// A value of the domain as a number; [`check`] has seen it before.
pub(crate) fn number<T: TryFrom<u64>>(knob: &str, value: &str) -> Result<T, Error> {
    value.parse::<u64>().ok().and_then(|n| T::try_from(n).ok()).ok_or_else(|| Error::Value {
        knob: knob.into(),
        value: value.into(),
        expected: "a smaller whole number".into(),
    })
}

#[cfg(test)]
mod tests {
    use landspeed_record::Placement;
    use landspeed_units::{BitRate, Bytes};

    use super::*;

    #[test]
    fn every_field_survives_the_way_through_a_cell() {
        let flow = FlowSettings {
            flows: 4,
            write_bytes: Bytes(8192),
            read_bytes: Bytes(65_536),
            sndbuf_bytes: Some(Bytes(1 << 20)),
            rcvbuf_bytes: Some(Bytes(1 << 21)),
            nodelay: true,
            busy_poll_us: 50,
            zerocopy_send: true,
            zerocopy_receive: true,
            congestion: Some("bbr".into()),
            pacing_rate_bps: Some(BitRate(1e9)),
            notsent_lowat_bytes: Some(Bytes(131_072)),
            placement: Placement::SameCore,
            // The transport and its ways are no knobs: they say what is measured.
            ..FlowSettings::default()
        };
        assert_eq!(flow_settings(&flow_cell(&flow)).unwrap(), flow);
        let default = FlowSettings::default();
        assert_eq!(flow_settings(&flow_cell(&default)).unwrap(), default);
        assert_eq!(flow_settings(&Settings::new()).unwrap(), default);
    }

    #[test]
    fn what_is_no_flow_setting_is_refused() {
        for (name, value) in [("mtu", "9000"), ("no-such", "1"), ("write-size", "0"), ("placement", "../x")] {
            let settings = Settings::from([(name.into(), value.into())]);
            assert!(flow_settings(&settings).is_err(), "{name}={value}");
        }
    }
}
