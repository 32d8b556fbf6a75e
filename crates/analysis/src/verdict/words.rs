//! Words for shares and names in sentences.

use landspeed_record::NoVerdictReason;
use landspeed_record::units::EscapedText;

/// Clamps a value to 0 to 1; NaN counts as 0.
pub(super) fn share(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

/// Formats a share, such as "87 %" or "0.40 %".
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() >= 9.95 || percent == 0.0 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.2} %")
    }
}

/// Returns a host's name in a sentence, as the user called it: "host A", "this host", "netns:dtn1".
pub fn called(name: &str) -> String {
    match shown(name).as_str() {
        "local" => "this host".to_owned(),
        letter if letter.chars().count() == 1 => format!("host {letter}"),
        name => name.to_owned(),
    }
}

/// Returns a name for use in a sentence, escaped and cut to 60 characters.
pub(super) fn shown(name: &str) -> String {
    EscapedText::from(name).cut(60)
}

/// Returns the reason why there is no verdict, in words that follow "cannot tell:".
pub fn cannot_tell(why: NoVerdictReason) -> String {
    match why {
        NoVerdictReason::NoFlow => "no such flow moved data".to_owned(),
        NoVerdictReason::Idle => "the flow was idle: no data moved, and none waited".to_owned(),
        NoVerdictReason::FewSamples { samples, needed } => {
            format!("the flow was seen only {samples} times, and a verdict needs {needed}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_called_as_the_user_called_them() {
        let called = ["A", "local", "netns:dtn1", "\u{1b}[2J"].map(called);
        assert_eq!(called, ["host A", "this host", "netns:dtn1", r"\u{1b}[2J"]);
    }
}
