//! Parses hosts as users write them. The text may become an argument of ssh.

use std::fmt;
use std::str::FromStr;

use crate::topology::error::Error;
use crate::topology::hosts::{InviteLine, ReachMethod};

const LONGEST: usize = 255;
const SCHEME: &str = "landspeed://";
const NAMESPACE: &str = "netns:";

/// One host on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostSpec {
    /// This machine.
    Local,
    /// A named network namespace of this machine that landspeed did not make, such as a container's.
    Namespace(String),
    /// A host reached by ssh.
    Ssh(SshTarget),
    /// The line that an agent printed, pasted.
    Invite(InviteLine),
}

/// A destination for ssh that cannot be taken for an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshTarget(String);

impl HostSpec {
    pub(crate) fn into_reach(self) -> ReachMethod {
        match self {
            HostSpec::Local => ReachMethod::Local,
            HostSpec::Namespace(name) => ReachMethod::Namespace(name),
            HostSpec::Ssh(target) => ReachMethod::Ssh(target.0),
            HostSpec::Invite(invite) => ReachMethod::Invite(invite),
        }
    }
}

impl fmt::Display for HostSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostSpec::Local => f.write_str("local"),
            HostSpec::Namespace(name) => write!(f, "{NAMESPACE}{name}"),
            HostSpec::Ssh(target) => f.write_str(&target.0),
            HostSpec::Invite(invite) => invite.fmt(f),
        }
    }
}

/// Returns an agent's line without characters that pasting adds: quotes, and line breaks of a narrow terminal.
fn as_printed(pasted: &str) -> String {
    pasted.chars().filter(|c| !c.is_whitespace() && !matches!(c, '\'' | '"')).collect()
}

/// Returns true if the user or host part of a destination is valid. It may contain the characters of names, and those
/// in `extra` for IPv6 literals with a zone and ssh_config aliases. It must not contain characters that a shell or
/// ssh's own %-expansion would interpret, other than the '%' of a zone.
fn is_plain(part: &str, extra: &[char]) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') || extra.contains(&c);
    !part.is_empty() && !part.starts_with('-') && part.chars().all(allowed)
}

fn is_ssh_target(given: &str) -> bool {
    let (user, host) = match given.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, given),
    };
    user.is_none_or(|user| is_plain(user, &['+'])) && is_plain(host, &[':', '%'])
}

impl FromStr for HostSpec {
    type Err = Error;

    /// Parses "local", "netns:NAME", "[user@]host", or a line that starts with `landspeed://`.
    fn from_str(given: &str) -> Result<Self, Error> {
        if let Some(name) = given.strip_prefix(NAMESPACE) {
            crate::topology::namespace::path_of(name)?;
            return Ok(HostSpec::Namespace(name.to_owned()));
        }
        let pasted = as_printed(given);
        if pasted.len() <= LONGEST
            && pasted.starts_with(SCHEME)
            && pasted.chars().all(|c| c.is_ascii_graphic())
        {
            return Ok(HostSpec::Invite(InviteLine::new(&pasted)));
        }
        let printable = given.len() <= LONGEST && given.chars().all(|c| c.is_ascii_graphic());
        match given {
            "local" => Ok(HostSpec::Local),
            // In ssh's syntax this would be an IPv6 address.
            target if printable && is_ssh_target(target) && !target.starts_with("lab:") => {
                Ok(HostSpec::Ssh(SshTarget(target.to_owned())))
            }
            _ => Err(Error::Name {
                what: "host",
                // A mistyped invitation still contains its secret, so only the part before it is shown.
                given: given.split("://").next().unwrap_or_default().chars().take(60).collect(),
                expected: "'local', 'netns:NAME', '[user@]host' or an agent's landspeed:// line",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_read_as_they_print() {
        for good in
            ["local", "dtn1", "alice@dtn1.example.org", "192.0.2.1", "root@fe80::1%eth0", "2001:db8::1"]
        {
            assert_eq!(good.parse::<HostSpec>().unwrap().to_string(), good);
        }
        let line = "landspeed://TOKEN@192.0.2.1:4711/#PIN";
        for pasted in [line, &format!(" '{line}'\n"), &line.replace("/#", "/\n#")] {
            let invite = pasted.parse::<HostSpec>().unwrap();
            assert!(matches!(&invite, HostSpec::Invite(i) if i.line() == line));
            assert!(!invite.to_string().contains("TOKEN"));
        }
    }

    #[test]
    fn names_that_ssh_could_misread_are_refused() {
        let long = "a".repeat(300);
        let bad = [
            "",
            "-oProxyCommand=sh",
            "a b",
            "a\tb",
            "a\u{7}",
            "-x@host",
            "host@-x",
            "@host",
            "user@",
            "höst",
            "a;b",
            "a$(x)",
            "lab:back-to-back",
        ];
        for bad in bad.iter().copied().chain([long.as_str()]) {
            let error = bad.parse::<HostSpec>().expect_err(bad).to_string();
            assert!(
                !error.contains('\u{7}')
                    && (error.contains("is no host") || error.contains("is no network namespace")),
                "{error}"
            );
        }
    }
}
