//! The settings that a trial's flows really had, where those differ from the requested ones. Only this module decides
//! how such settings are named.

use std::collections::BTreeMap;

use landspeed_record::units::Bytes;
use landspeed_record::{EndpointOutcome, SettingMismatch, Settings, ZeroCopyCounts};

/// The settings that define what is measured: a trial whose flows had another value measured something else.
const DECIDING: [&str; 2] = ["transport", "socket-congestion"];

/// Returns the first deciding setting (`DECIDING`) in which one end's flows differ from the request, if any.
pub fn another(end: &EndpointOutcome) -> Option<&SettingMismatch> {
    end.get::<Vec<SettingMismatch>>().iter().find(|found| DECIDING.contains(&found.setting.as_str()))
}

/// Returns the settings of a trial's flows that differ from what `flow` requests, by name.
pub fn turned_out(flow: &Settings, ends: [&EndpointOutcome; 2]) -> BTreeMap<String, String> {
    let found = ends.into_iter().flat_map(|end| end.get::<Vec<SettingMismatch>>());
    let found = found.map(|found| (found.setting.clone(), found.got.clone()));
    let is_on = |name: &str| flow.get(name).is_some_and(|value| value == "on");
    let copies = [("zerocopy-send", ends.into_iter().find_map(sent)), ("zerocopy-receive", received(ends))];
    let copies = copies.into_iter().filter(|(name, _)| is_on(name));
    found.chain(copies.filter_map(|(name, what)| Some((name.to_owned(), what?.to_owned())))).collect()
}

/// Returns "copied" if the kernel copied all MSG_ZEROCOPY sends, "copied in part" if it copied some of them, and `None`
/// if it copied none.
fn sent(end: &EndpointOutcome) -> Option<&'static str> {
    let ZeroCopyCounts { completions, copied, .. } = *end.get();
    match copied {
        0 => None,
        all if all == completions => Some("copied"),
        _ => Some("copied in part"),
    }
}

/// Returns "copied" if a receiving end mapped none of its payload, so that all of it was copied; `None` otherwise.
fn received(ends: [&EndpointOutcome; 2]) -> Option<&'static str> {
    let mut receiving = ends.into_iter().filter(|end| end.received_bytes > Bytes(0));
    let none = |end: &EndpointOutcome| end.get::<ZeroCopyCounts>().mapped_bytes == Bytes(0);
    receiving.any(none).then_some("copied")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(values: &[(&str, &str)]) -> Settings {
        values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn end(found: &[(&str, &str, &str)], copied: ZeroCopyCounts) -> EndpointOutcome {
        let found: Vec<_> =
            found.iter().map(|(name, asked, got)| SettingMismatch::of(name, asked, got, "why")).collect();
        EndpointOutcome { received_bytes: Bytes(9), ..EndpointOutcome::default() }.with(found).with(copied)
    }

    #[test]
    fn another_transport_or_control_makes_it_another_trial() {
        let fine = end(&[("rcvbuf", "1G", "212992")], ZeroCopyCounts::default());
        assert_eq!(another(&fine), None);
        for (setting, asked, got) in [("transport", "mptcp", "tcp"), ("socket-congestion", "bbr", "cubic")] {
            let end = end(&[("rcvbuf", "1G", "212992"), (setting, asked, got)], ZeroCopyCounts::default());
            let line = another(&end).expect("something else").line.clone();
            assert!(line.starts_with(&format!("{setting}: asked for {asked}, got {got}")), "{line}");
        }
    }

    #[test]
    fn copied_data_are_called_so_where_zero_copy_was_requested() {
        let (none, asked) = (flow(&[]), flow(&[("zerocopy-send", "on"), ("zerocopy-receive", "on")]));
        let copied = end(&[], ZeroCopyCounts { completions: 4, copied: 4, mapped_bytes: Bytes(0) });
        let partly = end(&[], ZeroCopyCounts { completions: 4, copied: 1, mapped_bytes: Bytes(5) });
        let both =
            |seen: &EndpointOutcome, flow| turned_out(flow, [seen, seen]).into_values().collect::<Vec<_>>();
        assert_eq!(both(&copied, &none), Vec::<String>::new());
        assert_eq!(both(&copied, &asked), ["copied", "copied"]);
        assert_eq!(both(&partly, &asked), ["copied in part"]);
        let capped = end(&[("rcvbuf", "1G", "212992")], ZeroCopyCounts::default());
        assert_eq!(both(&capped, &none), ["212992"]);
    }
}
