//! RFC 3649: its table from its formulas, its appendix B, what the code makes of them.

use crate::drive::{Drive, close};

const TABLE: &str = include_str!("../../src/algorithms/highspeed/table.h");
const ONE: f64 = 65_536.0;

/// RFC 3649, section 5.
fn b(w: f64) -> f64 {
    let (low, high) = (38_f64, 83_000_f64);
    (0.1 - 0.5) * (w.ln() - low.ln()) / (high.ln() - low.ln()) + 0.5
}

/// RFC 3649, section 5, with the response function as it gives it, p = 0.078 / w^1.2.
fn a(w: f64) -> f64 {
    w.powi(2) * 0.078 / w.powf(1.2) * 2.0 * b(w) / (2.0 - b(w))
}

/// The rows of the C table: a and b in 1/65536.
fn rows() -> Vec<(f64, f64)> {
    let body = TABLE.split("highspeed_table[] = {").nth(1).expect("a table");
    let numbers = body.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let numbers: Vec<f64> = numbers.map(|word| word.parse().expect("a number")).collect();
    numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

#[test]
fn every_row_of_the_table_is_what_the_formulas_give() {
    let windows = (5..17).flat_map(|octave| (16..32).map(move |step| (1_u32 << octave) / 16 * step));
    let windows: Vec<u32> = windows.chain([1 << 17]).collect();
    let rows = rows();
    assert_eq!(rows.len(), windows.len());
    for (w, row) in windows.into_iter().map(f64::from).zip(rows) {
        let (a, b) = if w <= 38.0 { (1.0, 0.5) } else { (a(w).max(1.0), b(w)) };
        assert_eq!(row, ((a * ONE).round(), (b * ONE).round()), "w = {w}");
    }
}

/// RFC 3649, appendix B: the windows at which a(w) reaches each whole packet from 2 on, and b(w) there.
const APPENDIX_B: &[(u32, f64)] = &[
    (118, 0.44),
    (221, 0.41),
    (347, 0.38),
    (495, 0.37),
    (663, 0.35),
    (851, 0.34),
    (1058, 0.33),
    (1284, 0.32),
    (1529, 0.31),
    (1793, 0.30),
    (2076, 0.29),
    (2378, 0.28),
    (2699, 0.28),
    (3039, 0.27),
    (3399, 0.27),
    (3778, 0.26),
    (4177, 0.26),
    (4596, 0.25),
    (5036, 0.25),
    (5497, 0.24),
    (5979, 0.24),
    (6483, 0.23),
    (7009, 0.23),
    (7558, 0.22),
    (8130, 0.22),
    (8726, 0.22),
    (9346, 0.21),
    (9991, 0.21),
    (10661, 0.21),
    (11358, 0.20),
    (12082, 0.20),
    (12834, 0.20),
    (13614, 0.19),
    (14424, 0.19),
    (15265, 0.19),
    (16137, 0.19),
    (17042, 0.18),
    (17981, 0.18),
    (18955, 0.18),
    (19965, 0.17),
    (21013, 0.17),
    (22101, 0.17),
    (23230, 0.17),
    (24402, 0.16),
    (25618, 0.16),
    (26881, 0.16),
    (28193, 0.16),
    (29557, 0.15),
    (30975, 0.15),
    (32450, 0.15),
    (33986, 0.15),
    (35586, 0.14),
    (37253, 0.14),
    (38992, 0.14),
    (40808, 0.14),
    (42707, 0.13),
    (44694, 0.13),
    (46776, 0.13),
    (48961, 0.13),
    (51258, 0.13),
    (53677, 0.12),
    (56230, 0.12),
    (58932, 0.12),
    (61799, 0.12),
    (64851, 0.11),
    (68113, 0.11),
    (71617, 0.11),
    (75401, 0.10),
    (79517, 0.10),
    (84035, 0.10),
    (89053, 0.10),
];

#[test]
fn appendix_b_is_met_at_each_of_its_windows() {
    for (&(window, b), whole) in APPENDIX_B.iter().zip(2_u32..) {
        let mut drive = Drive::new("highspeed", window);
        let gain = drive.gain(32);
        assert!((gain - f64::from(whole)).abs() < 0.1, "w = {window}: a = {gain}, not {whole}");
        drive.lose();
        let kept = f64::from(drive.sk.snd_cwnd) / f64::from(window);
        // The appendix rounds b to hundredths, and drops what is beyond them in places.
        assert!((1.0 - kept - b).abs() < 0.011, "w = {window}: b = {}, not {b}", 1.0 - kept);
    }
}

#[test]
fn between_the_rows_it_stays_with_the_formulas() {
    for window in [42, 63, 65, 127, 1000, 4095, 4097, 50_001, 83_000, 131_071] {
        let mut drive = Drive::new("highspeed", window);
        close(drive.gain(64), a(f64::from(window)).max(1.0), 0.02);
        drive.lose();
        let b = 1.0 - f64::from(drive.sk.snd_cwnd) / f64::from(window);
        assert!(
            (b - self::b(f64::from(window))).abs() < 1.0 / f64::from(window) + 1e-3,
            "w = {window}: b = {b}"
        );
    }
}

#[test]
fn up_to_38_packets_it_is_reno() {
    for window in [2, 10, 37, 38] {
        let mut drive = Drive::new("highspeed", window);
        close(drive.gain(64), 1.0, 0.02);
        drive.lose();
        assert_eq!(drive.sk.snd_cwnd, (window - window / 2).max(2));
    }
}
