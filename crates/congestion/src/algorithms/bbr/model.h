// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* BBR's model of the path, and the packets that it keeps in flight for it. */
#ifndef LANDSPEED_BBR_MODEL_H
#define LANDSPEED_BBR_MODEL_H

#include "state.h"

static __always_inline __u32 bbr_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* Draft, section 4.2.3: gain times the BDP, rounded up. */
static __always_inline __u32 bbr_bdp(const struct bbr_state *ca, __u64 bw, __u32 gain)
{
	__u64 packets;

	if (ca->min_rtt == ~0U)
		return BBR_INITIAL_CWND;
	packets = (bw * ls_min(ca->min_rtt, 1U << 25) >> 8) * gain;
	return ls_min64((packets + (1U << BBR_BW_SHIFT) - 1) >> BBR_BW_SHIFT, LS_MAX_CWND);
}

/* Draft, section 4.2.2: the smallest burst, one packet below 1.2 Mb/s. */
static __always_inline __u32 bbr_least_burst(const struct sock *sk)
{
	return sk->sk_pacing_rate < 1200000 / 8 ? 1 : 2;
}

/* Draft, section 4.2.2: the packets of a millisecond, bounded as in Linux. */
static __always_inline __u32 bbr_burst(const struct sock *sk)
{
	__u64 bytes = ls_min64(sk->sk_pacing_rate >> 10, 65536 - 1 - 320);

	return ls_min(ls_max(ls_div(bytes, tcp_sk(sk)->mss_cache), bbr_least_burst(sk)), 127);
}

/* Linux: the packets that will be in flight when pacing lets the next packet leave. */
static __always_inline __u32 bbr_in_net(const struct sock *sk, const struct bbr_state *ca, __u32 in_flight)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	__u64 wait = tp->tcp_wstamp_ns > tp->tcp_clock_cache ? (tp->tcp_wstamp_ns - tp->tcp_clock_cache) / 1000 : 0;
	__u64 delivered = ls_min64(wait, LS_USEC_PER_SEC) * bbr_max_bw(ca) >> BBR_BW_SHIFT;

	if (bbr_pacing_gain(ca) > BBR_UNIT)
		in_flight += bbr_burst(sk);
	return in_flight > delivered ? in_flight - delivered : 0;
}

/* Draft, section 4.2.3: three more bursts, to keep both ends busy. Linux: an even number. */
static __always_inline __u32 bbr_with_budget(const struct sock *sk, const struct bbr_state *ca, __u32 cwnd)
{
	cwnd = (cwnd + 3 * bbr_burst(sk) + 1) & ~1U;
	return ca->mode == BBR_PROBE_BW && ca->cycle == 0 ? cwnd + 2 : cwnd;
}

static __always_inline __u32 bbr_inflight(const struct sock *sk, const struct bbr_state *ca, __u32 gain)
{
	return bbr_with_budget(sk, ca, bbr_bdp(ca, bbr_max_bw(ca), gain));
}

/* Draft, section 4.1.1.5: samples of a pausing application count only if they raise the estimate. */
static __always_inline void bbr_update_bw(struct tcp_sock *tp, struct bbr_state *ca, const struct rate_sample *rs)
{
	__u32 bw;

	ca->round_start = 0;
	if (rs->delivered < 0 || rs->interval_us <= 0)
		return;
	if (!before(rs->prior_delivered, ca->round_end))
		bbr_next_round(ca, tp->delivered);
	bw = ls_min64(ls_div((__u64)rs->delivered << BBR_BW_SHIFT, rs->interval_us), ~0U);
	if (!rs->is_app_limited || bw >= bbr_max_bw(ca))
		bbr_remember_bw(ca, bw);
}

/* Linux: acknowledgements that arrive in bursts, above the estimate, widen the window by the excess. */
static __always_inline void bbr_update_extra(struct tcp_sock *tp, struct bbr_state *ca, const struct rate_sample *rs)
{
	__u64 expected, extra;

	if (!rs->acked_sacked || rs->delivered < 0 || rs->interval_us <= 0)
		return;
	if (ca->round_start && ++ca->extra_rounds >= BBR_EXTRA_ROUNDS) {
		ca->extra_rounds = 0;
		ca->extra[1] = ca->extra[0];
		ca->extra[0] = 0;
	}
	expected = ls_min64(tp->delivered_mstamp - ca->extra_start, 1ULL << 31) * bbr_max_bw(ca) >> BBR_BW_SHIFT;
	if (ca->extra_acked <= expected || ca->extra_acked + (__u64)rs->acked_sacked >= BBR_EXTRA_RESET) {
		ca->extra_acked = 0;
		ca->extra_start = tp->delivered_mstamp;
		expected = 0;
	}
	ca->extra_acked = ls_min64(ca->extra_acked + (__u64)rs->acked_sacked, BBR_EXTRA_RESET - 1);
	extra = ls_min64(ca->extra_acked > expected ? ca->extra_acked - expected : 0, tp->snd_cwnd);
	ca->extra[0] = ls_max(ca->extra[0], ls_min64(extra, 0xffff));
}

static __always_inline __u32 bbr_extra_cwnd(const struct bbr_state *ca)
{
	__u64 most = (__u64)bbr_max_bw(ca) * BBR_EXTRA_TIME >> BBR_BW_SHIFT;

	return ca->full ? ls_min64(ls_max(ca->extra[0], ca->extra[1]), most) : 0;
}

#endif
