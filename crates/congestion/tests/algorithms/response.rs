//! Tests of the window as a function of the loss rate. Every n-th packet is lost, and the mean window over 30 cycles,
//! after ten that do not count, is compared with the published response functions. The RTT is constant, so only the
//! effect of losses is tested.

use crate::drive::{DrivenConnection, RTT, close};

/// Returns the mean window if every `n`-th packet is lost. The flow begins with `start` packets, which should be near
/// the mean, because ten cycles do not remove the effect of a distant start.
fn mean_window(name: &str, n: u64, start: f64) -> f64 {
    let mut drive = DrivenConnection::new(name, start as u32);
    let (mut since, mut losses) = (0, 0);
    let (mut packets, mut rounds) = (0, 0);
    while losses < 40 {
        let window = u64::from(drive.sk.snd_cwnd);
        drive.round(RTT);
        if losses >= 10 {
            packets += window;
            rounds += 1;
        }
        since += window;
        if since >= n {
            since -= n;
            losses += 1;
            drive.lose();
        }
    }
    packets as f64 / rounds as f64
}

/// Asserts that the mean window is within 10 % of `published` at loss rates of 1e-4 to 1e-6, and within 20 % at 1e-3.
fn follows(name: &str, published: impl Fn(f64) -> f64) {
    for (n, share) in [(1_000, 0.2), (10_000, 0.1), (100_000, 0.1), (1_000_000, 0.1)] {
        let should = published(1.0 / n as f64);
        let is = mean_window(name, n, should);
        println!("{name} p=1/{n}: {is:.1}, published {should:.1}");
        close(is, should, share);
    }
}

#[test]
fn reno_follows_the_square_root() {
    // Mathis, Semke, Mahdavi, Ott, ACM CCR 27(3), 1997: periodic losses, every packet acknowledged.
    follows("reno", |p| (1.5 / p).sqrt());
}

#[test]
fn highspeed_follows_rfc_3649() {
    // RFC 3649, section 5: w = 0.12 / p^0.835.
    follows("highspeed", |p| 0.12 / p.powf(0.835));
}

#[test]
fn scalable_follows_kelly() {
    // Kelly, ACM CCR 33(2), 2003: w = a/b / p.
    follows("scalable", |p| 0.08 / p);
}

#[test]
fn africa_without_a_queue_is_highspeed() {
    follows("africa", |p| 0.12 / p.powf(0.835));
}

#[test]
fn bic_follows_its_two_regimes() {
    // Xu, Harfoush, Rhee, beta 1/8: S_max per RTT, then half of the distance left in each, then S_min. Solved for the
    // window here, because the paper's closed forms are limits.
    follows("bic", |p| bic_mean(1.0 / p));
}

/// Returns the mean window of a cycle that carries `n` packets, by bisection over the window at the loss.
fn bic_mean(n: f64) -> f64 {
    let cycle = |max: f64| {
        let (mut window, mut packets, mut rounds) = (max * 0.875, 0.0, 0.0);
        while window < max {
            packets += window;
            rounds += 1.0;
            window += ((max - window) / 2.0).clamp(0.01, 32.0);
        }
        (packets, rounds)
    };
    let (mut low, mut high) = (10.0, 1e7);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if cycle(middle).0 < n { low = middle } else { high = middle }
    }
    let (packets, rounds) = cycle(low);
    packets / rounds
}
