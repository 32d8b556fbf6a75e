// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * BBR version 1, for the simulator: N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh, V. Jacobson, "BBR:
 * Congestion-Based Congestion Control", ACM Queue 14(5), 2016, and draft-cardwell-iccrg-bbr-congestion-control-00.
 * Where Linux differs (net/ipv4/tcp_bbr.c), it follows Linux, but without Linux's search for policers.
 */
#include "cc.h"
#include "state.h"
#include "model.h"

/* Draft, section 4.2.1: the first rate is the initial window per RTT, or per millisecond if the RTT is not known. */
static __always_inline void bbr_first_rate(struct sock *sk, struct bbr_state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 rtt = tp->srtt_us ? ls_max(tp->srtt_us >> 3, 1) : 1000;

	if (tp->srtt_us)
		ca->seen_rtt = 1;
	sk->sk_pacing_rate = bbr_rate(sk, ls_min64(((__u64)tp->snd_cwnd << BBR_BW_SHIFT) / rtt, ~0U), BBR_HIGH_GAIN);
}

/* Draft, section 4.2.1: sets the pacing rate, which only rises in Startup. */
static __always_inline void bbr_set_rate(struct sock *sk, struct bbr_state *ca, __u32 gain)
{
	__u64 rate = bbr_rate(sk, bbr_max_bw(ca), gain);

	if (!ca->seen_rtt && tcp_sk(sk)->srtt_us)
		bbr_first_rate(sk, ca);
	if (ca->full || rate > sk->sk_pacing_rate)
		sk->sk_pacing_rate = rate;
}

LS_CALLBACK(void, bbr_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr_state *ca = ls_private(sk);

	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	ca->round_end = tp->delivered;
	ca->min_rtt = ls_min_rtt(sk);
	ca->min_rtt_seen = tp->tcp_mstamp;
	ca->extra_start = tp->tcp_mstamp;
	ca->mode = BBR_STARTUP;
	bbr_first_rate(sk, ca);
}

static __always_inline void bbr_next_phase(struct tcp_sock *tp, struct bbr_state *ca)
{
	ca->cycle = (ca->cycle + 1U) % BBR_CYCLE;
	ca->cycle_start = tp->delivered_mstamp;
}

/* A linear congruential generator (Numerical Recipes), seeded by the driver of the connection. */
static __always_inline __u32 bbr_random(struct sock *sk, __u32 below)
{
	tcp_sk(sk)->random = tcp_sk(sk)->random * 1664525U + 1013904223U;
	return (__u64)tcp_sk(sk)->random * below >> 32;
}

/* Draft, section 4.3.4: starts in a random phase, but not in the one with the gain 3/4. */
static __always_inline void bbr_enter_probe_bw(struct sock *sk, struct bbr_state *ca)
{
	ca->mode = BBR_PROBE_BW;
	ca->cycle = BBR_CYCLE - 1 - bbr_random(sk, BBR_CYCLE_RANDOM);
	bbr_next_phase(tcp_sk(sk), ca);
}

static __always_inline void bbr_leave_probe_rtt(struct sock *sk, struct bbr_state *ca)
{
	if (ca->full)
		bbr_enter_probe_bw(sk, ca);
	else
		ca->mode = BBR_STARTUP;
}

/* Draft, section 4.3.4: a phase lasts an RTT. The first also lasts until 5/4 of the BDP is in flight or a packet is
 * lost; the second ends early once no more than the BDP is in flight. */
static __always_inline bool bbr_is_phase_over(struct sock *sk, const struct bbr_state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool is_long = tp->delivered_mstamp - ca->cycle_start > ca->min_rtt;
	__u32 in_net = bbr_in_net(sk, ca, rs->prior_in_flight);

	if (ca->cycle == 0)
		return is_long && (rs->losses > 0 || in_net >= bbr_inflight(sk, ca, BBR_UNIT * 5 / 4));
	if (ca->cycle == 1)
		return is_long || in_net <= bbr_inflight(sk, ca, BBR_UNIT);
	return is_long;
}

/* Draft, section 4.3.2.2: checks if the pipe is full. */
static __always_inline void bbr_check_full(struct bbr_state *ca, const struct rate_sample *rs)
{
	__u32 bw = bbr_max_bw(ca);

	if (ca->full || !ca->round_start || rs->is_app_limited)
		return;
	if (bw >= (__u64)ca->full_bw * BBR_FULL_GAIN / BBR_UNIT) {
		ca->full_bw = bw;
		ca->full_rounds = 0;
		return;
	}
	ca->full_rounds++;
	ca->full = ca->full_rounds >= BBR_FULL_ROUNDS;
}

