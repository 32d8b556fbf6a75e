use proptest::prelude::*;

use super::*;
use crate::session::wire::{MessageToAgent, MessageToController, OpeningMessage};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Reads all messages of one kind from `bytes`, and the error that ends them.
fn read_all<T: DeserializeOwned>(bytes: &[u8]) -> (Vec<T>, FrameError) {
    runtime().block_on(async {
        let mut reader = FrameReader::new(bytes);
        let mut messages = Vec::new();
        loop {
            match reader.next().await {
                Ok(message) => messages.push(message),
                Err(error) => return (messages, error),
            }
        }
    })
}

fn error_of(bytes: &[u8]) -> String {
    read_all::<MessageToAgent>(bytes).1.to_string()
}

/// Returns `json` with its length before it.
fn framed(json: &str) -> Vec<u8> {
    [&u32::try_from(json.len()).unwrap().to_be_bytes()[..], json.as_bytes()].concat()
}

proptest! {
    #[test]
    fn random_bytes_end_in_an_error(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        read_all::<MessageToAgent>(&bytes);
        read_all::<MessageToController>(&bytes);
        read_all::<OpeningMessage>(&bytes);
    }

    #[test]
    fn random_json_in_a_sound_frame_ends_in_an_error(json in r#"[\[\]{}":,a-z0-9.-]{0,200}"#) {
        prop_assert!(!error_of(&framed(&json)).is_empty());
    }

    #[test]
    fn frames_survive_any_cut_between_and_no_cut_within(whys in prop::collection::vec(".{0,40}", 1..5), cut in any::<prop::sample::Index>()) {
        let frames: Vec<Vec<u8>> =
            whys.iter().map(|why| encode(&MessageToAgent::End(why.clone()), REQUEST_LIMIT).unwrap()).collect();
        let bytes = frames.concat();
        let cut = cut.index(bytes.len() + 1);
        let (read, error) = read_all::<MessageToAgent>(&bytes[..cut]);
        let ends: Vec<usize> = frames.iter().scan(0, |at, f| { *at += f.len(); Some(*at) }).collect();
        prop_assert_eq!(read.len(), ends.iter().filter(|end| **end <= cut).count());
        let between = cut == 0 || ends.contains(&cut);
        prop_assert_eq!(matches!(error, FrameError::Closed), between);
        prop_assert_eq!(matches!(error, FrameError::Cut), !between);
    }
}

#[test]
fn unknown_messages_are_refused() {
    for json in [
        "",
        "null",
        "{}",
        r#""beat" "beat""#,
        r#"{"ask":{"id":1}}"#,
        r#"{"ask":{"id":-1,"request":{"request":"probe"}}}"#,
        r#"{"ask":{"id":1,"request":{"request":"format-disk"}}}"#,
        r#"{"ask":{"id":1,"request":{"request":"close","port":70000}}}"#,
        r#"{"ask":{"id":1,"request":{"request":"close","port":1,"path":"/etc"}}}"#,
        r#"{"ask":{"id":1,"request":{"request":"probe"},"as":"root"}}"#,
        r#"{"answer":{"id":1,"reply":{"reply":"done"}}}"#,
        &"[".repeat(100_000),
    ] {
        let shown = &json[..json.len().min(80)];
        assert!(
            error_of(&framed(json)).starts_with("a frame that is no message"),
            "{shown}: {}",
            error_of(&framed(json))
        );
    }
}

#[test]
fn the_wire_form_of_a_request_has_not_changed() {
    let json = r#"{"ask":{"id":7,"request":{"request":"close","port":9}}}"#;
    let (messages, _) = read_all::<MessageToAgent>(&framed(json));
    assert_eq!(serde_json::to_string(&messages[0]).unwrap(), json);
}

