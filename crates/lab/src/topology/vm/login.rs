//! The login to guests.

use std::fmt;

use super::images;

/// A login by ssh, which runs in a network namespace of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestLogin {
    /// The namespace, by the name that `ip netns` shows.
    pub netns: String,
    /// The ssh destination.
    pub destination: String,
    /// Options for ssh, each in the format of the argument of -o.
    pub options: Vec<String>,
}

impl GuestLogin {
    /// Returns the login of a guest, counted from 1.
    pub(crate) fn new(netns: &str, number: u8) -> Self {
        let key = format!("IdentityFile={}", images::folder().join("id").display());
        // A connection that the user's ssh configuration shares or redirects would reach another guest with this
        // address.
        let options = [
            "BatchMode=yes",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "IdentitiesOnly=yes",
            "ControlPath=none",
            "ProxyCommand=none",
            key.as_str(),
        ];
        GuestLogin {
            netns: netns.to_owned(),
            destination: format!("root@10.78.0.{number}"),
            options: options.map(str::to_owned).into(),
        }
    }
}

impl fmt::Display for GuestLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} within netns:{}", self.destination, self.netns)
    }
}
