// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Scalable TCP: T. Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", ACM SIGCOMM CCR
 * 33(2), April 2003. */
#include "cc.h"
#include "grow.h"

/* The algorithm: cwnd = cwnd + a for each acknowledgement, cwnd = cwnd - b cwnd at a loss; a = 0.01, b = 0.125. */
#define SCALABLE_A LS_FRACTION(1, 100)
#define SCALABLE_B LS_FRACTION(1, 8)

/* The legacy window: up to it, the algorithm is standard TCP, so that it takes nothing from other flows on paths
   where standard TCP works. */
#define SCALABLE_LEGACY_WINDOW 16U

struct scalable_state {
	__u64 credit; /* of a packet, in 2^-32 */
};
LS_STATE(scalable_state);

LS_CALLBACK(__u32, scalable_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->snd_cwnd <= SCALABLE_LEGACY_WINDOW)
		return ls_kept(tp, LS_HALF);
	return ls_decreased(tp, SCALABLE_B);
}

LS_CALLBACK(void, scalable_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct scalable_state *ca = ls_private(sk);
	/* Adding a per acknowledgement is adding a w per window. */
	__u64 gain = (__u64)tp->snd_cwnd * SCALABLE_A;

	(void)ack;
	acked = ls_slow_start(sk, acked);
	if (tp->snd_cwnd <= SCALABLE_LEGACY_WINDOW)
		gain = LS_ONE;
	if (acked)
		ls_grow(tp, &ca->credit, acked, gain);
}

LS_CALLBACK(__u32, scalable_undo_cwnd, struct sock *sk)
{
	return ls_undo(sk);
}

LS_CONTROL(scalable) = {
	.ssthresh = LS_OP(scalable_ssthresh),
	.cong_avoid = LS_OP(scalable_cong_avoid),
	.undo_cwnd = LS_OP(scalable_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "ls_scalable",
};
