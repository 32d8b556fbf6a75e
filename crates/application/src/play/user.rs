//! The user that a role runs as.

use std::fs;
use std::io::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum User {
    /// The agent's own.
    Own,
    /// Another one, of /etc/passwd.
    Other { name: String, uid: u32, gid: u32 },
}

impl User {
    /// The user called `name`, where this process is root and may become one. /etc/passwd is read here, because a static
    /// program cannot ask the host's name service.
    pub(super) fn find(name: &str) -> Result<User, String> {
        if name.is_empty() || name == "root" || !rustix::process::geteuid().is_root() {
            return Ok(User::Own);
        }
        let all =
            fs::read_to_string("/etc/passwd").map_err(|error| format!("cannot read /etc/passwd: {error}"))?;
        let found = all.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let ids = found.and_then(|rest| {
            let mut fields = rest.split(':').skip(1);
            Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        });
        let (uid, gid) =
            ids.ok_or_else(|| format!("no user is called {name} on this host: name another with `user`"))?;
        Ok(User::Other { name: name.to_owned(), uid, gid })
    }

    /// Its name, for USER.
    pub(super) fn name(&self) -> &str {
        match self {
            User::Own => "root",
            User::Other { name, .. } => name,
        }
    }

    /// Becomes this user, for good. Safe between fork and exec: three system calls.
    pub(super) fn become_it(&self) -> Result<(), Error> {
        let User::Other { uid, gid, .. } = *self else { return Ok(()) };
        let done = |code: libc::c_int| if code == 0 { Ok(()) } else { Err(Error::last_os_error()) };
        // SAFETY: `gid` is one group, and the calls take numbers.
        unsafe {
            done(libc::setgroups(1, &raw const gid))?;
            done(libc::setgid(gid))?;
            done(libc::setuid(uid))
        }
    }
}
