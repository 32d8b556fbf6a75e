// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * CUBIC as the kernel runs it, for the simulator: RFC 9438, and where Linux differs (net/ipv4/tcp_cubic.c), as Linux
 * does. HyStart ends slow start: S. Ha, I. Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55(9),
 * 2011. Times are microseconds unless stated otherwise.
 */
#include "cc.h"
#include "grow.h"

/* RFC 9438, section 4.6: beta, the share kept at a loss. Linux: 717/1024. */
#define CUBIC_BETA LS_FRACTION(717, 1024)

/* RFC 9438, section 4.1: C = 0.4 packets per cubic second. The divisor that turns cubic milliseconds into packets. */
#define CUBIC_MS3 2500000000ULL

/* RFC 9438, section 4.3: alpha = 3 (1 - beta) / (1 + beta), the packets that standard TCP would add per RTT. */
#define CUBIC_ALPHA LS_FRACTION(3 * (1024 - 717), 1024 + 717)

/* Linux: before the first loss, at least a packet for 20 acknowledged; never more than one for 2. */
#define CUBIC_FIRST_COUNT 20U
#define CUBIC_LEAST_COUNT 2U

/* Parameters of HyStart: those of Ha and Rhee, with Linux's values. */
#define HYSTART_LOW_WINDOW 16U
#define HYSTART_SAMPLES 8
#define HYSTART_SPACING 2000U
#define HYSTART_DELAY_MIN 4000U
#define HYSTART_DELAY_MAX 16000U
#define HYSTART_BURST (4ULL * 65536)

/* The longest time from the curve's middle, 2^20 ms or 17 minutes, so that its cube fits 64 bits. */
#define CUBIC_MAX_MS (1ULL << 20)

struct cubic_state {
	__u64 epoch; /* when this growth began; 0: it begins with the next acknowledgement */
	__u64 estimate; /* the window of standard TCP, in 1/LS_ONE packets */
	__u64 round_start; /* when HyStart's round began */
	__u64 last_ack; /* the time of the last acknowledgement of the train */
	__u64 heard; /* when the last acknowledgement came */
	__u32 w_max; /* the window at the last loss; 0: none yet */
	__u32 origin; /* the window in the curve's middle */
	__u32 k_ms; /* the time of the middle, in ms from the epoch */
	__u32 round_end; /* a sequence number */
	__u32 round_rtt; /* the smallest RTT of the round */
	__u32 delay_min;
	__u8 samples;
	__u8 found;
};
LS_STATE(cubic_state);

static __always_inline void cubic_new_round(struct sock *sk, struct cubic_state *ca)
{
	ca->round_start = ca->last_ack = tcp_sk(sk)->tcp_mstamp;
	ca->round_end = tcp_sk(sk)->snd_nxt;
	ca->round_rtt = ~0U;
	ca->samples = 0;
}

LS_CALLBACK(void, cubic_init, struct sock *sk)
{
	cubic_new_round(sk, ls_private(sk));
}

/* The largest x with x^3 <= a, for a below 2^63. */
static __always_inline __u32 cubic_root(__u64 a)
{
	__u64 x = 0;

	for (__u64 bit = 1ULL << 20; bit; bit >>= 1)
		if ((x | bit) * (x | bit) * (x | bit) <= a)
			x |= bit;
	return x;
}

/* RFC 9438, section 4.2, equation 2: begins an epoch; K is the time from now to the curve's middle. */
static __always_inline void cubic_begin(struct tcp_sock *tp, struct cubic_state *ca)
{
	__u32 cwnd = tp->snd_cwnd;

	ca->epoch = tp->tcp_mstamp;
	ca->estimate = (__u64)cwnd << 16;
	ca->origin = ls_max(ca->w_max, cwnd);
	ca->k_ms = cubic_root(ls_min64(ca->origin - cwnd, LS_MAX_CWND) * CUBIC_MS3);
}

/* RFC 9438, section 4.2, equation 1: W(t) = C (t - K)^3 + W_max, an RTT from now. */
static __always_inline __u32 cubic_target(const struct tcp_sock *tp, const struct cubic_state *ca)
{
	__u64 t_ms = (tp->tcp_mstamp - ca->epoch + ca->delay_min) / 1000;
	bool is_before = t_ms < ca->k_ms;
	__u64 from_k = ls_min64(is_before ? ca->k_ms - t_ms : t_ms - ca->k_ms, CUBIC_MAX_MS);
	__u64 delta = from_k * from_k * from_k / CUBIC_MS3;

	if (is_before)
		return delta < ca->origin ? ca->origin - delta : 0;
	return ls_min64(ca->origin + delta, LS_MAX_CWND);
}

/* RFC 9438, section 4.3, equation 4: at least the growth of standard TCP. */
static __always_inline __u32 cubic_friendly(struct cubic_state *ca, __u32 cwnd, __u32 acked, __u32 count)
{
	__u32 estimate;

	ca->estimate += ls_div((__u64)acked * CUBIC_ALPHA, cwnd);
	estimate = ls_min64(ca->estimate >> 16, LS_MAX_CWND);
	if (estimate <= cwnd)
		return count;
	return ls_min(count, cwnd / (estimate - cwnd));
}

