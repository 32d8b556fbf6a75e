// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Westwood+: L. A. Grieco, S. Mascolo, "Performance Evaluation and Comparison of Westwood+, New Reno, and Vegas TCP
 * Congestion Control", ACM SIGCOMM CCR 34(2), April 2004. Times are microseconds. */
#include "cc.h"
#include "grow.h"

/* The filter: b = 9/10 b + 1/10 sample. */
#define WESTWOOD_OLD 9
#define WESTWOOD_NEW 1

/* The least time of a sample, which otherwise lasts an RTT: a burst of acknowledgements must not count as bandwidth.
 * Linux net/ipv4/tcp_westwood.c. */
#define WESTWOOD_MIN_SAMPLE 50000U

struct westwood_state {
	__u64 since; /* when the sample began */
	__u64 rate; /* b, packets per microsecond, in 2^-24 */
	__u32 delivered; /* `delivered` at `since` */
	__u32 rtt_min;
};
LS_STATE(westwood_state);

LS_CALLBACK(void, westwood_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct westwood_state *ca = ls_private(sk);

	ca->since = tp->tcp_mstamp;
	ca->delivered = tp->delivered;
	ca->rtt_min = ~0U;
}

/* The bandwidth estimate: the packets acknowledged in an RTT divided by its length, through a low-pass filter. */
LS_CALLBACK(void, westwood_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct westwood_state *ca = ls_private(sk);
	__u64 elapsed = tp->tcp_mstamp - ca->since;
	__u64 rate;

	if (sample->rtt_us > 0)
		ca->rtt_min = ls_min(ca->rtt_min, sample->rtt_us);
	if (elapsed < ls_max(tp->srtt_us >> 3, WESTWOOD_MIN_SAMPLE))
		return;
	rate = ls_div((__u64)(tp->delivered - ca->delivered) << 24, elapsed);
	ca->rate = ca->rate ? (WESTWOOD_OLD * ca->rate + WESTWOOD_NEW * rate) / (WESTWOOD_OLD + WESTWOOD_NEW) : rate;
	ca->since = tp->tcp_mstamp;
	ca->delivered = tp->delivered;
}

/* The decrease: ssthresh = max(2, b RTTmin / segment), after three duplicate acknowledgements and after a timeout. */
LS_CALLBACK(__u32, westwood_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct westwood_state *ca = ls_private(sk);

	if (!ca->rate || ca->rtt_min == ~0U)
		return ls_kept(tp, LS_HALF);
	/* The rate is limited to 2^30 packets per second. */
	return ls_max(ls_min64(ls_min64(ca->rate, 1ULL << 34) * ls_min(ca->rtt_min, 1U << 29) >> 24, LS_MAX_CWND),
		      LS_MIN_SSTHRESH);
}

/* The increase: that of standard TCP. */
LS_CALLBACK(void, westwood_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	acked = ls_slow_start(sk, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, ls_max(tp->snd_cwnd, 1), acked);
}

LS_CALLBACK(__u32, westwood_undo_cwnd, struct sock *sk)
{
	return ls_undo(sk);
}

LS_CONTROL(westwood) = {
	.init = LS_OP(westwood_init),
	.ssthresh = LS_OP(westwood_ssthresh),
	.cong_avoid = LS_OP(westwood_cong_avoid),
	.pkts_acked = LS_OP(westwood_pkts_acked),
	.undo_cwnd = LS_OP(westwood_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "ls_westwood",
};
