// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * A connection without a kernel. Each field has the kernel's name in struct tcp_sock, struct sock or
 * struct inet_connection_sock. src/sock.rs has the same structures, in the same order.
 */
#ifndef LANDSPEED_NATIVE_H
#define LANDSPEED_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef int32_t __s32;
typedef uint64_t __u64;
typedef int64_t __s64;

struct sock {
	__u64 tcp_mstamp; /* now, us */
	__u64 tcp_wstamp_ns; /* earliest departure of the next packet, ns */
	__u64 tcp_clock_cache; /* now, ns */
	__u64 delivered_mstamp; /* when `delivered` last grew, us */
	__u64 sk_pacing_rate; /* bytes/s */
	__u64 sk_max_pacing_rate; /* bytes/s */
	__u32 snd_cwnd; /* packets, like all counts below */
	__u32 snd_cwnd_cnt;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 prior_cwnd;
	__u32 packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 max_packets_out;
	__u32 delivered;
	__u32 lost;
	__u32 app_limited;
	__u32 snd_una; /* bytes */
	__u32 snd_nxt;
	__u32 mss_cache;
	__u32 srtt_us; /* 8 times the smoothed RTT */
	__u32 mdev_us; /* 4 times its mean deviation */
	__u32 rtt_min; /* us, ~0 before the first sample */
	__u32 rcv_tsval; /* the peer's clock on the last ACK, in its own unit */
	__u32 rcv_tsecr; /* our clock, echoed: milliseconds, as Linux sends them */
	__u32 random; /* state of the random generator, for controls that need one */
	__u8 icsk_ca_state;
	__u8 is_cwnd_limited;
	__u8 tstamp_ok;
	__u8 pad;
	__u64 icsk_ca_priv[13];
};
_Static_assert(sizeof(struct sock) == 248, "src/sock.rs");
_Static_assert(offsetof(struct sock, icsk_ca_priv) == 144, "src/sock.rs");

#define tcp_sock sock
#define tcp_sk(sk) (sk)

/* include/net/tcp.h */
struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us; /* -1: none */
	__u32 in_flight;
};
_Static_assert(sizeof(struct ack_sample) == 12, "src/sock.rs");

/* include/net/tcp.h */
struct rate_sample {
	__u64 prior_mstamp;
	__s64 interval_us;
	__s64 rtt_us; /* -1: none */
	__u32 prior_delivered;
	__s32 delivered; /* -1: no valid sample */
	__s32 losses;
	__u32 acked_sacked;
	__u32 prior_in_flight;
	__u8 is_app_limited;
	__u8 is_retrans;
	__u8 is_ack_delayed;
	__u8 pad;
};
_Static_assert(sizeof(struct rate_sample) == 48, "src/sock.rs");

/* include/net/tcp.h; a null callback is not called. */
struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, __u32 event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*cong_control)(struct sock *sk, __u32 ack, __s32 flag, const struct rate_sample *rs);
	__u32 flags;
	char name[16];
};

#define LS_CALLBACK(type, name, ...) static type name(__VA_ARGS__)
#define LS_CONTROL(id) const struct tcp_congestion_ops ls_##id
#define LS_OP(name) name

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

static __always_inline void *ls_private(struct sock *sk)
{
	return sk->icsk_ca_priv;
}

static __always_inline __u8 ls_ca_state(const struct sock *sk)
{
	return sk->icsk_ca_state;
}

static __always_inline __u32 ls_min_rtt(const struct sock *sk)
{
	return sk->rtt_min;
}

static __always_inline bool ls_tstamp_ok(const struct sock *sk)
{
	return sk->tstamp_ok;
}

static __always_inline __u32 ls_tsval(const struct sock *sk)
{
	return sk->rcv_tsval;
}

static __always_inline __u32 ls_tsecr(const struct sock *sk)
{
	return sk->rcv_tsecr;
}

/* include/net/tcp.h, tcp_is_cwnd_limited: without the flag, slow start goes up to twice the packets in flight. */
static __always_inline bool ls_is_cwnd_limited(const struct sock *sk)
{
	if (sk->is_cwnd_limited)
		return true;
	return sk->snd_cwnd < sk->snd_ssthresh && sk->snd_cwnd < 2 * (__u64)sk->max_packets_out;
}

/* net/ipv4/tcp_cong.c, RFC 5681 equation 2 in packets: one more for each acknowledged, up to ssthresh. Returns the
 * packets that remain for congestion avoidance. */
static __always_inline __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked)
{
	__u32 old = tp->snd_cwnd;
	__u64 grown = (__u64)old + acked;
	__u32 cwnd = grown < tp->snd_ssthresh ? grown : tp->snd_ssthresh;
	tp->snd_cwnd = cwnd < tp->snd_cwnd_clamp ? cwnd : tp->snd_cwnd_clamp;
	return acked - (cwnd - old);
}

/* net/ipv4/tcp_cong.c, RFC 5681 equation 3: one more for each `w` acknowledged. */
static __always_inline void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked)
{
	if (w == 0)
		w = 1;
	/* Credit earned at a larger w counts for one packet at most. */
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	if (tp->snd_cwnd_cnt >= w) {
		__u32 whole = tp->snd_cwnd_cnt / w;
		tp->snd_cwnd_cnt -= whole * w;
		tp->snd_cwnd += whole;
	}
	if (tp->snd_cwnd > tp->snd_cwnd_clamp)
		tp->snd_cwnd = tp->snd_cwnd_clamp;
}

#endif
