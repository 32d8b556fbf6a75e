//! The command line, as it can be typed again.

use landspeed_report::quoted;

/// Returns the command line, quoted for a shell. A placeholder replaces an agent's line that contains a token, because
/// a token is valid for one run only.
pub(crate) fn command_line() -> String {
    // An argument that is not valid text, such as the name of a file, is only shown. It cannot be typed again from this
    // line.
    let args = std::env::args_os().skip(1).map(|arg| typed_again(&arg.to_string_lossy()));
    std::iter::once("landspeed".to_owned()).chain(args).collect::<Vec<_>>().join(" ")
}

/// Returns a word of the command line, quoted for a shell. For an agent's line with a token, which is used up, returns
/// a placeholder.
pub(crate) fn typed_again(word: &str) -> String {
    // It may be the value of an option: --from=landspeed://...
    let is_spent = word.contains("landspeed://") && word.contains('@');
    if is_spent { "'<the line of a new agent>'".to_owned() } else { quoted(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_spent_is_not_given_again() {
        let pinned = "landspeed://192.0.2.1:4711/#pin";
        let words = ["tune", pinned, "landspeed://xxxx@192.0.2.1:4711/#pin"].map(typed_again);
        let placeholder = "'<the line of a new agent>'";
        assert_eq!(words, ["tune", quoted(pinned).as_str(), placeholder]);
        assert_eq!(typed_again("--from=landspeed://xxxx@192.0.2.1:4711/#pin"), placeholder);
    }
}
