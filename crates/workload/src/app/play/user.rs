//! The user under which a role runs.

use std::fs;
use std::io::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RoleUser {
    /// The user's name, for the variable USER.
    pub(super) name: String,
    /// The IDs of another user; `None` for the agent's own.
    pub(super) other: Option<UserIds>,
}

/// The IDs of a user and of the user's group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UserIds {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Returns true if a role with the user `name` runs as root on this host. An empty name is the agent's own user.
pub fn runs_as_root(name: &str) -> bool {
    let is_root =
        ["", "root"].contains(&name) || ids(name).is_ok_and(|ids| ids.is_some_and(|ids| ids.uid == 0));
    is_root && rustix::process::geteuid().is_root()
}

/// Returns the IDs of a user and of the user's group from /etc/passwd; `None` for an unknown user. It reads the file
/// itself, because a static program cannot query the host's name service.
fn ids(name: &str) -> Result<Option<UserIds>, String> {
    let all =
        fs::read_to_string("/etc/passwd").map_err(|error| format!("cannot read /etc/passwd: {error}"))?;
    let rest = all.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(rest.and_then(|rest| {
        let mut fields = rest.split(':').skip(1);
        Some(UserIds { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
    }))
}

/// Returns the name of a user from /etc/passwd, or the user's ID if the file does not have it.
fn name_of(uid: u32) -> String {
    let all = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let is_user = |line: &&str| line.split(':').nth(2).is_some_and(|id| id.parse() == Ok(uid));
    let name = all.lines().find(is_user).and_then(|line| line.split(':').next());
    name.map_or_else(|| uid.to_string(), str::to_owned)
}

impl RoleUser {
    /// Returns the user under which a role with the user `name` runs. This is the agent's own user if the agent is not
    /// root, or if `name` is root or empty. Returns an error for an unknown name.
    pub(super) fn find(name: &str) -> Result<RoleUser, String> {
        if runs_as_root(name) || !rustix::process::geteuid().is_root() {
            return Ok(RoleUser { name: name_of(rustix::process::geteuid().as_raw()), other: None });
        }
        let ids = ids(name)?
            .ok_or_else(|| format!("no user is called {name} on this host: name another with `user`"))?;
        Ok(RoleUser { name: name.to_owned(), other: Some(ids) })
    }

    /// Changes permanently to this user. The call is safe between fork and exec, because it makes only three system
    /// calls.
    pub(super) fn become_it(&self) -> Result<(), Error> {
        let Some(UserIds { uid, gid }) = self.other else { return Ok(()) };
        let done = |code: libc::c_int| if code == 0 { Ok(()) } else { Err(Error::last_os_error()) };
        // SAFETY: `gid` is one group, and the calls take numbers.
        unsafe {
            done(libc::setgroups(1, &raw const gid))?;
            done(libc::setgid(gid))?;
            done(libc::setuid(uid))
        }
    }
}
