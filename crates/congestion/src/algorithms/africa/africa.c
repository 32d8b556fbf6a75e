// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* TCP-Africa: R. King, R. Baraniuk, R. Riedi, "TCP-Africa: An Adaptive and Fair Rapid Increase Rule for Scalable
 * TCP", IEEE INFOCOM 2005. Times are microseconds. */
#include "cc.h"
#include "highspeed/response.h"

/* alpha: the path counts as full if the queue holds more of the flow's packets than this. */
#define AFRICA_ALPHA LS_FRACTION(1641, 1000)

struct africa_state {
	__u64 credit; /* of a packet, in 2^-32 */
	__u32 rtt_min;
};
LS_STATE(africa_state);

LS_CALLBACK(void, africa_init, struct sock *sk)
{
	struct africa_state *ca = ls_private(sk);

	ca->rtt_min = ~0U;
}

LS_CALLBACK(void, africa_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct africa_state *ca = ls_private(sk);

	if (sample->rtt_us > 0)
		ca->rtt_min = ls_min(ca->rtt_min, sample->rtt_us);
}

/* The switch: fast mode while (aRTT - minRTT) W / aRTT < alpha, where aRTT is TCP's own smoothed RTT. */
static __always_inline bool africa_is_fast(const struct tcp_sock *tp, const struct africa_state *ca)
{
	__u64 rtt = tp->srtt_us >> 3;

	if (rtt <= ca->rtt_min)
		return true;
	return (rtt - ca->rtt_min) * ls_min(tp->snd_cwnd, LS_MAX_CWND) < (rtt * AFRICA_ALPHA >> 16);
}

/* The increase: the fast mode adds a(w) of HighSpeed TCP, the slow mode one packet per RTT. */
LS_CALLBACK(void, africa_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct africa_state *ca = ls_private(sk);

	(void)ack;
	acked = ls_slow_start(sk, acked);
	if (!acked)
		return;
	if (africa_is_fast(tp, ca))
		highspeed_grow(tp, &ca->credit, acked);
	else
		ls_grow(tp, &ca->credit, acked, LS_ONE);
}

/* The decrease: b(w) of HighSpeed TCP. */
LS_CALLBACK(__u32, africa_ssthresh, struct sock *sk)
{
	return highspeed_ssthresh(tcp_sk(sk));
}

LS_CALLBACK(__u32, africa_undo_cwnd, struct sock *sk)
{
	return ls_undo(sk);
}

LS_CONTROL(africa) = {
	.init = LS_OP(africa_init),
	.ssthresh = LS_OP(africa_ssthresh),
	.cong_avoid = LS_OP(africa_cong_avoid),
	.pkts_acked = LS_OP(africa_pkts_acked),
	.undo_cwnd = LS_OP(africa_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "ls_africa",
};
