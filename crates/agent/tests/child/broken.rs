//! Frames and peers that are broken or of another version.

use landspeed_agent::session::{Request, Session};

use super::{ChildAgent, HELLO, framed, options, shell, text};

#[test]
fn broken_frames_get_a_line_on_both_ends_and_restore_everything() {
    for (frame, line) in [
        (vec![0xff; 4], "a frame of 4294967295 bytes is over the limit of 262144"),
        (
            framed("{]"),
            "a frame that is no message of this protocol: key must be a string at line 1 column 2",
        ),
        (framed(r#"{"ask":{"id":1,"request":{"request":"mkfs"}}}"#), "unknown variant `mkfs`"),
    ] {
        let agent = ChildAgent::new();
        let output = agent.raw(&[framed(HELLO), frame].concat(), false);
        assert!(agent.gone().contains(line), "{}", agent.gone());
        assert!(text(&output.stdout).contains(line), "{output:?}");
        assert!(text(&output.stderr).contains(line), "{output:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1);
    }
}

#[test]
fn without_a_valid_hello_there_is_no_session_to_restore() {
    for (bytes, line) in [
        (framed(r#"{"ask":{"id":1,"request":{"request":"probe"}}}"#), "unknown variant `ask`"),
        (framed(r#"{"hello":{"landspeed":"0.1.0"}}"#), "a hello without a protocol version"),
        (framed(r#"{"hello":{"protocol":10,"lease_ns":1}}"#), "a hello with a lease of"),
        (framed(&format!(r#"{{"proof":"{}"}}"#, "0".repeat(64))), "a proof where a hello belongs"),
        (vec![0, 4, 0, 1], "a frame of 262145 bytes is over the limit of 262144"),
    ] {
        let agent = ChildAgent::new();
        let output = agent.raw(&bytes, false);
        assert!(text(&output.stdout).contains(line), "{output:?}");
        assert!(text(&output.stderr).contains(line), "{output:?}");
        assert!(!agent.gone_file().exists());
    }
}

#[test]
fn another_version_gets_a_line_on_the_agents_end() {
    let agent = ChildAgent::new();
    let newer = agent.raw(&framed(r#"{"hello":{"protocol":11,"landspeed":"9.9.9","lease":"other"}}"#), false);
    let line = "the controller speaks protocol 11 (landspeed 9.9.9), this end protocol 10 (landspeed 0.1.0): \
                update landspeed here\n";
    assert_eq!(text(&newer.stderr), line);
}

#[test]
fn another_version_gets_a_line_on_the_controllers_end() {
    let hello = r#"{"hello":{"protocol":0,"landspeed":"0.0.1"}}"#;
    let script = format!(r"printf '\000\000\000\{:o}%s' '{hello}'; cat >/dev/null", hello.len());
    let error = Session::over_child("old-host", shell(&script), &options()).unwrap_err().to_string();
    let line = "old-host speaks protocol 0 (landspeed 0.0.1), this end protocol 10 (landspeed 0.1.0): \
                update landspeed on old-host";
    assert_eq!(error, line);
}

#[test]
fn an_answer_that_was_never_asked_for_ends_the_session() {
    let answer = r#"{"answer":{"id":5,"reply":{"reply":"done"}}}"#;
    let frame = |json: &str| format!(r"printf '\000\000\000\{:o}%s' '{json}'; ", json.len());
    let script = [frame(HELLO), frame(answer), "cat >/dev/null".to_owned()].concat();
    let session = Session::over_child("liar", shell(&script), &options()).unwrap();
    let error = session.call(&Request::Probe {}).unwrap_err().to_string();
    assert_eq!(error, "the session ended: an answer to request 5, which was never made");
}
