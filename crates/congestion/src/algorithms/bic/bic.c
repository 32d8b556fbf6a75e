// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* BIC: L. Xu, K. Harfoush, I. Rhee, "Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks",
 * IEEE INFOCOM 2004. Names and steps are those of its pseudo-code. */
#include "cc.h"
#include "grow.h"

/* The pseudo-code's preset parameters. */
#define BIC_LOW_WINDOW 14U
#define BIC_S_MAX (32 * LS_ONE)
#define BIC_S_MIN LS_FRACTION(1, 100)
#define BIC_BETA LS_FRACTION(1, 8)

struct bic_state {
	__u64 credit; /* of a packet, in 2^-32 */
	__u64 left_after; /* what this step of the search leaves to the maximum, in 1/LS_ONE packets */
	__u32 step; /* packets a round trip until then, in 1/LS_ONE */
	__u32 max_win; /* the window to find back to; 0: none is known */
	__u32 last_win; /* the window at the last loss */
	__u32 ss_cwnd; /* packets a round trip while it looks for a new maximum */
	__u32 ss_target; /* the window at which that doubles */
	__u32 undo_max_win;
	__u32 undo_last_win;
};
LS_STATE(bic_state);

/* Max probing, "slow start": 1, 2, 4 packets a round trip, beginning where the old maximum was. */
static __always_inline void bic_probe(struct bic_state *ca, __u32 cwnd)
{
	ca->max_win = 0;
	ca->ss_cwnd = 1;
	ca->ss_target = cwnd + 1;
}

/* Fast recovery begins. Fast convergence: a window that did not get back to where it was leaves room for the
 * flow that took it, by looking only half of the way up. */
LS_CALLBACK(__u32, bic_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bic_state *ca = ls_private(sk);
	__u32 kept;

	ca->undo_max_win = ca->max_win;
	ca->undo_last_win = ca->last_win;
	if (tp->snd_cwnd < BIC_LOW_WINDOW) {
		bic_probe(ca, tp->snd_cwnd);
		return ls_decreased(tp, LS_ONE / 2);
	}
	kept = ls_decreased(tp, BIC_BETA);
	ca->max_win = tp->snd_cwnd < ca->last_win ? (tp->snd_cwnd + kept) / 2 : tp->snd_cwnd;
	ca->last_win = tp->snd_cwnd;
	ca->ss_cwnd = 0;
	ca->step = 0;
	return kept;
}

/* What is left to the maximum, in 1/LS_ONE packets. The credit is a part of the window, or the search would end a whole
 * packet early, before its steps come down to S_min. */
static __always_inline __u64 bic_left(const struct bic_state *ca, __u32 cwnd)
{
	if (cwnd >= ca->max_win)
		return 0;
	return (__u64)(ca->max_win - cwnd) * LS_ONE - ((ca->credit & 0xffffffffU) >> 16);
}

/* Binary search: the window goes half of the way to the maximum, within S_min and S_max. Once it is there it is the
 * new min_win, and the next step begins. */
static __always_inline __u32 bic_search(struct bic_state *ca, __u64 left)
{
	/* On the way, unless something else has moved the window. */
	if (left > ca->left_after && left - ca->left_after <= ca->step)
		return ca->step;
	ca->step = ls_min64(ls_max(ls_min64(left / 2, BIC_S_MAX), BIC_S_MIN), left);
	ca->left_after = left - ca->step;
	return ca->step;
}

/* What the next round trip adds, in 1/LS_ONE packets. */
static __always_inline __u32 bic_gain(struct bic_state *ca, __u32 cwnd)
{
	__u64 left = bic_left(ca, cwnd);

	if (cwnd < BIC_LOW_WINDOW)
		return LS_ONE;
	/* The search ends where less than S_min is left. */
	if (left >= BIC_S_MIN)
		return bic_search(ca, left);
	if (ca->max_win || !ca->ss_cwnd)
		bic_probe(ca, cwnd);
	if (cwnd >= ca->ss_target && ca->ss_cwnd < BIC_S_MAX / LS_ONE) {
		ca->ss_cwnd *= 2;
		ca->ss_target = cwnd + ca->ss_cwnd;
	}
	return ls_min(ca->ss_cwnd * LS_ONE, BIC_S_MAX);
}

LS_CALLBACK(void, bic_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bic_state *ca = ls_private(sk);

	(void)ack;
	acked = ls_slow_start(sk, acked);
	if (acked)
		ls_grow(tp, &ca->credit, acked, bic_gain(ca, tp->snd_cwnd));
}

/* After a timeout nothing of what was learnt holds. */
LS_CALLBACK(void, bic_set_state, struct sock *sk, __u8 new_state)
{
	struct bic_state *ca = ls_private(sk);

	if (new_state == TCP_CA_Loss) {
		ca->max_win = 0;
		ca->last_win = 0;
		ca->ss_cwnd = 0;
	}
}

LS_CALLBACK(__u32, bic_undo_cwnd, struct sock *sk)
{
	struct bic_state *ca = ls_private(sk);

	ca->max_win = ca->undo_max_win;
	ca->last_win = ca->undo_last_win;
	return ls_undo(sk);
}

LS_CONTROL(bic) = {
	.ssthresh = LS_OP(bic_ssthresh),
	.cong_avoid = LS_OP(bic_cong_avoid),
	.set_state = LS_OP(bic_set_state),
	.undo_cwnd = LS_OP(bic_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "ls_bic",
};