#[test]
fn a_length_over_the_limit_is_refused_before_the_body_is_read() {
    let claim = u32::try_from(REQUEST_LIMIT.0 + 1).unwrap().to_be_bytes();
    assert_eq!(error_of(&claim), "a frame of 262145 bytes is over the limit of 262144");
    assert!(matches!(read_all::<MessageToAgent>(&[0xff; 8]).1, FrameError::TooLarge(..)));
}

#[test]
fn the_largest_frame_passes_and_one_more_byte_does_not_leave() {
    let fits = encode(&MessageToAgent::End("x".repeat(1000)), Bytes(1010)).unwrap();
    assert_eq!(fits.len(), 4 + r#"{"end":""}"#.len() + 1000);
    let error = encode(&MessageToAgent::End("x".repeat(1001)), Bytes(1010)).unwrap_err();
    assert!(matches!(error, FrameError::TooLarge(Bytes(1011), Bytes(1010))), "{error}");
}

#[test]
fn a_greeting_of_the_login_shell_is_recognised() {
    let error = error_of(b"Welcome to \x1b[1mhost\x1b[0m, today is a fine day for measuring\n");
    assert!(error.starts_with(r#"text ("Welcome to "#), "{error}");
    assert!(!error.contains('\x1b'), "{error}");
}

#[test]
fn silence_is_an_error_but_slow_bytes_are_not() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (mut near, far) = tokio::io::duplex(64);
        let mut reader = FrameReader::new(far);
        reader.silence = Some(Duration::from_secs(5));
        let frame = encode(&MessageToAgent::Beat, REQUEST_LIMIT).unwrap();
        let drip = async {
            for byte in &frame {
                tokio::time::sleep(Duration::from_secs(4)).await;
                tokio::io::AsyncWriteExt::write_all(&mut near, &[*byte]).await.unwrap();
            }
        };
        let (read, ()) = tokio::join!(reader.next::<MessageToAgent>(), drip);
        assert!(matches!(read, Ok(MessageToAgent::Beat)));
        let error = reader.next::<MessageToAgent>().await.unwrap_err();
        assert_eq!(error.to_string(), "nothing was heard for 5.0 s");
    });
}

#[test]
fn a_pause_of_the_machine_is_no_silence_of_the_peer() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (mut near, far) = tokio::io::duplex(64);
        let mut reader = FrameReader::new(far);
        reader.silence = Some(Duration::from_secs(5));
        let pause = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            // The clock jumps, and all timers that are due by then fire together.
            tokio::time::advance(Duration::from_secs(60)).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            let frame = encode(&MessageToAgent::Beat, REQUEST_LIMIT).unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut near, &frame).await.unwrap();
        };
        let (read, ()) = tokio::join!(reader.next::<MessageToAgent>(), pause);
        assert!(matches!(read, Ok(MessageToAgent::Beat)), "{:?}", read.err());
    });
}

#[test]
fn relayed_frames_come_between_messages_and_only_in_an_open_session() {
    let relayed = RelayFrame::parse(b"\x01\0\0\0\x07bytes").unwrap();
    let beat = encode(&MessageToAgent::Beat, REQUEST_LIMIT).unwrap();
    let bytes = [beat.clone(), relayed.encode(), beat].concat();
    runtime().block_on(async {
        let mut reader = FrameReader::new(&bytes[..]);
        let mut heard = Vec::new();
        for _ in 0..3 {
            match reader.next_in_session::<MessageToAgent>().await.unwrap() {
                SessionFrame::Message(_) => heard.push(None),
                SessionFrame::Relayed(frame) => heard.push(Some(frame)),
            }
        }
        assert_eq!(heard, [None, Some(relayed.clone()), None]);
    });
    assert!(error_of(&relayed.encode()).contains("over the limit"));
    let long = [&u32::MAX.to_be_bytes()[..], b"x"].concat();
    let refused = runtime().block_on(async {
        FrameReader::new(&long[..]).next_in_session::<MessageToAgent>().await.map(drop).unwrap_err()
    });
    assert!(matches!(refused, FrameError::TooLarge(..)), "{refused}");
}