/* Draft, section 4.3.3: Drain. */
static __always_inline void bbr_check_drain(struct sock *sk, struct bbr_state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->mode == BBR_STARTUP && ca->full) {
		ca->mode = BBR_DRAIN;
		tp->snd_ssthresh = bbr_inflight(sk, ca, BBR_UNIT);
	}
	if (ca->mode == BBR_DRAIN && bbr_in_net(sk, ca, bbr_in_flight(tp)) <= bbr_inflight(sk, ca, BBR_UNIT))
		bbr_enter_probe_bw(sk, ca);
}

/* Draft, section 4.2.3: saves the last window from before recovery and ProbeRTT. */
static __always_inline void bbr_save_cwnd(struct tcp_sock *tp, struct bbr_state *ca)
{
	if (ca->prior_state < TCP_CA_Recovery && ca->mode != BBR_PROBE_RTT)
		ca->prior_cwnd = tp->snd_cwnd;
	else
		ca->prior_cwnd = ls_max(ca->prior_cwnd, tp->snd_cwnd);
}

static __always_inline void bbr_check_probe_rtt(struct sock *sk, struct bbr_state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!ca->probe_rtt_done || tp->tcp_mstamp <= ca->probe_rtt_done)
		return;
	ca->min_rtt_seen = tp->tcp_mstamp;
	/* Linux applies the clamp only with the next acknowledgement. */
	tp->snd_cwnd = ls_min(ls_max(tp->snd_cwnd, ca->prior_cwnd), tp->snd_cwnd_clamp);
	bbr_leave_probe_rtt(sk, ca);
}

/* Draft, section 4.3.5: 200 ms and an RTT with four packets in flight. */
static __always_inline void bbr_probe_rtt(struct sock *sk, struct bbr_state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->app_limited = ls_max(tp->delivered + bbr_in_flight(tp), 1);
	if (!ca->probe_rtt_done) {
		if (bbr_in_flight(tp) > BBR_MIN_CWND)
			return;
		ca->probe_rtt_done = tp->tcp_mstamp + BBR_PROBE_RTT_TIME;
		ca->probe_rtt_round = 0;
		ca->round_end = tp->delivered;
		return;
	}
	if (ca->round_start)
		ca->probe_rtt_round = 1;
	if (ca->probe_rtt_round)
		bbr_check_probe_rtt(sk, ca);
}

/* Draft, sections 4.1.2 and 4.3.5: updates the minimum of the RTT, and enters ProbeRTT when it is old. */
static __always_inline void bbr_update_min_rtt(struct sock *sk, struct bbr_state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool is_old = tp->tcp_mstamp > ca->min_rtt_seen + BBR_MIN_RTT_WINDOW;

	if (rs->rtt_us >= 0 && (rs->rtt_us < ca->min_rtt || (is_old && !rs->is_ack_delayed))) {
		ca->min_rtt = ls_min64(rs->rtt_us, ~0U - 1);
		ca->min_rtt_seen = tp->tcp_mstamp;
	}
	if (is_old && !ca->idle_restart && ca->mode != BBR_PROBE_RTT) {
		/* Linux has this order, so that the saved window is never smaller than the one saved before. */
		ca->mode = BBR_PROBE_RTT;
		bbr_save_cwnd(tp, ca);
		ca->probe_rtt_done = 0;
	}
	if (ca->mode == BBR_PROBE_RTT)
		bbr_probe_rtt(sk, ca);
	if (rs->delivered > 0)
		ca->idle_restart = 0;
}

/* Draft, section 4.2.3: in the first RTT of recovery, as many packets leave as arrive; then the window returns. */
static __always_inline __u32 bbr_modulated(struct sock *sk, struct bbr_state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 in_flight = bbr_in_flight(tp), cwnd = tp->snd_cwnd;
	__u8 state = ls_ca_state(sk);

	if (rs->losses > 0)
		cwnd = cwnd > (__u32)rs->losses ? cwnd - rs->losses : 1;
	if (state == TCP_CA_Recovery && ca->prior_state != TCP_CA_Recovery) {
		ca->conserves = 1;
		ca->round_end = tp->delivered;
		cwnd = in_flight + rs->acked_sacked;
	} else if (ca->prior_state >= TCP_CA_Recovery && state < TCP_CA_Recovery) {
		ca->conserves = 0;
		cwnd = ls_max(cwnd, ca->prior_cwnd);
	}
	ca->prior_state = state;
	return ca->conserves ? ls_max(cwnd, in_flight + rs->acked_sacked) : cwnd;
}

