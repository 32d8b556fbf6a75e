// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Veno: C. P. Fu, S. C. Liew, "TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks", IEEE JSAC 21(2),
 * February 2003. Times are microseconds. */
#include "cc.h"
#include "grow.h"

/* beta: the path counts as congested if at least this number of packets wait in the bottleneck's queue. */
#define VENO_BACKLOG 3U

/* A loss without congestion keeps 4/5 of the window. */
#define VENO_KEPT 4U
#define VENO_OF 5U

/* The backlog is used only after more RTT samples than this: Linux net/ipv4/tcp_veno.c. */
#define VENO_SAMPLES 2U

struct veno_state {
	__u32 base; /* BaseRTT: the least round trip */
	__u32 rtt; /* the least round trip since the last increase */
	__u32 samples;
	__u32 congested; /* N >= beta */
};
LS_STATE(veno_state);

LS_CALLBACK(void, veno_init, struct sock *sk)
{
	struct veno_state *ca = ls_private(sk);

	ca->base = ~0U;
	ca->rtt = ~0U;
}

LS_CALLBACK(void, veno_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct veno_state *ca = ls_private(sk);

	if (sample->rtt_us <= 0)
		return;
	ca->base = ls_min(ca->base, sample->rtt_us);
	ca->rtt = ls_min(ca->rtt, sample->rtt_us);
	ca->samples = ls_min(ca->samples, VENO_SAMPLES) + 1;
}

/* The backlog: N = cwnd (RTT - BaseRTT) / RTT. */
static __always_inline void veno_estimate(struct sock *sk)
{
	struct veno_state *ca = ls_private(sk);

	if (ca->samples <= VENO_SAMPLES || ca->rtt == ~0U || ca->rtt < ca->base)
		return;
	ca->congested = ls_div((__u64)tcp_sk(sk)->snd_cwnd * (ca->rtt - ca->base), ca->rtt) >= VENO_BACKLOG;
	ca->rtt = ~0U;
}

/* The increase: a packet in a round trip, and in every second one where the path is congested. */
LS_CALLBACK(void, veno_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct veno_state *ca = ls_private(sk);

	(void)ack;
	veno_estimate(sk);
	acked = ls_slow_start(sk, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, ls_max(ls_min(tp->snd_cwnd, LS_MAX_CWND) << (ca->congested ? 1 : 0), 1), acked);
}

/* The decrease: by half where the path is congested, else by a fifth, because the loss was random. */
LS_CALLBACK(__u32, veno_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct veno_state *ca = ls_private(sk);

	if (ca->congested)
		return ls_kept(tp, LS_HALF);
	return ls_max(ls_div((__u64)ls_min(tp->snd_cwnd, LS_MAX_CWND) * VENO_KEPT, VENO_OF), LS_MIN_SSTHRESH);
}

LS_CALLBACK(__u32, veno_undo_cwnd, struct sock *sk)
{
	return ls_undo(sk);
}

LS_CONTROL(veno) = {
	.init = LS_OP(veno_init),
	.ssthresh = LS_OP(veno_ssthresh),
	.cong_avoid = LS_OP(veno_cong_avoid),
	.pkts_acked = LS_OP(veno_pkts_acked),
	.undo_cwnd = LS_OP(veno_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "ls_veno",
};
