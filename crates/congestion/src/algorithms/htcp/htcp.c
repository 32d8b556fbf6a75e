// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* H-TCP: D. Leith, R. Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004, and
 * draft-leith-tcp-htcp-06, April 2008. Times are microseconds. */
#include "cc.h"
#include "grow.h"

/* Delta_L: the time after a loss for which the window grows as in standard TCP. */
#define HTCP_DELTA_L LS_USEC_PER_SEC

/* Delta_B: a change of the throughput since the last loss by more than this share sets beta to a half. */
#define HTCP_DELTA_B_NUM 1
#define HTCP_DELTA_B_DEN 5

/* The bounds of beta, the share kept at a loss. */
#define HTCP_BETA_MIN LS_FRACTION(1, 2)
#define HTCP_BETA_MAX LS_FRACTION(4, 5)

/* The longest time since a loss that counts: after 342 s, alpha no longer grows. */
#define HTCP_MAX_SINCE (342 * LS_USEC_PER_SEC)

struct htcp_state {
	__u64 credit; /* of a packet, in 2^-32 */
	__u64 last_loss; /* the time of the last loss */
	__u64 rate_since; /* when the measurement of the rate began */
	__u64 rate; /* packets per microsecond, smoothed, in 2^-24 */
	__u64 rate_at_loss; /* B(k) */
	__u32 rate_delivered; /* `delivered` at rate_since */
	__u32 rtt_min;
	__u32 rtt_max;
	__u32 beta; /* share, in 1/LS_ONE */
	/* The values before the last loss, for an undo. */
	__u64 undo_last_loss;
	__u64 undo_rate_at_loss;
	__u32 undo_rtt_max;
	__u32 undo_beta;
};
LS_STATE(htcp_state);

LS_CALLBACK(void, htcp_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct htcp_state *ca = ls_private(sk);

	ca->last_loss = tp->tcp_mstamp;
	ca->rate_since = tp->tcp_mstamp;
	ca->rate_delivered = tp->delivered;
	ca->rtt_min = ~0U;
	ca->beta = HTCP_BETA_MIN;
}

/* Paper and draft: alpha(D) = 1 + 10 (D - Delta_L) + ((D - Delta_L) / 2)^2, in seconds; 1 for D up to Delta_L. */
static __always_inline __u64 htcp_alpha(__u64 since)
{
	__u64 beyond;

	if (since <= HTCP_DELTA_L)
		return LS_ONE;
	beyond = ls_min64(since, HTCP_MAX_SINCE) - HTCP_DELTA_L;
	/* 2^16 (beyond / 2,000,000 us)^2 = 4 beyond^2 / 5^12. */
	return LS_ONE + 10 * beyond * LS_ONE / LS_USEC_PER_SEC + 4 * beyond * beyond / 244140625;
}

/* Paper and draft: an RTT adds 2 (1 - beta) alpha, so that fairness does not depend on beta. */
static __always_inline __u64 htcp_gain(const struct htcp_state *ca, __u64 now)
{
	__u64 alpha = htcp_alpha(now - ca->last_loss);
	__u64 gain = (2 * (LS_ONE - ls_min(ca->beta, HTCP_BETA_MAX)) * alpha) >> 16;

	return gain > LS_ONE ? gain : LS_ONE;
}

/* B: the packets delivered in an RTT divided by its length, smoothed with a weight of a quarter. */
static __always_inline void htcp_measure(struct tcp_sock *tp, struct htcp_state *ca)
{
	__u64 elapsed = tp->tcp_mstamp - ca->rate_since;
	__u32 packets = tp->delivered - ca->rate_delivered;
	__u64 rate;

	if (!tp->srtt_us || elapsed < tp->srtt_us >> 3)
		return;
	rate = ls_div((__u64)packets << 24, elapsed);
	ca->rate = ca->rate ? (3 * ca->rate + rate) / 4 : rate;
	ca->rate_since = tp->tcp_mstamp;
	ca->rate_delivered = tp->delivered;
}

