// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* LTCP: S. Bhandarkar, S. Jain, A. L. N. Reddy, "LTCP: Improving the Performance of TCP in Highspeed Networks",
 * ACM SIGCOMM CCR 36(1), January 2006 (PFLDnet 2005; draft-bhandarkar-ltcp-01, 2004). */
#include "cc.h"
#include "grow.h"

/* W_T: below this window there is one layer, and growth is that of standard TCP. */
#define LTCP_W_T 50U

/* beta: the share by which a loss reduces the window, which drops at most one layer. */
#define LTCP_BETA LS_FRACTION(15, 100)

struct ltcp_state {
	__u64 credit; /* of a packet, in 2^-32 */
};
LS_STATE(ltcp_state);

/*
 * The window at which layer K begins. Layer K is delta_K wide; delta_1 = W_T and
 * delta_K / delta_(K-1) = (K + 1) / (K - 1), so that flows converge. The sum is W_K = W_T (K - 1) K (K + 1) / 6.
 */
static __always_inline __u32 ltcp_begins(__u32 layers)
{
	return LTCP_W_T * (layers * (layers * layers - 1) / 6);
}

/* The layers of this window: the highest K with W_K <= cwnd. LS_MAX_CWND has 126 layers, which fit seven bits. */
static __always_inline __u32 ltcp_layers(__u32 cwnd)
{
	__u32 layers = 0;

	for (__u32 bit = 64; bit; bit >>= 1)
		if (ltcp_begins(layers | bit) <= cwnd)
			layers |= bit;
	return layers;
}

/* The decrease: with one layer that of standard TCP, with more 0.15. */
LS_CALLBACK(__u32, ltcp_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return ltcp_layers(tp->snd_cwnd) > 1 ? ls_decreased(tp, LTCP_BETA) : ls_kept(tp, LS_HALF);
}

/* The increase: K packets per RTT, K / cwnd for each one acknowledged. */
LS_CALLBACK(void, ltcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ltcp_state *ca = ls_private(sk);

	(void)ack;
	acked = ls_slow_start(sk, acked);
	if (acked)
		ls_grow(tp, &ca->credit, acked, ltcp_layers(tp->snd_cwnd) * LS_ONE);
}

LS_CALLBACK(__u32, ltcp_undo_cwnd, struct sock *sk)
{
	return ls_undo(sk);
}

LS_CONTROL(ltcp) = {
	.ssthresh = LS_OP(ltcp_ssthresh),
	.cong_avoid = LS_OP(ltcp_cong_avoid),
	.undo_cwnd = LS_OP(ltcp_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "ls_ltcp",
};