/* Draft, section 4.2.3: sets the window. */
static __always_inline void bbr_set_cwnd(struct sock *sk, struct bbr_state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 cwnd = tp->snd_cwnd;

	if (rs->acked_sacked) {
		cwnd = bbr_modulated(sk, ca, rs);
		if (!ca->conserves) {
			__u32 target = bbr_bdp(ca, bbr_max_bw(ca), bbr_cwnd_gain(ca)) + bbr_extra_cwnd(ca);
			target = bbr_with_budget(sk, ca, target);
			if (ca->full)
				cwnd = ls_min64((__u64)cwnd + rs->acked_sacked, target);
			else if (cwnd < target || tp->delivered < BBR_INITIAL_CWND)
				cwnd = ls_min64((__u64)cwnd + rs->acked_sacked, LS_MAX_CWND);
			cwnd = ls_max(cwnd, BBR_MIN_CWND);
		}
	}
	tp->snd_cwnd = ls_max(ls_min(ls_min(cwnd, tp->snd_cwnd_clamp), LS_MAX_CWND), 1);
	if (ca->mode == BBR_PROBE_RTT)
		tp->snd_cwnd = ls_min(tp->snd_cwnd, BBR_MIN_CWND);
}

LS_CALLBACK(void, bbr_cong_control, struct sock *sk, __u32 ack, __s32 flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr_state *ca = ls_private(sk);

	(void)ack;
	(void)flag;
	bbr_update_bw(tp, ca, rs);
	bbr_update_extra(tp, ca, rs);
	if (ca->mode == BBR_PROBE_BW && bbr_is_phase_over(sk, ca, rs))
		bbr_next_phase(tp, ca);
	bbr_check_full(ca, rs);
	bbr_check_drain(sk, ca);
	bbr_update_min_rtt(sk, ca, rs);
	bbr_set_rate(sk, ca, bbr_pacing_gain(ca));
	bbr_set_cwnd(sk, ca, rs);
}

/* Draft, section 4.3.4: after a pause, sends at the estimated bandwidth, without a burst. */
LS_CALLBACK(void, bbr_cwnd_event, struct sock *sk, __u32 event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr_state *ca = ls_private(sk);

	if (event != CA_EVENT_TX_START || !tp->app_limited)
		return;
	ca->idle_restart = 1;
	ca->extra_start = tp->tcp_mstamp;
	ca->extra_acked = 0;
	if (ca->mode == BBR_PROBE_BW)
		bbr_set_rate(sk, ca, BBR_UNIT);
	else if (ca->mode == BBR_PROBE_RTT)
		bbr_check_probe_rtt(sk, ca);
}

LS_CALLBACK(__u32, bbr_min_tso_segs, struct sock *sk)
{
	return bbr_least_burst(sk);
}

/* A loss does not change the model, so the threshold stays. */
LS_CALLBACK(__u32, bbr_ssthresh, struct sock *sk)
{
	bbr_save_cwnd(tcp_sk(sk), ls_private(sk));
	return tcp_sk(sk)->snd_ssthresh;
}

LS_CALLBACK(void, bbr_set_state, struct sock *sk, __u8 new_state)
{
	struct bbr_state *ca = ls_private(sk);

	if (new_state != TCP_CA_Loss)
		return;
	ca->prior_state = TCP_CA_Loss;
	ca->full_bw = 0;
	ca->round_start = 1;
}

LS_CALLBACK(__u32, bbr_undo_cwnd, struct sock *sk)
{
	struct bbr_state *ca = ls_private(sk);

	ca->full_bw = 0;
	ca->full_rounds = 0;
	return tcp_sk(sk)->snd_cwnd;
}

LS_CONTROL(bbr) = {
	.init = LS_OP(bbr_init),
	.ssthresh = LS_OP(bbr_ssthresh),
	.set_state = LS_OP(bbr_set_state),
	.cwnd_event = LS_OP(bbr_cwnd_event),
	.min_tso_segs = LS_OP(bbr_min_tso_segs),
	.undo_cwnd = LS_OP(bbr_undo_cwnd),
	.cong_control = LS_OP(bbr_cong_control),
	.flags = LS_FOR_ANYBODY,
	.name = "bbr",
};
