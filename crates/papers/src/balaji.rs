//! Formulas of Balaji et al. 2006: Ethernet against InfiniBand and Myrinet through sockets.

use crate::Unit::{BitRate, Bits, Bytes, Number, Share, Time};
use crate::formula::{Example, Formula, var};

pub(crate) const FORMULAS: &[Formula] = &[
    Formula {
        id: "balaji.f.improve_lat",
        about: "gain of an offload in latency (section 5.1)",
        expression: "gain = (without - with) / without",
        variables: &[
            var("without", Time, "latency without offload"),
            var("with", Time, "latency with offload"),
        ],
        result: var("gain", Share, "gain"),
        compute: |v| (v[0] - v[1]) / v[0],
        example: Example { values: &[10.37e-6, 8.9e-6], result: 0.141_76, printed: "14.2 %" },
    },
    Formula {
        id: "balaji.f.improve_bw",
        about: "gain of an offload in bandwidth (section 5.1)",
        expression: "gain = with / without - 1",
        variables: &[
            var("with", BitRate, "rate with offload"),
            var("without", BitRate, "rate without offload"),
        ],
        result: var("gain", Share, "gain"),
        compute: |v| v[0] / v[1] - 1.0,
        example: Example { values: &[7.6e9, 5e9], result: 0.52, printed: "52 %" },
    },
    Formula {
        id: "balaji.f.throughput",
        about: "throughput, without headers (section 5.1)",
        expression: "throughput = bits / elapsed",
        variables: &[var("bits", Bits, "of the application"), var("elapsed", Time, "time")],
        result: var("throughput", BitRate, "throughput"),
        compute: |v| v[0] / v[1],
        example: Example { values: &[7.6e9, 1.0], result: 7.6e9, printed: "ours" },
    },
    Formula {
        id: "balaji.f.tile",
        about: "size of the picture of MPI-Tile-IO (section 6.2.2)",
        expression: "size = tiles_x tiles_y px py element",
        variables: &[
            var("tiles_x", Number, "tiles across"),
            var("tiles_y", Number, "tiles down"),
            var("px", Number, "pixels across a tile"),
            var("py", Number, "pixels down a tile"),
            var("element", Bytes, "of a pixel"),
        ],
        result: var("size", Bytes, "size"),
        compute: |v| v.iter().product(),
        example: Example {
            values: &[1.0, 2.0, 1024.0, 768.0, 32.0],
            result: 50_331_648.0,
            printed: "ours: 48 MiB",
        },
    },
    Formula {
        id: "balaji.f.switch",
        about: "memory bandwidth of a switch whose ports are all full (section 2.2.1)",
        expression: "bandwidth = 2 ports rate",
        variables: &[var("ports", Number, "ports"), var("rate", BitRate, "of a port, one way")],
        result: var("bandwidth", BitRate, "reads and writes"),
        compute: |v| 2.0 * v[0] * v[1],
        example: Example { values: &[12.0, 1e10], result: 240e9, printed: "240 Gb/s" },
    },
    Formula {
        id: "balaji.f.placement",
        about: "most clients on one node (section 5.2)",
        expression: "clients on a node = ceil(clients / nodes)",
        variables: &[var("clients", Number, "clients, dealt out in turn"), var("nodes", Number, "nodes")],
        result: var("most", Number, "clients on the fullest node"),
        compute: |v| (v[0] / v[1]).ceil(),
        example: Example { values: &[12.0, 3.0], result: 4.0, printed: "4 each" },
    },
    Formula {
        id: "balaji.f.tcb",
        about: "memory of an offload engine's connections (section 2.2.1)",
        expression: "memory = 128 connections",
        variables: &[var("connections", Number, "connections")],
        result: var("memory", Bytes, "memory"),
        compute: |v| 128.0 * v[0],
        example: Example { values: &[64_000.0], result: 8.192e6, printed: "ours" },
    },
    Formula {
        id: "balaji.f.ganglia",
        about: "time of Ganglia's query of all nodes, a model (section 6.2.3)",
        expression: "time = nodes (connect + transfer)",
        variables: &[
            var("nodes", Number, "nodes"),
            var("connect", Time, "set-up of a connection"),
            var("transfer", Time, "of 2 to 10 KB"),
        ],
        result: var("time", Time, "time"),
        compute: |v| v[0] * (v[1] + v[2]),
        example: Example { values: &[8.0, 60e-6, 20e-6], result: 640e-6, printed: "ours" },
    },
];