LS_CALLBACK(void, htcp_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct htcp_state *ca = ls_private(sk);

	if (sample->rtt_us > 0) {
		ca->rtt_min = ls_min(ca->rtt_min, sample->rtt_us);
		/* RTTs of recovery do not count, because a loss lengthens them by more than the queue. The smoothed RTT is used,
		 * because otherwise one acknowledgement that the receiver delayed by 40 ms would determine beta. */
		if (ls_ca_state(sk) == TCP_CA_Open)
			ca->rtt_max = ls_max(ca->rtt_max, tp->srtt_us >> 3);
	}
	if (ls_ca_state(sk) == TCP_CA_Open)
		htcp_measure(tp, ca);
}

/* Paper and draft, adaptive backoff: beta = RTTmin/RTTmax, or a half if the throughput differs from that at the last
 * loss, because then the flow's share of the path is still changing. */
static __always_inline __u32 htcp_beta(const struct htcp_state *ca)
{
	__u64 before = ca->rate_at_loss, now = ca->rate;
	__u64 change = now > before ? now - before : before - now;
	__u64 ratio;

	if (change * HTCP_DELTA_B_DEN > before * HTCP_DELTA_B_NUM || !ca->rtt_max)
		return HTCP_BETA_MIN;
	ratio = ls_div((__u64)ca->rtt_min << 16, ca->rtt_max);
	if (ratio < HTCP_BETA_MIN)
		return HTCP_BETA_MIN;
	return ratio < HTCP_BETA_MAX ? ratio : HTCP_BETA_MAX;
}

LS_CALLBACK(__u32, htcp_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct htcp_state *ca = ls_private(sk);

	ca->undo_last_loss = ca->last_loss;
	ca->undo_rate_at_loss = ca->rate_at_loss;
	ca->undo_rtt_max = ca->rtt_max;
	ca->undo_beta = ca->beta;

	ca->beta = htcp_beta(ca);
	ca->rate_at_loss = ca->rate;
	ca->last_loss = tp->tcp_mstamp;
	/* RTTmax is per epoch: the next one starts from the RTT of the path itself. */
	ca->rtt_max = ca->rtt_min == ~0U ? 0 : ca->rtt_min;
	return ls_kept(tp, ca->beta);
}

LS_CALLBACK(void, htcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct htcp_state *ca = ls_private(sk);

	(void)ack;
	acked = ls_slow_start(sk, acked);
	if (acked)
		ls_grow(tp, &ca->credit, acked, htcp_gain(ca, tp->tcp_mstamp));
}

/* The rate is not measured in recovery, and after a timeout the path counts as a new one. */
LS_CALLBACK(void, htcp_set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct htcp_state *ca = ls_private(sk);

	if (new_state == TCP_CA_Loss) {
		ca->rate_at_loss = 0;
		ca->rate = 0;
	}
	if (new_state == TCP_CA_Open) {
		ca->rate_since = tp->tcp_mstamp;
		ca->rate_delivered = tp->delivered;
	}
}

LS_CALLBACK(__u32, htcp_undo_cwnd, struct sock *sk)
{
	struct htcp_state *ca = ls_private(sk);

	if (ca->undo_last_loss) {
		ca->last_loss = ca->undo_last_loss;
		ca->rate_at_loss = ca->undo_rate_at_loss;
		ca->rtt_max = ls_max(ca->rtt_max, ca->undo_rtt_max);
		ca->beta = ca->undo_beta;
		ca->undo_last_loss = 0;
	}
	return ls_undo(sk);
}

LS_CONTROL(htcp) = {
	.init = LS_OP(htcp_init),
	.ssthresh = LS_OP(htcp_ssthresh),
	.cong_avoid = LS_OP(htcp_cong_avoid),
	.set_state = LS_OP(htcp_set_state),
	.pkts_acked = LS_OP(htcp_pkts_acked),
	.undo_cwnd = LS_OP(htcp_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "ls_htcp",
};
