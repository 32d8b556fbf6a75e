//! Who meets whom in a study.

use std::fmt;
use std::str::FromStr;

use crate::Settings;

const DEFAULT: &str = "default";

/// A contestant of a study: a congestion control, and what else its flows are set to, their transport among it. As text:
/// `cubic`, `bbr+pacing-rate=1G`, `default+transport=mptcp`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contestant {
    /// By its name in `landspeed cc list`; `None` for the host's default.
    pub control: Option<String>,
    pub settings: Settings,
}

impl FromStr for Contestant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('+');
        let control = parts.next().filter(|name| !name.is_empty());
        let control = control
            .ok_or_else(|| format!("'{text}' names no congestion control; the host's is '{DEFAULT}'"))?;
        let setting = |part: &str| {
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("'{part}' in '{text}' is no NAME=VALUE"))?;
            Ok((name.to_owned(), value.to_owned()))
        };
        let settings = parts.map(setting).collect::<Result<_, String>>()?;
        Ok(Contestant { control: (control != DEFAULT).then(|| control.to_owned()), settings })
    }
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.control.as_deref().unwrap_or(DEFAULT))?;
        self.settings.iter().try_for_each(|(name, value)| write!(f, "+{name}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contestants_are_text() {
        for text in ["cubic", "default+transport=mptcp", "bbr+nodelay=on+pacing-rate=1G"] {
            let contestant: Contestant = text.parse().expect("a contestant");
            assert_eq!(contestant.to_string(), text);
        }
        let bare: Contestant = "default".parse().expect("the host's");
        assert_eq!(bare, Contestant::default());
        assert!("".parse::<Contestant>().is_err() && "cubic+mptcp".parse::<Contestant>().is_err());
    }
}
