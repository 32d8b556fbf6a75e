// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The formulas of the papers, in floating point, for controls that Linux lacks, behind the table of c/native.h. */
#include "cc.h"

/* Slow start as in tcp_slow_start. Returns the packets that remain for congestion avoidance. */
static __u32 paper_slow_start(struct sock *sk, __u32 acked)
{
	if (!ls_is_cwnd_limited(sk))
		return 0;
	return tcp_in_slow_start(sk) ? tcp_slow_start(sk, acked) : acked;
}

/* Updates the real window after something else has moved the whole one. */
static void paper_follow(const struct sock *sk, double *window)
{
	if ((__u32)*window != sk->snd_cwnd)
		*window = sk->snd_cwnd;
}

static __u32 paper_kept(double window)
{
	return window < 2 ? 2 : (__u32)window;
}
