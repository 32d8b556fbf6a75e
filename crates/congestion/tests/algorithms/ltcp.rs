//! LTCP: the windows at which its layers begin, its increase and its decrease.

use crate::drive::{DrivenConnection, close};

/// Returns the windows at which the paper's layers begin: delta_1 = 50, delta_K = delta_(K-1) (K + 1) / (K - 1).
fn begins() -> Vec<u32> {
    let (mut begins, mut step) = (vec![0_u32], 50_u64);
    for layer in 2_u64.. {
        let next = u64::from(begins[begins.len() - 1]) + step;
        if next > 1 << 24 {
            return begins;
        }
        begins.push(u32::try_from(next).expect("below 2^24"));
        step = step * (layer + 1) / (layer - 1);
    }
    unreachable!("layers grow without bound")
}

#[test]
fn layers_begin_at_the_windows_of_the_papers_recursion() {
    let begins = begins();
    assert_eq!(begins[..8], [0, 50, 200, 500, 1000, 1750, 2800, 4200]);
    for (window, layer) in begins.into_iter().zip(1_u32..).skip(1).take(19) {
        for (window, layers) in [(window - 1, layer - 1), (window, layer)] {
            let mut drive = DrivenConnection::new("ltcp", window);
            close(drive.gain(16), f64::from(layers), 1.0 / 15.0 / f64::from(layers));
        }
    }
}

#[test]
fn a_loss_takes_15_per_cent_and_at_most_one_layer() {
    let begins = begins();
    let layer = |window: u32| begins.iter().filter(|&&begin| begin <= window).count();
    // The paper's 0.15 drops one layer at most up to layer 19: 0.15 = 3 / (19 + 1).
    for window in (50..57_000).step_by(37) {
        let drive = DrivenConnection::after_a_loss("ltcp", window);
        let kept = drive.sk.snd_cwnd;
        assert!((f64::from(kept) - 0.85 * f64::from(window)).abs() <= 1.5, "{window}: {kept}");
        assert!(layer(window) - layer(kept) <= 1, "{window}: {} to {}", layer(window), layer(kept));
    }
}

#[test]
fn with_one_layer_it_is_reno() {
    let mut drive = DrivenConnection::new("ltcp", 49);
    close(drive.gain(64), 1.0, 0.02);
    drive.lose();
    assert_eq!(drive.sk.snd_cwnd, 24);
}
