// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* LTCP: the layers by the paper's recursion, K more packets per RTT, 0.15 less at a loss, or a half with one layer. */
#include "paper.h"

struct paper {
	double window;
};
LS_STATE(paper);

static double layers(double window)
{
	double begins = 0, width = 50, layer = 1;

	while (begins + width <= window) {
		begins += width;
		layer++;
		width *= (layer + 1) / (layer - 1);
	}
	return layer;
}

static __u32 paper_ssthresh(struct sock *sk)
{
	return paper_kept(sk->snd_cwnd * (layers(sk->snd_cwnd) > 1 ? 0.85 : 0.5));
}

static void paper_cong_avoid(struct sock *sk, __u32 ack, __u32 acked)
{
	struct paper *ca = ls_private(sk);

	acked = paper_slow_start(sk, acked);
	paper_follow(sk, &ca->window);
	for (; acked; acked--)
		ca->window += layers(ca->window) / ca->window;
	sk->snd_cwnd = ca->window;
}

static __u32 paper_undo(struct sock *sk)
{
	return ls_undo(sk);
}

const struct tcp_congestion_ops ls_paper = {
	.ssthresh = paper_ssthresh,
	.cong_avoid = paper_cong_avoid,
	.undo_cwnd = paper_undo,
	.name = "paper",
};
