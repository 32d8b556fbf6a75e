// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* FAST: w = min(2 w, (1 - gamma) w + gamma (base/rtt w + alpha)), once per RTT as in our code. An increase is spread
 * over acknowledgements, a decrease takes effect immediately. An RTT has the weight min(3/w, 1/4) in the mean. */
#include "paper.h"

struct paper {
	double window, gain, rtt, base;
	__u32 next_update;
};
LS_STATE(paper);

static void paper_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct paper *ca = ls_private(sk);
	double weight = 3.0 * sample->pkts_acked / sk->snd_cwnd;

	if (sample->rtt_us <= 0)
		return;
	if (!ca->rtt)
		ca->rtt = ca->base = sample->rtt_us;
	if (sample->rtt_us < ca->base)
		ca->base = sample->rtt_us;
	ca->rtt += (sample->rtt_us - ca->rtt) * (weight < 0.25 ? weight : 0.25);
}

static void paper_update(struct sock *sk, struct paper *ca)
{
	double window = sk->snd_cwnd;
	double next = 0.5 * window + 0.5 * (ca->base / ca->rtt * window + 200);

	ca->gain = 0;
	if (next < window)
		sk->snd_cwnd = paper_kept(next + 0.5);
	else
		ca->gain = next < 2 * window ? next - window : window;
}

static void paper_cong_avoid(struct sock *sk, __u32 ack, __u32 acked)
{
	struct paper *ca = ls_private(sk);

	acked = paper_slow_start(sk, acked);
	if (!acked)
		return;
	if (!before(ack, ca->next_update)) {
		ca->next_update = sk->snd_nxt;
		paper_update(sk, ca);
	}
	paper_follow(sk, &ca->window);
	ca->window += ca->gain * acked / sk->snd_cwnd;
	sk->snd_cwnd = ca->window;
}

static __u32 paper_ssthresh(struct sock *sk)
{
	struct paper *ca = ls_private(sk);

	ca->gain = 0;
	return paper_kept(sk->snd_cwnd * 0.5);
}

static __u32 paper_undo(struct sock *sk)
{
	return ls_undo(sk);
}

const struct tcp_congestion_ops ls_paper = {
	.ssthresh = paper_ssthresh,
	.cong_avoid = paper_cong_avoid,
	.pkts_acked = paper_pkts_acked,
	.undo_cwnd = paper_undo,
	.name = "paper",
};
