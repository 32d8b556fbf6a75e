//! Formulas of Cottrell et al. 2005: transports on wide-area paths.

use crate::Unit::{BitRate, Bytes, Hertz, Number, Share, Time};
use crate::formula::{Example, Formula, var, vars};

pub(crate) const FORMULAS: &[Formula] = &[
    Formula {
        id: "cottrell.f.stability",
        about: "stability of a throughput, less is steadier (section IV.A)",
        expression: "S = s / mu",
        variables: &[var("s", BitRate, "standard deviation"), var("mu", BitRate, "mean throughput")],
        result: var("S", Share, "stability"),
        compute: |v| v[0] / v[1],
        example: Example { values: &[163e6, 248e6], result: 0.657_3, printed: "0.66" },
    },
    Formula {
        id: "cottrell.f.fairness",
        about: "Jain's fairness of flows (section IV.A)",
        expression: "F = (sum mu)^2 / (n sum mu^2)",
        variables: &[vars("mu", BitRate, "mean throughput of each flow")],
        result: var("F", Share, "fairness, from 1/n to 1"),
        compute: |mu| {
            mu.iter().sum::<f64>().powi(2)
                / (mu.len() as f64 * mu.iter().map(|rate| rate * rate).sum::<f64>())
        },
        example: Example { values: &[100e6, 100e6, 50e6], result: 0.925_93, printed: "ours" },
    },
    Formula {
        id: "cottrell.f.regions",
        about: "flows that are active in a run of four staggered flows (section III.A)",
        expression: "flows = 1, 2, 3, 4, 3, 2, 1 for 1, 1, 1, 2, 1, 1, 1 intervals",
        variables: &[
            var("t", Time, "time since the first flow began"),
            var("interval", Time, "120 s in the paper"),
        ],
        result: var("flows", Number, "active flows"),
        compute: |v| match v[0] / v[1] {
            at if (0.0..5.0).contains(&at) => at.floor().min(3.0) + 1.0,
            at if (5.0..8.0).contains(&at) => 8.0 - at.floor(),
            _ => 0.0,
        },
        example: Example { values: &[500.0, 120.0], result: 4.0, printed: "4" },
    },
    Formula {
        id: "cottrell.f.mhzmbps",
        about: "processor clock for a throughput (section IV.A)",
        expression: "cost = utilisation clock / throughput, in MHz for Mb/s",
        variables: &[
            var("utilisation", Share, "of one processor"),
            var("clock", Hertz, "its clock"),
            var("throughput", BitRate, "of a flow"),
        ],
        result: var("cost", Number, "Hz for bit/s"),
        compute: |v| v[0] * v[1] / v[2],
        example: Example { values: &[0.02, 3060e6, 99.2e6], result: 0.617, printed: "0.63" },
    },
    Formula {
        id: "cottrell.f.ghzgbps",
        about: "processor clock for a throughput of several processors (section IV.B.2)",
        expression: "cost = processors clock / throughput, in GHz for Gb/s",
        variables: &[
            var("processors", Number, "in use, 1.48 where 148 % are"),
            var("clock", Hertz, "their clock"),
            var("throughput", BitRate, "of all flows"),
        ],
        result: var("cost", Number, "Hz for bit/s"),
        compute: |v| v[0] * v[1] / v[2],
        example: Example { values: &[1.48, 2.4e9, 7.42e9], result: 0.478_7, printed: "ours" },
    },
    Formula {
        id: "cottrell.f.headers",
        about: "rate on the wire with headers (section IV.B.2)",
        expression: "wire = rate frame / payload",
        variables: &[
            var("rate", BitRate, "of payload"),
            var("frame", Bytes, "1518 at MTU 1500"),
            var("payload", Bytes, "1460 at MTU 1500"),
        ],
        result: var("wire", BitRate, "rate on the wire"),
        compute: |v| v[0] * v[1] / v[2],
        example: Example { values: &[9.07e9, 1518.0, 1460.0], result: 9.430_3e9, printed: "9.43 Gb/s" },
    },
    Formula {
        id: "cottrell.f.pcix",
        about: "effective rate of PCI-X, which cuts transfers (section IV.B.2)",
        expression: "rate = 8 mmrbc / (overhead + 8 mmrbc / (width clock))",
        variables: &[
            var("width", Number, "bits of the bus"),
            var("clock", Hertz, "of the bus"),
            var("mmrbc", Bytes, "bytes in one transfer"),
            var("overhead", Time, "between two transfers"),
        ],
        result: var("rate", BitRate, "effective rate"),
        compute: |v| 8.0 * v[2] / (v[3] + 8.0 * v[2] / (v[0] * v[1])),
        example: Example {
            values: &[64.0, 133.33e6, 4096.0, 0.96e-6],
            result: 6.826e9,
            printed: "about 6.83 Gb/s",
        },
    },
    Formula {
        id: "cottrell.f.streams",
        about: "rate of several streams (section IV.B.2)",
        expression: "aggregate = streams rate",
        variables: &[var("streams", Number, "streams"), var("rate", BitRate, "of each")],
        result: var("aggregate", BitRate, "rate of all"),
        compute: |v| v[0] * v[1],
        example: Example { values: &[16.0, 463.3e6], result: 7.412_8e9, printed: "7.42 Gb/s measured" },
    },
    Formula {
        id: "cottrell.f.window_cap",
        about: "highest rate with a window (section II.B)",
        expression: "rate = 8 window / RTT",
        variables: &[var("window", Bytes, "window"), var("RTT", Time, "round-trip time")],
        result: var("rate", BitRate, "highest rate"),
        compute: |v| 8.0 * v[0] / v[1],
        example: Example { values: &[16_777_216.0, 0.164], result: 818.4e6, printed: "ours" },
    },
];
