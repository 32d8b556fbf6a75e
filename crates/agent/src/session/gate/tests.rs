use std::time::Duration;

use super::*;

const BINDING: [u8; 32] = [3; 32];

fn gate() -> (TokenGate, Instant, String) {
    let now = Instant::now();
    let token = Token::random();
    let proof = token.prove(Prover::Controller, &BINDING);
    (TokenGate::new(token, now + Duration::from_secs(60)), now, proof)
}

#[test]
fn one_controller_enters_and_gets_the_agents_own_proof() {
    let (gate, now, proof) = gate();
    let answer = gate.enter(&proof, &BINDING, now).unwrap();
    assert!(gate.token().proves(Prover::Agent, &BINDING, &answer));
    assert_eq!(gate.enter(&proof, &BINDING, now), Err(DenialReason::Busy));
    assert_eq!(gate.open(now), Err(DenialReason::Busy));
}

#[test]
fn the_token_is_no_good_from_its_last_moment_on() {
    let (gate, now, proof) = gate();
    let late = now + Duration::from_secs(60);
    assert_eq!(gate.open(late), Err(DenialReason::Expired));
    assert_eq!(gate.enter(&proof, &BINDING, late), Err(DenialReason::Expired));
    assert!(gate.enter(&proof, &BINDING, late - Duration::from_nanos(1)).is_ok());
}