/* Acknowledged packets for which the window grows by one: RFC 9438, sections 4.4 and 4.5. */
static __always_inline __u32 cubic_count(struct tcp_sock *tp, struct cubic_state *ca, __u32 acked)
{
	__u32 cwnd = tp->snd_cwnd;
	__u32 target, count;

	if (!ca->epoch)
		cubic_begin(tp, ca);
	target = cubic_target(tp, ca);
	count = target > cwnd ? cwnd / (target - cwnd) : ls_min(cwnd, LS_MAX_CWND) * 100;
	if (!ca->w_max)
		count = ls_min(count, CUBIC_FIRST_COUNT);
	count = cubic_friendly(ca, cwnd, acked, count);
	return ls_max(count, CUBIC_LEAST_COUNT);
}

LS_CALLBACK(void, cubic_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic_state *ca = ls_private(sk);

	(void)ack;
	acked = ls_slow_start(sk, acked);
	if (!acked)
		return;
	tcp_cong_avoid_ai(tp, cubic_count(tp, ca, acked), acked);
	tp->snd_cwnd = ls_min(tp->snd_cwnd, LS_MAX_CWND);
}

/* The decrease: RFC 9438, section 4.6, with fast convergence, section 4.7. */
LS_CALLBACK(__u32, cubic_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic_state *ca = ls_private(sk);
	__u32 cwnd = tp->snd_cwnd;

	ca->epoch = 0;
	ca->w_max = cwnd < ca->w_max ? (__u64)cwnd * (LS_ONE + CUBIC_BETA) >> 17 : cwnd;
	return ls_kept(tp, CUBIC_BETA);
}

/* Linux starts anew after a timeout, as RFC 9438, section 4.8, allows. */
LS_CALLBACK(void, cubic_set_state, struct sock *sk, __u8 new_state)
{
	struct cubic_state *ca = ls_private(sk);

	if (new_state != TCP_CA_Loss)
		return;
	ca->epoch = 0;
	ca->w_max = 0;
	ca->delay_min = 0;
	ca->found = 0;
	cubic_new_round(sk, ca);
}

/* RFC 9438, section 5.8: the curve stops while the application is silent. */
LS_CALLBACK(void, cubic_cwnd_event, struct sock *sk, __u32 event)
{
	struct cubic_state *ca = ls_private(sk);
	__u64 now = tcp_sk(sk)->tcp_mstamp;

	if (event == CA_EVENT_TX_START && ca->epoch && now > ca->heard)
		ca->epoch = ls_min64(ca->epoch + (now - ca->heard), now);
}

/* Ha and Rhee, packet trains: true for a train of closely spaced acknowledgements as long as half the path's delay. */
static __always_inline bool hystart_train(struct sock *sk, struct cubic_state *ca)
{
	__u64 now = tcp_sk(sk)->tcp_mstamp;
	__u64 burst = ls_div(HYSTART_BURST * LS_USEC_PER_SEC, sk->sk_pacing_rate);
	__u64 length = (ca->delay_min + ls_min64(burst, 1000)) / 2;

	if (now - ca->last_ack > HYSTART_SPACING)
		return false;
	ca->last_ack = now;
	return now - ca->round_start > length;
}

/* Ha and Rhee, delay increase: true if the round's smallest RTT is an eighth (4 to 16 ms) longer than the path's. */
static __always_inline bool hystart_delay(struct cubic_state *ca, __u32 rtt)
{
	__u32 more = ls_min(ls_max(ca->delay_min >> 3, HYSTART_DELAY_MIN), HYSTART_DELAY_MAX);

	ca->round_rtt = ls_min(ca->round_rtt, rtt);
	if (ca->samples < HYSTART_SAMPLES) {
		ca->samples++;
		return false;
	}
	return ca->round_rtt > ca->delay_min + more;
}

/* Linux: below a few packets, trains are neither detected nor continued. */
static __always_inline void hystart_update(struct sock *sk, struct cubic_state *ca, __u32 rtt)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool is_train, is_late;

	if (after(tp->snd_una, ca->round_end))
		cubic_new_round(sk, ca);
	if (tp->snd_cwnd < HYSTART_LOW_WINDOW)
		return;
	is_train = hystart_train(sk, ca);
	is_late = hystart_delay(ca, rtt);
	if (is_train || is_late) {
		ca->found = 1;
		tp->snd_ssthresh = tp->snd_cwnd;
	}
}

LS_CALLBACK(void, cubic_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic_state *ca = ls_private(sk);

	ca->heard = tp->tcp_mstamp;
	if (sample->rtt_us < 0)
		return;
	/* Linux ignores RTTs in the first second after a loss. */
	if (ca->epoch && tp->tcp_mstamp - ca->epoch < LS_USEC_PER_SEC)
		return;
	if (!ca->delay_min || ca->delay_min > (__u32)sample->rtt_us)
		ca->delay_min = ls_max(sample->rtt_us, 1);
	if (!ca->found && tcp_in_slow_start(tp))
		hystart_update(sk, ca, sample->rtt_us);
}

LS_CALLBACK(__u32, cubic_undo_cwnd, struct sock *sk)
{
	return ls_undo(sk);
}

LS_CONTROL(cubic) = {
	.init = LS_OP(cubic_init),
	.ssthresh = LS_OP(cubic_ssthresh),
	.cong_avoid = LS_OP(cubic_cong_avoid),
	.set_state = LS_OP(cubic_set_state),
	.cwnd_event = LS_OP(cubic_cwnd_event),
	.pkts_acked = LS_OP(cubic_pkts_acked),
	.undo_cwnd = LS_OP(cubic_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "cubic",
};
