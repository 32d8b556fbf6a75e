// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * HSTCP-LP: A. Kuzmanovic, E. Knightly, R. L. Cottrell, "HSTCP-LP: A Protocol for Low-Priority Bulk Data Transfer in
 * High-Speed High-RTT Networks", PFLDnet 2004: the window of HighSpeed TCP (RFC 3649) with the early congestion
 * inference of A. Kuzmanovic, E. Knightly, "TCP-LP: A Distributed Algorithm for Low Priority Data Transfer", IEEE
 * INFOCOM 2003. Times are microseconds.
 */
#include "cc.h"
#include "highspeed/response.h"

/* TCP-LP, early congestion indication: delays are smoothed with gamma = 1/8. Early congestion is a smoothed delay
 * above d_min + delta (d_max - d_min), delta = 0.15. */
#define LP_GAMMA_SHIFT 3
#define LP_DELTA_PERCENT 15

/* TCP-LP, congestion avoidance: the inference phase lasts three RTTs. */
#define LP_INFERENCE_RTTS 3

/* The time over which the units of the clocks are measured, in us. */
#define LP_CALIBRATION 200000U

/* d_min is the minimum over the last one to two minutes, because clocks drift apart and routes change. */
#define LP_MEMORY (60 * LS_USEC_PER_SEC)

/* At a loss d_max falls by this share (2^-3) of its distance to the longest delay since the last loss. */
#define LP_FADE_SHIFT 3

/* The window after a second indication of congestion, with which the flow gives way. */
#define LP_LEAST_CWND 1U

/* Below this window delays are not judged, because most acknowledgements wait for the receiver's timer. */
#define LP_JUDGED_CWND 8U

struct hstcp_lp_state {
	__u64 credit; /* of a packet, in 2^-32 */
	__u64 since; /* when the measurement of the clocks' units began */
	__u64 bucket; /* when the newer half of the memory of d_min began */
	__u64 reduced; /* when it last responded to early congestion; 0: never */
	__u32 first_tsval, first_tsecr; /* at `since` */
	__u32 tsval, tsecr; /* on the last acknowledgement */
	__u32 their_unit, our_unit; /* of the clocks, in us; 0: not known yet */
	__u32 una; /* snd_una when a delay was last measured */
	__u32 answered; /* the first byte sent after the last response to congestion */
	__u32 fresh; /* the number of delays measured since then, at most two */
	__u32 suspected; /* the first byte sent after delays rose above the threshold */
	__u32 suspects; /* true if delays are above the threshold */
	__s32 delay; /* one way, with a constant error */
	__s32 smooth; /* eight times the smoothed delay */
	__s32 least[2]; /* d_min of the newer and the older half of the memory */
	__s32 most; /* d_max */
	__s32 peak; /* the longest delay since the last loss */
};
LS_STATE(hstcp_lp_state);

/* The unit, in us, of a clock that advanced by `ticks` in `elapsed`: one of the usual units, if one is within a
   quarter of it; otherwise 0. */
static __always_inline __u32 lp_unit(__u64 elapsed, __u32 ticks)
{
	const __u32 units[] = { 1, 1000, 4000, 10000 };

	for (__u32 i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		__u64 said = (__u64)ticks * units[i];
		if (4 * said >= 3 * elapsed && 4 * said <= 5 * elapsed)
			return units[i];
	}
	return 0;
}

/* Measures the units of both clocks over LP_CALIBRATION, again if no unit fits. */
static __always_inline void lp_calibrate(struct sock *sk, struct hstcp_lp_state *ca)
{
	__u64 now = tcp_sk(sk)->tcp_mstamp;
	__u32 theirs, ours;

	if (ca->since && now - ca->since < LP_CALIBRATION)
		return;
	theirs = lp_unit(now - ca->since, ls_tsval(sk) - ca->first_tsval);
	ours = lp_unit(now - ca->since, ls_tsecr(sk) - ca->first_tsecr);
	if (ca->since && theirs && ours) {
		ca->their_unit = theirs;
		ca->our_unit = ours;
		ca->bucket = now;
		ca->answered = tcp_sk(sk)->snd_una;
	}
	ca->since = now;
	ca->first_tsval = ca->tsval = ls_tsval(sk);
	ca->first_tsecr = ca->tsecr = ls_tsecr(sk);
}

