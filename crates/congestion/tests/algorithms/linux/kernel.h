// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The parts of the kernel that Linux's congestion controls need, for a program: the connection of c/native.h under the
 * kernel's names, and the kernel's arithmetic. Each source is compiled after this, without its #include lines, and
 * before table.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8, __u8;
typedef uint16_t u16;
typedef uint32_t u32, __u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

/* A jiffy is a millisecond (CONFIG_HZ_1000). The clock is that of the current call; no other thread reads it. */
#define HZ 1000
static __thread u32 ls_jiffies;
static __thread struct sock *ls_sk;
#define jiffies ls_jiffies
#define tcp_jiffies32 ls_jiffies
#define TCP_TS_HZ 1000
#define msecs_to_jiffies(ms) ((u32)(ms))
#define usecs_to_jiffies(us) (((u32)(us) + 999) / 1000)
#define jiffies_to_usecs(j) ((j) * 1000)

/* Private bytes of a control other than BBR end here; the rest holds the other fields of struct sock for Linux. */
#ifdef LS_WHOLE_PRIVATE
#define ICSK_CA_PRIV_SIZE 104
#else
#define ICSK_CA_PRIV_SIZE 80
#endif

/* struct sock of c/native.h; src/sock.rs asserts the offsets. */
struct sock {
	u64 tcp_mstamp, tcp_wstamp_ns, tcp_clock_cache, delivered_mstamp;
	unsigned long sk_pacing_rate, sk_max_pacing_rate;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh, prior_cwnd;
	u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
	u32 delivered, lost, app_limited, snd_una, snd_nxt, mss_cache, srtt_us, mdev_us, rtt_min;
	struct {
		u32 rcv_tsval, rcv_tsecr;
	} rx_opt;
	u32 random;
	u8 icsk_ca_state, is_cwnd_limited, tstamp_ok, sk_pacing_shift;
	union {
		u64 icsk_ca_priv[13];
		struct {
			u8 private_bytes[80];
			u32 lsndtime, sk_gso_max_size, sk_pacing_status;
		};
	};
};
_Static_assert(sizeof(struct sock) == 248 && offsetof(struct sock, icsk_ca_priv) == 144, "c/native.h");
_Static_assert(offsetof(struct sock, rx_opt) == 124 && offsetof(struct sock, delivered) == 88, "c/native.h");

#define tcp_sock sock
#define inet_connection_sock sock
#define tcp_sk(sk) ((struct sock *)(sk))
#define inet_csk(sk) (sk)
#define inet_csk_ca(sk) ((void *)(sk)->icsk_ca_priv)

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

/* In the order of c/native.h, which is not the kernel's. */
struct rate_sample {
	u64 prior_mstamp;
	long interval_us, rtt_us;
	u32 prior_delivered;
	s32 delivered, losses;
	u32 acked_sacked, prior_in_flight;
	u8 is_app_limited, is_retrans, is_ack_delayed, pad;
};

enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
#define TCPF_CA_Open (1 << TCP_CA_Open)
#define TCPF_CA_Disorder (1 << TCP_CA_Disorder)
enum tcp_ca_event { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS };
enum { CA_ACK_SLOWPATH = 1, CA_ACK_WIN_UPDATE = 2 };
enum { SK_PACING_NONE, SK_PACING_NEEDED };
enum { INET_DIAG_VEGASINFO = 3, INET_DIAG_BBRINFO = 16 };

struct tcpvegas_info {
	u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt;
};
union tcp_cc_info {
	struct tcpvegas_info vegas;
	struct {
		u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
	} bbr;
};

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[16];
	void *owner;
	u32 flags;
};
#define TCP_CONG_NON_RESTRICTED 1

static struct tcp_congestion_ops *ls_registered;
static inline int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	ls_registered = ops;
	return 0;
}
#define tcp_unregister_congestion_control(ops) ((void)(ops))

/* Modules, BTF and statistics do nothing here. */
#define __init
#define __exit __attribute__((unused))
#define __read_mostly
#define __bpf_kfunc
#define __always_unused __attribute__((unused))
#define THIS_MODULE NULL
#define EXPORT_SYMBOL(name)
#define EXPORT_SYMBOL_GPL(name)
#define module_param(name, type, mode)
#define MODULE_PARM_DESC(name, text)
#define MODULE_AUTHOR(text)
#define MODULE_LICENSE(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_VERSION(text)
#define module_init(function) static int (*const ls_module)(void) = function
#define module_exit(function)
#define BTF_KFUNCS_START(name) static int name;
#define BTF_ID_FLAGS(...)
#define BTF_KFUNCS_END(name)
#define BPF_PROG_TYPE_STRUCT_OPS 0
struct btf_kfunc_id_set {
	void *owner;
	int *set;
};
#define register_btf_kfunc_id_set(type, set) ((void)(set), 0)
#define NET_INC_STATS(...) ((void)0)
#define NET_ADD_STATS(...) ((void)0)
#define pr_debug(...) ((void)0)
#define WARN_ONCE(...) ((void)0)
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)

#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define cmpxchg(...) ((void)0)
#define likely(x) (x)
#define unlikely(x) (x)
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define min(a, b) ({ __auto_type ls_a = (a); __auto_type ls_b = (b); ls_a < ls_b ? ls_a : ls_b; })
#define max(a, b) ({ __auto_type ls_a = (a); __auto_type ls_b = (b); ls_a > ls_b ? ls_a : ls_b; })
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define clamp(x, low, high) max(low, min(x, high))
#define div_u64(a, b) ((u64)(a) / (b))
#define div64_u64(a, b) ((u64)(a) / (b))
#define div64_ul(a, b) ((u64)(a) / (b))
#define div64_long(a, b) ((s64)(a) / (b))
#define do_div(n, base) ((n) /= (base))
#define fls64(x) ((x) ? 64 - __builtin_clzll(x) : 0)

static inline bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}
#define after(a, b) before(b, a)
#define between(x, low, high) ((u32)((high) - (low)) >= (u32)((x) - (low)))

#define USEC_PER_SEC 1000000L
#define USEC_PER_MSEC 1000L
#define NSEC_PER_USEC 1000L
#define TCP_INIT_CWND 10
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define GSO_LEGACY_MAX_SIZE 65536U
#define MAX_TCP_HEADER 320
#define tcp_snd_cwnd(tp) ((tp)->snd_cwnd)
#define tcp_snd_cwnd_set(tp, value) ((tp)->snd_cwnd = (value))
#define tcp_in_slow_start(tp) ((tp)->snd_cwnd < (tp)->snd_ssthresh)
#define tcp_packets_in_flight(tp) ((tp)->packets_out - ((tp)->sacked_out + (tp)->lost_out) + (tp)->retrans_out)
#define tcp_min_rtt(tp) ((tp)->rtt_min)
#define tcp_stamp_us_delta(t1, t0) max_t(s64, (t1) - (t0), 0)

/* The random generator of bbr.c, so that both draw the same numbers. */
static inline u32 get_random_u32_below(u32 below)
{
	ls_sk->random = ls_sk->random * 1664525U + 1013904223U;
	return (u64)ls_sk->random * below >> 32;
}
