//! Ends without files: a source that makes content as it is sent, and a target that keeps none.

use landspeed_mover::{DiscardedFiles, MadeFiles, discard, send_made};

use super::*;

/// Files of these lengths, in two folders.
struct Made([usize; 4]);

const MADE: Made = Made([0, 10, MIB, 3 * MIB + 5]);

impl Made {
    fn content(&self, number: u64) -> Vec<u8> {
        bytes(self.0[number as usize], number + 1)
    }
}

impl MadeFiles for Made {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn name(&self, number: u64) -> RelativeName {
        let name = format!("{}/{number}", number % 2);
        RelativeName::parse(name.as_bytes()).expect("a name")
    }

    fn length(&self, number: u64) -> u64 {
        self.0[number as usize] as u64
    }

    fn fill(&self, number: u64, offset: u64, into: &mut [u8]) {
        let from = offset as usize;
        into.copy_from_slice(&self.content(number)[from..from + into.len()]);
    }
}

/// Sends what `send` sends to what `receive` receives, and returns what came of both.
fn between<S: Send, R: Send>(
    send: impl FnOnce(Flows, &CancelFlag) -> Result<S, Error> + Send,
    receive: impl FnOnce(Flows, &CancelFlag) -> Result<R, Error> + Send,
) -> (Result<S, Error>, Result<R, Error>) {
    let ([sending, receiving], cancel) = (flows("tls", 3), CancelFlag::default());
    std::thread::scope(|scope| {
        let received = scope.spawn(|| receive(receiving, &cancel));
        let sent = send(sending, &cancel);
        (sent, received.join().expect("no panic"))
    })
}

fn made(flows: Flows, cancel: &CancelFlag) -> Result<CopyOutcome, Error> {
    send_made(flows, &MADE, None, &CopyProgress::default(), cancel)
}

fn discarded(flows: Flows, cancel: &CancelFlag) -> Result<DiscardedFiles, Error> {
    discard(flows, &CopyProgress::default(), cancel)
}

#[test]
fn files_that_are_made_as_they_are_sent_arrive() {
    let all = tempfile::tempdir().unwrap();
    let to = all.path().join("new");
    let (sent, received) =
        between(made, |flows, cancel| receive(flows, &target(&to), &CopyProgress::default(), cancel));
    let (outcome, ()) = (sent.unwrap(), received.unwrap());
    assert!(outcome.is_complete() && outcome.copied == 4, "{outcome:?}");
    for number in 0..4 {
        let path = to.join(format!("{}/{number}", number % 2));
        assert!(fs::read(path).unwrap() == MADE.content(number), "{number}");
    }
}

#[test]
fn an_end_that_keeps_nothing_counts_whole_files() {
    let from = tempfile::tempdir().unwrap();
    tree(from.path());
    let expected: u64 = content(from.path()).values().map(|entry| entry.3.len() as u64).sum();
    let (outcome, found) = between(
        |flows, cancel| send(flows, &source(from.path()), &CopyProgress::default(), cancel),
        discarded,
    );
    let (outcome, found) = (outcome.unwrap(), found.unwrap());
    assert!(outcome.is_complete(), "{outcome:?}");
    assert_eq!((found.files, found.bytes), (outcome.copied, outcome.copied_bytes.0));
    // The text of two links is no content.
    assert_eq!((found.files, found.bytes), (606, expected - 14));
}

#[test]
fn neither_end_needs_a_file() {
    let (outcome, found) = between(made, discarded);
    let lengths: u64 = MADE.0.iter().map(|length| *length as u64).sum();
    assert_eq!(found.unwrap(), DiscardedFiles { files: 4, bytes: lengths });
    assert_eq!(outcome.unwrap().copied_bytes.0, lengths);
}
