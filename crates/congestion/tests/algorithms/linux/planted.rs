//! Errors of 5 % (one in twenty for counts) that are planted in our controls. The comparison must find each of them.

/// Errors in one of our sources.
pub(super) struct PlantedErrors {
    /// The controls that use the source.
    pub(super) controls: &'static [&'static str],
    /// The source's path below src/algorithms.
    pub(super) file: &'static str,
    /// The errors: for each, a text that occurs exactly once in the source, and the text that replaces it.
    pub(super) errors: &'static [[&'static str; 2]],
}

pub(super) const PLANTED: &[PlantedErrors] = &[
    PlantedErrors {
        controls: &["reno"],
        file: "reno/reno.c",
        errors: &[
            ["tp, tp->snd_cwnd, acked", "tp, tp->snd_cwnd * 20 / 21, acked"],
            ["tcp_sk(sk)->snd_cwnd >> 1", "tcp_sk(sk)->snd_cwnd * 19 / 40"],
            ["ls_undo(sk)", "ls_undo(sk) * 19 / 20"],
        ],
    },
    PlantedErrors {
        controls: &["cubic"],
        file: "cubic/cubic.c",
        errors: &[
            ["CUBIC_MS3 2500000000ULL", "CUBIC_MS3 2625000000ULL"],
            ["CUBIC_MS3 2500000000ULL", "CUBIC_MS3 2375000000ULL"],
            ["LS_FRACTION(717, 1024)", "LS_FRACTION(681, 1024)"],
            [
                "LS_FRACTION(3 * (1024 - 717), 1024 + 717)",
                "LS_FRACTION(63 * (1024 - 717), 20 * (1024 + 717))",
            ],
            ["CUBIC_FIRST_COUNT 20U", "CUBIC_FIRST_COUNT 21U"],
            ["HYSTART_LOW_WINDOW 16U", "HYSTART_LOW_WINDOW 17U"],
        ],
    },
    PlantedErrors {
        controls: &["bic"],
        file: "bic/bic.c",
        errors: &[
            ["BIC_S_MAX (32 * LS_ONE)", "BIC_S_MAX (336 * LS_ONE / 10)"],
            ["BIC_BETA LS_FRACTION(1, 8)", "BIC_BETA LS_FRACTION(21, 160)"],
        ],
    },
    PlantedErrors {
        controls: &["highspeed", "africa", "hstcp_lp"],
        file: "highspeed/response.h",
        errors: &[
            ["highspeed_at(tp->snd_cwnd).a", "highspeed_at(tp->snd_cwnd).a * 21ULL / 20"],
            ["highspeed_at(tp->snd_cwnd).a", "highspeed_at(tp->snd_cwnd).a * 19ULL / 20"],
            ["highspeed_at(tp->snd_cwnd).b", "highspeed_at(tp->snd_cwnd).b * 21 / 20"],
            ["highspeed_at(tp->snd_cwnd).b", "highspeed_at(tp->snd_cwnd).b * 19 / 20"],
        ],
    },
    PlantedErrors {
        controls: &["htcp"],
        file: "htcp/htcp.c",
        errors: &[
            ["LS_ONE + 10 * beyond", "LS_ONE + 21 * beyond / 2"],
            ["HTCP_BETA_MAX LS_FRACTION(4, 5)", "HTCP_BETA_MAX LS_FRACTION(84, 100)"],
            ["HTCP_BETA_MIN LS_FRACTION(1, 2)", "HTCP_BETA_MIN LS_FRACTION(21, 40)"],
            ["ls_div((__u64)ca->rtt_min << 16", "ls_div(21 * (__u64)ca->rtt_min / 20 << 16"],
        ],
    },
    PlantedErrors {
        controls: &["scalable"],
        file: "scalable/scalable.c",
        errors: &[
            ["LS_FRACTION(1, 100)", "LS_FRACTION(21, 2000)"],
            ["LS_FRACTION(1, 8)", "LS_FRACTION(21, 160)"],
        ],
    },
    PlantedErrors {
        controls: &["westwood"],
        file: "westwood/westwood.c",
        errors: &[
            ["tp, ls_max(tp->snd_cwnd, 1), acked", "tp, ls_max(tp->snd_cwnd * 20 / 21, 1), acked"],
            [
                "ls_div((__u64)(tp->delivered - ca->delivered) << 24",
                "ls_div((__u64)(tp->delivered - ca->delivered) * 19 / 20 << 24",
            ],
        ],
    },
    PlantedErrors {
        controls: &["veno"],
        file: "veno/veno.c",
        errors: &[
            ["VENO_BACKLOG 3U", "VENO_BACKLOG 4U"],
            ["VENO_KEPT, VENO_OF)", "VENO_KEPT * 19, VENO_OF * 20)"],
            [
                "ls_max(ls_min(tp->snd_cwnd, LS_MAX_CWND)",
                "ls_max(ls_min(tp->snd_cwnd * 20 / 21, LS_MAX_CWND)",
            ],
            ["congested ? 1 : 0", "congested ? 0 : 0"],
        ],
    },
    PlantedErrors {
        controls: &["ltcp"],
        file: "ltcp/ltcp.c",
        errors: &[
            ["(tp->snd_cwnd) * LS_ONE", "(tp->snd_cwnd) * (LS_ONE + LS_ONE / 20)"],
            ["LS_FRACTION(15, 100)", "LS_FRACTION(63, 400)"],
            ["LTCP_W_T 50U", "LTCP_W_T 53U"],
        ],
    },
    PlantedErrors {
        controls: &["fast"],
        file: "fast/fast.c",
        errors: &[
            ["FAST_ALPHA 200U", "FAST_ALPHA 210U"],
            ["ls_kept(tcp_sk(sk), LS_HALF)", "ls_kept(tcp_sk(sk), LS_ONE * 19 / 40)"],
        ],
    },
    PlantedErrors {
        controls: &["bbr"],
        file: "bbr/state.h",
        errors: &[
            ["BBR_CWND_GAIN (2 * BBR_UNIT)", "BBR_CWND_GAIN (19 * BBR_UNIT / 10)"],
            ["BBR_UNIT * 2885 / 1000 + 1", "BBR_UNIT * 3029 / 1000 + 1"],
            ["BBR_UNIT * 1000 / 2885", "BBR_UNIT * 950 / 2885"],
            ["return BBR_UNIT * 5 / 4;", "return BBR_UNIT * 6 / 5;"],
            ["BBR_PACED_PERCENT 99U", "BBR_PACED_PERCENT 94U"],
            ["BBR_MIN_RTT_WINDOW (10 * LS_USEC_PER_SEC)", "BBR_MIN_RTT_WINDOW (21 * LS_USEC_PER_SEC / 2)"],
        ],
    },
];
