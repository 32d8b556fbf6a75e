// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Growth of a window by fractions of a packet. The papers add a/w to a window w for each acknowledged packet. Windows
 * are whole packets here, so the fraction is kept as credit, in 2^-32 packets.
 */
#ifndef LANDSPEED_GROW_H
#define LANDSPEED_GROW_H

/* One packet in the fixed-point numbers of gains: 16 bits of fraction. */
#define LS_ONE (1U << 16)

/* a/b in 1/LS_ONE, rounded to the nearest, for constants. */
#define LS_FRACTION(a, b) ((__u32)(((__u64)(a) * LS_ONE + (b) / 2) / (b)))
#define LS_HALF (LS_ONE / 2)

/* The most packets of one acknowledgement that count, and the highest gain: their product times 2^16 fits 64 bits. */
#define LS_MAX_ACKED 0xffffU
#define LS_MAX_GAIN 0x7fffffffU

/*
 * Grows the window after `acked` packets were acknowledged, by `gain` packets (in 1/LS_ONE) for each window of them.
 * It grows at most by a packet for each one acknowledged, which is slow start; any more is dropped.
 */
static __always_inline void ls_grow(struct tcp_sock *tp, __u64 *credit, __u32 acked, __u64 gain)
{
	__u64 counted = ls_min(acked, LS_MAX_ACKED);
	__u64 sum = (*credit & 0xffffffffU) + ls_div(counted * ls_min64(gain, LS_MAX_GAIN) << 16, tp->snd_cwnd);
	__u64 cwnd = tp->snd_cwnd + ls_min64(sum >> 32, counted);

	*credit = sum & 0xffffffffU;
	if (cwnd > LS_MAX_CWND)
		cwnd = LS_MAX_CWND;
	tp->snd_cwnd = ls_min(cwnd, tp->snd_cwnd_clamp);
}

/*
 * The part that all controls share before congestion avoidance: no growth if the window was not in full use, slow
 * start (RFC 5681, section 3.1) below the threshold. Returns the packets that remain for congestion avoidance.
 */
static __always_inline __u32 ls_slow_start(struct sock *sk, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!ls_is_cwnd_limited(sk))
		return 0;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	return acked;
}

/* The part of the window that a loss leaves: `share` (in 1/LS_ONE, at most one) of it, rounded down, but at least RFC
   5681's two packets. */
static __always_inline __u32 ls_kept(const struct tcp_sock *tp, __u32 share)
{
	__u64 kept = (__u64)tp->snd_cwnd * ls_min(share, LS_ONE) >> 16;
	return ls_max(kept, LS_MIN_SSTHRESH);
}

/* The window less the share `decrease` of it, which is rounded down: as Linux's HighSpeed and Scalable do. */
static __always_inline __u32 ls_decreased(const struct tcp_sock *tp, __u32 decrease)
{
	__u64 lost = (__u64)tp->snd_cwnd * ls_min(decrease, LS_ONE) >> 16;
	return ls_max(tp->snd_cwnd - (__u32)lost, LS_MIN_SSTHRESH);
}

#endif
