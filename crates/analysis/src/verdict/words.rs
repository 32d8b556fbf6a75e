//! Shares and names as parts of sentences.

/// Between 0 and 1; no number counts as 0.
pub(super) fn share(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

/// "87 %", "0.4 %".
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() >= 9.95 || percent == 0.0 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.2} %")
    }
}

/// A host in a sentence, as the user called it: "host A", "this host", "netns:dtn1".
pub fn called(name: &str) -> String {
    match shown(name).as_str() {
        "local" => "this host".to_owned(),
        letter if letter.chars().count() == 1 => format!("host {letter}"),
        name => name.to_owned(),
    }
}

/// A name from a host as part of a sentence: no control characters, no longer than a line.
pub(super) fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_called_as_the_user_called_them() {
        let called = ["A", "local", "netns:dtn1", "\u{1b}[2J"].map(called);
        assert_eq!(called, ["host A", "this host", "netns:dtn1", "[2J"]);
    }
}
