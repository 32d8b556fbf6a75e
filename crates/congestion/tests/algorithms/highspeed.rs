//! HighSpeed TCP against RFC 3649: its table against the formulas, its windows against appendix B.

use crate::drive::{DrivenConnection, close};

const TABLE: &str = include_str!("../../src/algorithms/highspeed/table.h");
const ONE: f64 = 65_536.0;

/// Returns b(w) by RFC 3649, section 5.
fn b(w: f64) -> f64 {
    let (low, high) = (38_f64, 83_000_f64);
    (0.1 - 0.5) * (w.ln() - low.ln()) / (high.ln() - low.ln()) + 0.5
}

/// Returns a(w) by RFC 3649, section 5, with the response function given there, p = 0.078 / w^1.2.
fn a(w: f64) -> f64 {
    w.powi(2) * 0.078 / w.powf(1.2) * 2.0 * b(w) / (2.0 - b(w))
}

/// Returns the rows of `highspeed_table` in the C source: the increase a(w) and the decrease b(w) of each window, in
/// units of 1/65536.
fn rows() -> Vec<(f64, f64)> {
    let body = TABLE.split("highspeed_table[] = {").nth(1).expect("a table");
    let numbers = body.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let numbers: Vec<f64> = numbers.map(|word| word.parse().expect("a number")).collect();
    numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

#[test]
fn every_row_of_the_table_follows_from_the_formulas() {
    let windows = (5..17).flat_map(|octave| (16..32).map(move |step| (1_u32 << octave) / 16 * step));
    let windows: Vec<u32> = windows.chain([1 << 17]).collect();
    let rows = rows();
    assert_eq!(rows.len(), windows.len());
    for (w, row) in windows.into_iter().map(f64::from).zip(rows) {
        let (a, b) = if w <= 38.0 { (1.0, 0.5) } else { (a(w).max(1.0), b(w)) };
        assert_eq!(row, ((a * ONE).round(), (b * ONE).round()), "w = {w}");
    }
}

/// The windows at which a(w) reaches each whole packet from 2 on, in RFC 3649, appendix B.
const APPENDIX_WINDOWS: [u32; 71] = [
    118, 221, 347, 495, 663, 851, 1058, 1284, 1529, 1793, 2076, 2378, 2699, 3039, 3399, 3778, 4177, 4596,
    5036, 5497, 5979, 6483, 7009, 7558, 8130, 8726, 9346, 9991, 10661, 11358, 12082, 12834, 13614, 14424,
    15265, 16137, 17042, 17981, 18955, 19965, 21013, 22101, 23230, 24402, 25618, 26881, 28193, 29557, 30975,
    32450, 33986, 35586, 37253, 38992, 40808, 42707, 44694, 46776, 48961, 51258, 53677, 56230, 58932, 61799,
    64851, 68113, 71617, 75401, 79517, 84035, 89053,
];
/// The values of b(w) at these windows, in hundredths, in RFC 3649, appendix B.
const APPENDIX_B: [u32; 71] = [
    44, 41, 38, 37, 35, 34, 33, 32, 31, 30, 29, 28, 28, 27, 27, 26, 26, 25, 25, 24, 24, 23, 23, 22, 22, 22,
    21, 21, 21, 20, 20, 20, 19, 19, 19, 19, 18, 18, 18, 17, 17, 17, 17, 16, 16, 16, 16, 15, 15, 15, 15, 14,
    14, 14, 14, 13, 13, 13, 13, 13, 12, 12, 12, 12, 11, 11, 11, 10, 10, 10, 10,
];

#[test]
fn appendix_b_is_met_at_each_of_its_windows() {
    for ((window, b), whole) in APPENDIX_WINDOWS.into_iter().zip(APPENDIX_B).zip(2_u32..) {
        let b = f64::from(b) / 100.0;
        let mut drive = DrivenConnection::new("highspeed", window);
        let gain = drive.gain(32);
        assert!((gain - f64::from(whole)).abs() < 0.1, "w = {window}: a = {gain}, not {whole}");
        drive.lose();
        let kept = f64::from(drive.sk.snd_cwnd) / f64::from(window);
        // The appendix rounds b to hundredths, and truncates it in places.
        assert!((1.0 - kept - b).abs() < 0.011, "w = {window}: b = {}, not {b}", 1.0 - kept);
    }
}

#[test]
fn between_the_rows_it_stays_with_the_formulas() {
    for window in [42, 63, 65, 127, 1000, 4095, 4097, 50_001, 83_000, 131_071] {
        let mut drive = DrivenConnection::new("highspeed", window);
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
        let mut drive = DrivenConnection::new("highspeed", window);
        close(drive.gain(64), 1.0, 0.02);
        drive.lose();
        assert_eq!(drive.sk.snd_cwnd, (window - window / 2).max(2));
    }
}
