use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::session::CertificatePin;

fn invite(port: u16) -> Invite {
    Invite { address: ([192, 0, 2, 1], port).into(), pin: CertificatePin::of(b"certificate") }
}

#[test]
fn a_proof_holds_for_one_token_one_side_and_one_connection() {
    let token = Token::random();
    let proof = token.prove(Prover::Controller, &[7; 32]);
    assert!(token.proves(Prover::Controller, &[7; 32], &proof));
    assert!(!token.proves(Prover::Agent, &[7; 32], &proof));
    assert!(!token.proves(Prover::Controller, &[8; 32], &proof));
    assert!(!Token::random().proves(Prover::Controller, &[7; 32], &proof));
    for bad in ["", "00", &"0".repeat(64), &proof[..63], &format!("{proof}0")] {
        assert!(!token.proves(Prover::Controller, &[7; 32], bad), "{bad}");
    }
}

#[test]
fn debug_shows_no_secret() {
    let ticket = Ticket { invite: invite(1), token: Token::random() };
    assert!(!format!("{ticket:?}").contains(&ticket.token.reveal()));
}

#[test]
fn a_file_gives_the_token_of_the_agent_that_is_asked_for() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let [first, second] = [1, 2].map(|port| Ticket { invite: invite(port), token: Token::random() });
    std::io::Write::write_all(&mut file, format!("{}\n{}\n", first.reveal(), second.reveal()).as_bytes())
        .unwrap();
    let token = Token::from_file(file.path(), &second.invite).unwrap();
    assert_eq!(token.reveal(), second.token.reveal());
    let error = Token::from_file(file.path(), &invite(3)).unwrap_err().to_string();
    assert!(error.contains("192.0.2.1:3"), "{error}");
    assert!(!error.contains(&first.token.reveal()), "{error}");
}

#[test]
fn a_file_may_hold_the_bare_token() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let token = Token::random();
    std::fs::write(file.path(), format!("{}\n", token.reveal())).unwrap();
    assert_eq!(Token::from_file(file.path(), &invite(1)).unwrap().reveal(), token.reveal());
}

#[test]
fn a_file_that_others_may_read_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), Token::random().reveal()).unwrap();
    for mode in [0o640, 0o604, 0o660] {
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let error = Token::from_file(file.path(), &invite(1)).unwrap_err().to_string();
        assert!(error.ends_with(&format!("others may use it (mode {mode:03o}): chmod 600 it")), "{error}");
    }
}

#[test]
fn a_line_survives_text_and_pasting() {
    for address in ["192.0.2.1:4711", "[2001:db8::1]:4711"] {
        let invite = Invite { address: address.parse().unwrap(), pin: CertificatePin::of(b"certificate") };
        assert_eq!(invite.to_string().parse::<Invite>().unwrap(), invite);
        let ticket = Ticket { invite, token: Token::random() };
        let line = ticket.reveal();
        for pasted in [&line, &format!(" '{line}'\r\n"), &format!("\"{line}\" ")] {
            let read = pasted.parse::<Ticket>().unwrap();
            assert_eq!((read.invite, read.token.reveal()), (invite, ticket.token.reveal()));
        }
    }
}

#[test]
fn an_invalid_invite_is_refused_with_the_missing_part() {
    let pin = CertificatePin::of(b"certificate");
    for (text, what) in [
        ("example.org".to_owned(), "not an agent's line"),
        ("landspeed://192.0.2.1:4711".to_owned(), "without its pin"),
        (format!("landspeed://192.0.2.1/#{pin}"), "bad address or port"),
        ("landspeed://192.0.2.1:4711/#00".to_owned(), "pin is not whole"),
    ] {
        let error = text.parse::<Invite>().unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    assert!(format!("landspeed://x@192.0.2.1:1/#{pin}").parse::<Ticket>().is_err());
}
