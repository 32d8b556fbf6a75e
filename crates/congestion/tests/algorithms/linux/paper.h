// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* For controls that Linux lacks: their papers' formulas in floating point, behind the table of c/native.h. */
#include "cc.h"

/* Slow start as tcp_slow_start does it; what is left is for congestion avoidance. */
static __u32 paper_slow_start(struct sock *sk, __u32 acked)
{
	if (!ls_is_cwnd_limited(sk))
		return 0;
	return tcp_in_slow_start(sk) ? tcp_slow_start(sk, acked) : acked;
}

/* The real window behind the whole one, which somebody else may have moved. */
static void paper_follow(const struct sock *sk, double *window)
{
	if ((__u32)*window != sk->snd_cwnd)
		*window = sk->snd_cwnd;
}

static __u32 paper_kept(double window)
{
	return window < 2 ? 2 : (__u32)window;
}
