//! The contestants of a study.

use std::fmt;
use std::str::FromStr;

use crate::Settings;

const DEFAULT: &str = "default";
/// The setting of a flow that names its transport.
const TRANSPORT: &str = "transport";
/// The transport of flows that name none.
const TCP: &str = "tcp";
/// Transports with their own congestion control. The name of such a transport is the name of a contestant.
const WHOLE: [&str; 3] = ["udt", "quic", "tls-udt"];

/// A contestant of a study: a congestion control and the other settings of its flows, such as the transport. As text:
/// `cubic`, `bbr+pacing-rate=1G`, `default+transport=mptcp`, `udt`.
///
/// The name before the first `+` is a congestion control over TCP, such as `cubic`, or a transport with its own
/// congestion control, such as `udt`. No other code interprets this name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contestant {
    /// The congestion control's name in `landspeed cc list`; `None` for the host's default, or for the transport's own
    /// congestion control.
    pub control: Option<String>,
    pub settings: Settings,
}

impl Contestant {
    /// Returns the transport of the contestant's flows: the value of the setting `transport`, or TCP without this
    /// setting.
    pub fn transport(&self) -> &str {
        self.settings.get(TRANSPORT).map_or(TCP, String::as_str)
    }

    /// Returns true if the contestant's transport has a congestion control of its own.
    fn is_whole(&self) -> bool {
        WHOLE.contains(&self.transport())
    }
}

impl FromStr for Contestant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('+');
        let name = parts.next().filter(|name| !name.is_empty());
        let name =
            name.ok_or_else(|| format!("'{text}' names no congestion control; the host's is '{DEFAULT}'"))?;
        let setting = |part: &str| {
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("'{part}' in '{text}' is no NAME=VALUE"))?;
            Ok((name.to_owned(), value.to_owned()))
        };
        let mut settings: Settings = parts.map(setting).collect::<Result<_, String>>()?;
        let is_whole = WHOLE.contains(&name);
        if is_whole && settings.insert(TRANSPORT.to_owned(), name.to_owned()).is_some() {
            return Err(format!("'{text}' names two transports"));
        }
        let control = (name != DEFAULT && !is_whole).then(|| name.to_owned());
        let contestant = Contestant { control, settings };
        match &contestant.control {
            Some(control) if contestant.is_whole() => {
                let transport = contestant.transport();
                Err(format!(
                    "'{text}': {transport} brings its own congestion control: '{transport}' without {control}"
                ))
            }
            _ => Ok(contestant),
        }
    }
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_whole = self.control.is_none() && self.is_whole();
        let name = if is_whole { self.transport() } else { self.control.as_deref().unwrap_or(DEFAULT) };
        f.write_str(name)?;
        let others = self.settings.iter().filter(|(name, _)| !is_whole || *name != TRANSPORT);
        others.into_iter().try_for_each(|(name, value)| write!(f, "+{name}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contestants_are_text() {
        for text in [
            "cubic",
            "default+transport=mptcp",
            "bbr+nodelay=on+pacing-rate=1G",
            "udt",
            "quic+x=1",
            "tls-udt",
        ] {
            let contestant: Contestant = text.parse().expect("a contestant");
            assert_eq!(contestant.to_string(), text);
        }
        let bare: Contestant = "default".parse().expect("the host's");
        assert_eq!(bare, Contestant::default());
        assert!("".parse::<Contestant>().is_err() && "cubic+mptcp".parse::<Contestant>().is_err());
    }

    #[test]
    fn a_transport_with_its_own_control_is_a_contestant_by_its_name() {
        let udt: Contestant = "udt".parse().expect("a contestant");
        assert_eq!((udt.transport(), &udt.control), ("udt", &None));
        assert_eq!("default+transport=udt".parse(), Ok(udt), "the same in other words");
        assert_eq!("cubic".parse::<Contestant>().expect("a control").transport(), "tcp");
        let refused = |text: &str| text.parse::<Contestant>().expect_err("it is refused");
        assert!(refused("cubic+transport=udt").contains("'udt' without cubic"));
        assert!(refused("udt+transport=tcp").contains("two transports"));
    }
}
