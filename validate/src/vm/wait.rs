//! Command lines that wait on a guest.

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
