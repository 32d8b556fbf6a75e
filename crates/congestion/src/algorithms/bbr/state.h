// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* BBR's state, constants and arithmetic. "Draft" is draft-cardwell-iccrg-bbr-congestion-control-00, July 2017. */
#ifndef LANDSPEED_BBR_STATE_H
#define LANDSPEED_BBR_STATE_H

#include "grow.h"

/* Bandwidths are packets per microsecond in 2^-24, gains in 2^-8: Linux net/ipv4/tcp_bbr.c. */
#define BBR_BW_SHIFT 24
#define BBR_UNIT 256U

/* Draft, section 4.1.1: BtlBwFilterLen, in RTTs. */
#define BBR_BW_ROUNDS 10
/* Draft, section 4.1.2: RTpropFilterLen; section 4.3.5: ProbeRTTDuration. */
#define BBR_MIN_RTT_WINDOW (10 * LS_USEC_PER_SEC)
#define BBR_PROBE_RTT_TIME 200000U
/* Draft, section 4.3.2.1: the gain of Startup, 2/ln 2, and that of Drain, its inverse. */
#define BBR_HIGH_GAIN (BBR_UNIT * 2885 / 1000 + 1)
#define BBR_DRAIN_GAIN (BBR_UNIT * 1000 / 2885)
#define BBR_CWND_GAIN (2 * BBR_UNIT)
/* Draft, section 4.2.3: BBRMinPipeCwnd. */
#define BBR_MIN_CWND 4U
/* Draft, section 4.3.2.2: the pipe is full after three RTTs without a quarter more bandwidth. */
#define BBR_FULL_GAIN (BBR_UNIT * 5 / 4)
#define BBR_FULL_ROUNDS 3
/* Draft, section 4.3.4: the number of phases in a cycle, and the number of phases in which a cycle may begin. */
#define BBR_CYCLE 8U
#define BBR_CYCLE_RANDOM 7U
/* Linux: the pacing rate is one per cent below the estimate. */
#define BBR_PACED_PERCENT 99U
/* Linux: the initial window, TCP_INIT_CWND of include/net/tcp.h. */
#define BBR_INITIAL_CWND 10U
/* Linux: the excess over the estimate is remembered for 5 to 10 RTTs, and is worth at most 100 ms. */
#define BBR_EXTRA_ROUNDS 5
#define BBR_EXTRA_TIME 100000U
#define BBR_EXTRA_RESET (1U << 20)

enum bbr_mode { BBR_STARTUP, BBR_DRAIN, BBR_PROBE_BW, BBR_PROBE_RTT };

struct bbr_state {
	__u64 cycle_start; /* when the phase began; us, like all times */
	__u64 extra_start; /* when the measurement of the excess began */
	__u64 min_rtt_seen; /* the time of the sample in min_rtt */
	__u64 probe_rtt_done; /* the time at which ProbeRTT may end; 0: not yet known */
	__u32 bw[BBR_BW_ROUNDS]; /* the maximum of each RTT */
	__u32 min_rtt;
	__u32 slot; /* index in bw: the RTT of the last sample that counted */
	__u32 round_end; /* `delivered` at the end of the round trip */
	__u32 prior_cwnd;
	__u32 full_bw;
	__u32 extra_acked; /* since extra_start */
	__u16 extra[2]; /* the largest excess, now and before */
	__u8 mode;
	__u8 prior_state : 3, round_start : 1, conserves : 1, idle_restart : 1, probe_rtt_round : 1, full : 1;
	__u8 cycle : 3, full_rounds : 2, seen_rtt : 1;
	__u8 extra_rounds : 4, passed : 4; /* passed: round trips begun since that of `slot`, at most ten */
};
LS_STATE(bbr_state);

/* Draft, section 4.1.1: the maximum over ten RTTs. */
static __always_inline __u32 bbr_max_bw(const struct bbr_state *ca)
{
	__u32 max = 0;

	for (__u32 i = 0; i < BBR_BW_ROUNDS; i++)
		max = ls_max(max, ca->bw[i]);
	return max;
}

/* Draft, section 4.1.1: old samples expire only when a new one counts. Round trips without one, those of a pausing
 * application or of ProbeRTT, leave the estimate unchanged. */
static __always_inline void bbr_remember_bw(struct bbr_state *ca, __u32 bw)
{
	__u32 *best;

	for (; ca->passed; ca->passed--) {
		ca->slot = (ca->slot + 1) % BBR_BW_ROUNDS;
		ca->bw[ca->slot] = 0;
	}
	best = &ca->bw[ca->slot % BBR_BW_ROUNDS];
	*best = ls_max(*best, bw);
}

/* Draft, section 4.1.1.3: a round trip ends when the first packet sent after its beginning is acknowledged. */
static __always_inline void bbr_next_round(struct bbr_state *ca, __u32 delivered)
{
	ca->round_end = delivered;
	ca->passed = ls_min(ca->passed + 1U, BBR_BW_ROUNDS);
	ca->round_start = 1;
	ca->conserves = 0;
}

/* Draft, section 4.2.1: the pacing rate, in bytes per second. */
static __always_inline __u64 bbr_rate(const struct sock *sk, __u64 bw, __u32 gain)
{
	/* Bytes per microsecond, in 2^-20. */
	__u64 rate = bw * ls_min(tcp_sk(sk)->mss_cache, LS_MAX_ACKED) >> (BBR_BW_SHIFT - 20);

	rate = (rate * gain >> 8) * BBR_PACED_PERCENT / 100;
	/* 10^6 / 2^20 is 15625 / 2^14. */
	rate = rate * 15625 >> 14;
	return ls_min64(rate, sk->sk_max_pacing_rate);
}

/* The pacing gain: draft, sections 4.3.2.1, 4.3.3, 4.3.4, 4.3.5. */
static __always_inline __u32 bbr_pacing_gain(const struct bbr_state *ca)
{
	switch (ca->mode) {
	case BBR_STARTUP:
		return BBR_HIGH_GAIN;
	case BBR_DRAIN:
		return BBR_DRAIN_GAIN;
	case BBR_PROBE_BW:
		if (ca->cycle == 0)
			return BBR_UNIT * 5 / 4;
		return ca->cycle == 1 ? BBR_UNIT * 3 / 4 : BBR_UNIT;
	default:
		return BBR_UNIT;
	}
}

static __always_inline __u32 bbr_cwnd_gain(const struct bbr_state *ca)
{
	if (ca->mode == BBR_PROBE_BW)
		return BBR_CWND_GAIN;
	return ca->mode == BBR_PROBE_RTT ? BBR_UNIT : BBR_HIGH_GAIN;
}

#endif
