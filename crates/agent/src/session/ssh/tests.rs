use std::ffi::OsStr;

use super::*;

fn arguments(host: &SshHost) -> Vec<String> {
    let command = ssh_command(host, Nanos::secs(30));
    assert_eq!(command.get_program(), OsStr::new("ssh"));
    command.get_args().map(|a| a.to_str().unwrap().to_owned()).collect()
}

fn host(destination: &str) -> SshHost {
    SshHost::new(destination).unwrap().with_questions(false)
}

#[test]
fn the_destination_comes_after_the_options_and_the_command_last() {
    let arguments = arguments(&host("me@far.example"));
    let n = arguments.len();
    assert_eq!(arguments[n - 3..], ["--", "me@far.example", "exec /bin/sh"]);
    assert!(arguments.contains(&"-oBatchMode=yes".to_owned()));
    assert!(arguments.contains(&"-oConnectTimeout=15".to_owned()), "half of the limit: {arguments:?}");
}

#[test]
fn own_options_come_first_so_that_they_win() {
    let arguments = arguments(&host("far").with_options(&["-F", "/tmp/config", "-oPort=2222"]));
    assert_eq!(arguments[..3], ["-F", "/tmp/config", "-oPort=2222"]);
}

#[test]
fn ssh_may_ask_only_if_a_user_can_answer() {
    let asking = arguments(&host("far").with_questions(true));
    assert!(!asking.iter().any(|a| a.contains("BatchMode")), "{asking:?}");
}

#[test]
fn far_paths_are_quoted_for_the_far_shell() {
    let remote = |path: &str| host("far").with_remote_path(path).unwrap().remote_path();
    assert_eq!(remote("/opt/ls/landspeed"), "/opt/ls/landspeed");
    assert_eq!(remote("/opt/my ls; rm -rf it's"), r"'/opt/my ls; rm -rf it'\''s'");
    assert_eq!(remote("~/bin/land speed"), "~/'bin/land speed'");
    assert_eq!(host("far").remote_path(), "''");
}

#[test]
fn a_shell_reads_back_what_was_quoted() {
    for word in ["plain", "", "two words", "it's", "$HOME `id` \\ \" * ? ~ ! #", "-n", "a=b"] {
        let script = format!("printf %s {}", quoted(word));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
    }
}

#[test]
fn names_that_ssh_or_a_shell_could_take_for_something_else_are_refused() {
    for name in [
        "",
        "-oProxyCommand=id",
        "me@-oX",
        "me@",
        "a b",
        "a\nb",
        "a\u{1b}b",
        "$(id)",
        "`id`",
        "a;b",
        "a|b",
        "a'b",
        "a\"b",
        "a\\b",
    ] {
        let error = SshHost::new(name).unwrap_err().to_string();
        assert!(error.starts_with("host "), "{error}");
        assert!(!error.contains('\n') && !error.contains('\u{1b}'), "{error:?}");
    }
    for name in [
        "far",
        "me@far.example",
        "me@192.0.2.1",
        "me@2001:db8::1",
        "fe80::1%eth0",
        "ssh://me@[2001:db8::1]:22",
    ] {
        assert!(SshHost::new(name).is_ok(), "{name}");
    }
}

#[test]
fn a_far_path_that_would_be_an_option_or_break_the_line_is_refused() {
    for path in ["", "-c", "a\nb"] {
        assert!(host("far").with_remote_path(path).is_err(), "{path:?}");
    }
}

#[test]
fn an_interrupt_at_the_terminal_does_not_reach_ssh() {
    let mut asking = Command::new("sh");
    asking.args(["-c", "kill -INT $$; echo survived"]);
    keep_from_interrupts(&mut asking, true);
    assert_eq!(asking.output().unwrap().stdout, b"survived\n");
    let mut silent = Command::new("cat");
    silent.arg("/proc/self/stat");
    keep_from_interrupts(&mut silent, false);
    let stat = String::from_utf8(silent.output().unwrap().stdout).unwrap();
    // proc_pid_stat(5): pid (comm) state ppid pgrp
    let fields: Vec<&str> = stat.split(' ').collect();
    assert_eq!(fields[0], fields[4], "not in a process group of its own: {stat}");
}
