use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::sync_channel;
use std::thread;

use super::*;

const PEER: PeerHost = PeerHost { number: 7, address: std::net::IpAddr::V4(Ipv4Addr::LOCALHOST) };

const NOTHING: &[u8] = &[];

/// The size of the largest buffer of the streams in these tests, in bytes.
const LARGEST: usize = 8;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

fn query() -> Query {
    Query::new(Vec::new(), 1)
}

fn failure(query: &Query) -> Option<String> {
    let mut text = None;
    query.note(|state| text = state.failure.as_ref().map(ToString::to_string));
    text
}

fn frames(frames: &[(FrameKind, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames.iter().for_each(|(kind, body)| frame::write(&mut bytes, *kind, body).unwrap());
    bytes
}

/// Returns the failure of a stream with two credits that receives `bytes` and then the end of the connection.
fn received(bytes: &[u8], hears: impl FnOnce(&Query, TcpStream)) -> Option<String> {
    let (mut peer, own) = pair();
    peer.write_all(bytes).unwrap();
    drop(peer);
    let query = query();
    hears(&query, own);
    failure(&query)
}

fn as_consumer(query: &Query, stream: TcpStream) {
    let (inbox, _kept) = sync_channel(2);
    receive(query, (stream, PEER), LARGEST, (inbox, 0));
}

fn as_producer(query: &Query, stream: TcpStream) {
    let (back, _kept) = sync_channel(2);
    receive_credits(query, (stream, PEER), (back, 0));
}

#[test]
fn a_producer_that_breaks_the_protocol_is_named() {
    let full: &[u8] = &[0; LARGEST];
    let good = frames(&[(FrameKind::Buffer, full), (FrameKind::End, &[0; 4])]);
    assert_eq!(received(&good, as_consumer), None);
    for (bytes, why) in [
        (frames(&[(FrameKind::Buffer, &[0; LARGEST + 1])]), "a frame of 9 bytes where at most 8 are allowed"),
        (vec![1, 255, 255, 255, 255], "a frame of 4294967295 bytes"),
        (vec![99, 0, 0, 0, 0], "no frame has the kind 99"),
        (frames(&[(FrameKind::Credit, &[])]), "Credit of 0 bytes on a stream"),
        (frames(&[(FrameKind::End, &[0; 3])]), "End of 3 bytes on a stream"),
        (frames(&[(FrameKind::Buffer, full); 3]), "it sent more than its credits"),
    ] {
        let text = received(&bytes, as_consumer).unwrap();
        assert_eq!(text.split_once(": ").unwrap().0, "host 7 (127.0.0.1) broke the protocol");
        assert!(text.contains(why), "{text}");
    }
}

#[test]
fn a_consumer_that_breaks_the_protocol_is_named() {
    assert_eq!(received(&frames(&[(FrameKind::Credit, NOTHING); 2]), as_producer), None);
    for (bytes, why) in [
        (frames(&[(FrameKind::Credit, &[1])]), "a frame of 1 bytes where at most 0 are allowed"),
        (frames(&[(FrameKind::Buffer, &[])]), "Buffer instead of a credit"),
        (frames(&[(FrameKind::Credit, NOTHING); 3]), "it returned a credit too many"),
    ] {
        let text = received(&bytes, as_producer).unwrap();
        assert!(text.contains("host 7 (127.0.0.1) broke the protocol") && text.contains(why), "{text}");
    }
}

#[test]
fn a_broken_stream_waits_for_a_better_reason() {
    let query = query();
    query.suspect(Error::lost(PEER, "its stream broke"));
    query.check().unwrap();
    query.fail(Error::lost(PeerHost { number: 3, ..PEER }, "its connection closed"));
    query.check().unwrap_err();
    assert!(failure(&query).unwrap().contains("host 3 "));

    // The first host reports nothing.
    let query = self::query();
    query.verdict(Error::lost(PEER, "its stream broke"));
    assert!(failure(&query).unwrap().contains("host 7 (127.0.0.1) is gone: its stream broke"));
}

#[test]
fn a_marker_of_another_unit_is_an_error() {
    let (_kept, own) = pair();
    let query = query();
    let (inbox, arrivals) = sync_channel(2);
    inbox.send((0, StreamMessage::End(5))).unwrap();
    let mut input = FilterInput::new(&query, 2, arrivals, vec![StreamEndpoint::Socket(own, PEER)]);
    let text = input.take().unwrap_err().to_string();
    assert!(text.contains("the end of unit 5 came in unit 0"), "{text}");
}

#[test]
fn a_unit_ends_when_every_producer_has_ended_it() {
    let query = query();
    let (inbox, arrivals) = sync_channel(8);
    let (back, credits) = sync_channel(8);
    let endpoints = (0..2).map(|_| StreamEndpoint::Local((back.clone(), 0))).collect();
    let mut input = FilterInput::new(&query, 4, arrivals, endpoints);
    // The first producer is a unit ahead of the second.
    let sent = [(0, Some(1)), (0, None), (0, Some(2)), (1, Some(3)), (1, None)];
    for (producer, number) in sent {
        inbox
            .send((
                producer,
                number.map_or(StreamMessage::End(0), |number| StreamMessage::Buffer(vec![number])),
            ))
            .unwrap();
    }
    assert_eq!(input.take().unwrap(), Some([1].as_slice()));
    assert_eq!(input.take().unwrap(), Some([3].as_slice()));
    assert_eq!(input.take().unwrap(), None);
    // Two buffers and two markers return their credits; the next unit's buffer keeps its own.
    assert_eq!(credits.try_iter().count(), 4);
    input.turn().unwrap();
    assert_eq!(input.take().unwrap(), Some([2].as_slice()));
}

/// Returns the index of the copy that gets each of five buffers, if only the second of two copies returns its
/// credits.
fn shared_out(distribution: Distribution) -> Vec<usize> {
    let query = query();
    let ends: Vec<_> = (0..2).map(|_| sync_channel(8)).collect();
    let (back, credits) = sync_channel(8);
    let endpoints = ends.iter().map(|(inbox, _)| StreamEndpoint::Local(inbox.clone())).collect();
    let parts =
        OutputParts { distribution, credits: 4, largest: LARGEST, producer: 0, endpoints, back: credits };
    let mut output = FilterOutput::stream(&query, parts);
    let send = |_| {
        output.send(vec![0; LARGEST]).unwrap();
        let went = ends.iter().position(|(_, outbox)| outbox.try_recv().is_ok()).unwrap();
        if went == 1 {
            back.send(1).unwrap();
        }
        went
    };
    (0..5).map(send).collect()
}

#[test]
fn demand_follows_the_credits_and_round_robin_does_not() {
    assert_eq!(shared_out(Distribution::RoundRobin), [0, 1, 0, 1, 0]);
    assert_eq!(shared_out(Distribution::Demand), [0, 1, 1, 1, 1]);
}

#[test]
fn a_producer_without_credits_waits_until_one_returns() {
    let query = query();
    let (inbox, outbox) = sync_channel(8);
    let (back, credits) = sync_channel(8);
    let endpoints = vec![StreamEndpoint::Local(inbox)];
    let parts = OutputParts {
        distribution: Distribution::Demand,
        credits: 2,
        largest: LARGEST,
        producer: 0,
        endpoints,
        back: credits,
    };
    let mut output = FilterOutput::stream(&query, parts);
    thread::scope(|scope| {
        scope.spawn(|| (0..10).for_each(|_| output.send(vec![0; LARGEST]).unwrap()));
        for _ in 0..10 {
            outbox.recv().unwrap();
            back.send(0).unwrap();
        }
    });
    let report = query.report();
    assert_eq!((report.buffers, report.network), (10, 0));
    assert!(report.peak <= 2 * LARGEST as u64);
}

#[test]
fn a_stream_that_breaks_after_the_filters_are_done_is_no_error() {
    let query = Query::new(Vec::new(), 0);
    query.suspect(Error::lost(PEER, "its stream broke"));
    thread::sleep(crate::filter::query::GRACE);
    query.check().unwrap();
    assert_eq!(failure(&query), None);
}
