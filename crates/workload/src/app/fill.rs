//! Fills placeholders, such as `{port}`, in a command, a file or the environment of a role.

use std::net::IpAddr;

use landspeed_record::Settings;
use landspeed_record::units::did_you_mean;

use crate::app::ApplicationParameter;

/// The values of placeholders on one host of one trial.
#[derive(Debug, Clone)]
pub(crate) struct PlaceholderValues<'a> {
    /// Addresses of all hosts, in the order of their numbers.
    pub(crate) hosts: &'a [IpAddr],
    /// Number of this host, from 1.
    pub(crate) number: usize,
    /// A secret that all roles of one trial share.
    pub(crate) token: &'a str,
    /// The parameters that are set; others have their defaults.
    pub(crate) parameters: &'a Settings,
}

impl PlaceholderValues<'_> {
    fn address(&self, number: usize) -> Option<String> {
        self.hosts.get(number.checked_sub(1)?).map(ToString::to_string)
    }
}

/// A placeholder that every application has, whatever its parameters are.
pub(crate) struct Placeholder {
    pub(crate) name: &'static str,
    value: fn(&PlaceholderValues<'_>) -> Option<String>,
}

pub(crate) static PLACEHOLDERS: &[Placeholder] = &[
    // The role's own directory.
    Placeholder { name: "dir", value: |_| Some(DIR.to_owned()) },
    // Address of the host that the role runs on.
    Placeholder { name: "address", value: |values| values.address(values.number) },
    // Address of host 2.
    Placeholder { name: "server", value: |values| values.address(2) },
    // Number of the host that the role runs on, from 1.
    Placeholder { name: "n", value: |values| Some(values.number.to_string()) },
    Placeholder { name: "hosts", value: |values| Some(values.hosts.len().to_string()) },
    Placeholder {
        name: "addresses",
        value: |values| Some(values.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")),
    },
    // Each host's address has a placeholder. This row only lists their names; the function `host` reads the number in a
    // name.
    Placeholder { name: "host1, host2, ...", value: |_| None },
    // A secret that all roles of a trial share.
    Placeholder { name: "token", value: |values| Some(values.token.to_owned()) },
    // Path of this program in the role's directory.
    Placeholder { name: "landspeed", value: |_| Some(OWN.to_owned()) },
    // Path of landspeed-helpers in the role's directory.
    Placeholder { name: "helpers", value: |_| Some(HELPERS.to_owned()) },
];

/// The path of a role's own directory, inside the role's namespace.
pub(crate) const DIR: &str = "/dev/shm/role";
/// The path of this program inside the role's namespace. The file exists only if the role mentions this path.
pub(crate) const OWN: &str = "/dev/shm/landspeed";
/// The path of `landspeed-helpers` inside the role's namespace. The file exists only if the role mentions this path.
pub(crate) const HELPERS: &str = "/dev/shm/helpers";

/// A piece of a text.
enum TextPiece<'a> {
    Plain(&'a str),
    Place(&'a str),
}

/// Splits a text into pieces. "{{" is a brace; "{name}" is a placeholder if `name` is a word; any other brace is plain
/// text.
fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        pieces.push(TextPiece::Plain(&rest[..at]));
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('{') {
            pieces.push(TextPiece::Plain("{"));
            rest = after;
            continue;
        }
        let name = after.find('}').map(|end| &after[..end]).filter(|name| is_word(name));
        match name {
            Some(name) => {
                pieces.push(TextPiece::Place(name));
                rest = &after[name.len() + 1..];
            }
            None => {
                pieces.push(TextPiece::Plain("{"));
                rest = after;
            }
        }
    }
    pieces.push(TextPiece::Plain(rest));
    pieces
}

fn is_word(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Returns an error message for the first unknown placeholder of a text, with a suggestion; `None` if all are known.
pub(crate) fn unknown(text: &str, parameters: &[ApplicationParameter], hosts: usize) -> Option<String> {
    let of_parameters = parameters.iter().map(|one| one.name.as_str());
    let known = || PLACEHOLDERS.iter().map(|one| one.name).chain(of_parameters.clone());
    pieces(text).into_iter().find_map(|piece| match piece {
        TextPiece::Plain(_) => None,
        TextPiece::Place(name) if known().any(|known| known == name) => None,
        TextPiece::Place(name) if host(name).is_some_and(|number| (1..=hosts).contains(&number)) => None,
        TextPiece::Place(name) => {
            let all = known().collect::<Vec<_>>().join(", ");
            Some(format!(
                "{{{name}}} is no placeholder{}; there are {all}; write {{{{ for a brace",
                did_you_mean(name, known())
            ))
        }
    })
}

/// Returns the number in a name such as "host3"; `None` for another name.
fn host(name: &str) -> Option<usize> {
    name.strip_prefix("host")?.parse().ok()
}

/// Returns `text` with every placeholder filled in. Unknown placeholders stay as they are; the earlier check of the
/// file has refused them.
pub(crate) fn fill(
    text: &str,
    placeholders: &PlaceholderValues<'_>,
    parameters: &[ApplicationParameter],
) -> String {
    let value = |name: &str| -> Option<String> {
        if let Some(known) = PLACEHOLDERS.iter().find(|known| known.name == name) {
            return (known.value)(placeholders);
        }
        match parameters.iter().find(|one| one.name == name) {
            Some(one) => Some(one.declaration().of(placeholders.parameters).to_owned()),
            None => placeholders.address(host(name)?),
        }
    };
    let filled = pieces(text).into_iter().map(|piece| match piece {
        TextPiece::Plain(text) => text.to_owned(),
        TextPiece::Place(name) => value(name).unwrap_or_else(|| format!("{{{name}}}")),
    });
    filled.collect()
}

#[cfg(test)]
mod tests {
    use landspeed_record::factor::Factor;

    use super::*;

    #[test]
    fn placeholders_are_filled_and_other_braces_are_kept() {
        let hosts = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        let parameters: [ApplicationParameter; 1] =
            [Factor { name: "size", default: "7", ..Factor::FLOW }.into()];
        let set = Settings::new();
        let placeholders = PlaceholderValues { hosts: &hosts, number: 1, token: "t", parameters: &set };
        let filled = |text| fill(text, &placeholders, &parameters);
        assert_eq!(filled("{server}:{size} {address} {n}/{hosts}"), "10.0.0.2:7 10.0.0.1 1/2");
        assert_eq!(filled("{addresses} {host2}"), "10.0.0.1,10.0.0.2 10.0.0.2");
        assert_eq!(filled("{\"a\": {{size}} {"), "{\"a\": {size}} {");
        assert_eq!(unknown("{\"a\": 1} {{x} {}", &parameters, 2), None);
        assert!(unknown("{sise}", &parameters, 2).is_some_and(|why| why.contains("did you mean size")));
        assert!(unknown("{host3}", &parameters, 2).is_some());
    }
}
