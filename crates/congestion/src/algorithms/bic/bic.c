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

/* The state of the search. */
struct bic_search {
	__u64 credit; /* of a packet, in 2^-32 */
	__u64 left_after; /* packets left to the maximum after this step, in 1/LS_ONE */
	__u32 step; /* packets per RTT until then, in 1/LS_ONE */
	__u32 max_win; /* the window to return to; 0: unknown */
	__u32 last_win; /* the window at the last loss */
	__u32 ss_cwnd; /* packets per RTT while it probes for a new maximum */
	__u32 ss_target; /* the window at which ss_cwnd doubles */
};

struct bic_state {
	struct bic_search now;
	struct bic_search before; /* the state before the last loss, for an undo */
};
LS_STATE(bic_state);

/* Max probing, "slow start": 1, 2, 4 packets per RTT, beginning at the old maximum. */
static __always_inline void bic_probe(struct bic_search *now, __u32 cwnd)
{
	now->max_win = 0;
	now->ss_cwnd = 1;
	now->ss_target = cwnd + 1;
}

/* The decrease, with fast convergence: a window that did not return to the last maximum has lost its share to another
 * flow, and leaves it to that flow by a new maximum that is only half of the way up. */
LS_CALLBACK(__u32, bic_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bic_state *ca = ls_private(sk);
	struct bic_search *now = &ca->now;
	__u32 kept;

	ca->before = *now;
	if (tp->snd_cwnd < BIC_LOW_WINDOW) {
		bic_probe(now, tp->snd_cwnd);
		return ls_kept(tp, LS_HALF);
	}
	kept = ls_kept(tp, LS_ONE - BIC_BETA);
	now->max_win = tp->snd_cwnd < now->last_win ? (tp->snd_cwnd + kept) / 2 : tp->snd_cwnd;
	now->last_win = tp->snd_cwnd;
	now->ss_cwnd = 0;
	now->step = 0;
	return kept;
}

/* Packets left to the maximum, in 1/LS_ONE. The credit counts as part of the window; otherwise the search would end a
 * whole packet early, before its steps come down to S_min. */
static __always_inline __u64 bic_left(const struct bic_search *now, __u32 cwnd)
{
	if (cwnd >= now->max_win)
		return 0;
	return (__u64)(now->max_win - cwnd) * LS_ONE - ((now->credit & 0xffffffffU) >> 16);
}

/* Binary search: a step takes the window half of the way to the maximum, within S_min and S_max. Then the window is the
 * new min_win, and the next step begins. */
static __always_inline __u32 bic_step(struct bic_search *now, __u64 left)
{
	/* The step is under way, unless something else has moved the window. */
	if (left > now->left_after && left - now->left_after <= now->step)
		return now->step;
	now->step = ls_min64(ls_max(ls_min64(left / 2, BIC_S_MAX), BIC_S_MIN), left);
	now->left_after = left - now->step;
	return now->step;
}

/* Packets that the next RTT adds, in 1/LS_ONE. */
static __always_inline __u32 bic_gain(struct bic_search *now, __u32 cwnd)
{
	__u64 left = bic_left(now, cwnd);

	if (cwnd < BIC_LOW_WINDOW)
		return LS_ONE;
	/* The search ends when less than S_min is left. */
	if (left >= BIC_S_MIN)
		return bic_step(now, left);
	if (now->max_win || !now->ss_cwnd)
		bic_probe(now, cwnd);
	if (cwnd >= now->ss_target && now->ss_cwnd < BIC_S_MAX / LS_ONE) {
		now->ss_cwnd *= 2;
		now->ss_target = cwnd + now->ss_cwnd;
	}
	return ls_min(now->ss_cwnd * LS_ONE, BIC_S_MAX);
}

LS_CALLBACK(void, bic_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bic_state *ca = ls_private(sk);

	(void)ack;
	acked = ls_slow_start(sk, acked);
	if (acked)
		ls_grow(tp, &ca->now.credit, acked, bic_gain(&ca->now, tp->snd_cwnd));
}

/* A timeout discards all that was learnt. */
LS_CALLBACK(void, bic_set_state, struct sock *sk, __u8 new_state)
{
	struct bic_state *ca = ls_private(sk);

	if (new_state == TCP_CA_Loss) {
		ca->now.max_win = 0;
		ca->now.last_win = 0;
		ca->now.ss_cwnd = 0;
	}
}

LS_CALLBACK(__u32, bic_undo_cwnd, struct sock *sk)
{
	struct bic_state *ca = ls_private(sk);

	ca->now = ca->before;
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
