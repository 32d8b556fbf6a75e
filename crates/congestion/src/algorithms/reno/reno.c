// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Reno as the kernel implements it (net/ipv4/tcp_cong.c): RFC 5681 in packets. */
#include "cc.h"

/* RFC 5681, equation 4: half of the packets in flight; the kernel halves the window instead. */
LS_CALLBACK(__u32, reno_ssthresh, struct sock *sk)
{
	return ls_max(tcp_sk(sk)->snd_cwnd >> 1, LS_MIN_SSTHRESH);
}

/* RFC 5681, section 3.1: slow start and congestion avoidance. */
LS_CALLBACK(void, reno_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	if (!ls_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

LS_CALLBACK(__u32, reno_undo_cwnd, struct sock *sk)
{
	return ls_undo(sk);
}

LS_CONTROL(reno) = {
	.ssthresh = LS_OP(reno_ssthresh),
	.cong_avoid = LS_OP(reno_cong_avoid),
	.undo_cwnd = LS_OP(reno_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "reno",
};
