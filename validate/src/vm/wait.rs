//! Command lines that start what runs on a guest, and that wait there.

/// Returns the command line that starts a server, and waits [`until`] `ready` succeeds. What the server says is in the
/// file `log`, without what an earlier one said there.
pub(super) fn started(server: &str, ready: &str, log: &str) -> String {
    format!("rm -f {log}; setsid {server} >{log} 2>&1 </dev/null & {}", until(ready, log))
}

/// Returns the command line that runs `what` until it succeeds, for a minute at most. Where it does not, the command
/// line fails and prints the end of the file `log`. Its shell ends with it.
pub(super) fn until(what: &str, log: &str) -> String {
    format!("for i in $(seq 60); do {what} && exit 0; sleep 1; done; tail -n 3 {log}; exit 1")
}

/// Returns the command line that waits until landspeed has written what it counted to the file `log`, and prints that.
pub(super) fn until_counted(log: &str) -> String {
    until(&format!("grep '^{{\"path\"' {log}"), log)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_server_is_ready_by_its_own_words_and_not_by_those_of_an_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let log = log.to_str().unwrap();
        std::fs::write(log, "ready 1\n").unwrap();
        let line = started("echo ready 2", &format!("grep -s ready {log}"), log);
        let output = Command::new("bash").arg("-c").arg(line).output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ready 2\n");
    }

    #[test]
    fn what_was_counted_is_printed_once_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, "bye\n{\"path\":\"smc\",\"carried\":1}\n").unwrap();
        let output =
            Command::new("bash").arg("-c").arg(until_counted(log.to_str().unwrap())).output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"path\":\"smc\",\"carried\":1}\n");
    }
}