static __always_inline __s32 lp_lower(__s32 a, __s32 b)
{
	return a < b ? a : b;
}

static __always_inline __s32 lp_higher(__s32 a, __s32 b)
{
	return a > b ? a : b;
}

/*
 * TCP-LP, one-way delay: the peer's clock at the acknowledgement less ours at the sending, which the peer echoes, is
 * the delay to the peer up to a constant. Changes are summed, so that wraps of the clocks do not matter. The smaller
 * of two neighbouring delays counts, because a single long one comes from the receiver's timer for acknowledgements.
 */
static __always_inline __s32 lp_delay(struct sock *sk, struct hstcp_lp_state *ca)
{
	__s32 prior = ca->delay;

	ca->delay += (__s32)((ls_tsval(sk) - ca->tsval) * ca->their_unit);
	ca->delay -= (__s32)((ls_tsecr(sk) - ca->tsecr) * ca->our_unit);
	ca->tsval = ls_tsval(sk);
	ca->tsecr = ls_tsecr(sk);
	return lp_lower(prior, ca->delay);
}

/* TCP-LP, early congestion indication: updates d_min, d_max and the smoothed delay. After a response, the smoothed
 * delay starts anew with the second delay, because the first one is compared with a delay from before the response. */
static __always_inline void lp_remember(struct hstcp_lp_state *ca, __u64 now, __s32 delay)
{
	if (ca->fresh < 2) {
		ca->fresh++;
		ca->smooth = delay << LP_GAMMA_SHIFT;
		return;
	}
	if (now - ca->bucket >= LP_MEMORY) {
		ca->bucket = now;
		ca->least[1] = ca->least[0];
		ca->least[0] = delay;
	}
	ca->least[0] = lp_lower(ca->least[0], delay);
	ca->most = lp_higher(ca->most, delay);
	ca->peak = lp_higher(ca->peak, delay);
	ca->smooth += delay - (ca->smooth >> LP_GAMMA_SHIFT);
}

/* TCP-LP, early congestion indication: d_min, over both halves of the memory. */
static __always_inline __s32 lp_least(const struct hstcp_lp_state *ca)
{
	return lp_lower(ca->least[0], ca->least[1]);
}

/* TCP-LP, early congestion indication: true above d_min + delta (d_max - d_min). */
static __always_inline bool lp_exceeds(const struct hstcp_lp_state *ca, __s64 delay)
{
	__s64 least = lp_least(ca);

	return 100 * (delay - least) > LP_DELTA_PERCENT * (ca->most - least);
}

/* True if the smoothed delay is above the threshold, by more than two ticks of the coarser clock. A smaller excess is
 * no sign of a queue. */
static __always_inline bool lp_is_above(const struct hstcp_lp_state *ca)
{
	__s64 smooth = ca->smooth >> LP_GAMMA_SHIFT;

	return lp_exceeds(ca, smooth) && smooth - lp_least(ca) > 2 * (__s64)ls_max(ca->their_unit, ca->our_unit);
}

/* At a loss with a queue, d_max falls towards the longest delay since the last loss, in steps. A loss without a queue
 * says nothing about queues. */
static __always_inline void lp_fade(struct hstcp_lp_state *ca)
{
	if (lp_exceeds(ca, ca->peak))
		ca->most -= (ca->most - ca->peak) >> LP_FADE_SHIFT;
	ca->peak = lp_least(ca);
}

/* True if delays have stayed above the threshold for an RTT. A busy host causes shorter excesses, a queue lasts. */
static __always_inline bool lp_is_congested(const struct tcp_sock *tp, struct hstcp_lp_state *ca)
{
	bool suspected = ca->suspects;

	ca->suspects = lp_is_above(ca);
	if (ca->suspects && !suspected)
		ca->suspected = tp->snd_nxt;
	return ca->suspects && suspected && after(tp->snd_una, ca->suspected);
}

