// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* FAST: C. Jin, D. X. Wei, S. H. Low, "FAST TCP: Motivation, Architecture, Algorithms, Performance", IEEE INFOCOM
 * 2004. Times are microseconds. */
#include "cc.h"
#include "grow.h"

/* alpha: the packets that a flow keeps in the queue. The paper's value for paths of 1 Gb/s. */
#define FAST_ALPHA 200U

/* gamma, the weight of the computed window in the next one, is 1/2: the mean of the old and the computed window. */

/* Estimation: an RTT has the weight 3/w in the mean, at most 1/4. */
#define FAST_WEIGHT 3U
#define FAST_WEIGHT_MAX_DEN 4U

/* The largest RTT, 16 seconds: the products below then fit 64 bits. */
#define FAST_MAX_RTT (1U << 24)

struct fast_state {
	__u64 credit; /* of a packet, in 2^-32 */
	__u64 gain; /* packets that the current window adds, in 1/LS_ONE */
	__u64 rtt; /* the mean RTT, in 2^-16 us */
	__u32 base_rtt; /* the smallest RTT */
	__u32 next_update; /* an RTT is over when this sequence number is acknowledged */
};
LS_STATE(fast_state);

LS_CALLBACK(void, fast_init, struct sock *sk)
{
	struct fast_state *ca = ls_private(sk);

	ca->base_rtt = ~0U;
	ca->next_update = tcp_sk(sk)->snd_nxt;
}

/* This flow's packets in queues: window times queueing delay, divided by the RTT. */
static __always_inline __u64 fast_queued(const struct fast_state *ca, __u32 cwnd)
{
	__u64 base = (__u64)ca->base_rtt << 16;

	if (ca->rtt <= base)
		return 0;
	/* Both times are in 2^-6 us: their products with the window then fit 64 bits. */
	return ls_div(cwnd * ((ca->rtt - base) >> 10), ca->rtt >> 10);
}

/* Estimation of the RTT. An acknowledgement of n packets counts n times. */
LS_CALLBACK(void, fast_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct fast_state *ca = ls_private(sk);
	__u64 rtt, weight, cwnd = ls_max(tcp_sk(sk)->snd_cwnd, 1);

	if (sample->rtt_us <= 0)
		return;
	rtt = ls_min(sample->rtt_us, FAST_MAX_RTT);
	ca->base_rtt = ls_min(ca->base_rtt, rtt);
	rtt <<= 16;
	if (!ca->rtt) {
		ca->rtt = rtt;
		return;
	}
	weight = (__u64)FAST_WEIGHT * ls_min(sample->pkts_acked, LS_MAX_ACKED);
	if (weight * FAST_WEIGHT_MAX_DEN > cwnd) {
		weight = 1;
		cwnd = FAST_WEIGHT_MAX_DEN;
	}
	if (rtt > ca->rtt)
		ca->rtt += ls_div((rtt - ca->rtt) * weight, cwnd);
	else
		ca->rtt -= ls_div((ca->rtt - rtt) * weight, cwnd);
}

/*
 * Window control: w = min(2 w, (1 - gamma) w + gamma (base/rtt w + alpha)), once per RTT. An increase is spread over
 * the window's acknowledgements; a decrease takes effect immediately.
 */
static __always_inline void fast_update(struct tcp_sock *tp, struct fast_state *ca)
{
	__u64 cwnd = tp->snd_cwnd;
	/* Packets are in 2^-8, times in 2^-6 us. */
	__u64 kept = ls_div((cwnd << 8) * ((__u64)ca->base_rtt << 6), ca->rtt >> 10);
	__u64 next = ((cwnd << 16) + (ls_min64(kept, cwnd << 8) << 8) + ((__u64)FAST_ALPHA << 16)) / 2;

	ca->gain = 0;
	if (next >= cwnd << 16)
		ca->gain = ls_min64(next - (cwnd << 16), cwnd << 16);
	else
		tp->snd_cwnd = ls_max((next + LS_ONE / 2) >> 16, LS_MIN_SSTHRESH);
}

LS_CALLBACK(void, fast_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct fast_state *ca = ls_private(sk);

	/* Slow start ends once the queue holds alpha packets. */
	if (tcp_in_slow_start(tp) && fast_queued(ca, tp->snd_cwnd) >= FAST_ALPHA)
		tp->snd_ssthresh = tp->snd_cwnd;
	acked = ls_slow_start(sk, acked);
	if (!acked)
		return;
	if (!before(ack, ca->next_update)) {
		ca->next_update = tp->snd_nxt;
		if (ca->rtt)
			fast_update(tp, ca);
	}
	ls_grow(tp, &ca->credit, acked, ca->gain);
}

/* Window control: a loss halves the window, as in standard TCP. */
LS_CALLBACK(__u32, fast_ssthresh, struct sock *sk)
{
	struct fast_state *ca = ls_private(sk);

	ca->gain = 0;
	return ls_kept(tcp_sk(sk), LS_HALF);
}

LS_CALLBACK(__u32, fast_undo_cwnd, struct sock *sk)
{
	return ls_undo(sk);
}

LS_CONTROL(fast) = {
	.init = LS_OP(fast_init),
	.ssthresh = LS_OP(fast_ssthresh),
	.cong_avoid = LS_OP(fast_cong_avoid),
	.pkts_acked = LS_OP(fast_pkts_acked),
	.undo_cwnd = LS_OP(fast_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "ls_fast",
};
