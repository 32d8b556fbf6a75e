//! The paper's tables as printed, for its longest path (SLAC to CERN, 1 Gb/s, 164 ms).

/// The one of the paper's nine protocols that is not a TCP.
pub(super) const UDT: &str = "udt";

/// Table 1, "aggregate over all seven regions", by our names and those of the papers' ledger: mean and deviation in Mb/s,
/// stability, the least and the greatest fairness of regions 2 to 6, MHz per Mb/s, the round trip's deviation in ms, and
/// the share of a sender's processor that a flow takes.
///
/// The last row is that of UDTv2, which is not a TCP; ours is version 4. BICTCP's greatest fairness is printed as
/// "99" and read as 0.99; those of HSTCP, Scalable and LTCP differ by 0.01 from the values in Table 2.
#[rustfmt::skip]
pub(super) const TABLE_1: [(&str, &str, [f64; 8]); 9] = [
    ("reno",      "reno",     [248.0, 163.0, 0.66, 0.60, 0.99, 0.63, 22.0, 0.020]),
    ("highspeed", "hstcp",    [255.0, 187.0, 0.73, 0.79, 0.99, 0.90, 25.0, 0.028]),
    ("htcp",      "htcp",     [402.0, 113.0, 0.28, 0.99, 1.00, 0.65, 57.0, 0.030]),
    ("scalable",  "scalable", [423.0, 115.0, 0.27, 0.82, 0.99, 0.64, 22.0, 0.033]),
    ("fast",      "fasttcp",  [335.0, 110.0, 0.33, 0.58, 0.80, 0.66,  9.0, 0.028]),
    ("ltcp",      "ltcp",     [376.0, 137.0, 0.36, 0.56, 1.00, 0.67, 41.0, 0.035]),
    ("hstcp_lp",  "hstcplp",  [228.0, 114.0, 0.50, 0.64, 0.99, 0.65, 33.0, 0.010]),
    ("bic",       "bictcp",   [412.0, 117.0, 0.28, 0.98, 0.99, 0.71, 55.0, 0.033]),
    (UDT,         "udtv2",    [390.0, 136.0, 0.35, 0.95, 1.00, 1.20, 49.0, 0.075]),
];

/// Table 2, in the order of [`TABLE_1`]: stability and fairness by region. Regions 1 and 7 have one flow.
#[rustfmt::skip]
pub(super) const TABLE_2: [[[f64; 7]; 2]; 9] = [
    [[0.70, 0.46, 0.24, 0.49, 0.46, 0.23, 0.40], [1.0, 0.70, 0.60, 0.85, 0.98, 0.99, 1.0]],
    [[0.13, 0.30, 0.24, 0.55, 1.02, 0.63, 0.40], [1.0, 0.95, 0.97, 0.79, 0.99, 1.00, 1.0]],
    [[0.33, 0.26, 0.30, 0.24, 0.20, 0.12, 0.40], [1.0, 1.00, 0.99, 0.99, 1.00, 1.00, 1.0]],
    [[0.13, 0.36, 0.35, 0.17, 0.21, 0.36, 0.18], [1.0, 0.99, 0.82, 0.99, 1.00, 0.99, 1.0]],
    [[0.61, 0.36, 0.28, 0.16, 0.30, 0.23, 0.38], [1.0, 0.62, 0.74, 0.80, 0.73, 0.58, 1.0]],
    [[0.67, 0.18, 0.33, 0.31, 0.25, 0.19, 0.15], [1.0, 0.99, 0.82, 0.76, 0.56, 0.97, 1.0]],
    [[0.12, 0.28, 0.23, 0.26, 0.21, 0.69, 0.35], [1.0, 0.64, 0.70, 0.75, 0.71, 0.99, 1.0]],
    [[0.35, 0.30, 0.14, 0.17, 0.12, 0.19, 0.34], [1.0, 0.98, 0.98, 0.98, 0.99, 0.98, 1.0]],
    [[0.39, 0.25, 0.50, 0.25, 0.24, 0.26, 0.43], [1.0, 1.00, 0.95, 1.00, 1.00, 0.99, 1.0]],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_tables_agree_with_themselves() {
        for ((protocol, _, [mean, deviation, stability, least, ..]), [_, fairness]) in
            TABLE_1.iter().zip(&TABLE_2)
        {
            assert!((deviation / mean - stability).abs() < 0.006, "{protocol}");
            let of_regions = fairness[1..6].iter().copied().fold(1.0, f64::min);
            assert!((of_regions - least).abs() < 1e-9, "{protocol}");
        }
    }
}