static __always_inline __u64 lp_rtt(const struct tcp_sock *tp)
{
	return ls_max(tp->srtt_us >> 3, 1);
}

/* TCP-LP, inference phase: true while the flow only observes, after a response to congestion. */
static __always_inline bool lp_infers(const struct tcp_sock *tp, const struct hstcp_lp_state *ca)
{
	return ca->reduced && tp->tcp_mstamp - ca->reduced < LP_INFERENCE_RTTS * lp_rtt(tp);
}

/* TCP-LP, congestion avoidance: the first indication halves the window, another one within the inference phase reduces
 * it to the smallest. */
static __always_inline void lp_yield(struct tcp_sock *tp, struct hstcp_lp_state *ca)
{
	bool again = lp_infers(tp, ca);

	ca->reduced = tp->tcp_mstamp;
	ca->answered = tp->snd_nxt;
	/* The smallest window cannot be halved, and the threshold keeps the window from before. */
	if (tp->snd_cwnd <= LP_LEAST_CWND)
		return;
	tp->snd_ssthresh = ls_kept(tp, LS_HALF);
	tp->snd_cwnd = again ? LP_LEAST_CWND : ls_min(tp->snd_cwnd, tp->snd_ssthresh);
}

LS_CALLBACK(void, hstcp_lp_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct hstcp_lp_state *ca = ls_private(sk);
	__s32 delay;

	(void)sample;
	if (!ls_tstamp_ok(sk))
		return;
	if (!ca->their_unit) {
		lp_calibrate(sk, ca);
		return;
	}
	/* While bytes are missing, the peer echoes the old timestamp of the last packet that came in order. */
	if (ls_ca_state(sk) != TCP_CA_Open || tp->snd_una == ca->una)
		return;
	ca->una = tp->snd_una;
	delay = lp_delay(sk, ca);
	if (tp->snd_cwnd < LP_JUDGED_CWND)
		ca->answered = tp->snd_nxt;
	/* Until a packet sent after a response is acknowledged, delays show the queue before the response. */
	if (!after(tp->snd_una, ca->answered)) {
		ca->fresh = 0;
		ca->suspects = false;
		return;
	}
	/* `answered` moves along with snd_una; otherwise it would seem to be ahead after 2 GB. */
	ca->answered = tp->snd_una;
	lp_remember(ca, tp->tcp_mstamp, delay);
	/* TCP-LP: the first slow start, which ends with a loss, only measures d_max. */
	if (ca->fresh < 2 || tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH)
		return;
	if (lp_is_congested(tp, ca))
		lp_yield(tp, ca);
}

/* RFC 3649's a(w). No growth before the clocks are known, nor in the inference phase. */
LS_CALLBACK(void, hstcp_lp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct hstcp_lp_state *ca = ls_private(sk);

	(void)ack;
	if (!ca->their_unit || lp_infers(tp, ca))
		return;
	acked = ls_slow_start(sk, acked);
	if (acked)
		highspeed_grow(tp, &ca->credit, acked);
}

/* The decrease: RFC 3649's b(w). */
LS_CALLBACK(__u32, hstcp_lp_ssthresh, struct sock *sk)
{
	lp_fade(ls_private(sk));
	return highspeed_ssthresh(tcp_sk(sk));
}

LS_CALLBACK(__u32, hstcp_lp_undo_cwnd, struct sock *sk)
{
	return ls_undo(sk);
}

LS_CONTROL(hstcp_lp) = {
	.ssthresh = LS_OP(hstcp_lp_ssthresh),
	.cong_avoid = LS_OP(hstcp_lp_cong_avoid),
	.pkts_acked = LS_OP(hstcp_lp_pkts_acked),
	.undo_cwnd = LS_OP(hstcp_lp_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "ls_hstcp_lp",
};
